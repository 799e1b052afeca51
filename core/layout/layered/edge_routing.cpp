// SPDX-License-Identifier: Apache-2.0
// Rank heights, ports on the borders of boxes, side channels for very long edges, and curves.
#include "core/layout/layered/edge_routing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace shardlens::layered {

namespace {

using Index = std::uint32_t;

// Collects a curve that goes down: straight where x stays, an S across a gap where it changes.
class CurveBuilder {
public:
    explicit CurveBuilder(LayoutPoint start) : m_end(start) { m_points.push_back(start); }

    void descendTo(LayoutPoint to) {
        if (to.x != m_end.x) {
            endStraight();
            const double middle = (m_end.y + to.y) / 2;
            append({m_end.x, middle}, {to.x, middle}, to);
        }
        m_end = to;
    }

    std::vector<LayoutPoint> finish() && {
        endStraight();
        return std::move(m_points);
    }

private:
    void endStraight() {
        const LayoutPoint from = m_points.back();
        if (from == m_end && m_points.size() > 1) return;
        const double third = (m_end.y - from.y) / 3;
        append({from.x, from.y + third}, {from.x, m_end.y - third}, m_end);
    }

    void append(LayoutPoint control1, LayoutPoint control2, LayoutPoint end) {
        m_points.push_back(control1);
        m_points.push_back(control2);
        m_points.push_back(end);
    }

    std::vector<LayoutPoint> m_points;
    LayoutPoint m_end;
};

// Vertical tracks beside the drawing for edges without bend points. Edges whose ranks do not
// overlap share a track; when all are busy the one that is free first is shared.
class SideTracks {
public:
    SideTracks(double border, double step) : m_border(border), m_step(step) {}

    double take(Index firstRank, Index lastRank) {
        constexpr std::size_t maxTracks = 24;
        auto track = std::ranges::find_if(m_busyUntil, [&](Index r) { return r < firstRank; });
        if (track == m_busyUntil.end() && m_busyUntil.size() < maxTracks)
            track = m_busyUntil.insert(track, 0);
        if (track == m_busyUntil.end()) track = std::ranges::min_element(m_busyUntil);
        *track = std::max(*track, lastRank);
        return m_border + m_step * static_cast<double>(1 + (track - m_busyUntil.begin()));
    }

private:
    double m_border, m_step;
    std::vector<Index> m_busyUntil;
};

class Drawer {
public:
    Drawer(const RankedComponent& component, const LayerGraph& graph, const std::vector<double>& x,
           Gaps gaps, const std::stop_token& stop)
        : m_component(component), m_graph(graph), m_x(x), m_gaps(gaps), m_stop(stop) {
        measureRanks();
        findSideTracks();
        throwIfStopped(stop);
        findPorts();
    }

    ComponentDrawing run() {
        ComponentDrawing drawing;
        for (Index box = 0; box < m_component.boxes.size(); ++box)
            drawing.centres.push_back({m_x[box], centreY(box)});
        for (Index e = 0; e < m_component.edges.size(); ++e) {
            if (e % 1024 == 0) throwIfStopped(m_stop);
            drawing.routes.push_back({curve(e), isLong(e)});
        }
        return drawing;
    }

private:
    void measureRanks() {
        std::vector<double> height(m_graph.layerCount(), 0);
        for (Index box = 0; box < m_component.boxes.size(); ++box) {
            double& rank = height[m_component.rank[box]];
            rank = std::max(rank, m_component.boxes[box].height);
        }
        double y = 0;
        for (double h : height) {
            m_top.push_back(y);
            m_bottom.push_back(y + h);
            y += h + m_gaps.rank;
        }
    }

    double centreY(Index box) const {
        const Index rank = m_component.rank[box];
        return (m_top[rank] + m_bottom[rank]) / 2;
    }

    // Edges that were left out of the layer graph. All others have a bend point a rank.
    bool isLong(Index edge) const {
        const auto [from, to] = m_component.edges[edge];
        return m_graph.bends(edge).size() + 1 < m_component.rank[to] - m_component.rank[from];
    }

    void findSideTracks() {
        double left = std::numeric_limits<double>::infinity(), right = -left;
        for (Index v = 0; v < m_graph.nodeCount(); ++v) {
            left = std::min(left, m_x[v] - m_graph.width(v) / 2);
            right = std::max(right, m_x[v] + m_graph.width(v) / 2);
        }
        const double step = std::max(m_gaps.node / 3, 1.0);
        SideTracks leftTracks(left, -step), rightTracks(right, step);
        m_track.assign(m_component.edges.size(), 0);
        for (Index e : longEdgesByStart()) {
            const auto [from, to] = m_component.edges[e];
            const bool onLeft = m_x[from] + m_x[to] < left + right;
            m_track[e] = (onLeft ? leftTracks : rightTracks)
                             .take(m_component.rank[from], m_component.rank[to]);
        }
    }

