// SPDX-License-Identifier: Apache-2.0
#include "core/solve/weighted_solver.h"

namespace shardlens::solve {

WeightedSolver::WeightedSolver(const Problem& problem, const Options& options, Monitor& monitor)
    : m_choices(problem) {
    if (m_choices.none()) return;
    m_exact.emplace(problem, m_choices, options.maxTableEntries, monitor);
    if (!m_exact->fits()) {
        m_exact.reset();
        m_wide.emplace(problem, m_choices, monitor);
    }
}

WideSolver::Answer WeightedSolver::solve(const Weights& weights, double target, Monitor& monitor) {
    if (m_choices.none()) return {kInfinite, {}};
    if (m_wide) return m_wide->solve(weights, target, monitor);
    const double value = m_exact->solve(weights, monitor);
    if (value == kInfinite) return {kInfinite, {}};
    return {value - weights.rounding, m_exact->decode()};
}

void WeightedSolver::describe(Statistics& statistics) const {
    if (m_exact) m_exact->describe(statistics);
    if (m_wide) m_wide->describe(statistics);
}

} // namespace shardlens::solve
