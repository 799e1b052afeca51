// SPDX-License-Identifier: Apache-2.0
// A focused field is reduced again: what is struck out makes more nodes depend on others.
#include "core/solve/search_field.h"

#include "core/solve/monitor.h"

namespace shardlens::solve {
namespace {

/// Above what any sensible assignment costs, yet small enough for exact sums.
double forbiddenCost(const CoreProblem& problem) {
    double most = 1;
    const auto look = [&](const std::vector<double>& costs) {
        for (const double cost : costs) {
            if (cost < kInfinite) most = std::max(most, std::abs(cost));
        }
    };
    for (const auto& node : problem.nodes) look(node.cost);
    for (const auto& pair : problem.pairs) look(pair.cost);
    return 32 * most;
}

} // namespace

SearchField::SearchField(std::optional<Reduction> reduction, const CoreProblem& problem,
                         Monitor& monitor)
    : m_reduction(std::move(reduction)), m_graph(problem, monitor, forbiddenCost(problem)) {
}

SearchField::SearchField(const CoreProblem& problem, const PriceBound& bound, Monitor& monitor)
    : SearchField(std::nullopt, problem, monitor) {
    follow(bound);
}

std::unique_ptr<SearchField>
SearchField::focused(CoreProblem less, const std::vector<double>& prices, Monitor& monitor) {
    constexpr int kPasses = 20; // for messages
    Reduction reduction(std::move(less), monitor);
    if (reduction.conflict()) return nullptr;
    const CoreProblem core = copyOf(reduction.core(), monitor);
    std::unique_ptr<SearchField> out(new SearchField(std::move(reduction), core, monitor));
    out->m_prices = out->m_reduction->project(prices);
    const CoreGraph graph(core, monitor);
    PriceBound bound(graph);
    bound.setPrices(out->m_prices);
    for (int i = 0; i < kPasses; ++i) bound.pass(monitor);
    out->m_priced = bound.priced();
    out->m_messages = bound.messages();
    return out;
}

void SearchField::follow(const PriceBound& bound) {
    if (m_reduction) {
        m_prices = m_reduction->project(bound.bestPrices());
    } else {
        m_prices = bound.bestPrices();
        m_priced = bound.priced();
        m_messages = bound.messages();
    }
}

CoreChoices SearchField::restore(const CoreChoices& choices) const {
    return m_reduction ? m_reduction->restore(choices) : choices;
}

CoreChoices SearchField::project(const CoreChoices& choices) const {
    return m_reduction ? m_reduction->project(choices) : choices;
}

} // namespace shardlens::solve
