// SPDX-License-Identifier: Apache-2.0
// From times to moments.
#include "core/solve/core_problem.h"

#include <algorithm>

namespace shardlens::solve {

TimedCore makeCore(const IntervalProblem& problem) {
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
        out.problem.pairs.push_back({pair.u, pair.v, pair.cost->values});
    }
    if (!times.empty()) times.pop_back();
    out.problem.room.assign(times.size(), problem.limit);
    return out;
}

} // namespace shardlens::solve
