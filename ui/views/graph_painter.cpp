// SPDX-License-Identifier: Apache-2.0
// Order of drawing, levels of detail, frames and edges; boxes are in graph_boxes.cpp.
#include "ui/views/graph_painter.h"

#include "ui/format.h"

#include <QObject>
#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <cmath>

namespace shardlens {

namespace {

constexpr double kLabelZoom = 0.42; ///< text below about 5 px is noise
constexpr double kEdgeZoom = 0.08;
constexpr std::size_t kMostRanges = 7; ///< shown as buttons

QPainterPath pathOf(const std::vector<QPointF>& curve) {
    QPainterPath path(curve.front());
    for (std::size_t i = 1; i + 2 < curve.size(); i += 3)
        path.cubicTo(curve[i], curve[i + 1], curve[i + 2]);
    return path;
}

QString rangeText(const RepeatRange& range) {
    if (range.first == range.last) return QString::number(range.first);
    return QStringLiteral("%1–%2").arg(range.first).arg(range.last);
}

} // namespace

double heatFraction(const Heat& heat, const Heat& most, ColourMode mode) {
    double value = 0, limit = 0;
    switch (mode) {
    case ColourMode::None:
        return 0;
    case ColourMode::Time:
        value = heat.time, limit = most.time;
        break;
    case ColourMode::Communication:
        value = heat.communication, limit = most.communication;
        break;
    case ColourMode::Memory:
        value = heat.memory, limit = most.memory;
        break;
    }
    return limit > 0 ? std::sqrt(std::max(value, 0.0) / limit) : 0;
}

GraphPainter::GraphPainter(const GraphOverlay& overlay, const Palette& palette,
                           const GraphPaintState& state)
    : m_overlay(overlay), m_scene(*overlay.scene), m_palette(palette), m_state(state),
      m_metrics(overlay.scene->options.font),
      m_stages(m_scene, overlay.stages, palette, m_state.stages) {
}

QString GraphPainter::axisText(const std::vector<std::uint8_t>& axes) const {
    QString joined;
    for (const std::uint8_t axis : axes) {
        if (!joined.isEmpty()) joined += QStringLiteral("·");
        if (axis < m_overlay.axisNames.size()) joined += m_overlay.axisNames[axis];
    }
    return joined;
}

QString GraphPainter::rangesText(const std::vector<RepeatRange>& ranges) {
    if (ranges.size() <= 1) return {};
    QString joined;
    for (std::size_t i = 0; i < std::min(ranges.size(), kMostRanges); ++i) {
        if (i > 0) joined += QStringLiteral(" | ");
        joined += rangeText(ranges[i]);
    }
    if (ranges.size() > kMostRanges) joined += QStringLiteral(" | …");
    return joined;
}

void GraphPainter::paint(QPainter& painter, const QRectF& area, double zoom) const {
    const std::vector<int> items = m_scene.itemsIn(area);
    painter.setRenderHint(QPainter::Antialiasing, zoom > 0.2 && items.size() < 1500);
    painter.setRenderHint(QPainter::TextAntialiasing);
    for (const int id : items)
        if (m_scene.items[static_cast<std::size_t>(id)].kind == ItemKind::Frame)
            drawFrame(painter, id, zoom);
    const std::vector<int> edges = zoom >= kEdgeZoom ? m_scene.edgesIn(area) : std::vector<int>();
    for (const int id : edges) drawEdge(painter, id, zoom);
    for (const int id : items) drawItem(painter, id, zoom);
    if (zoom >= kLabelZoom)
        for (const int id : edges) drawEdgeLabels(painter, id);
    m_stages.drawBoundaries(painter, area, zoom);
}

QColor GraphPainter::fillOf(int id) const {
    if (m_state.colour == ColourMode::None || !m_overlay.plan) return m_palette.surface;
    const Heat& heat = m_overlay.items[static_cast<std::size_t>(id)].heat;
    const double fraction = heatFraction(heat, m_overlay.most, m_state.colour);
    return fraction <= 0 ? m_palette.surface : m_palette.scale(fraction);
}

QPen GraphPainter::outlineOf(int id, double zoom) const {
    const double pixel = 1 / std::max(zoom, 0.05);
    if (id == m_state.selected) return QPen(m_palette.accent, std::max(2.5, 2 * pixel));
    if (m_state.matches && m_state.matches->contains(id))
        return QPen(m_palette.highlight, std::max(3.0, 2.5 * pixel));
    if (m_state.stages.selectedStage >= 0 &&
        m_scene.items[static_cast<std::size_t>(id)].kind == ItemKind::Op &&
        m_overlay.stages.holds(static_cast<std::size_t>(id), m_state.stages.selectedStage))
        return QPen(m_palette.accent, std::max(1.6, 1.2 * pixel));
    if (id == m_state.hovered) return QPen(m_palette.muted, std::max(1.4, pixel));
    return QPen(m_palette.border, std::max(1.0, pixel * 0.8));
}

void GraphPainter::drawFrame(QPainter& painter, int id, double zoom) const {
    const SceneItem& item = m_scene.items[static_cast<std::size_t>(id)];
    const ItemMark& mark = m_overlay.items[static_cast<std::size_t>(id)];
    painter.setPen(outlineOf(id, zoom));
    painter.setBrush(m_palette.frame);
    painter.drawRoundedRect(item.rect, 8, 8);
    m_stages.drawBands(painter, id, zoom);
    if (zoom < kLabelZoom) return;
    const FrameControls controls = controlsOf(m_overlay, id);
    const QRectF top(item.rect.left() + m_metrics.padding, item.rect.top() + m_metrics.padding,
                     item.rect.width() - 2 * m_metrics.padding, m_metrics.titleHeight);
    painter.setFont(m_metrics.title);
    painter.setPen(m_palette.text);
    painter.drawText(QRectF(controls.fold.right() + 4, top.top(),
                            controls.previous.left() - controls.fold.right() - 10, top.height()),
                     Qt::AlignVCenter | Qt::AlignLeft,
                     QFontMetricsF(m_metrics.title)
                         .elidedText(item.title, Qt::ElideMiddle,
                                     controls.previous.left() - controls.fold.right() - 10));
    const auto triangle = [&](const QRectF& rect, int turn) {
        painter.save();
        painter.translate(rect.center());
        painter.rotate(turn);
        painter.setPen(Qt::NoPen);
        painter.setBrush(m_palette.muted);
        painter.drawPolygon(QPolygonF({QPointF(-4, -5), QPointF(5, 0), QPointF(-4, 5)}));
        painter.restore();
    };
    triangle(controls.fold, 90);
    painter.setFont(m_metrics.small);
    painter.setPen(m_palette.text);
    const auto run = static_cast<std::size_t>(item.run);
    const std::size_t count = m_scene.folding->runs[run].count;
    if (count > 1) {
        triangle(controls.previous, 180);
        triangle(controls.next, 0);
        painter.drawText(controls.repeat, Qt::AlignCenter,
                         QStringLiteral("%1 / 0–%2").arg(m_overlay.repeats[run]).arg(count - 1));
    }
    for (const FrameControls::Range& range : controls.ranges) {
        const QColor ground = range.current ? m_palette.accent : m_palette.surface;
        painter.setPen(QPen(range.current ? m_palette.accent : m_palette.border, 1));
        painter.setBrush(ground);
        painter.drawRoundedRect(range.rect, 4, 4);
        painter.setPen(range.current ? m_palette.textOn(ground) : m_palette.text);
        painter.drawText(range.rect, Qt::AlignCenter, range.text);
    }
    const double left =
        controls.ranges.empty() ? top.left() + 4 : controls.ranges.back().rect.right() + 6;
    const QString note = mark.ranges.empty()                     ? item.subtitle
                         : mark.ranges.size() == 1 && count == 1 ? item.subtitle
                         : mark.ranges.size() == 1
                             ? QObject::tr("%1 · all alike").arg(item.subtitle)
                             : QObject::tr("differ");
    painter.setPen(m_palette.muted);
    painter.drawText(QRectF(left, controls.fold.bottom() + 6, item.rect.right() - left - 8,
                            m_metrics.smallHeight + 4),
                     Qt::AlignVCenter | Qt::AlignLeft, note);
}

FrameControls GraphPainter::controlsOf(const GraphOverlay& overlay, int frame) {
    const SceneItem& item = overlay.scene->items[static_cast<std::size_t>(frame)];
    const BoxMetrics metrics(overlay.scene->options.font);
    const QFontMetricsF small(metrics.small);
    const double y = item.rect.top() + metrics.padding, height = metrics.titleHeight;
    FrameControls controls;
    controls.fold = QRectF(item.rect.left() + 6, y, 18, height);
    const auto run = static_cast<std::size_t>(item.run);
    const std::size_t count = overlay.scene->folding->runs[run].count;
    if (count == 1) { // a section: there is no other repeat to look at
        controls.previous = controls.repeat = controls.next =
            QRectF(item.rect.right() - 6, y, 0, height);
        return controls;
    }
    const double width = small.horizontalAdvance(QStringLiteral("%1 / 0–%1").arg(count)) + 10;
    controls.next = QRectF(item.rect.right() - 26, y, 20, height);
    controls.repeat = QRectF(controls.next.left() - width, y, width, height);
    controls.previous = QRectF(controls.repeat.left() - 20, y, 20, height);
    const auto& ranges = overlay.items[static_cast<std::size_t>(frame)].ranges;
    if (ranges.size() <= 1) return controls;
    double x = item.rect.left() + metrics.padding + 2;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        const bool more = i + 1 == kMostRanges && ranges.size() > kMostRanges;
        const QString label =
            more ? QStringLiteral("… %1").arg(ranges.size() - i) : rangeText(ranges[i]);
        const double wide = small.horizontalAdvance(label) + 12;
        if (x + wide > item.rect.right() - 60) break;
        const std::size_t current = overlay.repeats[run];
        controls.ranges.push_back({QRectF(x, y + height + 6, wide, metrics.smallHeight + 4),
                                   ranges[i].first, label,
                                   current >= ranges[i].first && current <= ranges[i].last});
        x += wide + 4;
        if (more) break;
    }
    return controls;
}

