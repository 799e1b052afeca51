// SPDX-License-Identifier: Apache-2.0
// Names are free text: `batch_size`, `N`, `inputs_attention_mask_dim1`, `past_sequence_length + 1`.
// What a name looks like decides its default only; `--bind` always has the last word.
#include "core/import/onnx_symbols.h"

#include "core/error.h"
#include "core/import/dim_expression.h"
#include "core/import/onnx_tensor.h"
#include "core/import/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace shardlens::onnx {

namespace {

std::string lower(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return result;
}

template <std::size_t N>
bool isOneOf(std::string_view name, const std::array<std::string_view, N>& names) {
    return std::ranges::find(names, name) != names.end();
}

bool looksLikePast(std::string_view name) {
    return name.find("past") != std::string_view::npos;
}

bool looksLikeBatch(std::string_view name) {
    static constexpr std::array<std::string_view, 4> kNames{"n", "b", "bs", "bsz"};
    return isOneOf(name, kNames) || name.find("batch") != std::string_view::npos ||
           name.ends_with("dim0") || name.ends_with("dim_0");
}

bool looksLikeSequence(std::string_view name, bool indices) {
    static constexpr std::array<std::string_view, 5> kNames{"s", "t", "l", "len", "time"};
    return isOneOf(name, kNames) || name.find("seq") != std::string_view::npos ||
           name.find("token") != std::string_view::npos ||
           name.find("length") != std::string_view::npos ||
           (indices && (name.ends_with("dim1") || name.ends_with("dim_1")));
}

std::string nameOfDimension(const ValueInfo& value, std::size_t index) {
    return fmt::format("{}.dim{}", cleaned(value.name), index);
}

} // namespace

Symbols::Symbols(const std::vector<const ValueInfo*>& inputs, const ImportOptions& options,
                 const std::string& where)
    : m_options(options) {
    std::vector<Use> uses;
    for (const ValueInfo* input : inputs) collect(*input, uses, where);
    checkBindings(uses, where);
    for (const Use& use : uses) bind(use);
}

void Symbols::collect(const ValueInfo& input, std::vector<Use>& uses, const std::string& where) {
    if (!input.dims) return;
    const bool indices = input.dims->size() == 2 && !isFloat(input.dtype);
    const auto add = [&](std::string name) {
        if (m_names.insert(name).second) uses.push_back({std::move(name), indices});
    };
    for (std::size_t i = 0; i < input.dims->size(); ++i) {
        const Dimension& dim = (*input.dims)[i];
        if (const auto* size = std::get_if<std::int64_t>(&dim)) {
            if (*size < -1 || *size > kMaxDim)
                throw InputError(fmt::format("input {} is declared with the impossible size {} at "
                                             "byte {}",
                                             inQuotes(input.name), *size, input.offset),
                                 where, "export the model again");
            if (*size == -1) add(nameOfDimension(input, i)); // some exporters write "unknown" so
        } else if (const auto* text = std::get_if<std::string_view>(&dim)) {
            const auto names = namesInDimension(*text);
            if (names.empty() || m_options.bindings.contains(cleaned(*text)))
                add(cleaned(*text));
            else
                for (const std::string_view name : names) add(cleaned(name));
        } else {
            add(nameOfDimension(input, i));
        }
    }
}

void Symbols::checkBindings(const std::vector<Use>& uses, const std::string& where) const {
    for (const auto& [name, value] : m_options.bindings) {
        if (value < 0 || value > kMaxDim)
            throw InputError(
                fmt::format("dimension {} cannot be bound to {}", shardlens::inQuotes(name), value),
                where, "give a size of at least 1");
        if (m_names.contains(name)) continue;
        std::vector<std::string_view> known;
        std::ranges::transform(uses, std::back_inserter(known), &Use::name);
        std::ranges::sort(known);
        throw InputError(
            fmt::format("the model has no symbolic dimension {}", shardlens::inQuotes(name)), where,
            known.empty() ? std::string("all its dimensions are fixed")
                          : fmt::format("it has {}", fmt::join(known, ", ")));
    }
}

void Symbols::bind(const Use& use) {
    if (const auto given = m_options.bindings.find(use.name); given != m_options.bindings.end()) {
        m_bindings.emplace(use.name, given->second);
        return;
    }
    m_guessed = true;
    const std::string name = lower(use.name);
    std::int64_t value = 1;
    if (looksLikePast(name)) {
        value = 0; // nothing is cached before the first step
        m_warnings.push_back(fmt::format("Dimension {} is taken as 0 (an empty cache); set it with "
                                         "--bind {}=N.",
                                         shardlens::inQuotes(use.name), use.name));
    } else if (looksLikeBatch(name)) {
        value = m_options.batch;
    } else if (looksLikeSequence(name, use.indices)) {
        value = m_options.sequence;
        m_sequenceGuessed = true;
    } else {
        m_warnings.push_back(
            fmt::format("Dimension {} is not known and taken as 1; set it with --bind {}=N.",
                        shardlens::inQuotes(use.name), use.name));
    }
    m_bindings.emplace(use.name, value);
}

std::optional<std::int64_t> Symbols::evaluate(std::string_view text) const {
    const auto valueOf = [this](std::string_view name) -> std::optional<std::int64_t> {
        const auto bound = m_bindings.find(cleaned(name));
        if (bound == m_bindings.end()) return std::nullopt;
        return bound->second;
    };
    if (const auto whole = valueOf(text)) return whole;
    const auto value = evaluateDimension(text, valueOf);
    return value && *value >= 0 ? value : std::nullopt;
}

std::optional<std::int64_t> Symbols::sizeOf(const ValueInfo& value, std::size_t index) const {
    const Dimension& dim = (*value.dims)[index];
    if (const auto* size = std::get_if<std::int64_t>(&dim))
        if (*size >= 0 && *size <= kMaxDim) return *size;
    if (const auto* text = std::get_if<std::string_view>(&dim)) return evaluate(*text);
    const auto named = m_bindings.find(nameOfDimension(value, index));
    if (named == m_bindings.end()) return std::nullopt;
    return named->second;
}

std::optional<Shape> Symbols::inputShape(const ValueInfo& input) const {
    if (!input.dims) return std::nullopt;
    Shape shape;
    for (std::size_t i = 0; i < input.dims->size(); ++i) {
        const auto size = sizeOf(input, i);
        if (!size) return std::nullopt;
        shape.push_back(*size);
    }
    return shape;
}

std::optional<TensorSpec> Symbols::declared(const ValueInfo& value) const {
    if (value.dtype == DType::Unknown) return std::nullopt;
    auto shape = inputShape(value);
    if (!shape || elementsOf(*shape) > kMaxElements) return std::nullopt;
    return TensorSpec{value.dtype, std::move(*shape)};
}

} // namespace shardlens::onnx
