// SPDX-License-Identifier: Apache-2.0
// Un-gzips a file in memory (zlib), never beyond a limit: a few kilobytes can unfold to gigabytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace shardlens {

/// Un-gzipped size that is refused.
inline constexpr std::uint64_t kMaxUnzippedBytes = std::uint64_t{1} << 30;

bool looksLikeGzip(std::span<const std::byte> head) noexcept;

/// The first bytes of the content, at most `limit`; shorter if the file is cut off. Never throws
/// for bad data.
std::vector<std::byte> gunzipHead(std::span<const std::byte> file, std::size_t limit);

/// The whole content.
/// @param where names the file in messages
/// @throws InputError when the data is damaged, cut off, or unfolds to more than `limit` bytes
std::vector<std::byte> gunzip(std::span<const std::byte> file, const std::string& where,
                              const std::stop_token& stop = {},
                              std::uint64_t limit = kMaxUnzippedBytes);

} // namespace shardlens
