// SPDX-License-Identifier: Apache-2.0
// The rules on choices and pairs. Cheap ones run until nothing changes; only then are choices
// compared with each other (dominance in the sense of Goldstein 1994, "Efficient rotamer
// elimination", with usage as a further condition).
#include "core/solve/reduction_worker.h"

#include <algorithm>
#include <utility>

namespace shardlens::solve {
namespace {

constexpr double kMostEliminationWork = 1e8; ///< additions of one elimination
constexpr double kMostComparisons = 2e7;     ///< of one node's choices
constexpr std::size_t kSmallTable = 1024;    ///< entries that are never too many

} // namespace

void Reduction::Worker::drain() {
    for (;;) {
        while (!m_queue.empty()) {
            const Var node = m_queue.front();
            m_queue.pop_front();
            m_nodes[node].queued = false;
            m_nodes[node].compare = true;
            visit(node);
        }
        for (Var i = 0; i < m_nodes.size(); ++i) {
            if (m_nodes[i].gone || !m_nodes[i].compare) continue;
            m_nodes[i].compare = false;
            dropDominated(i);
        }
        if (m_queue.empty()) return;
    }
}

void Reduction::Worker::visit(Var id) {
    m_monitor.tick(64);
    if (m_nodes[id].gone) return;
    dropForbidden(id);
    for (const std::uint32_t pair : std::vector(m_nodes[id].pairs)) {
        if (m_pairs[pair].checked) continue;
        m_pairs[pair].checked = true;
        if (absorbSeparable(pair)) continue;
        // Where both ends determine each other, the one with less to move is merged.
        const Var other = otherEnd(pair, id);
        const bool larger = weight(id) >= weight(other);
        if (larger && mergeFunctional(pair, id)) continue;
        if (mergeFunctional(pair, other)) return;
        if (!larger) mergeFunctional(pair, id);
    }
    const bool used = !m_nodes[id].parts.empty() || !m_nodes[id].pending.empty();
    used ? eliminateFrugal(id) : eliminate(id);
}

void Reduction::Worker::dropForbidden(Var id) {
    std::vector<std::uint32_t> places;
    for (;;) {
        const Node& node = m_nodes[id];
        std::vector<char> out(node.size(), 0);
        for (std::size_t c = 0; c < out.size(); ++c) out[c] = node.cost[c] == kInfinite;
        for (const std::uint32_t pair : node.pairs) {
            bool& consistent = m_pairs[pair].consistent[m_pairs[pair].u == id ? 0 : 1];
            if (std::exchange(consistent, true)) continue;
            const View costs = view(pair, id);
            const std::size_t others = m_nodes[otherEnd(pair, id)].size();
            m_monitor.tick(others * out.size());
            for (std::size_t c = 0; c < out.size(); ++c) {
                std::size_t k = 0;
                while (k < others && costs.at(c, k) == kInfinite) ++k;
                out[c] |= k == others;
            }
        }
        places.clear();
        for (std::uint32_t c = 0; c < out.size(); ++c) {
            if (!out[c]) places.push_back(c);
        }
        if (places.size() == out.size()) return;
        m_statistics.forbidden += out.size() - places.size();
        keep(id, places);
    }
}

/// cost(a, b) = row(a) + column(b) for all a, b: moves both into the unary costs.
bool Reduction::Worker::absorbSeparable(std::uint32_t index) {
    const Pair& pair = m_pairs[index];
    Node &u = m_nodes[pair.u], &v = m_nodes[pair.v];
    const std::size_t rows = u.size(), cols = v.size();
    const double corner = pair.cost[0];
    if (std::ranges::find(pair.cost, kInfinite) != pair.cost.end()) return false;
    for (std::size_t r = 1; r < rows; ++r) {
        const double row = pair.cost[r * cols] - corner;
        for (std::size_t c = 1; c < cols; ++c) {
            if (pair.cost[r * cols + c] != row + pair.cost[c]) return false;
        }
    }
    for (std::size_t r = 0; r < rows; ++r) u.cost[r] += pair.cost[r * cols];
    for (std::size_t c = 0; c < cols; ++c) v.cost[c] += pair.cost[c] - corner;
    queue(pair.u);
    queue(pair.v);
    dropPair(index);
    ++m_statistics.separable;
    return true;
}

/// If each choice of the node allows one choice only at the other end, merges that one into it.
bool Reduction::Worker::mergeFunctional(std::uint32_t index, Var id) {
    const Var other = otherEnd(index, id);
    const View costs = view(index, id);
    std::vector<std::uint32_t> map(m_nodes[id].size());
    for (std::size_t a = 0; a < map.size(); ++a) {
        bool found = false;
        for (std::uint32_t b = 0; b < m_nodes[other].size(); ++b) {
            if (costs.at(a, b) == kInfinite) continue;
            if (found) return false;
            found = true;
            map[a] = b;
        }
        if (!found) return false; // the choice itself is forbidden, which is seen elsewhere
    }
    mergeInto(other, id, map);
    ++m_statistics.merged;
    return true;
}

/// @param map  by choice of `into`: the choice of the node
void Reduction::Worker::mergeInto(Var id, Var into, const std::vector<std::uint32_t>& map) {
    Rule rule{.a = into, .idsA = m_nodes[into].ids};
    for (const std::uint32_t b : map) rule.choice.push_back(m_nodes[id].ids[b]);
    for (std::size_t a = 0; a < map.size(); ++a) m_nodes[into].cost[a] += m_nodes[id].cost[map[a]];
    tidy(m_nodes[id]);
    for (const Part& part : m_nodes[id].parts) {
        Part moved{part.first, part.last, {}};
        for (const std::uint32_t b : map) moved.usage.push_back(part.usage[b]);
        m_nodes[into].pending.push_back(std::move(moved));
    }
    const std::vector<std::uint32_t> pairs = m_nodes[id].pairs;
    for (const std::uint32_t pair : pairs) {
        const Var end = otherEnd(pair, id);
        const View costs = view(pair, id);
        if (end == into) {
            for (std::size_t a = 0; a < map.size(); ++a) {
                m_nodes[into].cost[a] += costs.at(map[a], a);
            }
            continue;
        }
        const std::size_t cols = m_nodes[end].size();
        m_monitor.tick(map.size() * cols);
        std::vector<double> moved;
        moved.reserve(map.size() * cols);
        for (const std::uint32_t b : map) {
            for (std::size_t k = 0; k < cols; ++k) moved.push_back(costs.at(b, k));
        }
        addPair(into, end, std::move(moved));
    }
    remove(id, std::move(rule));
    queue(into);
}

/// A node without usage and with at most two neighbours.
bool Reduction::Worker::eliminate(Var id) {
    const Node& node = m_nodes[id];
    if (node.pairs.size() > 2) return false;
    if (node.pairs.size() == 2) return eliminateTwo(id);
    if (node.pairs.empty()) {
        const auto best = std::ranges::min_element(node.cost);
        if (*best == kInfinite) throw Conflict{.node = id, .moment = {}, .excess = 0};
        m_constant += *best;
        remove(id, {.choice = {node.ids[std::size_t(best - node.cost.begin())]}});
    } else {
        const Var other = otherEnd(node.pairs[0], id);
        const View costs = view(node.pairs[0], other);
        std::vector<std::uint32_t> map(m_nodes[other].size());
        for (std::size_t a = 0; a < map.size(); ++a) {
            for (std::uint32_t b = 1; b < node.size(); ++b) {
                if (costs.at(a, b) + node.cost[b] < costs.at(a, map[a]) + node.cost[map[a]]) {
                    map[a] = b;
                }
            }
        }
        mergeInto(id, other, map);
    }
    ++m_statistics.eliminated;
    return true;
}

bool Reduction::Worker::eliminateTwo(Var id) {
    const Node& node = m_nodes[id];
    const Var u = otherEnd(node.pairs[0], id), v = otherEnd(node.pairs[1], id);
    const std::size_t rows = m_nodes[u].size(), cols = m_nodes[v].size(), size = node.size();
    if (double(rows) * double(cols) * double(size) > kMostEliminationWork) return false;
    if (rows * cols > 2 * size * (rows + cols) + kSmallTable) return false;
    const View toU = view(node.pairs[0], id), toV = view(node.pairs[1], id);
    std::vector<double> table(rows * cols, kInfinite);
    Rule rule{.a = u, .b = v, .idsA = m_nodes[u].ids, .idsB = m_nodes[v].ids};
    rule.choice.assign(rows * cols, node.ids[0]);
    for (std::size_t a = 0; a < rows; ++a) {
        m_monitor.tick(cols * size);
        for (std::size_t c = 0; c < size; ++c) {
            const double base = toU.at(c, a) + node.cost[c];
            if (base == kInfinite) continue;
            for (std::size_t b = 0; b < cols; ++b) {
                const double cost = base + toV.at(c, b);
                if (cost >= table[a * cols + b]) continue;
                table[a * cols + b] = cost;
                rule.choice[a * cols + b] = node.ids[c];
            }
        }
    }
    remove(id, std::move(rule));
    addPair(u, v, std::move(table));
    queue(u);
    queue(v);
    ++m_statistics.eliminated;
    return true;
}

/// A node with usage and one neighbour, whose best choice under each of the neighbour's is also its
/// most frugal one among those the neighbour allows.
bool Reduction::Worker::eliminateFrugal(Var id) {
    if (m_nodes[id].pairs.size() != 1) return false;
    tidy(m_nodes[id]);
    const Node& node = m_nodes[id];
    const Var other = otherEnd(node.pairs[0], id);
    const View costs = view(node.pairs[0], other);
    const auto frugal = [&](std::size_t a, std::size_t b) { // a uses no more than b
        return std::ranges::all_of(
            node.parts, [&](const Part& part) { return part.usage[a] <= part.usage[b]; });
    };
    std::vector<std::uint32_t> map(m_nodes[other].size());
    for (std::size_t a = 0; a < map.size(); ++a) {
        const auto costOf = [&](std::size_t b) { return costs.at(a, b) + node.cost[b]; };
        std::uint32_t best = 0;
        for (std::uint32_t b = 1; b < node.size(); ++b) {
            const double more = costOf(b) - costOf(best);
            if (more < 0 || (more == 0 && frugal(b, best))) best = b;
        }
        for (std::uint32_t b = 0; b < node.size(); ++b) {
            if (costOf(b) < kInfinite && !frugal(best, b)) return false;
        }
        map[a] = best;
    }
    mergeInto(id, other, map);
    ++m_statistics.eliminated;
    return true;
}

bool Reduction::Worker::beats(Var id, std::size_t better, std::size_t worse) const {
    const Node& node = m_nodes[id];
    double slack = node.cost[worse] - node.cost[better];
    // Without pairs the costs decide; with them an advantage may make up for a higher unary cost.
    if (node.pairs.empty() && slack < 0) return false;
    for (const Part& part : node.parts) {
        if (part.usage[better] > part.usage[worse]) return false;
    }
    for (const std::uint32_t pair : node.pairs) {
        const View costs = view(pair, id);
        const std::size_t others = m_nodes[otherEnd(pair, id)].size();
        double most = -kInfinite;
        for (std::size_t k = 0; k < others; ++k) {
            const double with = costs.at(better, k), without = costs.at(worse, k);
            if (without == kInfinite) continue;
            if (with == kInfinite) return false;
            most = std::max(most, with - without);
        }
        slack -= most;
    }
    return slack >= 0;
}

void Reduction::Worker::dropDominated(Var id) {
    const std::size_t size = m_nodes[id].size();
    if (size < 2) return;
    tidy(m_nodes[id]);
    double others = 1;
    for (const std::uint32_t pair : m_nodes[id].pairs) {
        others += double(m_nodes[otherEnd(pair, id)].size());
    }
    if (others * double(size) * double(size) > kMostComparisons) return;
    std::vector<char> out(size, 0);
    for (std::size_t worse = 0; worse < size; ++worse) {
        m_monitor.tick(static_cast<std::size_t>(others * double(size)) / 4);
        for (std::size_t better = 0; better < size && !out[worse]; ++better) {
            out[worse] = better != worse && !out[better] && beats(id, better, worse);
        }
    }
    std::vector<std::uint32_t> places;
    for (std::uint32_t c = 0; c < size; ++c) {
        if (!out[c]) places.push_back(c);
    }
    if (places.size() == size) return;
    m_statistics.dominated += size - places.size();
    keep(id, places);
}

} // namespace shardlens::solve
