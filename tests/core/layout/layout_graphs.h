// SPDX-License-Identifier: Apache-2.0
// Graphs and geometric measures that the layout tests share. The measures know nothing of how a
// layout came about: they look at boxes and curves alone.
#pragma once

#include "core/layout/box_layout.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

/// Lets QCOMPARE print what defect() found.
template <>
inline char* QTest::toString(const std::string& text) {
    return qstrdup(text.c_str());
}

namespace shardlens::test {

class GraphBuilder {
public:
    std::uint32_t box(double width, double height = 30) {
        m_input.boxes.push_back({width, height});
        return static_cast<std::uint32_t>(m_input.boxes.size() - 1);
    }
    void edge(std::uint32_t from, std::uint32_t to) { m_input.edges.push_back({from, to}); }

    std::uint32_t opAfter(std::uint32_t from, double width) {
        const std::uint32_t op = box(width);
        edge(from, op);
        return op;
    }

    LayoutInput take() { return std::move(m_input); }

private:
    LayoutInput m_input;
};

struct Transformer {
    LayoutInput input;
    std::vector<std::uint32_t> chain; ///< the ops every path of greatest length runs through
};

/// Pre-norm blocks: x + out(attend(q, k, v)(norm x)), then x + down(gelu(up(norm x))), weights as
/// boxes of their own.
inline Transformer transformer(int blocks) {
    GraphBuilder graph;
    std::uint32_t x = graph.box(90);
    std::vector<std::uint32_t> chain{x};
    for (int block = 0; block < blocks; ++block) {
        const auto norm = graph.opAfter(x, 100);
        const auto q = graph.opAfter(norm, 80), k = graph.opAfter(norm, 80),
                   v = graph.opAfter(norm, 80);
        for (const auto op : {q, k, v}) graph.edge(graph.box(50, 20), op);
        const auto scores = graph.opAfter(q, 90);
        graph.edge(k, scores);
        const auto softmax = graph.opAfter(scores, 85), mixed = graph.opAfter(softmax, 95);
        graph.edge(v, mixed);
        const auto out = graph.opAfter(mixed, 120), add = graph.opAfter(out, 60);
        graph.edge(x, add);
        const auto norm2 = graph.opAfter(add, 100), up = graph.opAfter(norm2, 140),
                   gelu = graph.opAfter(up, 70), down = graph.opAfter(gelu, 120),
                   add2 = graph.opAfter(down, 60);
        graph.edge(add, add2);
        chain.insert(chain.end(),
                     {norm, scores, softmax, mixed, out, add, norm2, up, gelu, down, add2});
        x = add2;
    }
    return {graph.take(), chain};
}

/// A forward graph, its mirror image as the backward one, and an edge from each op to its mirror.
inline LayoutInput training(const LayoutInput& forward) {
    LayoutInput input = forward;
    const auto n = static_cast<std::uint32_t>(forward.boxes.size());
    const auto mirror = [n](std::uint32_t op) { return 2 * n - 1 - op; };
    input.boxes.insert(input.boxes.end(), forward.boxes.rbegin(), forward.boxes.rend());
    for (const auto [from, to] : forward.edges) input.edges.push_back({mirror(to), mirror(from)});
    for (std::uint32_t op = 0; op < n; ++op) input.edges.push_back({op, mirror(op)});
    return input;
}

/// Boxes of many sizes, edges to one of the next `reach` boxes; some parallel, and self-loops at
/// the end.
inline LayoutInput randomLocal(std::uint32_t boxes, std::uint32_t edges, std::uint32_t reach,
                               unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> size(20, 120);
    LayoutInput input;
    for (std::uint32_t i = 0; i < boxes; ++i) {
        const double width = size(random);
        input.boxes.push_back({width, size(random) / 2});
    }
    for (std::uint32_t i = 0; i < edges; ++i) {
        const auto from = static_cast<std::uint32_t>(random() % boxes);
        const auto step = static_cast<std::uint32_t>(1 + random() % reach);
        input.edges.push_back({from, std::min(boxes - 1, from + step)});
    }
    return input;
}

/// Any edges at all: cycles, self-loops, parallel edges.
inline LayoutInput randomCyclic(std::uint32_t boxes, std::uint32_t edges, unsigned seed) {
    std::mt19937 random(seed);
    LayoutInput input = randomLocal(boxes, 0, 1, seed);
    for (std::uint32_t i = 0; i < edges; ++i)
        input.edges.push_back({static_cast<std::uint32_t>(random() % boxes),
                               static_cast<std::uint32_t>(random() % boxes)});
    return input;
}

struct Rect {
    double left, top, right, bottom;
};

inline Rect rectOf(const LayoutInput& input, const LayoutResult& result, std::size_t box) {
    const auto [x, y] = result.centres[box];
    const auto [width, height] = input.boxes[box];
    return {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
}

/// Pairs of boxes that share more than a line, by a sweep from top to bottom.
inline int overlaps(const LayoutInput& input, const LayoutResult& result) {
    std::vector<Rect> rects;
    for (std::size_t i = 0; i < input.boxes.size(); ++i) rects.push_back(rectOf(input, result, i));
    std::ranges::sort(rects, {}, &Rect::top);
    constexpr double tolerance = 1e-6;
    int count = 0;
    for (std::size_t i = 0; i < rects.size(); ++i)
        for (std::size_t j = i + 1; j < rects.size() && rects[j].top < rects[i].bottom - tolerance;
             ++j)
            count += rects[j].left < rects[i].right - tolerance &&
                     rects[i].left < rects[j].right - tolerance;
    return count;
}

/// The curve as short straight pieces.
inline std::vector<LayoutPoint> flattened(const LayoutRoute& route) {
    constexpr int pieces = 8;
    const auto& p = route.points;
    std::vector<LayoutPoint> line{p.front()};
    for (std::size_t i = 0; i + 3 < p.size(); i += 3)
        for (int k = 1; k <= pieces; ++k) {
            const double t = static_cast<double>(k) / pieces, u = 1 - t;
            const double a = u * u * u, b = 3 * u * u * t, c = 3 * u * t * t, d = t * t * t;
            line.push_back({a * p[i].x + b * p[i + 1].x + c * p[i + 2].x + d * p[i + 3].x,
                            a * p[i].y + b * p[i + 1].y + c * p[i + 2].y + d * p[i + 3].y});
        }
    return line;
}

/// Which side of the line ab the point c is on.
inline double turn(LayoutPoint a, LayoutPoint b, LayoutPoint c) {
    return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

inline bool intersect(LayoutPoint a, LayoutPoint b, LayoutPoint c, LayoutPoint d) {
    return turn(a, b, c) * turn(a, b, d) < 0 && turn(c, d, a) * turn(c, d, b) < 0;
}

/// Crossings between the drawn curves of edges that share no box.
inline int curveCrossings(const LayoutInput& input, const LayoutResult& result) {
    std::vector<std::vector<LayoutPoint>> lines;
    for (const LayoutRoute& route : result.routes) lines.push_back(flattened(route));
    int count = 0;
    for (std::size_t i = 0; i < lines.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) {
            const auto [a, b] = input.edges[i];
            const auto [c, d] = input.edges[j];
            if (a == c || a == d || b == c || b == d) continue;
            for (std::size_t k = 0; k + 1 < lines[i].size(); ++k)
                for (std::size_t l = 0; l + 1 < lines[j].size(); ++l)
                    count += intersect(lines[i][k], lines[i][k + 1], lines[j][l], lines[j][l + 1]);
        }
    return count;
}

/// Points of curves inside a box that is no end of the edge.
inline int curvesThroughBoxes(const LayoutInput& input, const LayoutResult& result) {
    constexpr double tolerance = 1e-6;
    int count = 0;
    for (std::size_t e = 0; e < result.routes.size(); ++e)
        for (const LayoutPoint point : flattened(result.routes[e]))
            for (std::size_t box = 0; box < input.boxes.size(); ++box) {
                if (box == input.edges[e].from || box == input.edges[e].to) continue;
                const Rect r = rectOf(input, result, box);
                count += point.x > r.left + tolerance && point.x < r.right - tolerance &&
                         point.y > r.top + tolerance && point.y < r.bottom - tolerance;
            }
    return count;
}

/// The first thing wrong with a drawing of top-down flow, or an empty string: overlapping boxes,
/// anything out of bounds, a curve that does not touch its boxes' lower and upper border, an
/// upward step of a curve (other than of self-loops and, against the flow, of back edges).
inline std::string defect(const LayoutInput& input, const LayoutResult& result) {
    constexpr double tolerance = 1e-6;
    const auto number = [](std::size_t i) { return std::to_string(i); };
    checkLayoutResult(input, result);
    if (const int count = overlaps(input, result)) return std::to_string(count) + " overlaps";
    const auto isInside = [&](double x, double y) {
        return x > -tolerance && y > -tolerance && x < result.width + tolerance &&
               y < result.height + tolerance;
    };
    for (std::size_t i = 0; i < input.boxes.size(); ++i) {
        const Rect r = rectOf(input, result, i);
        if (!isInside(r.left, r.top) || !isInside(r.right, r.bottom))
            return "box " + number(i) + " out of bounds";
    }
    const auto isOn = [&](LayoutPoint point, const Rect& r, double border) {
        return std::abs(point.y - border) < tolerance && point.x > r.left - tolerance &&
               point.x < r.right + tolerance;
    };
    for (std::size_t e = 0; e < input.edges.size(); ++e) {
        const auto [from, to] = input.edges[e];
        std::vector<LayoutPoint> points = result.routes[e].points;
        for (const LayoutPoint point : points)
            if (!isInside(point.x, point.y)) return "edge " + number(e) + " out of bounds";
        const bool back = result.centres[from].y > result.centres[to].y;
        const Rect source = rectOf(input, result, from), target = rectOf(input, result, to);
        if (!isOn(points.front(), source, back ? source.top : source.bottom))
            return "edge " + number(e) + " does not start at its source";
        if (!isOn(points.back(), target, back ? target.bottom : target.top))
            return "edge " + number(e) + " does not end at its target";
        if (from == to) continue;
        if (back) std::ranges::reverse(points);
        if (result.engine == "graphviz") continue; // splines may overshoot a little
        if (!std::ranges::is_sorted(points, [](auto a, auto b) { return a.y < b.y - tolerance; }))
            return "edge " + number(e) + " turns back";
    }
    return {};
}

} // namespace shardlens::test
