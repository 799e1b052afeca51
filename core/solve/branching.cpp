// SPDX-License-Identifier: Apache-2.0
// A node is split where the two assignments beside its limit differ most in usage: below and above
// the middle, so that each child loses one of the two.
#include "core/solve/branching.h"

#include <cmath>

namespace shardlens::solve {
namespace {

constexpr std::size_t kMostNodes = 400; ///< of the unfolded problem
constexpr double kMostSolveWork = 1e8;  ///< additions of one solve
constexpr int kMostTreeNodes = 5000;
constexpr double kMostEffort = 1e9; ///< additions altogether, some tenths of a second

double usageOf(const Node& node, std::size_t choice) {
    return node.usage.empty() ? 0 : node.usage[choice];
}

} // namespace

Branching::Branching(const Problem& folded, const Options& options, const Scale& scale, Point& best,
                     Monitor& monitor)
    : m_folded(folded), m_options(options), m_scale(scale), m_best(best), m_monitor(monitor) {
}

double Branching::bound() const {
    double least = std::min({m_left, m_current, m_best.cost});
    if (!m_open.empty()) least = std::min(least, m_open.top().bound);
    return least;
}

void Branching::run(double bound, double price) {
    m_left = bound;
    std::size_t nodes = 0;
    for (NodeId id = 0; id < m_folded.nodes.size(); ++id) nodes += m_folded.copies(id);
    if (nodes > kMostNodes) return;
    m_unfolded = expand(m_folded);
    m_bestUnfolded = unfold(m_best);
    Open root{bound, price, {}};
    for (const Node& node : m_unfolded.problem.nodes) root.gone.emplace_back(node.cost.size(), 0);
    m_open.push(std::move(root));
    m_left = kInfinite;
    while (!m_open.empty() && m_effort < kMostEffort && m_nodes < kMostTreeNodes) {
        if (closes(this->bound(), m_best.cost, m_options)) return;
        Open next = m_open.top();
        m_open.pop();
        m_current = next.bound;
        process(std::move(next));
        m_current = kInfinite;
        m_monitor.report("branch and bound", m_best.cost, this->bound());
    }
}

Point Branching::unfold(const Point& point) const {
    Point out{{}, point.cost, point.usage};
    for (const auto& copies : point.assignment.choice) {
        for (const std::uint16_t choice : copies) out.assignment.choice.push_back({choice});
    }
    return out;
}

Point Branching::fold(const Point& point) const {
    Point out{{}, point.cost, point.usage};
    for (const auto& copies : m_unfolded.node) {
        auto& choices = out.assignment.choice.emplace_back();
        for (const NodeId id : copies) choices.push_back(point.assignment.choice[id][0]);
    }
    return out;
}

Problem Branching::restricted(const Open& node) const {
    Problem problem = m_unfolded.problem;
    for (NodeId id = 0; id < problem.nodes.size(); ++id) {
        for (std::size_t c = 0; c < node.gone[id].size(); ++c) {
            if (node.gone[id][c]) problem.nodes[id].cost[c] = kInfinite;
        }
    }
    return problem;
}

void Branching::process(Open node) {
    const Problem problem = restricted(node);
    WeightedSolver solver(problem, m_options, m_monitor);
    if (!solver.exact() || solver.work() > kMostSolveWork) {
        m_effort += solver.exact() ? 0 : kMostEffort;
        return leave(node.bound);
    }
    ++m_nodes;
    PriceSearch search(problem, m_options, solver, m_scale, m_bestUnfolded, m_monitor);
    const bool feasible = search.run({}, node.price);
    if (m_bestUnfolded.cost < m_best.cost) m_best = fold(m_bestUnfolded);
    m_prices += search.pricesTried();
    m_effort += solver.work() * (search.pricesTried() + 3);
    if (!feasible) return;
    node.bound = std::max(node.bound, search.bound());
    if (closes(node.bound, m_best.cost, m_options)) return leave(node.bound);
    if (!search.over().known() || !search.under().known()) return leave(node.bound);
    node.price = search.price();
    strikeOut(node, problem, solver, search);
    branch(std::move(node), problem, search);
}

/// Removes choices that no better assignment has, by their priced min-marginals.
void Branching::strikeOut(Open& node, const Problem& problem, WeightedSolver& solver,
                          const PriceSearch& search) {
    const auto marginals =
        solver.marginals(pricedWeights(problem, search.price(), m_scale), m_monitor);
    const double fee = search.price() * problem.limit;
    for (NodeId id = 0; id < problem.nodes.size(); ++id) {
        for (std::size_t c = 0; c < marginals[id].size(); ++c) {
            const double priced = marginals[id][c];
            const double margin = (std::abs(priced) + std::abs(fee)) * 0x1p-50;
            if (priced - fee - margin >= m_best.cost) node.gone[id][c] = 1;
        }
    }
}

void Branching::branch(Open node, const Problem& problem, const PriceSearch& search) {
    const auto &over = search.over().assignment.choice, &under = search.under().assignment.choice;
    NodeId widest = 0;
    double difference = -1;
    for (NodeId id = 0; id < problem.nodes.size(); ++id) {
        if (over[id][0] == under[id][0]) continue;
        const Node& n = problem.nodes[id];
        const double d = std::abs(usageOf(n, over[id][0]) - usageOf(n, under[id][0]));
        if (d > difference) {
            difference = d;
            widest = id;
        }
    }
    if (difference < 0) return leave(node.bound);
    const Node& split = problem.nodes[widest];
    const std::uint16_t high = over[widest][0], low = under[widest][0];
    const double middle = (usageOf(split, high) + usageOf(split, low)) / 2;
    Open other = node;
    for (std::size_t c = 0; c < split.cost.size(); ++c) {
        // where usage does not tell the two apart, the choice itself does
        const bool withHigh = difference > 0
                                  ? (usageOf(split, c) > middle) == (usageOf(split, high) > middle)
                                  : c == high;
        (withHigh ? node : other).gone[widest][c] = 1;
    }
    for (Open* child : {&node, &other}) {
        const auto& gone = child->gone[widest];
        const auto& costs = split.cost;
        bool left = false;
        for (std::size_t c = 0; c < gone.size(); ++c) left |= !gone[c] && costs[c] < kInfinite;
        if (left) m_open.push(std::move(*child));
    }
}

} // namespace shardlens::solve
