// SPDX-License-Identifier: Apache-2.0
// zlib reads one gzip member after another, as gzip(1) does.
#include "core/solve/text_source.h"

#include "core/error.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <vector>

namespace shardlens::solve {

struct TextSource::Inflater {
    explicit Inflater(std::string_view bytes) : left(bytes), window(std::size_t{1} << 16) {
        constexpr int kGzipOnly = 15 + 16;
        if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
    }
    ~Inflater() { inflateEnd(&stream); }
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;

    /// @return bytes written to the window; 0 at the end
    std::size_t next() {
        stream.next_out = reinterpret_cast<Bytef*>(window.data());
        stream.avail_out = static_cast<uInt>(window.size());
        while (stream.avail_out == window.size()) {
            if (ended) {
                if (left.empty()) return 0;
                inflateReset(&stream);
                ended = false;
            }
            step();
        }
        return window.size() - stream.avail_out;
    }

    void step() {
        const std::size_t given =
            std::min<std::size_t>(left.size(), std::numeric_limits<uInt>::max());
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(left.data()));
        stream.avail_in = static_cast<uInt>(given);
        const int result = inflate(&stream, Z_NO_FLUSH);
        left.remove_prefix(given - stream.avail_in);
        ended = result == Z_STREAM_END;
        if (result == Z_MEM_ERROR) throw std::bad_alloc();
        if (result == Z_BUF_ERROR || (result == Z_OK && left.empty() && stream.avail_out > 0)) {
            throw InputError("the gzip data end too early", {}, "fetch the file again");
        }
        if (result != Z_OK && !ended) {
            throw InputError("the gzip data are damaged", {}, "fetch the file again");
        }
    }

    z_stream stream{};
    std::string_view left;
    bool ended = false;
    std::vector<char> window;
};

TextSource::TextSource(std::string_view bytes) {
    if (bytes.starts_with("\x1f\x8b")) {
        m_inflater = std::make_unique<Inflater>(bytes);
        refill();
    } else {
        m_at = bytes.data();
        m_end = bytes.data() + bytes.size();
    }
}

TextSource::~TextSource() = default;

void TextSource::refill() {
    if (!m_inflater) return;
    const std::size_t size = m_inflater->next();
    m_at = m_inflater->window.data();
    m_end = m_at + size;
}

} // namespace shardlens::solve
