// SPDX-License-Identifier: Apache-2.0
// The road is chosen once, from the sizes of the tables; see ExactSolver::fits().
#include "core/solve/weighted_solver.h"

namespace shardlens::solve {

WeightedSolver::WeightedSolver(const Problem& problem, const Options& options, Monitor& monitor)
    : m_problem(problem), m_choices(problem) {
    if (m_choices.none()) return;
    m_exact.emplace(problem, m_choices, options.maxTableEntries, monitor);
    if (!m_exact->fits()) {
        m_exact.reset();
        m_wide.emplace(problem, m_choices, monitor);
    }
}

WideSolver::Answer WeightedSolver::solve(const Weights& weights, double target, Monitor& monitor) {
    if (m_choices.none()) return {.bound = kInfinite, .assignment = {}};
    if (m_wide) return m_wide->solve(weights, target, monitor);
    const double value = m_exact->solve(weights, monitor);
    if (value == kInfinite) return {.bound = kInfinite, .assignment = {}};
    return {value - weights.rounding, m_exact->decode(), true};
}

WideSolver::Answer WeightedSolver::preview(const Weights& weights, Monitor& monitor) {
    constexpr double kLongWork = 3e9; // a second or more
    if (!exact() || m_exact->work() < kLongWork) return {};
    return WideSolver(m_problem, m_choices, monitor).solve(weights, 0, monitor);
}

std::vector<std::vector<double>> WeightedSolver::marginals(const Weights& weights,
                                                           Monitor& monitor) {
    m_exact->solve(weights, monitor);
    m_exact->sweepDown(monitor);
    std::vector<std::vector<double>> out;
    for (NodeId id = 0; id < m_problem.nodes.size(); ++id) {
        auto& costs = out.emplace_back(m_problem.nodes[id].cost.size(), kInfinite);
        const std::vector<double> left = m_exact->marginal({id, 0}, monitor);
        for (std::size_t place = 0; place < left.size(); ++place) {
            costs[m_choices.of(id)[place]] = left[place];
        }
    }
    return out;
}

void WeightedSolver::describe(Statistics& statistics) const {
    if (m_exact) m_exact->describe(statistics);
    if (m_wide) m_wide->describe(statistics);
}

} // namespace shardlens::solve
