// SPDX-License-Identifier: Apache-2.0
// What the dimensions of a model's tensors are to the people who cut them: batch, sequence, the
// residual stream's width, experts. Nobody writes that down; it follows from where data enters (the
// first two dimensions of what is fed), from what crosses between units (the stream), from dispatch
// to experts, and from the factor rules that carry a dimension from operand to result and back.
#pragma once

#include "core/model/factor_rule.h"
#include "core/plan/stage_units.h"

#include <cstdint>

namespace shardlens {

/// Flags: a dimension may be several (batch and sequence merged by a reshape).
using DimLabel = std::uint8_t;
inline constexpr DimLabel kBatchDim = 1;
inline constexpr DimLabel kSequenceDim = 2;
inline constexpr DimLabel kStreamDim = 4; ///< the width of what units hand to each other
inline constexpr DimLabel kExpertDim = 8;
inline constexpr DimLabel kRouterDim = 16; ///< scores of the experts, which no one cuts

class DimLabels {
public:
    DimLabels(const Graph& graph, const Folding& folding, const StageUnits& units);

    /// Of a dimension of a tensor; parameters have none.
    DimLabel of(TensorId tensor, std::size_t dim) const { return m_labels[tensor][dim]; }
    /// All labels of a tensor's dimensions.
    DimLabel any(TensorId tensor) const;
    /// What an op's factor cuts in its operands and results. @param rule of the op
    DimLabel ofFactor(OpId op, const FactorRule& rule, int factor) const;
    /// The rule of an op, as its class has it.
    const FactorRule& rule(OpId op) const { return m_rules[m_folding->classOf[op]]; }

private:
    void seed(const StageUnits& units);
    bool carry(OpId id);
    bool isParameter(TensorId t) const;

    const Graph* m_graph;
    const Folding* m_folding;
    std::vector<FactorRule> m_rules; ///< by class
    std::vector<std::vector<DimLabel>> m_labels;
};

} // namespace shardlens
