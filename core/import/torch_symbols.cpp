// SPDX-License-Identifier: Apache-2.0
// See torch_symbols.h.
#include "core/import/torch_symbols.h"

#include "core/error.h"
#include "core/import/dim_expression.h"
#include "core/import/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <ranges>

namespace shardlens::torch {

namespace {

/// Blanks around operators: symbols of PyTorch hold none, but names elsewhere may.
std::string spaced(std::string_view text) {
    std::string result;
    for (const char c : text) {
        const bool word =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
        const bool joined = c == '/' && result.ends_with("/ "); // "//"
        if (joined) result.pop_back();
        if (!word && !joined) result += ' ';
        result += c;
        if (!word) result += ' ';
    }
    return result;
}

} // namespace

bool isReasonable(const Shape& shape) {
    return shape.size() <= kMaxRank &&
           std::ranges::all_of(shape, [](auto d) { return d >= 0 && d <= kMaxDim; }) &&
           elementsOf(shape) <= kMaxElements;
}

void Symbols::hint(std::string_view symbol, std::int64_t value) {
    if (value >= 0 && value <= kMaxDim) m_hints.emplace(std::string(symbol), value);
}

std::int64_t Symbols::valueOf(std::string_view symbol, int dim) {
    const std::string name = cleaned(symbol);
    if (const auto bound = m_bindings.find(name); bound != m_bindings.end()) return bound->second;
    std::int64_t value = dim == 0 ? m_options.batch : dim == 1 ? m_options.sequence : 1;
    if (const auto given = m_options.bindings.find(name); given != m_options.bindings.end())
        value = given->second;
    else if (const auto traced = m_hints.find(name); traced != m_hints.end())
        value = traced->second;
    else
        m_warnings.push_back(fmt::format("Dimension {} is not known and taken as {}; set it with "
                                         "--bind {}=N.",
                                         shardlens::inQuotes(name), value, name));
    m_bindings.emplace(name, value);
    return value;
}

std::optional<std::int64_t> Symbols::evaluate(std::string_view text, int dim) {
    std::int64_t number = 0;
    const char* end = text.data() + text.size();
    if (const auto [at, error] = std::from_chars(text.data(), end, number);
        error == std::errc{} && at == end)
        return number >= 0 && number <= kMaxDim ? std::optional(number) : std::nullopt;
    const std::string expression = spaced(text);
    if (namesInDimension(expression).empty()) return std::nullopt;
    const auto value =
        evaluateDimension(expression, [&](std::string_view name) -> std::optional<std::int64_t> {
            return valueOf(name, dim);
        });
    return value && *value >= 0 && *value <= kMaxDim ? value : std::nullopt;
}

void Symbols::checkBindings(const std::string& where) const {
    for (const auto& [name, value] : m_options.bindings) {
        if (value < 0 || value > kMaxDim)
            throw InputError(
                fmt::format("dimension {} cannot be bound to {}", shardlens::inQuotes(name), value),
                where, "give a size of at least 1");
        if (m_bindings.contains(name)) continue;
        throw InputError(
            fmt::format("the model has no symbolic dimension {}", shardlens::inQuotes(name)), where,
            m_bindings.empty()
                ? std::string("all its dimensions are fixed")
                : fmt::format("it has {}", fmt::join(std::views::keys(m_bindings), ", ")));
    }
}

} // namespace shardlens::torch
