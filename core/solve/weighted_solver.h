// SPDX-License-Identifier: Apache-2.0
// Solves the problem without its limit for given weights, exactly if tables allow and by the wide
// solver otherwise. What the search for the price of the limit calls again and again.
#pragma once

#include "core/solve/exact_solver.h"
#include "core/solve/wide_solver.h"

namespace shardlens::solve {

class WeightedSolver {
public:
    WeightedSolver(const Problem& problem, const Options& options, Monitor& monitor);

    /// @param target  relative gap at which the wide solver may stop
    WideSolver::Answer solve(const Weights& weights, double target, Monitor& monitor);

    /// Priced min-marginals of plain nodes: [node][choice]. Only where exact.
    std::vector<std::vector<double>> marginals(const Weights& weights, Monitor& monitor);

    double work() const { return m_exact ? m_exact->work() : 0; } ///< additions of an exact solve
    /// Where one exact solve takes long: a certified answer that comes first. Empty otherwise.
    WideSolver::Answer preview(const Weights& weights, Monitor& monitor);
    bool exact() const { return m_exact && m_exact->fits(); }
    void describe(Statistics& statistics) const;

private:
    const Problem& m_problem;
    Choices m_choices;
    std::optional<ExactSolver> m_exact;
    std::optional<WideSolver> m_wide;
};

} // namespace shardlens::solve
