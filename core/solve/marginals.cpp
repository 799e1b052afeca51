// SPDX-License-Identifier: Apache-2.0
// Min-marginals: what each choice of a node costs at best. For one node its variable is eliminated
// last; for all nodes a downward sweep follows the upward one.
#include "core/error.h"
#include "core/solve/exact_solver.h"

#include <fmt/format.h>

namespace shardlens::solve {
namespace {

void requireFit(const ExactSolver& solver, const Options& options) {
    if (solver.fits()) return;
    throw TooWide(fmt::format("exact min-marginals need tables of more than {} entries",
                              options.maxTableEntries),
                  "choice problem", "raise the table limit or pin some nodes");
}

} // namespace

Marginal minMarginal(const Problem& problem, NodeId node, std::size_t copy, double price,
                     const Options& options) {
    validate(problem);
    if (node >= problem.nodes.size() || copy >= problem.copies(node)) {
        throw Error(fmt::format("there is no copy {} of node {}", copy, node), "min-marginal");
    }
    const std::size_t count = problem.nodes[node].cost.size();
    Marginal out{std::vector<double>(count, kInfinite), std::vector<double>(count, 0.0)};
    Monitor monitor(options);
    Choices choices(problem);
    if (choices.none()) return out;
    ExactSolver solver(problem, choices, options.maxTableEntries, monitor, {}, Spot{node, copy});
    requireFit(solver, options);
    solver.solve(pricedWeights(problem, price, scaleOf(problem)), monitor);
    const std::vector<double> costs = solver.rootMarginal();
    for (std::uint32_t place = 0; place < costs.size(); ++place) {
        const std::uint16_t choice = choices.of(node)[place];
        out.cost[choice] = costs[place];
        if (costs[place] == kInfinite) continue;
        out.usage[choice] = evaluate(problem, solver.decodeRoot(place)).usage;
    }
    return out;
}

std::vector<Marginal> minMarginals(const Problem& problem,
                                   const std::vector<std::size_t>& copyOfRun, double price,
                                   const Options& options) {
    validate(problem);
    std::vector<Spot> spots;
    std::vector<Marginal> out;
    for (NodeId id = 0; id < problem.nodes.size(); ++id) {
        const int run = problem.nodes[id].run;
        std::size_t copy = 0;
        if (run >= 0 && static_cast<std::size_t>(run) < copyOfRun.size()) {
            copy = copyOfRun[static_cast<std::size_t>(run)];
        }
        if (copy >= problem.copies(id)) {
            throw Error(fmt::format("run {} has no copy {}", run, copy), "min-marginals");
        }
        spots.push_back({id, copy});
        out.push_back({std::vector<double>(problem.nodes[id].cost.size(), kInfinite), {}});
    }
    Monitor monitor(options);
    Choices choices(problem);
    if (choices.none()) return out;
    ExactSolver solver(problem, choices, options.maxTableEntries, monitor, spots);
    requireFit(solver, options);
    solver.solve(pricedWeights(problem, price, scaleOf(problem)), monitor);
    solver.sweepDown(monitor);
    for (const Spot& spot : spots) {
        const std::vector<double> costs = solver.marginal(spot, monitor);
        for (std::size_t place = 0; place < costs.size(); ++place) {
            out[spot.node].cost[choices.of(spot.node)[place]] = costs[place];
        }
    }
    return out;
}

} // namespace shardlens::solve
