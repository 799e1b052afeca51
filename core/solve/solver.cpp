// SPDX-License-Identifier: Apache-2.0
// The public entry of the solver: picks the road, fills in the certificate, and turns a stop into
// the best answer so far.
#include "core/solve/solver.h"

#include "core/error.h"
#include "core/solve/limit.h"

#include <cmath>

namespace shardlens::solve {
namespace {

/// Relative difference of two sums of the same numbers in another order, where they are not exact.
constexpr double kRounding = 1e-9;

void accept(const Problem& problem, const WideSolver::Answer& answer, Solution& solution) {
    solution.bound = answer.bound;
    if (answer.assignment.choice.empty()) return;
    const Evaluation value = evaluate(problem, answer.assignment);
    solution.assignment = answer.assignment;
    solution.cost = value.cost;
    solution.usage = value.usage;
    const double apart = std::abs(value.cost - answer.bound);
    if (answer.optimal && apart <= kRounding * std::abs(value.cost)) solution.bound = value.cost;
}

void acceptPreview(const Problem& problem, const WideSolver::Answer& answer, Solution& solution) {
    Solution preview;
    accept(problem, answer, preview);
    solution.bound = preview.bound;
    if (preview.usage > problem.limit) return;
    solution.assignment = std::move(preview.assignment);
    solution.cost = preview.cost;
    solution.usage = preview.usage;
}

void search(const Problem& problem, const Options& options, Solution& solution, Monitor& monitor) {
    monitor.report("preparation", solution.cost, solution.bound);
    WeightedSolver solver(problem, options, monitor);
    solver.describe(solution.statistics);
    solution.statistics.method =
        solver.exact() ? "exact elimination" : "message passing and forest search";
    const Weights weights = costWeights(problem);
    WideSolver::Answer free = solver.preview(weights, monitor);
    acceptPreview(problem, free, solution);
    monitor.report("elimination", solution.cost, solution.bound);
    const bool early = free.optimal;
    if (!early) free = solver.solve(weights, 0, monitor);
    if (free.optimal && (early || !solver.exact())) {
        solution.statistics.method =
            "message passing and forest search, exact elimination of what they left";
    }
    if (free.bound == kInfinite) {
        solution.status = Status::Infeasible;
        solution.bound = kInfinite;
        solution.statistics.method += "; no assignment has finite cost";
        return;
    }
    Solution unlimited;
    accept(problem, free, unlimited);
    solution.bound = unlimited.bound;
    if (unlimited.cost < kInfinite && unlimited.usage > problem.limit) {
        solution.statistics.method += ", the limit by Lagrangian prices";
        Point over{std::move(unlimited.assignment), unlimited.cost, unlimited.usage};
        solveWithLimit(problem, options, solver, std::move(over), solution, monitor);
        return;
    }
    solution.assignment = std::move(unlimited.assignment);
    solution.cost = unlimited.cost;
    solution.usage = unlimited.usage;
}

} // namespace

double Solution::gap() const {
    if (cost == kInfinite) return kInfinite;
    if (cost <= bound) return 0;
    return cost == 0 ? kInfinite : (cost - bound) / std::abs(cost);
}

Solution solve(const Problem& problem, const Options& options) {
    validate(problem);
    Solution solution;
    Monitor monitor(options);
    try {
        search(problem, options, solution, monitor);
    } catch (const Cancelled&) {
        solution.statistics.method += "; stopped";
    }
    if (solution.status != Status::Infeasible && !solution.assignment.choice.empty()) {
        // a margin for rounding may push the bound over the cost it certifies
        solution.bound = std::min(solution.bound, solution.cost);
        solution.status = solution.bound == solution.cost ? Status::Optimal : Status::Feasible;
    }
    solution.statistics.seconds = monitor.seconds();
    monitor.report("done", solution.cost, solution.bound);
    return solution;
}

} // namespace shardlens::solve
