// SPDX-License-Identifier: Apache-2.0
// ZIP archives written by hand for tests (PKWARE APPNOTE 6.3.10), so that the reader is not tested
// against itself: stored or deflated members, with 32-bit or ZIP64 fields, and wrong ones on
// demand.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shardlens::test {

struct ZipMember {
    std::string name, content;
    bool deflated = false;
};

class ZipWriter {
public:
    explicit ZipWriter(bool zip64 = false) : m_zip64(zip64) {}

    ZipWriter& add(const ZipMember& member) {
        const std::string packed = member.deflated ? deflated(member.content) : member.content;
        const std::uint64_t offset = m_file.size();
        const std::uint32_t method = member.deflated ? 8 : 0;
        const auto checksum = static_cast<std::uint32_t>(
            crc32(0, reinterpret_cast<const Bytef*>(member.content.data()),
                  static_cast<uInt>(member.content.size())));
        const auto sizes = [&](std::string& out) {
            number(out, checksum, 4);
            number(out, m_zip64 ? 0xffffffff : packed.size(), 4);
            number(out, m_zip64 ? 0xffffffff : member.content.size(), 4);
        };
        number(m_file, 0x04034b50, 4);
        for (const std::uint32_t field : {20U, 0U, method, 0U, 0U}) number(m_file, field, 2);
        sizes(m_file);
        number(m_file, member.name.size(), 2);
        number(m_file, 0, 2);
        m_file += member.name + packed;

        number(m_directory, 0x02014b50, 4);
        for (const std::uint32_t field : {20U, 20U, 0U, method, 0U, 0U})
            number(m_directory, field, 2);
        sizes(m_directory);
        std::string extra;
        if (m_zip64) {
            number(extra, 1, 2);
            number(extra, 24, 2);
            for (const std::uint64_t field :
                 {std::uint64_t{member.content.size()}, std::uint64_t{packed.size()}, offset})
                number(extra, field, 8);
        }
        number(m_directory, member.name.size(), 2);
        number(m_directory, extra.size(), 2);
        for (int i = 0; i < 3; ++i) number(m_directory, 0, 2);
        number(m_directory, 0, 4);
        number(m_directory, m_zip64 ? 0xffffffff : offset, 4);
        m_directory += member.name + extra;
        ++m_count;
        return *this;
    }

    std::string finish(const std::string& comment = {}) const {
        std::string file = m_file;
        const std::uint64_t start = file.size();
        file += m_directory;
        if (m_zip64) {
            const std::uint64_t end = file.size();
            number(file, 0x06064b50, 4);
            number(file, 44, 8);
            number(file, 45, 2);
            number(file, 45, 2);
            number(file, 0, 4);
            number(file, 0, 4);
            for (const std::uint64_t field :
                 {m_count, m_count, std::uint64_t{m_directory.size()}, start})
                number(file, field, 8);
            number(file, 0x07064b50, 4);
            number(file, 0, 4);
            number(file, end, 8);
            number(file, 1, 4);
        }
        number(file, 0x06054b50, 4);
        number(file, 0, 4);
        for (int i = 0; i < 2; ++i) number(file, m_zip64 ? 0xffff : m_count, 2);
        number(file, m_directory.size(), 4);
        number(file, m_zip64 ? 0xffffffff : start, 4);
        number(file, comment.size(), 2);
        return file + comment;
    }

private:
    static void number(std::string& out, std::uint64_t value, int bytes) {
        for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
    }

    static std::string deflated(const std::string& content) {
        z_stream stream{};
        deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
        std::string result(deflateBound(&stream, content.size()), '\0');
        std::string input = content;
        stream.next_in = reinterpret_cast<Bytef*>(input.data());
        stream.avail_in = static_cast<uInt>(input.size());
        stream.next_out = reinterpret_cast<Bytef*>(result.data());
        stream.avail_out = static_cast<uInt>(result.size());
        deflate(&stream, Z_FINISH);
        result.resize(stream.total_out);
        deflateEnd(&stream);
        return result;
    }

    bool m_zip64;
    std::string m_file, m_directory;
    std::uint64_t m_count = 0;
};

} // namespace shardlens::test
