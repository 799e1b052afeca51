// SPDX-License-Identifier: Apache-2.0
// The other road, for problems whose elimination tables would be too large. Runs are unfolded,
// nodes with at most two neighbours are eliminated exactly, and on the core that is left a dual
// bound and a primal search close in on each other. As they do, choices whose own bound is above
// the best assignment are struck out; once what is left is narrow enough for elimination, that
// proves the optimum. The result is certified, not always optimal.
#pragma once

#include "core/solve/lowering.h"
#include "core/solve/pair_graph.h"

namespace shardlens::solve {

class WideSolver {
public:
    WideSolver(const Problem& problem, Choices& choices, Monitor& monitor);

    struct Answer {
        double bound = -kInfinite; ///< valid; infinite: nothing is feasible
        Assignment assignment;     ///< empty if none was found
        bool optimal = false;      ///< the bound is the assignment's cost, up to rounding of sums
    };
    /// @param target  stop when bound and assignment are this close, relatively
    /// @throws Cancelled only before there is an assignment; later the best so far is returned
    Answer solve(const Weights& weights, double target, Monitor& monitor);
    void describe(Statistics& statistics) const;

private:
    PairGraph makeCore() const;
    /// The optimum of the core over the choices whose bound is at most `most`; nothing where the
    /// tables of that are too large.
    struct CoreOptimum {
        double cost = 0;
        std::vector<std::uint32_t> value;
    };
    std::optional<CoreOptimum> finish(const PairGraph& core, double most, Monitor& monitor) const;
    Assignment decode(const std::vector<std::uint32_t>& core) const;

    const Problem& m_problem;
    Choices& m_choices;
    Lowered m_lowered;
    EliminationOrder m_order;
    std::optional<BucketTree> m_tree;
    std::vector<Var> m_core; ///< kept variables
    std::vector<std::uint32_t> m_coreDims;
    std::vector<Var> m_place;        ///< by variable: its number in the core
    std::optional<PairGraph> m_last; ///< for its messages
};

} // namespace shardlens::solve
