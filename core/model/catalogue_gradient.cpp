// SPDX-License-Identifier: Apache-2.0
// The row of Gradient, derived from the row of the op whose gradient it is.
#include "core/model/catalogue_rows.h"
#include "core/model/gradient.h"

#include <algorithm>

namespace shardlens::catalogue {
namespace {

using gradient::Forward;

std::vector<TensorSpec> gradientShape(const OpView& view) {
    if (!view.outputs.empty()) return view.outputs;
    const Forward forward = gradient::forwardOf(view);
    std::vector<TensorSpec> results;
    for (const std::int64_t port : view.op.attributes.integers("wanted")) {
        const auto at = static_cast<std::size_t>(port);
        require(at < forward.inputs.size() && forward.inputs[at].dtype != DType::Unknown, view,
                "the shape of this op's results is not known");
        results.push_back(forward.inputs[at]);
    }
    return results;
}

bool carries(const std::vector<DimFactors>& dims, int f) {
    return std::ranges::any_of(
        dims, [f](const DimFactors& dim) { return std::ranges::find(dim, f) != dim.end(); });
}

/// A number a row: its dims are those of operand 0 where the sizes agree.
std::vector<DimFactors> rowDims(const Shape& shape, const TensorSpec& operand,
                                const std::vector<DimFactors>& dims) {
    std::vector<DimFactors> own(shape.size());
    for (std::size_t d = 0; d < shape.size() && d < operand.shape.size(); ++d)
        if (shape[d] > 1 && shape[d] == operand.shape[d]) own[d] = dims[d];
    return own;
}

/// A factor that some wanted gradient lacks is summed over there, except where the operand was
/// added once to partial results: it sees the whole gradient in every part. If both happen at once
/// the factor must stay whole.
void setKind(Factor& factor, int f, const FactorRule& forward,
             const std::vector<std::int64_t>& wanted) {
    if (factor.kind == FactorKind::Replicate || factor.kind == FactorKind::Permutation) return;
    const bool reduced = factor.kind == FactorKind::Reduction;
    bool partial = false, whole = false;
    for (const std::int64_t port : wanted) {
        const auto at = static_cast<std::size_t>(port);
        if (carries(forward.operands[at], f)) continue;
        const bool once =
            reduced && std::ranges::find(forward.addedOnce, at) != forward.addedOnce.end();
        (once ? whole : partial) = true;
    }
    if (partial && whole)
        factor.kind = FactorKind::Replicate;
    else if (partial)
        factor.kind = FactorKind::Reduction;
    else if (reduced)
        factor.kind = factor.exchanges ? FactorKind::Internal : FactorKind::Parallel;
    if (factor.kind == FactorKind::Replicate) factor.exchanges = false;
}

FactorRule gradientRule(const OpView& view) {
    const Forward forward = gradient::forwardOf(view);
    const FactorRule of = factorRule(forward.view());
    const auto roles = view.op.attributes.integers("roles"),
               wanted = view.op.attributes.integers("wanted");
    FactorRule rule = emptyRule(view);
    rule.factors = of.factors;
    rule.forwardStatistics = of.backwardStatistics;
    for (std::size_t i = 0; i < roles.size(); ++i) {
        if (!view.hasInput(i)) continue;
        if (roles[i] >= gradient::kRowStatistic) {
            rule.operands[i] =
                rowDims(view.inputs[i].shape, forward.inputs.at(0), of.operands.at(0));
            continue;
        }
        const auto port = static_cast<std::size_t>(roles[i] % gradient::kForwardResult);
        rule.operands[i] =
            roles[i] < gradient::kForwardResult ? of.operands.at(port) : of.results.at(port);
    }
    for (std::size_t r = 0; r < rule.results.size(); ++r)
        rule.results[r] = of.operands.at(static_cast<std::size_t>(wanted.at(r)));
    for (std::size_t f = 0; f < rule.factors.size(); ++f)
        setKind(rule.factors[f], static_cast<int>(f), of, wanted);
    return rule;
}

} // namespace

std::vector<Row> gradientRows() {
    return {{OpKind::Gradient, gradientShape, gradientRule, ComputeClass::Vector}};
}

} // namespace shardlens::catalogue
