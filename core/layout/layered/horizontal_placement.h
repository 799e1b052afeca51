// SPDX-License-Identifier: Apache-2.0
// Third phase of the layered drawing: x coordinates for a given order, in linear time (Brandes,
// Köpf, "Fast and simple horizontal coordinate assignment", GD 2001, with the corrections of
// Brandes, Walter, Zink, arXiv:2008.01252, 2020). Beyond the paper, one chain of segments a graph
// takes precedence over all others and is therefore exactly straight.
#pragma once

#include "core/layout/layered/layer_graph.h"

#include <cstdint>
#include <vector>

namespace shardlens::layered {

/// Centre x of every node: the order of each layer is kept and neighbours are at least nodeGap
/// apart, border to border (half of it beside a bend point). Throws Cancelled.
std::vector<double> placeHorizontally(const LayerGraph& graph, double nodeGap,
                                      const std::stop_token& stop);

/// The segments of a path with the most boxes, from top to bottom; where several are as long, the
/// one in the middle. For a row of transformer blocks it is the residual stream with its ops.
std::vector<std::uint32_t> longestChain(const LayerGraph& graph);

} // namespace shardlens::layered
