// SPDX-License-Identifier: Apache-2.0
// Factor rules: building, printing, and where a factor cuts a tensor.
#include "core/model/factor_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace shardlens {

namespace {

const std::string& factorName(const FactorRule& rule, int f) {
    return rule.factors[static_cast<std::size_t>(f)].name;
}

/// "m", "1" for a dimension without factors, "(heads d)" for several, major first.
std::string dimText(const FactorRule& rule, const DimFactors& dim) {
    if (dim.empty()) return "1";
    if (dim.size() == 1) return factorName(rule, dim.front());
    std::vector<std::string_view> names;
    std::ranges::transform(dim, std::back_inserter(names),
                           [&](int f) { return std::string_view(factorName(rule, f)); });
    return fmt::format("({})", fmt::join(names, " "));
}

std::string sideText(const FactorRule& rule, const std::vector<std::vector<DimFactors>>& side) {
    std::vector<std::string> tensors;
    for (const std::vector<DimFactors>& dims : side) {
        std::vector<std::string> texts;
        std::ranges::transform(dims, std::back_inserter(texts),
                               [&](const DimFactors& dim) { return dimText(rule, dim); });
        tensors.push_back(fmt::format("[{}]", fmt::join(texts, ",")));
    }
    return fmt::format("({})", fmt::join(tensors, ","));
}

/// " r={k}", empty when no factor is of this kind.
std::string kindText(const FactorRule& rule, FactorKind kind, std::string_view letter) {
    std::vector<std::string> names;
    for (const Factor& factor : rule.factors)
        if (factor.kind == kind) names.push_back(factor.name);
    if (names.empty()) return {};
    return fmt::format(" {}={{{}}}", letter, fmt::join(names, ","));
}

} // namespace

int FactorRule::addFactor(std::string name, std::int64_t size, FactorKind kind) {
    Factor factor;
    factor.name = std::move(name);
    factor.size = size;
    factor.kind = kind;
    factors.push_back(std::move(factor));
    return static_cast<int>(factors.size()) - 1;
}

std::string FactorRule::toString() const {
    return sideText(*this, operands) + "->" + sideText(*this, results) +
           kindText(*this, FactorKind::Reduction, "r") +
           kindText(*this, FactorKind::Internal, "i") +
           kindText(*this, FactorKind::Permutation, "p") +
           kindText(*this, FactorKind::Replicate, "whole");
}

int shardedDim(const std::vector<DimFactors>& dims, const FactorRule& rule, int f) {
    bool behind = false;
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
        const auto found = std::ranges::find(dims[dim], f);
        if (found == dims[dim].end()) continue;
        const bool first = std::all_of(dims[dim].begin(), found, [&](int before) {
            return rule.factors[static_cast<std::size_t>(before)].size == 1;
        });
        if (first) return static_cast<int>(dim);
        behind = true;
    }
    return behind ? -2 : -1;
}

} // namespace shardlens
