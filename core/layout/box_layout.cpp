// SPDX-License-Identifier: Apache-2.0
// What every layout engine shares: checks of input and result, the exchange of the axes, the
// bounding box and the drawing of self-loops.
#include "core/layout/box_layout.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace shardlens {

namespace {

bool isLength(double value) {
    return std::isfinite(value) && value >= 0;
}

bool isFinite(LayoutPoint point) {
    return std::isfinite(point.x) && std::isfinite(point.y);
}

struct Bounds {
    double left = std::numeric_limits<double>::infinity(), top = left;
    double right = -left, bottom = -left;

    void include(double x, double y) {
        left = std::min(left, x);
        right = std::max(right, x);
        top = std::min(top, y);
        bottom = std::max(bottom, y);
    }
};

Bounds boundsOf(std::span<const LayoutBox> boxes, const LayoutResult& result) {
    Bounds bounds;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        const auto [x, y] = result.centres[i];
        const auto [width, height] = boxes[i];
        bounds.include(x - width / 2, y - height / 2);
        bounds.include(x + width / 2, y + height / 2);
    }
    for (const LayoutRoute& route : result.routes)
        for (const auto [x, y] : route.points) bounds.include(x, y);
    return bounds;
}

} // namespace

void checkLayoutInput(const LayoutInput& input) {
    constexpr auto where = "graph layout";
    if (!isLength(input.rankGap) || !isLength(input.nodeGap))
        throw InputError("a gap is negative or not a number", where, "use gaps of 0 or more");
    for (std::size_t i = 0; i < input.boxes.size(); ++i) {
        if (isLength(input.boxes[i].width) && isLength(input.boxes[i].height)) continue;
        throw InputError(fmt::format("box {} has a negative size or none", i), where,
                         "measure the boxes before the layout");
    }
    for (std::size_t i = 0; i < input.edges.size(); ++i) {
        const auto [from, to] = input.edges[i];
        if (std::max(from, to) < input.boxes.size()) continue;
        throw InputError(
            fmt::format("edge {} ({} to {}) names a box that is not among the {} given", i, from,
                        to, input.boxes.size()),
            where, "give every end of an edge a box");
    }
}

void checkLayoutResult(const LayoutInput& input, const LayoutResult& result) {
    constexpr auto where = "graph layout result";
    if (result.centres.size() != input.boxes.size() || result.routes.size() != input.edges.size())
        throw InputError(fmt::format("{} boxes and {} edges were placed instead of {} and {}",
                                     result.centres.size(), result.routes.size(),
                                     input.boxes.size(), input.edges.size()),
                         where);
    const auto isCurve = [](const LayoutRoute& route) {
        return route.points.size() >= 4 && route.points.size() % 3 == 1 &&
               std::ranges::all_of(route.points, isFinite);
    };
    if (!isLength(result.width) || !isLength(result.height) ||
        !std::ranges::all_of(result.centres, isFinite) ||
        !std::ranges::all_of(result.routes, isCurve))
        throw InputError("a coordinate is missing or not a number", where);
}

LayoutInput transposed(LayoutInput input) {
    for (LayoutBox& box : input.boxes) std::swap(box.width, box.height);
    input.leftToRight = !input.leftToRight;
    return input;
}

LayoutResult transposed(LayoutResult result) {
    for (LayoutPoint& centre : result.centres) std::swap(centre.x, centre.y);
    for (LayoutRoute& route : result.routes)
        for (LayoutPoint& point : route.points) std::swap(point.x, point.y);
    std::swap(result.width, result.height);
    return result;
}

void fitBounds(std::span<const LayoutBox> boxes, LayoutResult& result) {
    result.width = result.height = 0;
    if (boxes.empty()) return;
    const Bounds bounds = boundsOf(boxes, result);
    const auto move = [&](LayoutPoint& point) {
        point.x -= bounds.left;
        point.y -= bounds.top;
    };
    std::ranges::for_each(result.centres, move);
    for (LayoutRoute& route : result.routes) std::ranges::for_each(route.points, move);
    result.width = bounds.right - bounds.left;
    result.height = bounds.bottom - bounds.top;
}

LayoutRoute selfLoopRoute(const LayoutInput& input, std::uint32_t box, LayoutPoint centre) {
    const auto [width, height] = input.boxes[box];
    const double x = centre.x + width / 4;
    const double side = centre.x + width / 2 + selfLoopMargin(input);
    const double top = centre.y - height / 2, bottom = centre.y + height / 2;
    const double bow = input.rankGap / 3;
    return {{{x, bottom},
             {x, bottom + bow},
             {side, bottom + bow},
             {side, centre.y},
             {side, top - bow},
             {x, top - bow},
             {x, top}}};
}

double selfLoopMargin(const LayoutInput& input) {
    return input.nodeGap / 2;
}

void throwIfStopped(const std::stop_token& stop) {
    if (stop.stop_requested()) throw Cancelled();
}

} // namespace shardlens
