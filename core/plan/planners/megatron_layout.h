// SPDX-License-Identifier: Apache-2.0
// How Megatron-LM lays a stage on a mesh whose axes are named tp, cp and ep, as a filter of the
// choices that the optimum has (Shoeybi 2019; Korthikanti 2022 for sequence parallelism; Megatron
// Core's context and expert parallelism; reference planners.md section 4, costs.md section 3).
//   tp: matrix products are cut by heads and inner widths, never by batch, sequence or the stream,
//       so that column- and row-parallel pairs with an all-reduce after each pair remain. With
//       sequence parallelism what lies between products is cut along the sequence: the all-reduce
//       becomes reduce-scatter and all-gather, and the stream is kept in shards.
//   cp: every op is cut along the sequence; keys and values are gathered for attention, kept in
//       shards and gathered again in the backward pass.
//   ep: every op is cut along the batch, experts by expert; what is between is the all-to-all.
//   cp_ep: context parallel outside of experts, expert parallel inside.
// Where several products read one tensor (q, k and v apart), it is gathered once and kept whole, or
// gathered for each, whichever is quicker.
#pragma once

#include "core/plan/choice_filter.h"
#include "core/plan/dim_labels.h"
#include "core/plan/stage_transfer.h"

namespace shardlens {

class MegatronLayout : public ChoiceFilter {
public:
    /// @param axes outermost first, named as above; others stay idle
    MegatronLayout(std::shared_ptr<const StagedModel> model, const std::vector<AxisSize>& axes,
                   bool sequenceParallel);

    void keep(OpId op, const FactorRule& rule, std::vector<Choice>& choices) const override;
    bool keeps(TensorId tensor, const Layout& layout) const override;
    bool handsOver(TensorId tensor) const override;
    std::uint8_t dataAxes() const override { return m_dataAxes; }
    bool isExpert(OpId parameter) const override;

private:
    struct Axis {
        int size = 1;
        bool tensor = false;  ///< else a data axis
        DimLabel data = 0;    ///< what it cuts everywhere: batch or sequence
        bool experts = false; ///< it cuts experts by expert
    };
    /// What an axis may do to an op.
    struct Allowed {
        std::vector<AxisChoice> factors;
        bool idle = true;
    };
    Allowed allowed(OpId op, const FactorRule& rule, const Axis& axis) const;
    Allowed allowedOfParameter(OpId op, const FactorRule& rule, const Axis& axis) const;
    bool cutsTensor(OpId op, const FactorRule& rule, int factor) const;
    bool readsMatrix(OpId op) const;
    bool onExperts(OpId op) const;
    bool onStream(OpId op) const;
    DimLabel wanted(TensorId tensor, const Axis& axis) const;

    std::shared_ptr<const StagedModel> m_model;
    const Graph& m_graph;
    std::vector<Axis> m_axes;
    std::uint8_t m_dataAxes = 0;
    bool m_sequence = false, m_context = false;
};

} // namespace shardlens
