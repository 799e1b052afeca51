// SPDX-License-Identifier: Apache-2.0
// The one interface of every graph layout: boxes of fixed size and the edges between them go in,
// centres and curves come out. A layout knows nothing of ops, tensors or fonts; whoever draws
// measures the boxes first and keeps the meaning of each index. All lengths share one unit (the
// caller's pixels), y grows downwards, and the origin is the top left corner of the drawing.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace shardlens {

struct LayoutBox {
    double width = 0, height = 0;
    bool operator==(const LayoutBox&) const = default;
};

/// Indices into LayoutInput::boxes. Cycles, self-loops and parallel edges are allowed.
struct LayoutEdge {
    std::uint32_t from = 0, to = 0;
    bool operator==(const LayoutEdge&) const = default;
};

struct LayoutInput {
    std::vector<LayoutBox> boxes;
    std::vector<LayoutEdge> edges;
    double rankGap = 40;      ///< free space between two ranks
    double nodeGap = 24;      ///< free space between two boxes of a rank
    bool leftToRight = false; ///< edges run to the right instead of downwards
    bool operator==(const LayoutInput&) const = default;
};

struct LayoutPoint {
    double x = 0, y = 0;
    bool operator==(const LayoutPoint&) const = default;
};

/// A piecewise cubic Bezier curve: 1 + 3n points, n >= 1 (a straight piece has its control points
/// on the line). It starts on the source's bottom border and ends on the target's top border
/// (right and left border in a left-to-right layout). An edge that closes a cycle runs against the
/// flow: from the source's top border to the target's bottom border.
struct LayoutRoute {
    std::vector<LayoutPoint> points;
    bool sideChannel =
        false; ///< very long edge, led around the drawing: fade it or show it on hover
    bool operator==(const LayoutRoute&) const = default;
};

struct LayoutResult {
    std::vector<LayoutPoint> centres; ///< one a box
    std::vector<LayoutRoute> routes;  ///< one an edge
    double width = 0, height = 0;     ///< everything lies within [0, width] x [0, height]
    std::string engine;               ///< "graphviz" or "layered"
    std::string note;                 ///< why another engine than asked for was used, or empty
    bool operator==(const LayoutResult&) const = default;
};

/// Throws InputError unless sizes and gaps are finite and not negative and edges name boxes.
void checkLayoutInput(const LayoutInput& input);

/// Throws InputError unless the result has one finite centre a box and one finite curve an edge.
void checkLayoutResult(const LayoutInput& input, const LayoutResult& result);

/// The same problem or drawing with x and y exchanged, which turns a left-to-right layout into a
/// top-down one and back.
LayoutInput transposed(LayoutInput input);
LayoutResult transposed(LayoutResult result);

/// Moves the drawing so that its boxes and control points fill [0, width] x [0, height].
void fitBounds(std::span<const LayoutBox> boxes, LayoutResult& result);

/// The curve of a self-loop: from the bottom border around the right side to the top border. It
/// needs selfLoopMargin() of free space beside the box.
LayoutRoute selfLoopRoute(const LayoutInput& input, std::uint32_t box, LayoutPoint centre);
double selfLoopMargin(const LayoutInput& input);

/// Throws Cancelled once a stop is requested.
void throwIfStopped(const std::stop_token& stop);

} // namespace shardlens
