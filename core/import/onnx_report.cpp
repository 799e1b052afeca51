// SPDX-License-Identifier: Apache-2.0
// Wording of the import's warnings.
#include "core/import/onnx_report.h"

#include "core/import/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

namespace shardlens::onnx {

namespace {

std::string_view plural(std::size_t count) {
    return count == 1 ? "" : "s";
}

} // namespace

void Report::add(Counts& counts, std::string key) {
    ++counts[std::move(key)];
}

void Report::unknownShape(std::string value) {
    if (m_unknown++ == 0) m_firstUnknown = std::move(value);
}

std::vector<std::string> Report::sentences() const {
    std::vector<std::string> result = m_sentences;
    if (!m_mixedRanks.empty()) {
        constexpr std::size_t kShown = 8;
        const std::span<const std::size_t> shown(m_mixedRanks.data(),
                                                 std::min(kShown, m_mixedRanks.size()));
        result.push_back(fmt::format(
            "Concat joins tensors of rank 1 and rank 0, which ONNX does not allow; rank 0 is read "
            "as one element ({} node{}: {}{}).",
            m_mixedRanks.size(), plural(m_mixedRanks.size()), fmt::join(shown, ", "),
            m_mixedRanks.size() > kShown ? ", …" : ""));
    }
    for (const auto& [type, count] : m_dataDependent)
        result.push_back(
            fmt::format("The size of the result of {} depends on the data; it is taken "
                        "at its largest ({} node{}).",
                        cleaned(type), count, plural(count)));
    for (const auto& [type, count] : m_opaque)
        result.push_back(fmt::format("{} is not understood: {} opaque op{}, replicated on every "
                                     "device.",
                                     cleaned(type), count, plural(count)));
    if (m_unknown > 0)
        result.push_back(fmt::format("The shape of {} value{} is not known, {} first.", m_unknown,
                                     plural(m_unknown), shardlens::inQuotes(m_firstUnknown)));
    constexpr std::size_t kMost = 40;
    if (result.size() > kMost) {
        const std::size_t more = result.size() - kMost;
        result.resize(kMost);
        result.push_back(fmt::format("{} more warnings are not shown.", more));
    }
    return result;
}

} // namespace shardlens::onnx
