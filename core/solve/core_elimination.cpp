// SPDX-License-Identifier: Apache-2.0
// Factors 0 … n-1 of the tree are the unary costs, the pairs follow.
#include "core/solve/core_elimination.h"

#include "core/solve/monitor.h"

namespace shardlens::solve {
namespace {

constexpr double kMostEntries = 1 << 22; ///< of one table

std::vector<Scope> pairScopes(const CoreProblem& problem) {
    std::vector<Scope> scopes;
    for (const auto& pair : problem.pairs) scopes.push_back({pair.u, pair.v});
    return scopes;
}

std::vector<Scope> allScopes(const CoreProblem& problem) {
    std::vector<Scope> scopes;
    for (Var v = 0; v < problem.nodes.size(); ++v) scopes.push_back({v});
    for (Scope& scope : pairScopes(problem)) scopes.push_back(std::move(scope));
    return scopes;
}

} // namespace

std::optional<CoreElimination> CoreElimination::make(const CoreProblem& problem, double mostWork,
                                                     Monitor& monitor) {
    const std::vector<Scope> scopes = pairScopes(problem);
    const OrderLimits limits{.table = std::min(kMostEntries, mostWork)};
    const EliminationOrder order = eliminationOrder(problem.dims(), scopes, {}, limits, monitor);
    if (!order.complete || order.work > mostWork) return {};
    return CoreElimination(problem, order, monitor);
}

CoreElimination::CoreElimination(const CoreProblem& problem, const EliminationOrder& order,
                                 Monitor& monitor)
    : m_dims(problem.dims()), m_tree(m_dims, allScopes(problem), order.order, monitor),
      m_work(order.work) {
    for (std::size_t p = 0; p < problem.pairs.size(); ++p) {
        const auto& cost = problem.pairs[p].cost;
        auto values = std::make_shared_for_overwrite<double[]>(cost.size());
        std::ranges::copy(cost, values.get());
        m_tree.setFactor(m_dims.size() + p, std::move(values));
    }
}

double CoreElimination::solve(const std::vector<double>& unary, Monitor& monitor) {
    std::size_t first = 0;
    for (Var v = 0; v < m_dims.size(); ++v) {
        auto values = std::make_shared_for_overwrite<double[]>(m_dims[v]);
        std::copy_n(unary.begin() + std::ptrdiff_t(first), m_dims[v], values.get());
        m_tree.setFactor(v, std::move(values));
        first += m_dims[v];
    }
    m_tree.eliminate(monitor);
    return m_tree.constant();
}

CoreChoices CoreElimination::decode() const {
    std::vector<std::uint32_t> value(m_dims.size(), 0);
    m_tree.decode(value);
    return {value.begin(), value.end()};
}

std::vector<double> CoreElimination::marginals(Monitor& monitor) {
    m_tree.sweepDown(monitor);
    std::vector<double> out;
    for (Var v = 0; v < m_dims.size(); ++v) {
        const std::vector<double> marginal = m_tree.marginal(v, monitor);
        out.insert(out.end(), marginal.begin(), marginal.end());
    }
    return out;
}

} // namespace shardlens::solve