void GraphPainter::drawEdge(QPainter& painter, int id, double zoom) const {
    const SceneEdge& edge = m_scene.edges[static_cast<std::size_t>(id)];
    const bool near =
        m_state.selected >= 0 && (edge.from == m_state.selected || edge.to == m_state.selected);
    QColor colour = near ? m_palette.accent : m_palette.muted;
    if (edge.faint && !near) colour.setAlphaF(0.35F);
    const double width = std::max(near ? 2.0 : 1.2, 0.7 / zoom);
    painter.setPen(QPen(colour, width));
    painter.setBrush(Qt::NoBrush);
    if (zoom < 0.25) {
        QPolygonF line;
        for (std::size_t i = 0; i < edge.path.size(); i += 3) line << edge.path[i];
        painter.drawPolyline(line);
        return;
    }
    painter.drawPath(pathOf(edge.path));
    const QPointF tip = edge.path.back();
    QPointF along = tip - edge.path[edge.path.size() - 2];
    const double length = std::hypot(along.x(), along.y());
    along = length > 0.1 ? along / length : QPointF(0, 1);
    const QPointF across(-along.y(), along.x());
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    painter.drawPolygon(
        QPolygonF({tip, tip - along * 8 + across * 3.6, tip - along * 8 - across * 3.6}));
}

void GraphPainter::drawEdgeLabels(QPainter& painter, int id) const {
    const EdgeMark& mark = m_overlay.edges[static_cast<std::size_t>(id)];
    const SceneEdge& edge = m_scene.edges[static_cast<std::size_t>(id)];
    if (!mark.label.isNull() && !edge.bundle.empty()) {
        painter.setFont(m_metrics.small);
        painter.setPen(m_palette.muted);
        painter.drawText(mark.label, Qt::AlignCenter, bundleText(edge));
    } else if (!mark.label.isNull()) {
        drawShape(painter, mark.label, mark.consumed);
    }
    for (const Lozenge& lozenge : mark.collectives) drawLozenge(painter, lozenge);
}

} // namespace shardlens
