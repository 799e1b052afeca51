// SPDX-License-Identifier: Apache-2.0
// Cuts edges into segments and fills the layers in the order of the node numbers.
#include "core/layout/layered/layer_graph.h"

#include <algorithm>
#include <numeric>

namespace shardlens::layered {

LayerGraph::LayerGraph(const RankedComponent& component, std::uint32_t maxSpan)
    : m_boxCount(static_cast<std::uint32_t>(component.boxes.size())), m_width(component.room),
      m_layer(component.rank) {
    cutEdges(component, maxSpan);
    m_below = Adjacency(nodeCount(), m_segments, &LayoutEdge::from);
    m_above = Adjacency(nodeCount(), m_segments, &LayoutEdge::to);
    fillLayers();
}

void LayerGraph::cutEdges(const RankedComponent& component, std::uint32_t maxSpan) {
    m_bendBegin.reserve(component.edges.size() + 1);
    m_bendBegin.push_back(0);
    for (const auto [from, to] : component.edges) {
        const std::uint32_t top = component.rank[from], bottom = component.rank[to];
        if (bottom - top <= maxSpan) {
            std::uint32_t last = from;
            for (std::uint32_t rank = top + 1; rank < bottom; ++rank) {
                const std::uint32_t bend = nodeCount();
                m_layer.push_back(rank);
                m_width.push_back(0);
                m_bends.push_back(bend);
                m_segments.push_back({last, bend});
                last = bend;
            }
            m_segments.push_back({last, to});
        }
        m_bendBegin.push_back(static_cast<std::uint32_t>(m_bends.size()));
    }
}

void LayerGraph::fillLayers() {
    const std::uint32_t layers = m_layer.empty() ? 0 : 1 + *std::ranges::max_element(m_layer);
    m_layerBegin.assign(layers + 1, 0);
    for (std::uint32_t layer : m_layer) ++m_layerBegin[layer + 1];
    std::partial_sum(m_layerBegin.begin(), m_layerBegin.end(), m_layerBegin.begin());
    m_order.resize(nodeCount());
    m_position.resize(nodeCount());
    std::vector<std::uint32_t> filled(layers, 0);
    for (std::uint32_t node = 0; node < nodeCount(); ++node) place(node, filled[m_layer[node]]++);
}

void LayerGraph::setOrder(std::span<const std::uint32_t> order) {
    std::vector<std::uint32_t> filled(layerCount(), 0);
    for (std::uint32_t node : order) place(node, filled[m_layer[node]]++);
}

} // namespace shardlens::layered
