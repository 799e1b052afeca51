// SPDX-License-Identifier: Apache-2.0
// From times to moments.
#include "core/solve/core_problem.h"

#include "core/solve/monitor.h"

#include <algorithm>

namespace shardlens::solve {

TimedCore makeCore(const IntervalProblem& problem, Monitor& monitor) {
    TimedCore out;
    const auto counts = [&](const IntervalProblem::Node& node) {
        return problem.limit < kInfinite && !node.alive.empty() &&
               std::ranges::any_of(node.usage, [](double u) { return u > 0; });
    };
    std::vector<Time>& times = out.begin;
    for (const auto& node : problem.nodes) {
        if (!counts(node)) continue;
        times.push_back(node.alive.begin);
        times.push_back(node.alive.end);
    }
    std::ranges::sort(times);
    const auto repeated = std::ranges::unique(times);
    times.erase(repeated.begin(), repeated.end());
    const auto place = [&](Time time) {
        return static_cast<std::uint32_t>(std::ranges::lower_bound(times, time) - times.begin());
    };
    for (const auto& node : problem.nodes) {
        out.problem.nodes.push_back({node.cost, {}});
        if (!counts(node)) continue;
        out.problem.nodes.back().parts.push_back(
            {place(node.alive.begin), place(node.alive.end), node.usage});
    }
    for (const auto& pair : problem.pairs) {
        monitor.tick(pair.cost->values.size());
        out.problem.pairs.push_back({pair.u, pair.v, pair.cost->values});
    }
    if (!times.empty()) times.pop_back();
    out.problem.room.assign(times.size(), problem.limit);
    return out;
}

CoreProblem copyOf(const CoreProblem& problem, Monitor& monitor) {
    CoreProblem out;
    out.room = problem.room;
    out.constant = problem.constant;
    out.nodes.reserve(problem.nodes.size());
    for (const auto& node : problem.nodes) {
        monitor.tick(node.cost.size() * (1 + node.parts.size()));
        out.nodes.push_back(node);
    }
    out.pairs.reserve(problem.pairs.size());
    for (const auto& pair : problem.pairs) {
        monitor.tick(pair.cost.size());
        out.pairs.push_back(pair);
    }
    return out;
}

} // namespace shardlens::solve
