// SPDX-License-Identifier: Apache-2.0
// The planner `optimum`: context -> choice problem -> solver -> plan, with its certificate; and
// what every other choice of an op would cost.
#include "core/plan/planner.h"

#include "core/error.h"
#include "core/plan/choice_problem.h"
#include "core/plan/pins.h"
#include "core/solve/tie.h"
#include "core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace shardlens {

namespace {

using Clock = std::chrono::steady_clock;

double millisecondsSince(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

solve::Options solverOptions(const PlannerOptions& options, double quantum) {
    solve::Options result;
    result.stop = options.stop;
    result.maxTableEntries = options.maxTableEntries;
    if (options.progress)
        result.progress = [report = options.progress, quantum](solve::Progress progress) {
            progress.incumbent *= quantum;
            progress.bound *= quantum;
            report(progress);
        };
    return result;
}

double usageLimit(const PlanContext& context) {
    return context.memoryLimitBytes - context.cost->workspaceBytes();
}

/// Least memory a device can get by with under the pins, in bytes, without the workspace.
double leastMemory(const PlanContext& context, const FixedChoices& fixed,
                   const PlannerOptions& options) {
    ProblemBuilder builder(*context.pricing, fixed);
    solve::Problem problem = builder.problem();
    problem.edges.clear();
    for (solve::Node& node : problem.nodes)
        for (std::size_t i = 0; i < node.cost.size(); ++i)
            if (std::isfinite(node.cost[i])) node.cost[i] = node.usage[i];
    return solve::solve(problem, solverOptions(options, 1)).cost;
}

std::string tooBig(const PlanContext& context, double least) {
    return fmt::format("no plan fits into {:.2f} GiB a device: the least is {:.2f} GiB",
                       context.memoryLimitBytes / kGiB, least / kGiB);
}

/// Says that no plan fits, and which pin would have to go if that is enough.
[[noreturn]] void throwNoFit(const PlanContext& context, const FixedChoices& fixed,
                             const PlannerOptions& options) {
    const double workspace = context.cost->workspaceBytes();
    const std::vector<Pin>& pins = context.request.pins;
    const auto fits = [&](const FixedChoices& choices) {
        return leastMemory(context, choices, options) + workspace <= context.memoryLimitBytes;
    };
    std::string hint = "use more devices, a smaller batch or sequence, or a higher limit";
    if (!pins.empty() && fits(FixedChoices(fixed.size(), -1))) {
        hint = "several of the pins would have to go";
        for (std::size_t p = 0; p < pins.size(); ++p) {
            std::vector<Pin> others = pins;
            others.erase(others.begin() + static_cast<std::ptrdiff_t>(p));
            if (!fits(fixedChoices(context, others))) continue;
            hint = fmt::format("without the pin '{}' it would fit", toString(pins[p]));
            break;
        }
    }
    throw PlanError(tooBig(context, leastMemory(context, fixed, options) + workspace),
                    "memory limit", hint);
}

/// The best assignment in which all layers of a run choose alike.
solve::Solution solveTied(const ProblemBuilder& builder, const solve::Options& options) {
    const solve::TiedProblem tied = solve::tieChoices(builder.problem(), builder.layerGroups());
    solve::Solution solution = solve::solve(tied.problem, options);
    if (solution.status == solve::Status::Infeasible)
        throw PlanError("no plan with equal layers keeps the pins and the memory limit",
                        "tied layers", "let the layers differ, or raise the limit");
    if (!solution.assignment.choice.empty())
        solution.assignment = tied.untie(builder.problem(), solution.assignment);
    return solution;
}

} // namespace

Plan optimise(std::shared_ptr<const PlanContext> context, const PlannerOptions& options) {
    const auto start = Clock::now();
    const FixedChoices fixed = fixedChoices(*context, context->request.pins);
    ProblemBuilder builder(*context->pricing, fixed);
    builder.problem().limit = usageLimit(*context);
    const double buildMilliseconds = millisecondsSince(start);

    const double quantum = context->cost->quantum();
    const auto solveStart = Clock::now();
    solve::Solution solution = solve::solve(builder.problem(), solverOptions(options, quantum));
    const double untied = solution.cost * quantum;
    if (options.tieLayers && solution.status != solve::Status::Infeasible)
        solution = solveTied(builder, solverOptions(options, quantum));
    const bool fits = solution.status != solve::Status::Infeasible;
    if (!fits && !context->request.memoryLimitBytes) {
        builder.problem().limit = solve::kInfinite;
        solution = solve::solve(builder.problem(), solverOptions(options, quantum));
    }
    const double solveMilliseconds = millisecondsSince(solveStart);
    if (solution.status == solve::Status::Cancelled || options.stop.stop_requested())
        throw Cancelled();
    if (solution.status == solve::Status::Infeasible) throwNoFit(*context, fixed, options);

    Plan plan = evaluate(context, builder.decisions(solution.assignment));
    if (!fits) {
        plan.fitsMemory = false;
        const double least =
            leastMemory(*context, fixed, options) + context->cost->workspaceBytes();
        plan.notes.push_back(tooBig(*context, least) +
                             "; shown is the fastest plan without a limit.");
    }
    plan.madeBy = context->request.pins.empty() ? "optimum" : "optimum under pins";
    // Both are sums of the same quanta; in floating point the bound may come out a bit above.
    plan.bound = std::min(solution.bound * quantum, plan.totals.time);
    plan.gap = solution.gap();
    plan.optimal = solution.status == solve::Status::Optimal;
    plan.buildMilliseconds = buildMilliseconds;
    plan.solveMilliseconds = solveMilliseconds;
    plan.method = solution.statistics.method;
    plan.effort = solution.statistics;
    plan.memoryPrice = solution.price * quantum;
    if (options.tieLayers) {
        plan.madeBy += ", layers tied";
        plan.untiedTime = std::min(untied, plan.totals.time);
    }
    for (OpId id = 0; id < fixed.size(); ++id) plan.pinned[id] = fixed[id] >= 0;
    return plan;
}

namespace {

constexpr double kSecondsPerChoice = 1; // where elimination is out of reach

/// What the choices of one node cost, in quanta: of the best assignment known with each.
struct ChoicePrices {
    std::vector<double> time, least, usage;
};

ChoicePrices byElimination(const solve::Problem& problem, ProblemBuilder::Place place, double price,
                           const solve::Options& options) {
    const solve::Marginal marginal =
        solve::minMarginal(problem, place.node, place.copy, price, options);
    ChoicePrices prices{marginal.cost, {}, marginal.usage};
    for (std::size_t i = 0; i < prices.time.size(); ++i)
        if (std::isfinite(prices.time[i])) prices.time[i] -= price * prices.usage[i];
    prices.least = prices.time;
    return prices;
}

/// Each choice solved for on its own, under the limit. @throws Cancelled
ChoicePrices bySearch(const solve::Problem& problem, solve::NodeId node, solve::Options options) {
    options.deadlineSeconds = kSecondsPerChoice;
    ChoicePrices prices;
    const std::size_t count = problem.nodes[node].cost.size();
    for (std::size_t i = 0; i < count; ++i) {
        solve::Problem fixed = problem;
        for (std::size_t other = 0; other < count; ++other)
            if (other != i) fixed.nodes[node].cost[other] = solve::kInfinite;
        const solve::Solution solution = solve::solve(fixed, options);
        if (options.stop.stop_requested()) throw Cancelled();
        prices.time.push_back(solution.cost);
        prices.least.push_back(std::min(solution.bound, solution.cost));
        prices.usage.push_back(solution.usage);
    }
    return prices;
}

} // namespace

std::vector<Alternative> alternatives(const Plan& plan, OpId op, const PlannerOptions& options) {
    const PlanContext& context = *plan.context;
    FixedChoices fixed = fixedChoices(context, context.request.pins);
    fixed[op] = -1; // its own pin would hide the others
    ProblemBuilder builder(*context.pricing, std::move(fixed), op);
    const double quantum = context.cost->quantum();
    const ProblemBuilder::Place place = builder.placeOf(op);
    ChoicePrices prices;
    try {
        prices = byElimination(builder.problem(), place, plan.memoryPrice / quantum,
                               solverOptions(options, quantum));
    } catch (const solve::TooWide&) {
        if (plan.fitsMemory) builder.problem().limit = usageLimit(context);
        prices = bySearch(builder.problem(), place.node, solverOptions(options, quantum));
    }
    const PricedOp& priced = context.pricing->op(op);
    const double memory = plan.totals.memory.total() - plan.totals.memory.workspace;

    std::vector<Alternative> result;
    for (std::size_t i = 0; i < priced.choices.size(); ++i) {
        Alternative alternative;
        alternative.choice = priced.choices[i];
        alternative.text = toString(priced.choices[i], priced.rule, context.mesh);
        alternative.current = priced.choices[i] == plan.decisions.op[op];
        alternative.time = prices.time[i] * quantum;
        alternative.leastTime = prices.least[i] * quantum;
        alternative.deltaTime = alternative.time - plan.totals.time;
        alternative.deltaMemory = prices.usage[i] - memory;
        if (alternative.current) { // the plan itself; a marginal may tie with another assignment
            alternative.time = plan.totals.time;
            alternative.leastTime = std::min(alternative.leastTime, alternative.time);
            alternative.deltaTime = alternative.deltaMemory = 0;
        }
        result.push_back(std::move(alternative));
    }
    std::ranges::stable_sort(result, {}, &Alternative::time);
    for (const auto& illegal : priced.illegal) {
        Alternative alternative;
        alternative.choice = illegal.choice;
        alternative.text = toString(illegal.choice, priced.rule, context.mesh);
        alternative.legal = false;
        alternative.reason = illegal.reason;
        result.push_back(std::move(alternative));
    }
    return result;
}

ChoiceProblem choiceProblem(const PlanContext& context) {
    ProblemBuilder builder(*context.pricing, fixedChoices(context, context.request.pins));
    builder.problem().limit = usageLimit(context);
    return {builder.problem(), context.cost->quantum(), builder.nodeNames()};
}

} // namespace shardlens
