// SPDX-License-Identifier: Apache-2.0
// Messages are normalised to a minimum of 0; what is taken off in a backward pass adds up to the
// bound. Infinities pass through: a value whose sum is infinite is never subtracted from.
#include "core/solve/pair_graph.h"

#include "core/solve/min_plus.h"
#include "core/solve/problem.h"

#include <cmath>
#include <functional>
#include <numeric>

namespace shardlens::solve {

PairGraph::PairGraph(std::vector<std::uint32_t> dims)
    : m_dims(std::move(dims)), m_unary(m_dims.size()), m_links(m_dims.size()),
      m_excess(m_dims.size()) {
    for (Var v = 0; v < m_dims.size(); ++v) m_unary[v].assign(m_dims[v], 0.0);
}

void PairGraph::addUnary(Var v, const double* costs) {
    for (std::uint32_t c = 0; c < m_dims[v]; ++c) m_unary[v][c] += costs[c];
}

Values PairGraph::transposed(const Values& costs, std::size_t rows, std::size_t cols) {
    Turned& known = m_turned[{costs.get(), rows}];
    if (known.turned) return known.turned;
    auto out = std::make_shared_for_overwrite<double[]>(rows * cols);
    const double* from = costs.get();
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < cols; ++c) out.get()[c * rows + r] = *from++;
    }
    known = {costs, std::move(out)};
    return known.turned;
}

void PairGraph::addPair(Var u, Var v, const Values& costs) {
    const std::size_t rows = m_dims[u], cols = m_dims[v];
    const auto known = std::ranges::find(m_links[u], v, &Link::to);
    const Values turned = transposed(costs, rows, cols);
    if (known == m_links[u].end()) {
        m_links[u].push_back({v, m_pairs.size(), true});
        m_links[v].push_back({u, m_pairs.size(), false});
        m_pairs.push_back(
            {u, v, costs, turned, std::vector<double>(rows), std::vector<double>(cols)});
        return;
    }
    const auto sum = [&](const Values& a, const Values& b) {
        auto out = std::make_shared_for_overwrite<double[]>(rows * cols);
        std::transform(a.get(), a.get() + rows * cols, b.get(), out.get(), std::plus<>{});
        return out;
    };
    Pair& pair = m_pairs[known->pair];
    pair.costs = sum(pair.costs, known->first ? costs : turned);
    pair.transposed = sum(pair.transposed, known->first ? turned : costs);
}

void PairGraph::startFrom(PairGraph& other) {
    for (std::size_t p = 0; p < m_pairs.size(); ++p) {
        m_pairs[p].toU = std::move(other.m_pairs[p].toU);
        m_pairs[p].toV = std::move(other.m_pairs[p].toV);
    }
}

double PairGraph::magnitude() const {
    const auto largest = [](std::span<const double> costs) {
        double most = 0;
        for (const double c : costs) {
            if (c < kInfinite) most = std::max(most, std::abs(c));
        }
        return most;
    };
    double sum = 0;
    for (const auto& costs : m_unary) sum += largest(costs);
    for (const Pair& pair : m_pairs) {
        sum += largest({pair.costs.get(), std::size_t{m_dims[pair.u]} * m_dims[pair.v]});
    }
    return sum;
}

void PairGraph::minimise(double* out, std::size_t width, const double* base, std::size_t count,
                         const double* rows) const {
    std::vector<std::uint32_t> offset(count);
    for (std::size_t e = 0; e < count; ++e) offset[e] = static_cast<std::uint32_t>(e * width);
    std::fill_n(out, width, kInfinite);
    minPlusRow(out, width, base, offset.data(), count, rows);
}

double PairGraph::visit(Var v, bool forward) {
    std::vector<double> sum = m_unary[v];
    std::size_t ahead = 0;
    for (const Link& link : m_links[v]) {
        ahead += (link.to > v) == forward;
        const auto& message = messageFrom(link);
        for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += message[c];
    }
    double taken = *std::ranges::min_element(sum);
    if (taken == kInfinite) return taken;
    for (double& s : sum) s -= taken;
    if (!forward) m_excess[v] = sum;
    const double share = 1.0 / double(std::max({ahead, m_links[v].size() - ahead, std::size_t{1}}));
    std::vector<double> base(sum.size());
    for (const Link& link : m_links[v]) {
        if ((link.to > v) != forward) continue;
        const auto& back = messageFrom(link);
        for (std::size_t c = 0; c < sum.size(); ++c) {
            base[c] = sum[c] == kInfinite ? kInfinite : share * sum[c] - back[c];
        }
        auto& message = messageTo(link);
        minimise(message.data(), message.size(), base.data(), base.size(), rowsFrom(link));
        const double least = *std::ranges::min_element(message);
        taken += least;
        if (least == kInfinite) return least;
        for (double& m : message) m -= least;
    }
    return taken;
}

double PairGraph::pass(bool forward, Monitor& monitor) {
    double bound = 0;
    for (std::size_t i = 0; i < m_dims.size(); ++i) {
        const Var v = static_cast<Var>(forward ? i : m_dims.size() - 1 - i);
        monitor.tick(std::size_t{m_dims[v]} * (32 + 16 * m_links[v].size()));
        bound += visit(v, forward);
        if (bound == kInfinite) return bound;
    }
    return bound;
}

