// SPDX-License-Identifier: Apache-2.0
// The exact road: a lowered problem, the transfer matrices of its blocks and one bucket tree over
// its variables. Built once for a problem; solves it for many weights.
#pragma once

#include "core/solve/lowering.h"

namespace shardlens::solve {

class ExactSolver {
public:
    /// Picks how far to unfold runs: whichever way needs least work within the table limit.
    /// @param spots  copies of nodes that must be variables
    /// @param root   a spot whose variable is left for last, for minMarginal(); or none
    ExactSolver(const Problem& problem, Choices& choices, std::size_t maxTableEntries,
                Monitor& monitor, std::span<const Spot> spots = {}, std::optional<Spot> root = {});

    /// False if some table would have more than the allowed entries; nothing below works then.
    bool fits() const { return m_fits; }
    double work() const { return m_work; } ///< additions of one solve, an estimate
    const Lowered& lowered() const { return m_lowered; }
    void describe(Statistics& statistics) const;

    /// Least cost under the weights; infinite if nothing is feasible.
    double solve(const Weights& weights, Monitor& monitor);
    /// An assignment that attains it, lowest choices first among equals. After solve(), if finite.
    Assignment decode();

    /// With a root: least cost by place in Choices::of(root.node). After solve().
    std::vector<double> rootMarginal() const;
    /// An assignment of that cost, with the root at the given place.
    Assignment decodeRoot(std::uint32_t place);

    /// After solve(), without a root: prepares marginal().
    void sweepDown(Monitor& monitor) { m_tree->sweepDown(monitor); }
    std::vector<double> marginal(const Spot& spot, Monitor& monitor) const;

private:
    struct Plan;
    Plan planFor(Unfold unfold, std::span<const Spot> spots, std::optional<Spot> root,
                 Monitor& monitor) const;
    void setFactors(const Weights& weights, Monitor& monitor);
    void setSegment(std::size_t factor, const Lowered::Segment& segment, Monitor& monitor);
    Assignment expand(const std::vector<std::uint32_t>& value);
    void expandSegment(const Lowered::Segment& segment, const std::vector<std::uint32_t>& value,
                       Assignment& out);

    const Problem& m_problem;
    Choices& m_choices;
    double m_maxTable;
    bool m_fits = false;
    double m_work = 0;
    Lowered m_lowered;
    EliminationOrder m_order;
    std::vector<Transfer> m_transfers; ///< by block
    std::optional<BucketTree> m_tree;
    std::optional<Var> m_root;
};

} // namespace shardlens::solve
