// SPDX-License-Identifier: Apache-2.0
// Many small problems as one, side by side, so that a reference solver is started once for all of
// them. The optimum of the whole is the sum of theirs: if each answer is attained and the answers
// add up to the optimum of the whole, each of them is optimal.
#pragma once

#include "core/solve/interval_problem.h"

#include <algorithm>
#include <span>

namespace shardlens::solve::test {

/// Problems without limits.
inline Problem joined(std::span<const Problem> problems) {
    Problem out;
    for (const Problem& p : problems) {
        const auto first = static_cast<NodeId>(out.nodes.size());
        const int firstRun = static_cast<int>(out.runs.size());
        for (Node node : p.nodes) {
            if (node.run >= 0) node.run += firstRun;
            out.nodes.push_back(std::move(node));
        }
        for (Edge edge : p.edges) {
            edge.u += first;
            edge.v += first;
            out.edges.push_back(std::move(edge));
        }
        for (Run run : p.runs) {
            for (NodeId& id : run.body) id += first;
            out.runs.push_back(std::move(run));
        }
    }
    return out;
}

/// One after the other in time. Where limits differ a node of its own uses up what a problem must
/// not have.
inline IntervalProblem joined(std::span<const IntervalProblem> problems) {
    IntervalProblem out;
    out.limit = 0;
    for (const IntervalProblem& p : problems) out.limit = std::max(out.limit, p.limit);
    Time begin = 0;
    for (const IntervalProblem& p : problems) {
        const auto first = static_cast<NodeId>(out.nodes.size());
        Time end = begin;
        for (IntervalProblem::Node node : p.nodes) {
            node.alive.begin += begin;
            node.alive.end += begin;
            end = std::max(end, node.alive.end);
            out.nodes.push_back(std::move(node));
        }
        for (IntervalProblem::Pair pair : p.pairs) {
            pair.u += first;
            pair.v += first;
            out.pairs.push_back(std::move(pair));
        }
        if (p.limit < out.limit) out.nodes.push_back({{begin, end}, {0}, {out.limit - p.limit}});
        begin = end;
    }
    return out;
}

} // namespace shardlens::solve::test
