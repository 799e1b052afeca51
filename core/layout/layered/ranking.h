// SPDX-License-Identifier: Apache-2.0
// First phase of the layered drawing: a rank for every box, such that edges run from lower to
// higher ranks. Longest paths give the fewest ranks; local moves then shorten the edges, which is
// what network simplex (Gansner et al., "A technique for drawing directed graphs", 1993) does
// exactly but not in linear time.
#pragma once

#include "core/layout/box_layout.h"

#include <cstdint>
#include <span>
#include <vector>

namespace shardlens::layered {

/// The edges with those that close a cycle turned around; self-loops are kept as they are.
/// A depth-first search in input order finds them, so that an acyclic input is returned unchanged.
std::vector<LayoutEdge> acyclicEdges(std::uint32_t boxes, std::span<const LayoutEdge> edges);

/// One rank a box, rank(from) < rank(to) for every edge but self-loops; each connected component
/// starts near rank 0 and leaves no rank in its range empty.
/// @param edges acyclic but for self-loops
std::vector<std::uint32_t> assignRanks(std::uint32_t boxes, std::span<const LayoutEdge> edges,
                                       const std::stop_token& stop);

} // namespace shardlens::layered
