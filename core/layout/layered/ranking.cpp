// SPDX-License-Identifier: Apache-2.0
// Cycle breaking by depth-first search, longest-path ranks, and pull sweeps that shorten edges.
#include "core/layout/layered/ranking.h"

#include "core/layout/layered/adjacency.h"

#include <algorithm>
#include <limits>
#include <ranges>
#include <utility>

namespace shardlens::layered {

namespace {

using Index = std::uint32_t;

class Ranker {
public:
    Ranker(Index boxes, std::span<const LayoutEdge> edges)
        : m_edges(edges), m_out(boxes, edges, &LayoutEdge::from),
          m_in(boxes, edges, &LayoutEdge::to), m_rank(boxes, 0), m_free(boxes, 0) {
        sortTopologically(boxes);
        markFreeTrees();
    }

    std::vector<Index> run(const std::stop_token& stop) {
        constexpr int maxRounds = 6;
        rankByLongestPaths();
        for (int round = 0; round < maxRounds; ++round) {
            throwIfStopped(stop);
            const bool pulledDown = pullDown();
            if (!pullUp() && !pulledDown) break;
        }
        return std::move(m_rank);
    }

private:
    // Kahn's algorithm, first in first out, so that the order follows the input.
    void sortTopologically(Index boxes) {
        std::vector<Index> waiting(boxes);
        m_order.reserve(boxes);
        for (Index v = 0; v < boxes; ++v) {
            waiting[v] = m_in.degree(v);
            if (waiting[v] == 0) m_order.push_back(v);
        }
        for (std::size_t i = 0; i < m_order.size(); ++i)
            for (Index e : m_out.of(m_order[i]))
                if (--waiting[m_edges[e].to] == 0) m_order.push_back(m_edges[e].to);
    }

    // A box is free if all that leads to it feeds nothing else: it and its ancestors (a parameter
    // and its cast, say) can follow its consumer down without making any edge longer.
    void markFreeTrees() {
        for (Index v : m_order)
            m_free[v] = std::ranges::all_of(m_in.of(v), [&](Index e) {
                const Index u = m_edges[e].from;
                return m_free[u] && m_out.degree(u) == 1;
            });
    }

    Index lowestAllowed(Index v) const {
        Index rank = 0;
        for (Index e : m_in.of(v)) rank = std::max(rank, m_rank[m_edges[e].from] + 1);
        return rank;
    }

    Index highestAllowed(Index v) const {
        Index rank = std::numeric_limits<Index>::max();
        for (Index e : m_out.of(v)) rank = std::min(rank, m_rank[m_edges[e].to] - 1);
        return rank;
    }

    void rankByLongestPaths() {
        for (Index v : m_order) m_rank[v] = lowestAllowed(v);
    }

    bool moveTo(Index v, Index rank) { return std::exchange(m_rank[v], rank) != rank; }

    bool pullDown() {
        bool moved = false;
        for (Index v : m_order | std::views::reverse) {
            const bool gains = m_free[v] || m_out.degree(v) >= m_in.degree(v);
            if (m_out.degree(v) > 0 && gains) moved |= moveTo(v, highestAllowed(v));
        }
        return moved;
    }

    bool pullUp() {
        bool moved = false;
        for (Index v : m_order)
            if (m_in.degree(v) > m_out.degree(v)) moved |= moveTo(v, lowestAllowed(v));
        return moved;
    }

    std::span<const LayoutEdge> m_edges;
    Adjacency m_out, m_in;
    std::vector<Index> m_order, m_rank;
    std::vector<char> m_free;
};

} // namespace

std::vector<LayoutEdge> acyclicEdges(Index boxes, std::span<const LayoutEdge> edges) {
    enum class State : char { New, Open, Done };
    std::vector<LayoutEdge> result(edges.begin(), edges.end());
    const Adjacency out(boxes, edges, &LayoutEdge::from);
    std::vector<State> state(boxes, State::New);
    std::vector<std::pair<Index, Index>> path; // box, next of its outgoing edges
    for (Index start = 0; start < boxes; ++start) {
        if (state[start] != State::New) continue;
        state[start] = State::Open;
        path.emplace_back(start, 0);
        while (!path.empty()) {
            auto& [box, next] = path.back();
            if (next == out.degree(box)) {
                state[box] = State::Done;
                path.pop_back();
                continue;
            }
            const Index e = out.of(box)[next++];
            const Index to = edges[e].to;
            if (to == box) continue;
            if (state[to] == State::Open) std::swap(result[e].from, result[e].to);
            if (state[to] != State::New) continue;
            state[to] = State::Open;
            path.emplace_back(to, 0);
        }
    }
    return result;
}

std::vector<Index> assignRanks(Index boxes, std::span<const LayoutEdge> edges,
                               const std::stop_token& stop) {
    std::vector<LayoutEdge> proper;
    proper.reserve(edges.size());
    std::ranges::copy_if(edges, std::back_inserter(proper),
                         [](const LayoutEdge& edge) { return edge.from != edge.to; });
    return Ranker(boxes, proper).run(stop);
}

} // namespace shardlens::layered
