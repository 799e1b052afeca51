// SPDX-License-Identifier: Apache-2.0
// Forbidden choices and pairs are counted, not added, so that a walk may pass through them.
#include "core/solve/moves.h"

#include "core/solve/instances.h"
#include "core/solve/monitor.h"

#include <algorithm>

namespace shardlens::solve {

Moves::Moves(const Problem& problem, Assignment start)
    : m_problem(problem), m_assignment(std::move(start)), m_links(problem.nodes.size()) {
    const auto count = [&](double cost) {
        cost == kInfinite ? void(++m_forbidden) : void(m_cost += cost);
    };
    for (NodeId id = 0; id < problem.nodes.size(); ++id) {
        const Node& node = problem.nodes[id];
        for (const std::uint16_t choice : m_assignment.choice[id]) {
            count(node.cost[choice]);
            if (!node.usage.empty()) m_usage += node.usage[choice];
        }
    }
    for (std::size_t e = 0; e < problem.edges.size(); ++e) {
        const Edge& edge = problem.edges[e];
        const auto &u = m_assignment.choice[edge.u], &v = m_assignment.choice[edge.v];
        forEachInstance(problem, edge,
                        [&](std::size_t i, std::size_t j) { count(edge.cost->at(u[i], v[j])); });
        m_links[edge.u].push_back({e, true});
        m_links[edge.v].push_back({e, false});
    }
}

Moves::Change Moves::change(NodeId node, std::size_t copy, std::uint16_t choice) const {
    const std::uint16_t old = m_assignment.choice[node][copy];
    Change out;
    const Node& self = m_problem.nodes[node];
    out.swap(self.cost[old], self.cost[choice]);
    if (!self.usage.empty()) out.usage = self.usage[choice] - self.usage[old];
    for (const Link& link : m_links[node]) {
        const Edge& edge = m_problem.edges[link.edge];
        const NodeId other = link.atU ? edge.v : edge.u;
        const Matrix& m = *edge.cost;
        forEachPartner(m_problem, edge, link.atU, copy, [&](std::size_t partner) {
            if (other == node && partner == copy) { // a self edge has two links
                if (link.atU) out.swap(m.at(old, old), m.at(choice, choice));
                return;
            }
            const std::uint16_t there = m_assignment.choice[other][partner];
            out.swap(link.atU ? m.at(old, there) : m.at(there, old),
                     link.atU ? m.at(choice, there) : m.at(there, choice));
        });
    }
    return out;
}

void Moves::set(NodeId node, std::size_t copy, std::uint16_t choice) {
    if (m_assignment.choice[node][copy] == choice) return;
    const Change delta = change(node, copy, choice);
    m_cost += delta.cost;
    m_usage += delta.usage;
    m_forbidden += delta.forbidden;
    m_assignment.choice[node][copy] = choice;
}

namespace {

/// Keeps the cheapest assignment within the limit that it was shown.
struct Best {
    const Problem& problem;
    Assignment assignment;
    double cost;

    void offer(const Moves& moves) {
        if (moves.usage() <= problem.limit && moves.cost() < cost) {
            cost = moves.cost();
            assignment = moves.assignment();
        }
    }
};

/// One walk from the frugal assignment towards the cheap one, run by run, front to back or back to
/// front. The cost of the assignment after each copy is looked at.
void walk(const Problem& problem, const Assignment& frugal, const Assignment& cheap,
          bool plainFirst, bool backwards, Best& best, Monitor& monitor) {
    Moves moves(problem, frugal);
    if (plainFirst) {
        for (NodeId id = 0; id < problem.nodes.size(); ++id) {
            if (problem.nodes[id].run < 0) moves.set(id, 0, cheap.choice[id][0]);
        }
        best.offer(moves);
    }
    for (std::size_t i = 0; i < problem.runs.size(); ++i) {
        const Run& run = problem.runs[backwards ? problem.runs.size() - 1 - i : i];
        for (std::size_t k = 0; k < run.count; ++k) {
            const std::size_t copy = backwards ? run.count - 1 - k : k;
            monitor.tick(run.body.size() * 64);
            for (const NodeId id : run.body) moves.set(id, copy, cheap.choice[id][copy]);
            best.offer(moves);
            if (moves.usage() > problem.limit) return;
        }
    }
    for (NodeId id = 0; id < problem.nodes.size(); ++id) {
        if (problem.nodes[id].run >= 0) continue;
        moves.set(id, 0, cheap.choice[id][0]);
        best.offer(moves);
    }
}

} // namespace

Assignment mix(const Problem& problem, const Assignment& frugal, const Assignment& cheap,
               Monitor& monitor) {
    Best best{problem, frugal, Moves(problem, frugal).cost()};
    for (const bool plainFirst : {false, true}) {
        for (const bool backwards : {false, true}) {
            walk(problem, frugal, cheap, plainFirst, backwards, best, monitor);
        }
    }
    return std::move(best.assignment);
}

} // namespace shardlens::solve
