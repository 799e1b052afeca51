// SPDX-License-Identifier: Apache-2.0
// Finds the optimum: turns a context into a choice problem (folded), solves it, and turns the
// assignment back into a Plan. Also answers what every other choice of an op would cost.
#pragma once

#include "core/plan/plan.h"
#include "core/solve/solver.h"

namespace shardlens {

struct PlannerOptions {
    std::stop_token stop;
    std::function<void(const solve::Progress&)> progress; ///< costs in seconds (cost model's unit)
    bool tieLayers = false; ///< equal blocks get equal plans; what that costs is in the plan
    std::size_t maxTableEntries = solve::Options().maxTableEntries; ///< wider is not eliminated
};

/// The best plan under the request's pins and limit, with its certificate.
/// @throws PlanError when pins clash or name no op (the pins are named, with the smallest
///         relaxation), or when no plan fits the memory limit; Cancelled
Plan optimise(std::shared_ptr<const PlanContext> context, const PlannerOptions& options = {});

/// What one choice of an op would cost with everything else re-optimised.
struct Alternative {
    Choice choice;
    std::string text; ///< "b@dp,n@tp"
    bool legal = true;
    std::string reason;     ///< why it is illegal
    double time = 0;        ///< seconds a step; the best found where it is not exact
    double leastTime = 0;   ///< a bound on it; equal to `time` where it is exact
    double deltaTime = 0;   ///< against the plan
    double deltaMemory = 0; ///< bytes a device
    bool current = false;   ///< the plan's own choice
};

/// All choices of an op (legal ones first, cheapest first; then illegal ones with the reason).
/// Exact by elimination; in a graph too wide for that each choice is solved for on its own within a
/// second, and has a time and a bound.
/// @param plan an optimum made by optimise()
std::vector<Alternative> alternatives(const Plan& plan, OpId op,
                                      const PlannerOptions& options = {});

/// The ops a pin's target names. Empty if none.
std::vector<OpId> pinnedOps(const PlanContext& context, const Pin& pin);

/// The choice problem of a context, for benchmarks and for reference solvers in tests.
struct ChoiceProblem {
    solve::Problem problem; ///< costs are integers: multiples of the cost model's quantum
    double quantum = 1;     ///< cost model units per integer
    std::vector<std::string> nodeName; ///< by solve::NodeId
};
ChoiceProblem choiceProblem(const PlanContext& context);

} // namespace shardlens
