// SPDX-License-Identifier: Apache-2.0
// Checks, prices and unfolds the choice problem. evaluate() walks the copies themselves and shares
// nothing with the solver, so that it can judge it.
#include "core/solve/problem.h"

#include "core/solve/instances.h"
#include "core/solve/problem_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shardlens::solve {
namespace {

void checkNode(const Problem& problem, NodeId id) {
    const Node& node = problem.nodes[id];
    const std::string where = fmt::format("node {}", id);
    checkChoices(node.cost, node.usage, where);
    if (!std::ranges::all_of(node.usage, [](double u) { return std::isfinite(u); })) {
        failCheck("a usage is not finite", where);
    }
    if (node.run < -1 ||
        (node.run >= 0 && static_cast<std::size_t>(node.run) >= problem.runs.size())) {
        failCheck(fmt::format("the node belongs to run {} of {}", node.run, problem.runs.size()),
                  where);
    }
}

void checkRuns(const Problem& problem) {
    std::vector<char> seen(problem.nodes.size(), 0);
    for (std::size_t r = 0; r < problem.runs.size(); ++r) {
        const Run& run = problem.runs[r];
        const std::string where = fmt::format("run {}", r);
        if (run.count < 1 || run.count > kMostCopies) {
            failCheck(fmt::format("a run has {} copies, not 1 to {}", run.count, kMostCopies),
                      where);
        }
        for (const NodeId id : run.body) {
            if (id >= problem.nodes.size()) failCheck(fmt::format("no node {}", id), where);
            if (problem.nodes[id].run != static_cast<int>(r) || seen[id]++) {
                failCheck(fmt::format("node {} is listed twice or says it is not of this run", id),
                          where);
            }
        }
    }
    for (NodeId id = 0; id < problem.nodes.size(); ++id) {
        if (problem.nodes[id].run >= 0 && !seen[id]) {
            failCheck("a node is missing in the body of its run", fmt::format("node {}", id));
        }
    }
}

void checkEdge(const Problem& problem, std::size_t index) {
    const Edge& edge = problem.edges[index];
    const std::string where = fmt::format("edge {}", index);
    if (edge.u >= problem.nodes.size() || edge.v >= problem.nodes.size()) {
        failCheck(fmt::format("an end is no node: {} or {}", edge.u, edge.v), where);
    }
    if (!edge.cost) failCheck("an edge has no cost matrix", where);
    const Node &u = problem.nodes[edge.u], &v = problem.nodes[edge.v];
    checkMatrix(*edge.cost, u.cost.size(), v.cost.size(), where);
    if (edge.carry) {
        if (u.run < 0 || u.run != v.run || edge.atU != At::Each || edge.atV != At::Each) {
            failCheck("a carry edge must join each copy to the next inside one run", where);
        }
        return;
    }
    const EdgeEnd endU = edgeEnd(problem, edge.u, edge.atU);
    const EdgeEnd endV = edgeEnd(problem, edge.v, edge.atV);
    if (!endU.single && !endV.single && endU.count != endV.count) {
        failCheck(fmt::format("an edge pairs {} copies with {}", endU.count, endV.count), where);
    }
}

} // namespace

void validate(const Problem& problem) {
    if (std::isnan(problem.limit)) failCheck("the limit is not a number", "limit");
    for (NodeId id = 0; id < problem.nodes.size(); ++id) checkNode(problem, id);
    checkRuns(problem);
    std::vector<const Matrix*> matrices;
    for (std::size_t e = 0; e < problem.edges.size(); ++e) {
        checkEdge(problem, e);
        matrices.push_back(problem.edges[e].cost.get());
    }
    std::ranges::sort(matrices);
    const auto repeated = std::ranges::unique(matrices);
    matrices.erase(repeated.begin(), repeated.end());
    for (const Matrix* matrix : matrices) checkCosts(matrix->values, "an edge's cost matrix");
}

Evaluation evaluate(const Problem& problem, const Assignment& assignment) {
    if (assignment.choice.size() != problem.nodes.size()) {
        failCheck("an assignment is for another problem", "assignment");
    }
    Evaluation sum;
    for (NodeId id = 0; id < problem.nodes.size(); ++id) {
        const Node& node = problem.nodes[id];
        if (assignment.choice[id].size() != problem.copies(id)) {
            failCheck("an assignment has the wrong number of copies", fmt::format("node {}", id));
        }
        for (const std::uint16_t choice : assignment.choice[id]) {
            if (choice >= node.cost.size()) failCheck("no such choice", fmt::format("node {}", id));
            sum.cost += node.cost[choice];
            if (!node.usage.empty()) sum.usage += node.usage[choice];
        }
    }
    for (const Edge& edge : problem.edges) {
        const auto &u = assignment.choice[edge.u], &v = assignment.choice[edge.v];
        forEachInstance(problem, edge, [&](std::size_t i, std::size_t j) {
            sum.cost += edge.cost->at(u[i], v[j]);
        });
    }
    return sum;
}

Expanded expand(const Problem& problem) {
    Expanded out;
    out.problem.limit = problem.limit;
    out.node.resize(problem.nodes.size());
    for (NodeId id = 0; id < problem.nodes.size(); ++id) {
        for (std::size_t copy = 0; copy < problem.copies(id); ++copy) {
            out.node[id].push_back(static_cast<NodeId>(out.problem.nodes.size()));
            out.problem.nodes.push_back({problem.nodes[id].cost, problem.nodes[id].usage, -1});
        }
    }
    for (const Edge& edge : problem.edges) {
        forEachInstance(problem, edge, [&](std::size_t i, std::size_t j) {
            out.problem.edges.push_back(
                {out.node[edge.u][i], out.node[edge.v][j], edge.cost, At::Each, At::Each, false});
        });
    }
    return out;
}

} // namespace shardlens::solve
