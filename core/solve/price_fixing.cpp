// SPDX-License-Identifier: Apache-2.0
// What the messages leave of the costs. After a backward pass the cost of an assignment is the
// bound, plus at each node what is left of its priced cost, plus at each pair what is left of its
// matrix, all at least 0. A node gives an equal share of its cost to each pair with an earlier
// node; towards its later neighbours the least of what is left is 0 for each of its choices, since
// that is how their messages were made.
#include "core/solve/monitor.h"
#include "core/solve/price_bound.h"
#include "core/solve/problem.h"

#include <algorithm>

namespace shardlens::solve {
namespace {

constexpr int kPairPasses = 30; ///< of messages, where they were not needed before

} // namespace

std::vector<double> PriceBound::reduced(Var v) const {
    if (!m_marginals.empty()) {
        const auto begin = m_marginals.begin() + std::ptrdiff_t(m_graph.first(v));
        std::vector<double> out(begin, begin + m_graph.choices(v));
        const double low = *std::ranges::min_element(out);
        for (double& cost : out) cost -= low;
        return out;
    }
    return withMessages(v);
}

std::vector<double> PriceBound::withMessages(Var v) const {
    const auto from = m_priced.begin() + std::ptrdiff_t(m_graph.first(v));
    std::vector<double> sum(from, from + m_graph.choices(v));
    for (const auto& link : m_graph.links(v)) {
        for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += m_messages[link.in + c];
    }
    const double least = *std::ranges::min_element(sum);
    for (double& s : sum) s -= least;
    return sum;
}

/// What is left of the pair with an earlier node, the share of this node included.
/// @param own  this node's share, by choice
/// @param out  [own choice][other's choice]
void PriceBound::reducedPair(const CoreGraph::Link& link, const std::vector<double>& own,
                             std::vector<double>& out) const {
    const std::size_t others = m_graph.choices(link.to);
    out.resize(own.size() * others);
    for (std::size_t c = 0; c < own.size(); ++c) {
        const double base = own[c] == kInfinite ? kInfinite : own[c] - m_messages[link.in + c];
        for (std::size_t k = 0; k < others; ++k) {
            const double sent = m_messages[link.out + k];
            out[c * others + k] =
                sent == kInfinite ? kInfinite : base + link.rows[c * others + k] - sent;
        }
    }
    // Messages have a least value of 0; what was taken off them is part of the bound.
    const double least = *std::ranges::min_element(out);
    for (double& cost : out) cost -= least;
}

CoreProblem PriceBound::tighten(const CoreProblem& problem, double cutoff, std::size_t& struck,
                                Monitor& monitor) {
    CoreProblem out = copyOf(problem, monitor);
    const auto forbid = [&](double& cost) {
        struck += cost < kInfinite;
        cost = kInfinite;
    };
    if (m_exact) {
        pass(monitor);
        m_marginals = m_exact->marginals(monitor);
        const double least = *std::ranges::min_element(m_marginals);
        for (Var v = 0; v < m_graph.nodes(); ++v) {
            for (std::size_t c = 0; c < m_graph.choices(v); ++c) {
                const double more = m_marginals[m_graph.first(v) + c] - least;
                if (m_last + more > cutoff) forbid(out.nodes[v].cost[c]);
            }
        }
        for (int i = 0; i < kPairPasses; ++i) sweepBoth(monitor);
    }
    const double base = sweepBoth(monitor);
    const std::size_t count = m_graph.nodes();
    std::vector<std::vector<double>> excess(count), left, share(count);
    std::vector<double> table;
    const auto earlier = [](Var v, const CoreGraph::Link& link) { return link.to < v; };
    left.resize(problem.pairs.size()); // least of a pair with an earlier node, by choice
    for (Var v = 0; v < count; ++v) {
        std::size_t behind = 0, ahead = 0;
        for (const auto& link : m_graph.links(v)) ++(earlier(v, link) ? behind : ahead);
        const double part = 1.0 / double(std::max({behind, ahead, std::size_t{1}}));
        excess[v] = withMessages(v);
        share[v] = excess[v];
        for (double& s : share[v]) s = s == kInfinite ? s : s * part;
        for (std::size_t c = 0; c < excess[v].size(); ++c) {
            if (excess[v][c] < kInfinite) excess[v][c] *= 1.0 - part * double(behind);
        }
        for (const auto& link : m_graph.links(v)) {
            if (!earlier(v, link)) continue;
            monitor.tick(4 * std::size_t{m_graph.choices(v)} * m_graph.choices(link.to));
            reducedPair(link, share[v], table);
            const std::size_t others = m_graph.choices(link.to);
            for (std::size_t c = 0; c < excess[v].size(); ++c) {
                const auto row = table.begin() + std::ptrdiff_t(c * others);
                left[link.pair].push_back(*std::min_element(row, row + std::ptrdiff_t(others)));
                excess[v][c] += left[link.pair].back();
            }
        }
        for (std::size_t c = 0; c < excess[v].size(); ++c) {
            if (base + excess[v][c] > cutoff) forbid(out.nodes[v].cost[c]);
        }
    }
    for (Var v = 0; v < count; ++v) {
        for (const auto& link : m_graph.links(v)) {
            if (!earlier(v, link)) continue;
            monitor.tick(4 * std::size_t{m_graph.choices(v)} * m_graph.choices(link.to));
            reducedPair(link, share[v], table);
            auto& pair = out.pairs[link.pair];
            const std::size_t others = m_graph.choices(link.to);
            for (std::size_t i = 0; i < table.size(); ++i) {
                const std::size_t c = i / others, k = i % others;
                const double more = excess[link.to][k] + (excess[v][c] - left[link.pair][c]);
                if (!(base + more + table[i] > cutoff)) continue;
                forbid(pair.cost[pair.u == v ? i : k * excess[v].size() + c]);
            }
        }
    }
    return out;
}

} // namespace shardlens::solve
