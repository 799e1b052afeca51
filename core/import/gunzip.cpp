// SPDX-License-Identifier: Apache-2.0
// Streams gzip members through zlib's inflate in steps of 1 MiB.
#include "core/import/gunzip.h"

#include "core/error.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

namespace shardlens {

namespace {

constexpr std::size_t kGunzipStep = std::size_t{1} << 20;

/// Owns zlib's stream state.
class Inflater {
public:
    explicit Inflater(std::span<const std::byte> input) : m_input(input) {
        constexpr int kGzipOnly = 16 + MAX_WBITS;
        if (::inflateInit2(&m_stream, kGzipOnly) != Z_OK) throw Error("zlib cannot be started");
    }
    ~Inflater() { ::inflateEnd(&m_stream); }
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;

    /// Appends up to `room` bytes. @return zlib's code
    int step(std::vector<std::byte>& output, std::size_t room) {
        const std::size_t before = output.size();
        output.resize(before + room);
        const std::size_t given =
            std::min<std::size_t>(m_input.size() - m_read, std::numeric_limits<uInt>::max() / 2);
        m_stream.next_in = reinterpret_cast<Bytef*>( // NOLINT: zlib does not write to its input
            const_cast<std::byte*>(m_input.data() + m_read));
        m_stream.avail_in = static_cast<uInt>(given);
        m_stream.next_out = reinterpret_cast<Bytef*>(output.data() + before);
        m_stream.avail_out = static_cast<uInt>(room);
        int code = ::inflate(&m_stream, Z_NO_FLUSH);
        m_read += given - m_stream.avail_in;
        output.resize(before + room - m_stream.avail_out);
        if (code == Z_STREAM_END && looksLikeGzip(m_input.subspan(m_read)))
            code = ::inflateReset(&m_stream); // the next member
        return code;
    }

    std::size_t read() const { return m_read; }

private:
    std::span<const std::byte> m_input;
    std::size_t m_read = 0;
    z_stream m_stream{};
};

} // namespace

bool looksLikeGzip(std::span<const std::byte> head) noexcept {
    return head.size() >= 3 && head[0] == std::byte{0x1f} && head[1] == std::byte{0x8b} &&
           head[2] == std::byte{8};
}

std::vector<std::byte> gunzipHead(std::span<const std::byte> file, std::size_t limit) {
    std::vector<std::byte> content;
    Inflater inflater(file);
    while (content.size() < limit) {
        const std::size_t before = content.size();
        const int code = inflater.step(content, limit - content.size());
        if (code != Z_OK || content.size() == before) break;
    }
    return content;
}

std::vector<std::byte> gunzip(std::span<const std::byte> file, const std::string& where,
                              const std::stop_token& stop, std::uint64_t limit) {
    std::vector<std::byte> content;
    Inflater inflater(file);
    while (true) {
        if (stop.stop_requested()) throw Cancelled();
        const std::size_t before = content.size();
        const std::size_t beforeRead = inflater.read();
        const int code = inflater.step(content, kGunzipStep);
        if (content.size() > limit)
            throw InputError(fmt::format("the gzip file unfolds to more than {} MiB", limit >> 20),
                             where, "unpack it first and open the file inside");
        if (code == Z_STREAM_END) return content;
        const bool stuck = content.size() == before && inflater.read() == beforeRead;
        if (code == Z_OK && !stuck) continue;
        const bool cutOff = code == Z_BUF_ERROR || stuck;
        throw InputError(fmt::format("the gzip data is {} at byte {}",
                                     cutOff ? "cut off" : "damaged", inflater.read()),
                         where, "copy or download the file again");
    }
}

} // namespace shardlens
