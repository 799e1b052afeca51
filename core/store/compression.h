// SPDX-License-Identifier: Apache-2.0
// Long texts (graph snapshots, plans) are kept as zlib streams (RFC 1950); JSON shrinks about
// tenfold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardlens {

/// Longest text that is stored, and the most that is ever unpacked from a file, in bytes.
inline constexpr std::uint64_t kMaxTextBytes = 900'000'000;

/// Deterministic. @throws StoreError if the text is longer than kMaxTextBytes
std::vector<std::byte> compress(std::string_view text);

/// @param bytes the length of the text, which the stream must give exactly
/// @throws StoreError if the stream is damaged, or of another length
std::string decompress(std::span<const std::byte> stream, std::uint64_t bytes);

} // namespace shardlens
