// SPDX-License-Identifier: Apache-2.0
// Checks, prices and judges interval problems. Usage over time is a sum of steps: up where a node
// comes alive, down where it ends.
#include "core/solve/interval_problem.h"

#include "core/solve/problem_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shardlens::solve {
namespace {

void checkNode(const IntervalProblem::Node& node, const std::string& where) {
    checkChoices(node.cost, node.usage, where);
    const auto good = [](double u) { return std::isfinite(u) && u >= 0; };
    if (!std::ranges::all_of(node.usage, good))
        failCheck("a usage is negative or not finite", where);
}

void checkPair(const IntervalProblem& problem, std::size_t index) {
    const auto& pair = problem.pairs[index];
    const std::string where = fmt::format("pair {}", index);
    if (pair.u >= problem.nodes.size() || pair.v >= problem.nodes.size()) {
        failCheck(fmt::format("an end is no node: {} or {}", pair.u, pair.v), where);
    }
    if (!pair.cost) failCheck("a pair has no cost matrix", where);
    checkMatrix(*pair.cost, problem.nodes[pair.u].cost.size(), problem.nodes[pair.v].cost.size(),
                where);
}

/// The usage after each time at which it changes, in ascending order.
std::vector<std::pair<Time, double>> profile(std::span<const IntervalProblem::Node> nodes,
                                             auto&& usageOf) {
    std::vector<std::pair<Time, double>> steps;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const double usage = nodes[i].alive.empty() ? 0.0 : usageOf(i);
        if (usage == 0) continue;
        steps.emplace_back(nodes[i].alive.begin, usage);
        steps.emplace_back(nodes[i].alive.end, -usage);
    }
    std::ranges::sort(steps);
    std::vector<std::pair<Time, double>> out;
    double sum = 0;
    for (const auto& [time, step] : steps) {
        sum += step;
        if (out.empty() || out.back().first != time) out.emplace_back(time, 0);
        out.back().second = sum;
    }
    return out;
}

} // namespace

void validate(const IntervalProblem& problem) {
    if (std::isnan(problem.limit)) failCheck("the limit is not a number", "limit");
    for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
        checkNode(problem.nodes[i], fmt::format("node {}", i));
    }
    std::vector<const Matrix*> matrices;
    for (std::size_t e = 0; e < problem.pairs.size(); ++e) {
        checkPair(problem, e);
        matrices.push_back(problem.pairs[e].cost.get());
    }
    std::ranges::sort(matrices);
    const auto repeated = std::ranges::unique(matrices);
    matrices.erase(repeated.begin(), repeated.end());
    for (const Matrix* matrix : matrices) checkCosts(matrix->values, "a cost matrix");
}

IntervalEvaluation evaluate(const IntervalProblem& problem, std::span<const Choice> choices) {
    if (choices.size() != problem.nodes.size()) {
        failCheck(fmt::format("{} choices for {} nodes", choices.size(), problem.nodes.size()),
                  "solution");
    }
    IntervalEvaluation out;
    for (std::size_t i = 0; i < choices.size(); ++i) {
        if (choices[i] >= problem.nodes[i].cost.size()) {
            failCheck(
                fmt::format("no choice {} among {}", choices[i], problem.nodes[i].cost.size()),
                fmt::format("node {}", i));
        }
        out.cost += problem.nodes[i].cost[choices[i]];
    }
    for (const auto& pair : problem.pairs) {
        out.cost += pair.cost->at(choices[pair.u], choices[pair.v]);
    }
    const auto usageOf = [&](std::size_t i) {
        const auto& usage = problem.nodes[i].usage;
        return usage.empty() ? 0.0 : usage[choices[i]];
    };
    for (const auto& [time, usage] : profile(problem.nodes, usageOf)) {
        if (usage > out.peak) {
            out.peak = usage;
            out.peakTime = time;
        }
    }
    return out;
}

IntervalProblem unfold(const Problem& problem) {
    const Problem flat = expand(problem).problem;
    IntervalProblem out;
    out.limit = flat.limit;
    for (const Node& node : flat.nodes) {
        const bool counted = flat.limit < kInfinite && !node.usage.empty();
        out.nodes.push_back({{0, counted ? 1 : 0}, node.cost, node.usage});
        if (node.usage.empty()) continue;
        const double raise = std::max(0.0, -*std::ranges::min_element(node.usage));
        for (double& usage : out.nodes.back().usage) usage += raise;
        if (counted) out.limit += raise;
    }
    for (const Edge& edge : flat.edges) out.pairs.push_back({edge.u, edge.v, edge.cost});
    return out;
}

} // namespace shardlens::solve
