// SPDX-License-Identifier: Apache-2.0
// A kernel's surroundings on one rank: the local shapes and places that the op's choice gives it,
// and the all-reduces of its statistics.
#pragma once

#include "core/cost/layout.h"
#include "core/execute/communicator.h"
#include "core/execute/kernel.h"

namespace shardlens {

class RankContext : public KernelContext {
public:
    /// Told of every all-reduce that the kernel makes: axis, numbers exchanged.
    using Observer = std::function<void(std::size_t axis, double numbers)>;

    RankContext(const OpView& whole, const FactorRule& rule, const Choice& choice,
                Communicator& communicator, Observer observer);

    Shape operandShape(std::size_t operand) const override;
    Shape resultShape(std::size_t result) const override;
    std::int64_t operandBegin(std::size_t operand, std::size_t dim) const override;
    std::int64_t resultBegin(std::size_t result, std::size_t dim) const override;
    bool leads() const override;
    void allReduce(Array& statistic, ReduceOp reduce) const override;

private:
    const Choice& m_choice;
    Communicator& m_communicator;
    Observer m_observer;
};

/// Where the local part of a tensor begins, by dimension, for the rank at these coordinates.
/// @throws Error if a cut is uneven
Shape localBegin(const Shape& shape, const SideLayout& side, const Mesh& mesh,
                 std::span<const int> coordinates);
/// A rank's part of a whole tensor: blocks where the layout cuts; where it says partial, the first
/// rank of an axis takes the value and the others zeros. @throws Error if a cut is uneven
Array localPart(const Array& whole, const SideLayout& side, const Communicator& communicator);

} // namespace shardlens
