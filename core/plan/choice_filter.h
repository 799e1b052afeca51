// SPDX-License-Identifier: Apache-2.0
// What a hand-made layout leaves to choose. The optimum has every legal choice; a template such as
// Megatron-LM's has few, and prices of it are those of the same plans with the others taken away.
#pragma once

#include "core/cost/layout.h"

#include <vector>

namespace shardlens {

class ChoiceFilter {
public:
    virtual ~ChoiceFilter() = default;
    /// Takes choices of an op away; never all of them. @param rule of the op
    virtual void keep(OpId op, const FactorRule& rule, std::vector<Choice>& choices) const = 0;
    /// Whether the hand-over of a tensor may have the layout.
    virtual bool keeps(TensorId tensor, const Layout& layout) const = 0;
    /// Whether a tensor with one reader has a hand-over nevertheless: it is kept in the layout it
    /// is made in, and converted again in the backward pass.
    virtual bool handsOver(TensorId tensor) const = 0;
    /// Axes whose devices are data-parallel ranks: what they sync once a step is not priced inside
    /// the mesh, but together with the replicas of the whole mesh. Bit a = mesh axis a.
    virtual std::uint8_t dataAxes() const = 0;
    /// Whether a parameter is one of experts, cut over axes that copy the others.
    virtual bool isExpert(OpId parameter) const = 0;
};

} // namespace shardlens
