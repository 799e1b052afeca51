// SPDX-License-Identifier: Apache-2.0
// zlib's one-call interface: the length is stored beside the stream, so that memory is bounded
// before anything is unpacked.
#include "core/store/compression.h"

#include "core/error.h"

#include <fmt/format.h>
#include <zlib.h>

namespace shardlens {

std::vector<std::byte> compress(std::string_view text) {
    if (text.size() > kMaxTextBytes)
        throw StoreError(fmt::format("a text of {} bytes is too long to be kept", text.size()), {},
                         fmt::format("at most {} bytes are possible", kMaxTextBytes));
    uLongf size = compressBound(text.size());
    std::vector<std::byte> stream(size);
    const int code =
        compress2(reinterpret_cast<Bytef*>(stream.data()), &size,
                  reinterpret_cast<const Bytef*>(text.data()), text.size(), Z_DEFAULT_COMPRESSION);
    if (code != Z_OK) throw StoreError("there is not enough memory to pack a text");
    stream.resize(size);
    return stream;
}

std::string decompress(std::span<const std::byte> stream, std::uint64_t bytes) {
    // zlib packs at most 1 : 1032 (https://zlib.net/zlib_tech.html); more is a lie.
    if (bytes > kMaxTextBytes || bytes / 1032 > stream.size())
        throw StoreError("a packed text is damaged (impossible length)");
    std::string text(bytes, '\0');
    uLongf size = text.size();
    const int code = uncompress(reinterpret_cast<Bytef*>(text.data()), &size,
                                reinterpret_cast<const Bytef*>(stream.data()), stream.size());
    if (code != Z_OK || size != bytes) throw StoreError("a packed text is damaged");
    return text;
}

} // namespace shardlens