    std::vector<Index> longEdgesByStart() const {
        std::vector<Index> edges;
        for (Index e = 0; e < m_component.edges.size(); ++e)
            if (isLong(e)) edges.push_back(e);
        std::ranges::stable_sort(
            edges, {}, [&](Index e) { return m_component.rank[m_component.edges[e].from]; });
        return edges;
    }

    // x of the first point of an edge after its source, or of the last before its target.
    double nextX(Index edge, bool atSource) const {
        if (isLong(edge)) return m_track[edge];
        const auto bends = m_graph.bends(edge);
        const auto [from, to] = m_component.edges[edge];
        if (bends.empty()) return m_x[atSource ? to : from];
        return m_x[atSource ? bends.front() : bends.back()];
    }

    void findPorts() {
        const auto boxes = static_cast<Index>(m_component.boxes.size());
        m_sourcePort.resize(m_component.edges.size());
        m_targetPort.resize(m_component.edges.size());
        const Adjacency out(boxes, m_component.edges, &LayoutEdge::from);
        const Adjacency in(boxes, m_component.edges, &LayoutEdge::to);
        for (Index box = 0; box < boxes; ++box) {
            spreadPorts(box, out.of(box), true, m_sourcePort);
            spreadPorts(box, in.of(box), false, m_targetPort);
        }
    }

    // Edges leave a border in the order of where they go; one that goes straight on keeps the
    // middle, so that it stays straight.
    void spreadPorts(Index box, std::span<const Index> edges, bool atSource,
                     std::vector<double>& port) const {
        if (edges.empty()) return;
        std::vector<std::pair<double, Index>> sorted;
        for (Index e : edges) sorted.emplace_back(nextX(e, atSource), e);
        std::ranges::sort(sorted);
        const double x = m_x[box], tolerance = 1e-6 * (1 + std::abs(x));
        const auto last = static_cast<double>(sorted.size() - 1);
        const auto straightBegin =
            std::ranges::find_if(sorted, [&](const auto& s) { return s.first > x - tolerance; });
        const auto straightEnd = std::find_if(
            straightBegin, sorted.end(), [&](const auto& s) { return s.first > x + tolerance; });
        const double middle = straightBegin == straightEnd
                                  ? last / 2
                                  : static_cast<double>(straightBegin - sorted.begin() +
                                                        straightEnd - sorted.begin() - 1) /
                                        2;
        const double reach = std::max({middle, last - middle, 1.0});
        const double step = std::min(m_gaps.node / 2, 0.4 * m_component.boxes[box].width / reach);
        for (std::size_t i = 0; i < sorted.size(); ++i)
            port[sorted[i].second] = x + (static_cast<double>(i) - middle) * step;
    }

    std::vector<LayoutPoint> curve(Index edge) const {
        const auto [from, to] = m_component.edges[edge];
        const Index first = m_component.rank[from], last = m_component.rank[to];
        const double start = m_sourcePort[edge], end = m_targetPort[edge];
        CurveBuilder builder({start, centreY(from) + m_component.boxes[from].height / 2});
        builder.descendTo({start, m_bottom[first]});
        if (isLong(edge)) {
            builder.descendTo({m_track[edge], m_top[first + 1]});
            builder.descendTo({m_track[edge], m_bottom[last - 1]});
        }
        for (Index bend : m_graph.bends(edge)) {
            builder.descendTo({m_x[bend], m_top[m_graph.layerOf(bend)]});
            builder.descendTo({m_x[bend], m_bottom[m_graph.layerOf(bend)]});
        }
        builder.descendTo({end, m_top[last]});
        builder.descendTo({end, centreY(to) - m_component.boxes[to].height / 2});
        return std::move(builder).finish();
    }

    const RankedComponent& m_component;
    const LayerGraph& m_graph;
    const std::vector<double>& m_x;
    Gaps m_gaps;
    const std::stop_token& m_stop;
    std::vector<double> m_top, m_bottom; // of each rank
    std::vector<double> m_track;         // x of the side channel of each long edge
    std::vector<double> m_sourcePort, m_targetPort;
};

} // namespace

ComponentDrawing drawComponent(const RankedComponent& component, const LayerGraph& graph,
                               const std::vector<double>& x, Gaps gaps,
                               const std::stop_token& stop) {
    return Drawer(component, graph, x, gaps, stop).run();
}

} // namespace shardlens::layered
