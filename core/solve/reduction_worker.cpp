// SPDX-License-Identifier: Apache-2.0
// Nodes and pairs of a reduction, and the way back from the core.
#include "core/solve/reduction_worker.h"

#include <algorithm>
#include <numeric>

namespace shardlens::solve {

Reduction::Worker::Worker(CoreProblem problem, Reduction& out, Monitor& monitor)
    : m_out(out), m_monitor(monitor), m_statistics(out.m_statistics) {
    load(std::move(problem));
}

void Reduction::Worker::run() {
    try {
        reduceMoments();
        for (bool more = true; more;) {
            ++m_statistics.rounds;
            drain();
            more = reduceMoments();
        }
        finish();
    } catch (const Conflict& conflict) {
        m_out.m_conflict = conflict;
    }
}

void Reduction::Worker::load(CoreProblem problem) {
    m_constant = problem.constant;
    m_room = std::move(problem.room);
    m_moments.resize(m_room.size());
    std::iota(m_moments.begin(), m_moments.end(), 0u);
    m_nodes.resize(problem.nodes.size());
    for (Var i = 0; i < m_nodes.size(); ++i) {
        Node& node = m_nodes[i];
        node.cost = std::move(problem.nodes[i].cost);
        node.parts = std::move(problem.nodes[i].parts);
        node.ids.resize(node.cost.size());
        std::iota(node.ids.begin(), node.ids.end(), Choice{0});
        queue(i);
    }
    for (auto& pair : problem.pairs) {
        m_monitor.tick(pair.cost.size());
        if (pair.u != pair.v) {
            addPair(pair.u, pair.v, std::move(pair.cost));
            continue;
        }
        auto& cost = m_nodes[pair.u].cost;
        for (std::size_t c = 0; c < cost.size(); ++c) cost[c] += pair.cost[c * cost.size() + c];
    }
}

void Reduction::Worker::addPair(Var u, Var v, std::vector<double> cost) {
    const auto& known =
        m_nodes[u].pairs.size() < m_nodes[v].pairs.size() ? m_nodes[u].pairs : m_nodes[v].pairs;
    const auto same = std::ranges::find_if(known, [&](std::uint32_t p) {
        return (m_pairs[p].u == u && m_pairs[p].v == v) || (m_pairs[p].u == v && m_pairs[p].v == u);
    });
    if (same == known.end()) {
        const auto index = static_cast<std::uint32_t>(m_pairs.size());
        m_pairs.push_back({.u = u, .v = v, .cost = std::move(cost)});
        m_nodes[u].pairs.push_back(index);
        m_nodes[v].pairs.push_back(index);
        return;
    }
    Pair& pair = m_pairs[*same];
    pair.checked = pair.consistent[0] = pair.consistent[1] = false;
    const std::size_t cols = m_nodes[pair.v].size();
    for (std::size_t r = 0; r < m_nodes[pair.u].size(); ++r) {
        for (std::size_t c = 0; c < cols; ++c) {
            pair.cost[r * cols + c] +=
                pair.u == u ? cost[r * cols + c] : cost[c * m_nodes[pair.u].size() + r];
        }
    }
}

void Reduction::Worker::dropPair(std::uint32_t pair) {
    m_pairs[pair].gone = true;
    m_pairs[pair].cost = {};
    std::erase(m_nodes[m_pairs[pair].u].pairs, pair);
    std::erase(m_nodes[m_pairs[pair].v].pairs, pair);
}

void Reduction::Worker::queue(Var node) {
    if (m_nodes[node].gone || m_nodes[node].queued) return;
    m_nodes[node].queued = true;
    m_queue.push_back(node);
}

void Reduction::Worker::queueAround(Var node) {
    queue(node);
    for (const std::uint32_t pair : m_nodes[node].pairs) queue(otherEnd(pair, node));
}

Reduction::Worker::View Reduction::Worker::view(std::uint32_t pair, Var node) const {
    const Pair& p = m_pairs[pair];
    const std::size_t cols = m_nodes[p.v].size();
    return p.u == node ? View{p.cost.data(), cols, 1} : View{p.cost.data(), 1, cols};
}

namespace {

template <class T>
void take(std::vector<T>& values, const std::vector<std::uint32_t>& places) {
    for (std::size_t i = 0; i < places.size(); ++i) values[i] = values[places[i]];
    values.resize(places.size());
}

} // namespace

/// @param places  ascending
void Reduction::Worker::keep(Var id, const std::vector<std::uint32_t>& places) {
    Node& node = m_nodes[id];
    if (places.empty()) throw Conflict{.node = id, .moment = {}, .excess = 0};
    const std::size_t before = node.size();
    take(node.ids, places);
    take(node.cost, places);
    for (Part& part : node.parts) take(part.usage, places);
    for (Part& part : node.pending) take(part.usage, places);
    normalise(node.parts);
    for (const std::uint32_t index : node.pairs) {
        Pair& pair = m_pairs[index];
        m_monitor.tick(pair.cost.size());
        pair.checked = pair.consistent[0] = pair.consistent[1] = false;
        if (pair.u == id) {
            const std::size_t cols = m_nodes[pair.v].size();
            for (std::size_t i = 0; i < places.size(); ++i) {
                std::copy_n(pair.cost.begin() + std::ptrdiff_t(places[i] * cols), cols,
                            pair.cost.begin() + std::ptrdiff_t(i * cols));
            }
            pair.cost.resize(places.size() * cols);
        } else {
            const std::size_t rows = m_nodes[pair.u].size();
            std::size_t to = 0;
            for (std::size_t r = 0; r < rows; ++r) {
                for (const std::uint32_t place : places) {
                    pair.cost[to++] = pair.cost[r * before + place];
                }
            }
            pair.cost.resize(to);
        }
    }
    queueAround(id);
}

void Reduction::Worker::remove(Var id, Rule rule) {
    Node& node = m_nodes[id];
    for (const std::uint32_t pair : std::vector(node.pairs)) {
        queue(otherEnd(pair, id));
        dropPair(pair);
    }
    rule.node = id;
    m_out.m_rules.push_back(std::move(rule));
    node = {};
    node.gone = true;
}

void Reduction::Worker::finish() {
    CoreProblem& core = m_out.m_core;
    std::vector<Var> place(m_nodes.size());
    for (Var i = 0; i < m_nodes.size(); ++i) {
        if (m_nodes[i].gone) continue;
        place[i] = static_cast<Var>(core.nodes.size());
        m_out.m_node.push_back(i);
        m_out.m_ids.push_back(std::move(m_nodes[i].ids));
        core.nodes.push_back({std::move(m_nodes[i].cost), std::move(m_nodes[i].parts)});
    }
    for (Pair& pair : m_pairs) {
        if (pair.gone) continue;
        core.pairs.push_back({place[pair.u], place[pair.v], std::move(pair.cost)});
    }
    m_out.m_moments = std::move(m_moments);
    core.room = std::move(m_room);
    core.constant = m_constant;
    m_statistics.nodes = core.nodes.size();
    m_statistics.pairs = core.pairs.size();
    m_statistics.moments = core.room.size();
}

Reduction::Reduction(CoreProblem problem, Monitor& monitor) : m_nodes(problem.nodes.size()) {
    Worker(std::move(problem), *this, monitor).run();
}

CoreChoices Reduction::restore(std::span<const std::uint16_t> core) const {
    CoreChoices out(m_nodes, 0);
    for (std::size_t i = 0; i < core.size(); ++i) out[m_node[i]] = m_ids[i][core[i]];
    const auto place = [&](const std::vector<Choice>& ids, Var node) {
        return ids.empty() ? 0
                           : static_cast<std::size_t>(std::ranges::lower_bound(ids, out[node]) -
                                                      ids.begin());
    };
    for (auto rule = m_rules.rbegin(); rule != m_rules.rend(); ++rule) {
        const std::size_t width = std::max<std::size_t>(1, rule->idsB.size());
        out[rule->node] =
            rule->choice[place(rule->idsA, rule->a) * width + place(rule->idsB, rule->b)];
    }
    return out;
}

CoreChoices Reduction::project(std::span<const std::uint16_t> whole) const {
    CoreChoices out(m_node.size(), 0);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const auto found = std::ranges::lower_bound(m_ids[i], whole[m_node[i]]);
        if (found != m_ids[i].end() && *found == whole[m_node[i]]) {
            out[i] = static_cast<std::uint16_t>(found - m_ids[i].begin());
        }
    }
    return out;
}

std::vector<double> Reduction::project(const std::vector<double>& byMoment) const {
    std::vector<double> out;
    for (const std::uint32_t moment : m_moments) out.push_back(byMoment[moment]);
    return out;
}

} // namespace shardlens::solve