double PairGraph::improveBound(Monitor& monitor) {
    m_forwardBound = pass(true, monitor);
    return m_forwardBound == kInfinite ? m_forwardBound : pass(false, monitor);
}

std::vector<std::uint32_t> PairGraph::round() const {
    std::vector<std::uint32_t> value(m_dims.size(), 0);
    for (Var v = 0; v < m_dims.size(); ++v) {
        std::vector<double> sum = m_unary[v];
        for (const Link& link : m_links[v]) {
            const std::size_t cols = m_dims[link.to];
            for (std::size_t c = 0; c < sum.size(); ++c) {
                sum[c] +=
                    link.to < v ? rowsFrom(link)[c * cols + value[link.to]] : messageFrom(link)[c];
            }
        }
        value[v] = static_cast<std::uint32_t>(std::ranges::min_element(sum) - sum.begin());
    }
    return value;
}

double PairGraph::cost(const std::vector<std::uint32_t>& value) const {
    double sum = 0;
    for (Var v = 0; v < m_dims.size(); ++v) sum += m_unary[v][value[v]];
    for (const Pair& pair : m_pairs) {
        sum += pair.costs.get()[std::size_t{value[pair.u]} * m_dims[pair.v] + value[pair.v]];
    }
    return sum;
}

std::uint64_t PairGraph::random() { // xorshift64*
    m_seed ^= m_seed >> 12;
    m_seed ^= m_seed << 25;
    m_seed ^= m_seed >> 27;
    return m_seed * 0x2545F4914F6CDD1Dull;
}

void PairGraph::growForest(std::vector<Var>& order, std::vector<char>& inside) {
    order.resize(m_dims.size());
    std::iota(order.begin(), order.end(), Var{0});
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    inside.assign(m_dims.size(), 0);
    std::vector<Var> root(m_dims.size());
    std::iota(root.begin(), root.end(), Var{0});
    const auto find = [&](Var v) {
        while (root[v] != v) v = root[v] = root[root[v]];
        return v;
    };
    for (const Var v : order) {
        std::vector<Var> trees;
        for (const Link& link : m_links[v]) {
            if (inside[link.to]) trees.push_back(find(link.to));
        }
        std::ranges::sort(trees);
        if (std::ranges::adjacent_find(trees) != trees.end()) continue; // would close a cycle
        inside[v] = 1;
        for (const Var tree : trees) root[tree] = v;
    }
}

bool PairGraph::improveForest(std::vector<std::uint32_t>& value, double forbidden,
                              Monitor& monitor) {
    std::vector<Var> seeds, order;
    std::vector<char> inside;
    growForest(seeds, inside);
    std::vector<const Link*> up(m_dims.size(), nullptr); // towards the parent
    std::vector<char> seen(m_dims.size(), 0);
    for (const Var seed : seeds) { // breadth first from each root
        if (!inside[seed] || seen[seed]) continue;
        seen[seed] = 1;
        for (std::size_t next = order.size(), end = (order.push_back(seed), order.size());
             next < end; ++next, end = order.size()) {
            for (const Link& link : m_links[order[next]]) {
                if (!inside[link.to] || seen[link.to]) continue;
                seen[link.to] = 1;
                up[link.to] = &*std::ranges::find(m_links[link.to], order[next], &Link::to);
                order.push_back(link.to);
            }
        }
    }
    const auto cap = [&](double cost) { return std::min(cost, forbidden); };
    std::vector<std::vector<double>> sum(m_dims.size());
    for (const Var v : order) {
        monitor.tick(std::size_t{m_dims[v]} * (16 + 4 * m_links[v].size()));
        for (const double cost : m_unary[v]) sum[v].push_back(cap(cost));
        for (const Link& link : m_links[v]) {
            if (inside[link.to]) continue;
            const double* column = rowsFrom(link) + value[link.to];
            for (std::size_t c = 0; c < sum[v].size(); ++c) {
                sum[v][c] += cap(column[c * m_dims[link.to]]);
            }
        }
    }
    for (std::size_t i = order.size(); i-- > 0;) { // leaves to roots
        const Var v = order[i];
        if (!up[v]) continue;
        const Var parent = up[v]->to;
        std::vector<double> message(m_dims[parent]);
        monitor.tick(message.size() * sum[v].size());
        minimise(message.data(), message.size(), sum[v].data(), sum[v].size(), rowsFrom(*up[v]));
        const double least = *std::ranges::min_element(sum[v]);
        for (std::size_t c = 0; c < message.size(); ++c) {
            sum[parent][c] += std::min(message[c], least + forbidden);
        }
    }
    bool changed = false;
    for (const Var v : order) {
        if (up[v]) {
            const double* column = rowsFrom(*up[v]) + value[up[v]->to];
            for (std::size_t c = 0; c < sum[v].size(); ++c) {
                sum[v][c] += cap(column[c * m_dims[up[v]->to]]);
            }
        }
        const auto best = std::ranges::min_element(sum[v]);
        if (*best < sum[v][value[v]]) {
            value[v] = static_cast<std::uint32_t>(best - sum[v].begin());
            changed = true;
        }
    }
    return changed;
}

void PairGraph::improve(std::vector<std::uint32_t>& value, int patience, Monitor& monitor) {
    const double forbidden = 2 * magnitude() + 1;
    for (int idle = 0; idle < patience && !monitor.over(); ++idle) {
        if (improveForest(value, forbidden, monitor)) idle = -1;
    }
}

} // namespace shardlens::solve
