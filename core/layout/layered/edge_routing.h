// SPDX-License-Identifier: Apache-2.0
// Last phase of the layered drawing: heights of the ranks and the curves of the edges. A curve is
// straight inside a rank, where bend points keep it off the boxes, and bends only in the free gap
// between two ranks, so that it crosses no box.
#pragma once

#include "core/layout/layered/layer_graph.h"

#include <cstdint>
#include <vector>

namespace shardlens::layered {

struct Gaps {
    double rank = 0, node = 0;
};

struct ComponentDrawing {
    std::vector<LayoutPoint> centres; ///< one a box of the component
    std::vector<LayoutRoute> routes;  ///< one an edge of the component
};

/// Throws Cancelled.
/// @param x centre of every node of the graph
ComponentDrawing drawComponent(const RankedComponent& component, const LayerGraph& graph,
                               const std::vector<double>& x, Gaps gaps,
                               const std::stop_token& stop);

} // namespace shardlens::layered
