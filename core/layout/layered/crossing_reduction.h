// SPDX-License-Identifier: Apache-2.0
// Second phase of the layered drawing: the order within each layer. Sweeps sort every layer by the
// mean or median position of its neighbours (Sugiyama et al. 1981; Eades, Wormald 1994), adjacent
// nodes are transposed while that removes crossings (Gansner et al. 1993), small graphs are also
// started from shuffled layers and sifted (Matuszewski, Schönfeld, Molitor 1999), and the best
// order found is kept. Counts of sweeps are fixed, so equal inputs give equal pictures.
#pragma once

#include "core/layout/layered/layer_graph.h"

#include <cstdint>

namespace shardlens::layered {

/// Reorders the layers. Throws Cancelled.
void reduceCrossings(LayerGraph& graph, const std::stop_token& stop);

/// Crossings between segments of all pairs of neighbouring layers, in O(s log n) (Barth, Jünger,
/// Mutzel, "Simple and efficient bilayer cross counting", 2002).
std::uint64_t countCrossings(const LayerGraph& graph);

} // namespace shardlens::layered
