// SPDX-License-Identifier: Apache-2.0
// Runs the phases on each connected component and puts the drawings of the components together.
#include "core/layout/layered_layout.h"

#include "core/layout/layered/crossing_reduction.h"
#include "core/layout/layered/edge_routing.h"
#include "core/layout/layered/horizontal_placement.h"
#include "core/layout/layered/ranking.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace shardlens {

namespace {

using namespace layered;
using Index = std::uint32_t;

// A component with the way back to the input.
struct Part {
    RankedComponent component;
    std::vector<Index> boxes, edges; ///< input index of each box and edge
};

// The component of each box, numbered in the order of their first boxes.
std::vector<Index> findComponents(Index boxes, std::span<const LayoutEdge> edges, Index& count) {
    std::vector<Index> parent(boxes);
    std::iota(parent.begin(), parent.end(), 0u);
    const auto find = [&](Index v) {
        while (parent[v] != v) v = parent[v] = parent[parent[v]];
        return v;
    };
    for (const auto [from, to] : edges) {
        const auto [least, other] = std::minmax({find(from), find(to)});
        parent[other] = least;
    }
    std::vector<Index> number(boxes);
    count = 0;
    for (Index v = 0; v < boxes; ++v) number[v] = find(v) == v ? count++ : number[find(v)];
    return number;
}

std::vector<Part> splitIntoParts(const LayoutInput& input, std::span<const LayoutEdge> edges,
                                 std::span<const Index> rank) {
    const auto boxes = static_cast<Index>(input.boxes.size());
    Index count = 0;
    const std::vector<Index> number = findComponents(boxes, edges, count);
    std::vector<Part> parts(count);
    std::vector<Index> local(boxes);
    for (Index v = 0; v < boxes; ++v) {
        Part& part = parts[number[v]];
        local[v] = static_cast<Index>(part.boxes.size());
        part.boxes.push_back(v);
        part.component.boxes.push_back(input.boxes[v]);
        part.component.room.push_back(input.boxes[v].width);
        part.component.rank.push_back(rank[v]);
    }
    for (Index e = 0; e < edges.size(); ++e) {
        const auto [from, to] = edges[e];
        Part& part = parts[number[from]];
        if (from == to) { // drawn last, but its room is kept free here
            part.component.room[local[from]] = input.boxes[from].width + 2 * selfLoopMargin(input);
            continue;
        }
        part.edges.push_back(e);
        part.component.edges.push_back({local[from], local[to]});
    }
    for (Part& part : parts) {
        const Index least = *std::ranges::min_element(part.component.rank);
        for (Index& r : part.component.rank) r -= least;
    }
    return parts;
}

// The greatest span that edges may have and still get bend points: 40 ranks, fewer where that
// would mean far more bend points than boxes.
Index greatestSpan(std::span<const LayoutEdge> edges, std::span<const Index> rank) {
    constexpr std::size_t maxSpan = 40;
    std::array<std::size_t, maxSpan + 1> edgesOfSpan{};
    for (const auto [from, to] : edges)
        if (const Index span = rank[to] - rank[from]; span <= maxSpan) ++edgesOfSpan[span];
    const std::size_t budget = 50000 + 4 * rank.size();
    std::size_t bends = 0, span = 1;
    while (span < maxSpan && (bends += span * edgesOfSpan[span + 1]) <= budget) ++span;
    return static_cast<Index>(span);
}

ComponentDrawing drawPart(const RankedComponent& component, Index maxSpan, Gaps gaps,
                          const std::stop_token& stop) {
    throwIfStopped(stop);
    LayerGraph graph(component, maxSpan);
    reduceCrossings(graph, stop);
    const std::vector<double> x = placeHorizontally(graph, gaps.node, stop);
    return drawComponent(component, graph, x, gaps, stop);
}

// Puts drawings beside each other. A few components form one row; many are wrapped into rows of a
// screen's proportions.
class Packer {
public:
    Packer(LayoutResult& result, Gaps gaps) : m_result(result), m_gaps(gaps) {}

    void add(const Part& part, ComponentDrawing drawing) {
        LayoutResult placed;
        placed.centres = std::move(drawing.centres);
        placed.routes = std::move(drawing.routes);
        fitBounds(part.component.boxes, placed);
        m_parts.push_back({&part, std::move(placed)});
    }

    void pack() {
        const double rowWidth = widthOfRows();
        double x = 0, y = 0, rowHeight = 0;
        for (auto& [part, placed] : m_parts) {
            if (x > 0 && x + placed.width > rowWidth) {
                y += rowHeight + m_gaps.rank;
                x = rowHeight = 0;
            }
            copyInto(*part, placed, x, y);
            x += placed.width + 2 * m_gaps.node;
            rowHeight = std::max(rowHeight, placed.height);
        }
    }

private:
    double widthOfRows() const {
        constexpr std::size_t maxInOneRow = 8;
        if (m_parts.size() <= maxInOneRow) return std::numeric_limits<double>::infinity();
        double area = 0, widest = 0;
        for (const auto& [part, placed] : m_parts) {
            area += (placed.width + 2 * m_gaps.node) * (placed.height + m_gaps.rank);
            widest = std::max(widest, placed.width);
        }
        return std::max(widest, std::sqrt(1.6 * area));
    }

    void copyInto(const Part& part, LayoutResult& placed, double dx, double dy) {
        const auto moved = [&](LayoutPoint p) { return LayoutPoint{p.x + dx, p.y + dy}; };
        for (std::size_t i = 0; i < part.boxes.size(); ++i)
            m_result.centres[part.boxes[i]] = moved(placed.centres[i]);
        for (std::size_t i = 0; i < part.edges.size(); ++i) {
            LayoutRoute& route = m_result.routes[part.edges[i]];
            route = std::move(placed.routes[i]);
            std::ranges::transform(route.points, route.points.begin(), moved);
        }
    }

    LayoutResult& m_result;
    Gaps m_gaps;
    std::vector<std::pair<const Part*, LayoutResult>> m_parts;
};

LayoutResult topDownLayout(const LayoutInput& input, const std::stop_token& stop) {
    const auto boxes = static_cast<Index>(input.boxes.size());
    const std::vector<LayoutEdge> edges = acyclicEdges(boxes, input.edges);
    const std::vector<Index> rank = assignRanks(boxes, edges, stop);
    throwIfStopped(stop);
    const std::vector<Part> parts = splitIntoParts(input, edges, rank);
    const Index maxSpan = greatestSpan(edges, rank);
    const Gaps gaps{input.rankGap, input.nodeGap};

    LayoutResult result;
    result.engine = "layered";
    result.centres.resize(boxes);
    result.routes.resize(edges.size());
    Packer packer(result, gaps);
    for (const Part& part : parts) packer.add(part, drawPart(part.component, maxSpan, gaps, stop));
    throwIfStopped(stop);
    packer.pack();
    for (Index e = 0; e < edges.size(); ++e) {
        const LayoutEdge given = input.edges[e];
        if (given.from == given.to)
            result.routes[e] = selfLoopRoute(input, given.from, result.centres[given.from]);
        else if (edges[e] != given)
            std::ranges::reverse(result.routes[e].points);
    }
    fitBounds(input.boxes, result);
    return result;
}

} // namespace

LayoutResult layeredLayout(const LayoutInput& input, const std::stop_token& stop) {
    checkLayoutInput(input);
    if (input.leftToRight) return transposed(topDownLayout(transposed(input), stop));
    return topDownLayout(input, stop);
}

} // namespace shardlens
