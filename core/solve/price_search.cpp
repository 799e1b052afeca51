// SPDX-License-Identifier: Apache-2.0
// Bounds are rounded down where floating point may err and then up to the grid of the costs, since
// every assignment's cost lies on it.
#include "core/solve/price_search.h"

#include <cmath>

namespace shardlens::solve {
namespace {

constexpr int kMostPrices = 60;

} // namespace

bool closes(double bound, double cost, const Options& options) {
    return cost < kInfinite && cost - bound <= options.relativeGap * std::abs(cost);
}

PriceSearch::PriceSearch(const Problem& problem, const Options& options, WeightedSolver& solver,
                         const Scale& scale, Point& best, Monitor& monitor)
    : m_problem(problem), m_options(options), m_solver(solver), m_scale(scale), m_best(best),
      m_monitor(monitor) {
}

bool PriceSearch::closed() const {
    return closes(m_bound, m_best.cost, m_options);
}

Point PriceSearch::pointOf(const Assignment& assignment) const {
    const Evaluation value = evaluate(m_problem, assignment);
    return {assignment, value.cost, value.usage};
}

void PriceSearch::offer(Point next) {
    if (!next.known()) return;
    if (next.usage > m_problem.limit) {
        m_over = std::move(next);
        return;
    }
    if (next.cost < m_best.cost) m_best = next;
    m_under = std::move(next);
}

void PriceSearch::raiseBound(double priced, double price) {
    const double fee = price * m_problem.limit;
    double bound = priced - fee;
    if (price > 0) bound -= (std::abs(priced) + std::abs(fee)) * 0x1p-51;
    if (m_scale.grid > 0) bound = std::ceil(bound / m_scale.grid) * m_scale.grid;
    if (bound > m_bound) {
        m_bound = bound;
        m_price = price;
    }
}

/// Solves at a price. @return true when it brought a point below the line between the ends
bool PriceSearch::tryPrice(double price) {
    const Weights weights = pricedWeights(m_problem, price, m_scale);
    const auto answer = m_solver.solve(weights, m_options.relativeGap / 4, m_monitor);
    ++m_tried;
    raiseBound(answer.bound, price);
    if (answer.assignment.choice.empty()) return false;
    Point next = pointOf(answer.assignment);
    const double line = m_over.known() ? m_over.cost + price * m_over.usage : kInfinite;
    const bool below = next.cost + price * next.usage < line - std::abs(line) * 1e-12;
    offer(std::move(next));
    m_monitor.report("memory prices", m_best.cost, m_bound);
    return below || line == kInfinite;
}

/// The least usage: a point within the limit, or the proof that there is none.
bool PriceSearch::findUnder() {
    const auto answer = m_solver.solve(usageWeights(m_problem), 0, m_monitor);
    const double rounding = m_solver.exact() ? 0 : m_scale.usage * 0x1p-45;
    if (answer.bound - rounding > m_problem.limit) return false;
    if (!answer.assignment.choice.empty()) offer(pointOf(answer.assignment));
    return true;
}

/// The least cost: a point over the limit, or the optimum within it. @return false: infeasible
bool PriceSearch::findOver() {
    const auto answer = m_solver.solve(costWeights(m_problem), 0, m_monitor);
    raiseBound(answer.bound, 0);
    if (answer.bound == kInfinite) return false;
    if (!answer.assignment.choice.empty()) offer(pointOf(answer.assignment));
    return true;
}

bool PriceSearch::run(Point over, double price) {
    m_over = std::move(over);
    if (price > 0) tryPrice(price);
    if (m_bound == kInfinite) return false;
    if (closed()) return true;
    if (!m_over.known() && !findOver()) return false;
    if (closed() || !m_over.known()) return true;
    if (!m_under.known() && !findUnder()) return false;
    for (int i = 0; i < kMostPrices && !closed(); ++i) {
        price = 4 * price + 1; // no point within the limit yet
        if (m_under.known()) {
            price = (m_under.cost - m_over.cost) / (m_over.usage - m_under.usage);
        }
        if (!(price > 0) || !(price < kInfinite)) break;
        if (!tryPrice(price) && m_under.known()) break;
    }
    return true;
}

} // namespace shardlens::solve
