// SPDX-License-Identifier: Apache-2.0
// UTF-8 is checked as RFC 3629 section 4 defines it: no overlong forms, no surrogates.
#include "core/import/text.h"

#include <cstdint>

namespace shardlens {

namespace {

/// Length of the well-formed sequence at the beginning of `text`, 0 if there is none.
std::size_t sequenceLength(std::string_view text) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = at(0);
    if (lead < 0x20 || lead == 0x7f) return 0;
    if (lead < 0x80) return 1;
    if (lead < 0xc2 || lead > 0xf4) return 0;
    const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((at(i) & 0xc0) != 0x80) return 0;
    const unsigned char second = at(1);
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f)) return 0;
    if ((lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f)) return 0;
    return length;
}

} // namespace

std::string cleaned(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        const std::size_t length = sequenceLength(text);
        if (length == 0)
            result.push_back('?');
        else
            result.append(text.substr(0, length));
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return result;
}

std::string inQuotes(std::string_view text) {
    constexpr std::size_t kLongest = 80;
    if (text.size() <= kLongest) return "'" + cleaned(text) + "'";
    return "'" + cleaned(text.substr(0, kLongest - 12)) + "…" +
           cleaned(text.substr(text.size() - 8)) + "'";
}

} // namespace shardlens
