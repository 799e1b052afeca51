// SPDX-License-Identifier: Apache-2.0
// The steps stop as soon as the gap asked for is reached.
#include "core/solve/limit.h"

#include "core/error.h"
#include "core/solve/branching.h"
#include "core/solve/exchange.h"

namespace shardlens::solve {
namespace {

class LimitSolver {
public:
    LimitSolver(const Problem& problem, const Options& options, WeightedSolver& solver,
                Solution& solution, Monitor& monitor)
        : m_problem(problem), m_options(options), m_solver(solver), m_solution(solution),
          m_monitor(monitor), m_scale(scaleOf(problem)) {}

    /// Whatever happens, the solution has the best that is known.
    ~LimitSolver() {
        if (!m_best.known()) return;
        m_solution.assignment = std::move(m_best.assignment);
        m_solution.cost = m_best.cost;
        m_solution.usage = m_best.usage;
    }

    void run(Point over) {
        PriceSearch search(m_problem, m_options, m_solver, m_scale, m_best, m_monitor);
        if (!findPrice(search, std::move(over))) {
            m_solution.status = Status::Infeasible;
            m_solution.bound = kInfinite;
            m_solution.statistics.method += "; the least usage is over the limit";
            return;
        }
        if (!closed()) tighten(search);
        if (!closed() && m_solver.exact()) branch();
    }

private:
    bool findPrice(PriceSearch& search, Point over) {
        const auto note = [&] {
            m_solution.statistics.pricesTried = search.pricesTried();
            if (search.bound() > m_solution.bound) m_solution.bound = search.bound();
            m_solution.price = search.price();
        };
        try {
            const bool feasible = search.run(std::move(over), 0);
            note();
            return feasible;
        } catch (const Cancelled&) {
            note();
            throw;
        }
    }

    void branch() {
        Branching branching(m_problem, m_options, m_scale, m_best, m_monitor);
        const auto note = [&] {
            m_solution.bound = std::max(m_solution.bound, branching.bound());
            m_solution.statistics.pricesTried += branching.pricesTried();
            if (branching.nodes() > 0) m_solution.statistics.method += ", branch and bound";
        };
        try {
            branching.run(m_solution.bound, m_solution.price);
            note();
        } catch (const Cancelled&) {
            note();
            throw;
        }
    }

    bool closed() const { return closes(m_solution.bound, m_best.cost, m_options); }

    void offer(Assignment assignment) {
        const Evaluation value = evaluate(m_problem, assignment);
        if (value.usage <= m_problem.limit && value.cost < m_best.cost) {
            m_best = {std::move(assignment), value.cost, value.usage};
        }
    }

    void tighten(const PriceSearch& search) {
        if (!search.under().known()) return;
        m_monitor.report("mixing", m_best.cost, m_solution.bound);
        const Point& cheap = search.over();
        Assignment mixed = mix(m_problem, search.under().assignment, cheap.assignment, m_monitor);
        offer(std::move(mixed));
        if (closed()) return;
        offer(exchange(m_problem, m_best.assignment, search.price(), m_monitor));
    }

    const Problem& m_problem;
    const Options& m_options;
    WeightedSolver& m_solver;
    Solution& m_solution;
    Monitor& m_monitor;
    Scale m_scale;
    Point m_best;
};

} // namespace

void solveWithLimit(const Problem& problem, const Options& options, WeightedSolver& solver,
                    Point over, Solution& solution, Monitor& monitor) {
    LimitSolver(problem, options, solver, solution, monitor).run(std::move(over));
}

} // namespace shardlens::solve
