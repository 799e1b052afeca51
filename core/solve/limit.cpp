// SPDX-License-Identifier: Apache-2.0
// Bounds are rounded down where floating point may err and then up to the grid of the costs, since
// every assignment's cost lies on it.
#include "core/solve/limit.h"

#include <cmath>

namespace shardlens::solve {
namespace {

constexpr int kMostPrices = 60;

/// An assignment as a point below or above the limit.
struct Point {
    Assignment assignment;
    double cost = kInfinite, usage = 0;
};

class PriceSearch {
public:
    PriceSearch(const Problem& problem, const Options& options, WeightedSolver& solver,
                Solution& solution, Monitor& monitor)
        : m_problem(problem), m_options(options), m_solver(solver), m_solution(solution),
          m_monitor(monitor), m_scale(scaleOf(problem)) {}

    void run(const WideSolver::Answer& free) {
        m_over = point(free.assignment);
        if (!findFeasible()) return;
        bracket();
        tighten();
    }

private:
    Point point(const Assignment& assignment) const {
        const Evaluation value = evaluate(m_problem, assignment);
        return {assignment, value.cost, value.usage};
    }

    /// The least usage: proves infeasibility, or gives a first assignment within the limit.
    bool findFeasible() {
        const Weights weights = usageWeights(m_problem);
        const auto answer = m_solver.solve(weights, 0, m_monitor);
        const double rounding = m_scale.usage * 0x1p-45;
        if (answer.bound - (m_solver.exact() ? 0 : rounding) > m_problem.limit) {
            m_solution.status = Status::Infeasible;
            m_solution.bound = kInfinite;
            m_solution.statistics.method += "; the least usage is over the limit";
            return false;
        }
        if (answer.assignment.choice.empty()) return true;
        offer(point(answer.assignment));
        return true;
    }

    void offer(Point next) {
        if (next.usage > m_problem.limit) {
            if (next.cost < kInfinite) m_over = std::move(next);
            return;
        }
        if (next.cost < m_solution.cost) {
            m_solution.assignment = next.assignment;
            m_solution.cost = next.cost;
            m_solution.usage = next.usage;
        }
        m_under = std::move(next);
    }

    bool closed() const {
        return m_solution.cost - m_solution.bound <=
               m_options.relativeGap * std::abs(m_solution.cost);
    }

    void raiseBound(double priced, double price) {
        const double fee = price * m_problem.limit;
        double bound = priced - fee;
        bound -= (std::abs(priced) + std::abs(fee)) * 0x1p-51;
        if (m_scale.grid > 0) bound = std::ceil(bound / m_scale.grid) * m_scale.grid;
        if (bound > m_solution.bound) {
            m_solution.bound = bound;
            m_solution.price = price;
        }
    }

    /// Solves at a price. @return false when it brought nothing new
    bool tryPrice(double price) {
        const Weights weights = pricedWeights(m_problem, price, m_scale);
        const auto answer = m_solver.solve(weights, m_options.relativeGap / 4, m_monitor);
        ++m_solution.statistics.pricesTried;
        raiseBound(answer.bound, price);
        if (answer.assignment.choice.empty()) return false;
        Point next = point(answer.assignment);
        const double line = m_over.cost + price * m_over.usage;
        const bool below = next.cost + price * next.usage < line - std::abs(line) * 1e-12;
        offer(std::move(next));
        m_monitor.report("memory prices", m_solution.cost, m_solution.bound);
        return below;
    }

    /// The price at which the two ends of the bracket are equally good.
    void bracket() {
        for (int i = 0; i < kMostPrices && !closed(); ++i) {
            double price = m_lastPrice * 4 + 1; // no end within the limit yet
            if (m_under.cost < kInfinite) {
                price = (m_under.cost - m_over.cost) / (m_over.usage - m_under.usage);
            }
            if (!(price > 0) || !(price < kInfinite)) break;
            m_lastPrice = price;
            if (!tryPrice(price) && m_under.cost < kInfinite) break;
        }
    }

    void tighten() {
        if (closed() || m_under.cost == kInfinite) return;
        m_monitor.report("mixing", m_solution.cost, m_solution.bound);
        for (const Assignment& start : {m_under.assignment, m_solution.assignment}) {
            Assignment mixed = mix(m_problem, start, m_over.assignment, m_monitor);
            offer(point(upgrade(m_problem, std::move(mixed), m_monitor)));
            if (closed()) return;
        }
    }

    const Problem& m_problem;
    const Options& m_options;
    WeightedSolver& m_solver;
    Solution& m_solution;
    Monitor& m_monitor;
    Scale m_scale;
    Point m_over, m_under; ///< ends of the bracket: over the limit, within it
    double m_lastPrice = 0;
};

} // namespace

void solveWithLimit(const Problem& problem, const Options& options, WeightedSolver& solver,
                    const WideSolver::Answer& free, Solution& solution, Monitor& monitor) {
    PriceSearch(problem, options, solver, solution, monitor).run(free);
}

} // namespace shardlens::solve
