// SPDX-License-Identifier: Apache-2.0
// See zip_archive.h. All numbers are little-endian; every read is checked against the file's end.
#include "core/import/zip_archive.h"

#include "core/error.h"
#include "core/import/text.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

namespace shardlens {

namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50,
                        kDirectoryEnd = 0x06054b50, kDirectoryEnd64 = 0x06064b50,
                        kLocator64 = 0x07064b50;
constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30, kLocatorBytes = 20;
constexpr std::uint32_t kIn64 = 0xffffffff;

class Bytes {
public:
    Bytes(std::span<const std::byte> file, const std::string& where)
        : m_file(file), m_where(where) {}

    [[noreturn]] void fail(const std::string& problem, std::uint64_t at) const {
        throw InputError(problem, fmt::format("{}, byte {}", m_where, at),
                         "the archive is damaged or cut off: save it again");
    }

    std::span<const std::byte> part(std::uint64_t at, std::uint64_t count) const {
        if (at > m_file.size() || count > m_file.size() - at)
            fail("the archive ends in the middle of an entry", at);
        return m_file.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count));
    }

    std::uint64_t number(std::uint64_t at, std::size_t bytes) const {
        std::uint64_t value = 0;
        const auto from = part(at, bytes);
        for (std::size_t i = bytes; i-- > 0;)
            value = value << 8 | std::to_integer<unsigned>(from[i]);
        return value;
    }
    std::uint16_t u16(std::uint64_t at) const { return static_cast<std::uint16_t>(number(at, 2)); }
    std::uint32_t u32(std::uint64_t at) const { return static_cast<std::uint32_t>(number(at, 4)); }
    std::uint64_t u64(std::uint64_t at) const { return number(at, 8); }
    std::uint64_t size() const { return m_file.size(); }

private:
    std::span<const std::byte> m_file;
    const std::string& m_where;
};

struct Directory {
    std::uint64_t offset = 0, count = 0;
};

/// The end record is the last thing in the file, but for a comment of up to 64 KiB.
Directory findDirectory(const Bytes& bytes) {
    constexpr std::uint64_t kLongestComment = 0xffff;
    if (bytes.size() < kEndBytes) bytes.fail("the archive has no directory", bytes.size());
    const std::uint64_t last = bytes.size() - kEndBytes;
    const std::uint64_t first = last - std::min(last, kLongestComment);
    for (std::uint64_t at = last + 1; at-- > first;) {
        if (bytes.u32(at) != kDirectoryEnd) continue;
        Directory directory{bytes.u32(at + 16), bytes.u16(at + 10)};
        const bool large = directory.offset == kIn64 || directory.count == 0xffff;
        if (large && at >= kLocatorBytes && bytes.u32(at - kLocatorBytes) == kLocator64) {
            const std::uint64_t end64 = bytes.u64(at - kLocatorBytes + 8);
            if (bytes.u32(end64) != kDirectoryEnd64)
                bytes.fail("the archive's ZIP64 directory is not where it should be", end64);
            directory = {bytes.u64(end64 + 48), bytes.u64(end64 + 32)};
        }
        return directory;
    }
    bytes.fail("the archive has no directory", bytes.size());
}

/// Sizes and offset that do not fit 32 bits stand in an extra field, in this order.
void readLargeFields(const Bytes& bytes, std::uint64_t at, std::uint64_t end,
                     ZipArchive::Entry& entry) {
    constexpr std::uint16_t kZip64 = 1;
    while (at + 4 <= end) {
        const std::uint16_t id = bytes.u16(at), length = bytes.u16(at + 2);
        at += 4;
        if (id == kZip64) {
            std::uint64_t field = at;
            for (std::uint64_t* value : {&entry.size, &entry.packed, &entry.offset}) {
                if (*value != kIn64) continue;
                if (field + 8 > std::min(at + length, end))
                    bytes.fail("a ZIP64 size is missing", field);
                *value = bytes.u64(field);
                field += 8;
            }
            return;
        }
        at += length;
    }
}

void checkName(const Bytes& bytes, std::string_view name, std::uint64_t at) {
    bool leaves = name.empty() || name.front() == '/' ||
                  name.find_first_of(std::string_view("\\\0", 2)) != std::string_view::npos ||
                  (name.size() > 1 && name[1] == ':');
    for (std::string_view rest = name; !leaves;) {
        const auto slash = rest.find('/');
        leaves = rest.substr(0, slash) == "..";
        if (slash == std::string_view::npos) break;
        rest.remove_prefix(slash + 1);
    }
    if (leaves)
        bytes.fail(fmt::format("the archive has a member with the name {}, which leads out of it",
                               inQuotes(name)),
                   at);
}

