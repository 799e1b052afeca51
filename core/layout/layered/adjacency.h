// SPDX-License-Identifier: Apache-2.0
// Compressed adjacency of a fixed edge list: for each node the indices of its outgoing or incoming
// edges, in edge order. One allocation for the whole graph keeps 100,000 nodes cheap.
#pragma once

#include "core/layout/box_layout.h"

#include <cstdint>
#include <span>
#include <vector>

namespace shardlens::layered {

class Adjacency {
public:
    Adjacency() = default;

    /// @param end the end of the edge that owns it: &LayoutEdge::from lists outgoing edges
    Adjacency(std::uint32_t nodes, std::span<const LayoutEdge> edges,
              std::uint32_t LayoutEdge::* end)
        : m_begin(nodes + 1, 0), m_edges(edges.size()) {
        for (const LayoutEdge& edge : edges) ++m_begin[edge.*end + 1];
        for (std::uint32_t v = 0; v < nodes; ++v) m_begin[v + 1] += m_begin[v];
        std::vector<std::uint32_t> next(m_begin.begin(), m_begin.end() - 1);
        for (std::uint32_t i = 0; i < edges.size(); ++i) m_edges[next[edges[i].*end]++] = i;
    }

    std::span<const std::uint32_t> of(std::uint32_t node) const {
        return std::span(m_edges).subspan(m_begin[node], m_begin[node + 1] - m_begin[node]);
    }

    std::uint32_t degree(std::uint32_t node) const { return m_begin[node + 1] - m_begin[node]; }

private:
    std::vector<std::uint32_t> m_begin, m_edges;
};

} // namespace shardlens::layered
