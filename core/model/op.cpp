// SPDX-License-Identifier: Apache-2.0
// Names of the op kinds, and typed access to attributes.
#include "core/model/op.h"

#include <algorithm>
#include <array>

namespace shardlens {

namespace {

/// In the order of OpKind.
constexpr std::array<std::string_view, 59> kKindNames{
    "Input",
    "Parameter",
    "Constant",
    "MatMul",
    "Einsum",
    "Attention",
    "Rotary",
    "Conv",
    "ConvTranspose",
    "Pool",
    "GlobalPool",
    "Elementwise",
    "Dropout",
    "Softmax",
    "Norm",
    "Gather",
    "Transpose",
    "Reshape",
    "Expand",
    "Concat",
    "Split",
    "Slice",
    "Pad",
    "Reduce",
    "ArgReduce",
    "TopK",
    "CumSum",
    "Tile",
    "GatherElements",
    "GatherND",
    "Scatter",
    "OneHot",
    "Generate",
    "Trilu",
    "ReverseSequence",
    "LocalNorm",
    "Resize",
    "GridSample",
    "RoiAlign",
    "Recurrent",
    "Gates",
    "Experts",
    "DynamicSlice",
    "DynamicUpdate",
    "GatherWindows",
    "ScatterWindows",
    "Sort",
    "ReduceWindow",
    "SelectAndScatter",
    "LinearAlgebra",
    "Fourier",
    "Bitcast",
    "RandomBits",
    "Gradient",
    "MoeDispatch",
    "MoeCombine",
    "CrossEntropy",
    "Collective",
    "Opaque",
};
static_assert(kKindNames.size() == static_cast<std::size_t>(OpKind::Opaque) + 1);

} // namespace

std::string_view nameOf(OpKind kind) noexcept {
    const auto index = static_cast<std::size_t>(kind);
    return index < kKindNames.size() ? kKindNames[index] : kKindNames.back();
}

std::optional<OpKind> opKindFromName(std::string_view name) {
    const auto found = std::ranges::find(kKindNames, name);
    if (found == kKindNames.end()) return std::nullopt;
    return static_cast<OpKind>(found - kKindNames.begin());
}

void Attributes::set(std::string name, AttributeValue value) {
    m_values.insert_or_assign(std::move(name), std::move(value));
}

bool Attributes::has(std::string_view name) const {
    return m_values.contains(name);
}

std::int64_t Attributes::integer(std::string_view name, std::int64_t fallback) const {
    const auto found = m_values.find(name);
    if (found == m_values.end()) return fallback;
    const auto* value = std::get_if<std::int64_t>(&found->second);
    return value ? *value : fallback;
}

double Attributes::number(std::string_view name, double fallback) const {
    const auto found = m_values.find(name);
    if (found == m_values.end()) return fallback;
    if (const auto* value = std::get_if<double>(&found->second)) return *value;
    if (const auto* value = std::get_if<std::int64_t>(&found->second))
        return static_cast<double>(*value);
    return fallback;
}

std::string Attributes::text(std::string_view name, std::string fallback) const {
    const auto found = m_values.find(name);
    if (found == m_values.end()) return fallback;
    const auto* value = std::get_if<std::string>(&found->second);
    return value ? *value : fallback;
}

std::vector<std::int64_t> Attributes::integers(std::string_view name) const {
    const auto found = m_values.find(name);
    if (found == m_values.end()) return {};
    const auto* value = std::get_if<std::vector<std::int64_t>>(&found->second);
    return value ? *value : std::vector<std::int64_t>{};
}

std::vector<double> Attributes::numbers(std::string_view name) const {
    const auto found = m_values.find(name);
    if (found == m_values.end()) return {};
    const auto* value = std::get_if<std::vector<double>>(&found->second);
    return value ? *value : std::vector<double>{};
}

} // namespace shardlens
