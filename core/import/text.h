// SPDX-License-Identifier: Apache-2.0
// Names out of foreign files, made fit for messages and for the graph: valid UTF-8, no control
// characters, and in messages of bounded length.
#pragma once

#include <string>
#include <string_view>

namespace shardlens {

/// Valid UTF-8 without control characters; each byte that is neither becomes '?'.
std::string cleaned(std::string_view text);

/// Cleaned, at most about 80 characters, between single quotes.
std::string inQuotes(std::string_view text);

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

} // namespace shardlens