std::string inflated(std::span<const std::byte> packed, std::uint64_t size, const Bytes& bytes,
                     std::uint64_t at, const std::stop_token& stop) {
    constexpr std::size_t kStep = std::size_t{1} << 20;
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw Error("zlib cannot be started");
    std::string result;
    int status = Z_OK;
    std::size_t read = 0;
    while (status == Z_OK && result.size() <= size) {
        if (stop.stop_requested()) break;
        if (stream.avail_in == 0 && read < packed.size()) {
            const std::size_t count = std::min(kStep, packed.size() - read);
            stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + read));
            stream.avail_in = static_cast<uInt>(count);
            read += count;
        }
        const std::size_t before = result.size();
        result.resize(before + kStep);
        stream.next_out = reinterpret_cast<Bytef*>(result.data() + before);
        stream.avail_out = static_cast<uInt>(kStep);
        status = inflate(&stream, Z_NO_FLUSH);
        result.resize(result.size() - stream.avail_out);
        if (status == Z_BUF_ERROR && read < packed.size()) status = Z_OK;
    }
    inflateEnd(&stream);
    if (stop.stop_requested()) throw Cancelled();
    if (status != Z_STREAM_END || result.size() != size)
        bytes.fail("a compressed member of the archive is damaged", at);
    return result;
}

} // namespace

ZipArchive::ZipArchive(std::span<const std::byte> file, std::string where)
    : m_file(file), m_where(std::move(where)) {
    const Bytes bytes(m_file, m_where);
    const Directory directory = findDirectory(bytes);
    std::uint64_t at = directory.offset;
    if (at > bytes.size() || directory.count > (bytes.size() - at) / kEntryBytes)
        bytes.fail("the archive's directory is longer than the file", at);
    std::unordered_set<std::string> names;
    for (std::uint64_t i = 0; i < directory.count; ++i) {
        if (bytes.u32(at) != kDirectoryEntry)
            bytes.fail("an entry of the archive's directory is damaged", at);
        Entry entry;
        const std::uint16_t flags = bytes.u16(at + 8);
        entry.method = bytes.u16(at + 10);
        entry.checksum = bytes.u32(at + 16);
        entry.packed = bytes.u32(at + 20);
        entry.size = bytes.u32(at + 24);
        entry.offset = bytes.u32(at + 42);
        const std::uint64_t name = bytes.u16(at + 28), extra = bytes.u16(at + 30),
                            comment = bytes.u16(at + 32);
        const auto text = bytes.part(at + kEntryBytes, name);
        entry.name.assign(reinterpret_cast<const char*>(text.data()), text.size());
        const std::uint64_t extras = at + kEntryBytes + name;
        bytes.part(extras, extra);
        readLargeFields(bytes, extras, extras + extra, entry);
        checkName(bytes, entry.name, at);
        if ((flags & 1U) != 0)
            bytes.fail(fmt::format("the member {} is encrypted", inQuotes(entry.name)), at);
        if (!names.insert(entry.name).second)
            bytes.fail(fmt::format("the archive holds {} twice", inQuotes(entry.name)), at);
        at = extras + extra + comment;
        m_entries.push_back(std::move(entry));
    }
}

std::string ZipArchive::read(const Entry& entry, std::uint64_t limit,
                             const std::stop_token& stop) const {
    const Bytes bytes(m_file, m_where);
    if (entry.size > limit)
        throw InputError(fmt::format("the member {} holds {} bytes, more than can be read",
                                     inQuotes(entry.name), entry.size),
                         m_where, "the file is no exported model");
    if (bytes.u32(entry.offset) != kLocalHeader)
        bytes.fail(fmt::format("the member {} is not where it should be", inQuotes(entry.name)),
                   entry.offset);
    const std::uint64_t data =
        entry.offset + kLocalBytes + bytes.u16(entry.offset + 26) + bytes.u16(entry.offset + 28);
    const auto packed = bytes.part(data, entry.packed);
    std::string content;
    if (entry.method == 0) {
        if (entry.packed != entry.size)
            bytes.fail("a stored member of the archive has two sizes", entry.offset);
        content.assign(reinterpret_cast<const char*>(packed.data()), packed.size());
    } else if (entry.method == Z_DEFLATED) {
        content = inflated(packed, entry.size, bytes, entry.offset, stop);
    } else {
        bytes.fail(fmt::format("the member {} is compressed in an unusual way (method {})",
                               inQuotes(entry.name), entry.method),
                   entry.offset);
    }
    const uLong checksum =
        crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
    if (checksum != entry.checksum)
        bytes.fail(fmt::format("the checksum of the member {} is wrong", inQuotes(entry.name)),
                   entry.offset);
    return content;
}

} // namespace shardlens
