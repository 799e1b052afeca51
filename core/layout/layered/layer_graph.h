// SPDX-License-Identifier: Apache-2.0
// One connected component made proper for the later phases: boxes on layers, edges over several
// layers cut into segments between neighbouring layers by bend points. Edges over more layers than
// a limit get no bend points (they would be most of the graph) and stay out of it.
#pragma once

#include "core/layout/layered/adjacency.h"

#include <cstdint>
#include <span>
#include <vector>

namespace shardlens::layered {

/// A component as it comes out of ranking; indices are its own.
struct RankedComponent {
    std::vector<LayoutBox> boxes;
    std::vector<double> room;        ///< one a box: the width to keep free, at least its own
    std::vector<std::uint32_t> rank; ///< one a box, from 0, no rank empty
    std::vector<LayoutEdge> edges;   ///< downwards, no self-loops
};

class LayerGraph {
public:
    LayerGraph(const RankedComponent& component, std::uint32_t maxSpan);

    std::uint32_t nodeCount() const { return static_cast<std::uint32_t>(m_layer.size()); }
    std::uint32_t layerCount() const { return static_cast<std::uint32_t>(m_layerBegin.size()) - 1; }
    bool isBox(std::uint32_t node) const { return node < m_boxCount; }
    double width(std::uint32_t node) const { return m_width[node]; }
    std::uint32_t layerOf(std::uint32_t node) const { return m_layer[node]; }

    /// The nodes of a layer from left to right.
    std::span<const std::uint32_t> layer(std::uint32_t index) const {
        return std::span(m_order).subspan(m_layerBegin[index],
                                          m_layerBegin[index + 1] - m_layerBegin[index]);
    }
    std::uint32_t position(std::uint32_t node) const { return m_position[node]; }

    /// Puts a node at a position of its layer. Between two calls of it an order may be no
    /// permutation; after the last it must be one.
    void place(std::uint32_t node, std::uint32_t position) {
        m_order[m_layerBegin[m_layer[node]] + position] = node;
        m_position[node] = position;
    }

    /// All layers one after another, for saving and restoring an order.
    const std::vector<std::uint32_t>& order() const { return m_order; }
    void setOrder(std::span<const std::uint32_t> order);

    /// Segments run from a node (from) to one in the next layer (to).
    std::span<const LayoutEdge> segments() const { return m_segments; }
    std::span<const std::uint32_t> segmentsBelow(std::uint32_t node) const {
        return m_below.of(node);
    }
    std::span<const std::uint32_t> segmentsAbove(std::uint32_t node) const {
        return m_above.of(node);
    }

    /// The bend points of a component's edge, from top to bottom. They are numbered in a row.
    std::span<const std::uint32_t> bends(std::uint32_t edge) const {
        return std::span(m_bends).subspan(m_bendBegin[edge],
                                          m_bendBegin[edge + 1] - m_bendBegin[edge]);
    }

private:
    void cutEdges(const RankedComponent& component, std::uint32_t maxSpan);
    void fillLayers();

    std::uint32_t m_boxCount;
    std::vector<double> m_width;
    std::vector<std::uint32_t> m_layer, m_layerBegin, m_order, m_position;
    std::vector<LayoutEdge> m_segments;
    Adjacency m_below, m_above;
    std::vector<std::uint32_t> m_bends, m_bendBegin;
};

} // namespace shardlens::layered
