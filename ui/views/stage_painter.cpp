// SPDX-License-Identifier: Apache-2.0
// See stage_painter.h.
#include "ui/views/stage_painter.h"

#include "ui/format.h"

#include <QFontMetricsF>
#include <QObject>
#include <QPainter>

#include <algorithm>

namespace shardlens {

namespace {

constexpr double kLabelZoom = 0.42;
constexpr double kRail = 5, kRailGap = 4; ///< beside what is not a folded run
constexpr double kHandleWidth = 22, kHandleHeight = 14, kHandlePixels = 12;

} // namespace

StagePainter::StagePainter(const GraphScene& scene, const StageMarks& marks, const Palette& palette,
                           const StagePaintState& state)
    : m_scene(scene), m_marks(marks), m_palette(palette), m_state(state),
      m_metrics(scene.options.font) {
}

QColor StagePainter::colourOf(int stage) const {
    return m_palette.numbered(static_cast<std::size_t>(stage),
                              static_cast<std::size_t>(m_marks.plan->stages()));
}

void StagePainter::drawBands(QPainter& painter, int item, double zoom) const {
    if (!m_marks.plan) return;
    const SceneItem& box = m_scene.items[static_cast<std::size_t>(item)];
    const bool area = box.kind == ItemKind::Block && box.stagesTop > 0;
    for (const StageBand& band : m_marks.bands[static_cast<std::size_t>(item)]) {
        const bool chosen = band.stage == m_state.selectedStage;
        const QColor colour = colourOf(band.stage);
        if (!area) {
            const double width = std::max(kRail, 2 / zoom) * (chosen ? 1.6 : 1);
            painter.fillRect(QRectF(band.rect.left() - kRailGap - width, band.rect.top(), width,
                                    band.rect.height()),
                             colour);
            continue;
        }
        const QColor ground = Palette::mix(m_palette.surface, colour, chosen ? 0.75 : 0.32);
        painter.fillRect(band.rect.adjusted(1, 0, -1, 0), ground);
        if (chosen) {
            painter.setPen(QPen(m_palette.accent, std::max(2.0, 1.5 / zoom)));
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(band.rect.adjusted(2, 1, -2, -1));
        }
        if (zoom < kLabelZoom || band.rect.height() < m_metrics.smallHeight) continue;
        painter.setFont(m_metrics.small);
        painter.setPen(m_palette.textOn(ground));
        painter.drawText(band.rect, Qt::AlignCenter, QObject::tr("stage %1").arg(band.stage));
    }
}

std::vector<int> StagePainter::shownBoundaries(const StageMarks& marks,
                                               const StagePaintState& state) {
    std::vector<int> shown = marks.boundaries();
    for (const int pin : state.pins)
        if (pin >= 1 && static_cast<std::size_t>(pin) < marks.places.size()) shown.push_back(pin);
    std::ranges::sort(shown);
    const auto repeated = std::ranges::unique(shown);
    shown.erase(repeated.begin(), repeated.end());
    return shown;
}

QRectF StagePainter::handleOf(const QLineF& place, double zoom) {
    const double scale = std::max(1.0, kHandlePixels / (kHandleHeight * zoom));
    const double width = kHandleWidth * scale, height = kHandleHeight * scale;
    return {place.x1() - width, place.y1() - height / 2, width, height};
}

void StagePainter::drawBoundaries(QPainter& painter, const QRectF& area, double zoom) const {
    if (!m_marks.plan) return;
    for (const int unit : shownBoundaries(m_marks, m_state)) {
        const QLineF& place = m_marks.places[static_cast<std::size_t>(unit)];
        if (place.isNull() || unit == m_state.moved) continue;
        if (place.y1() < area.top() - 40 / zoom || place.y1() > area.bottom() + 40 / zoom) continue;
        drawBoundary(painter, unit, zoom);
    }
    if (m_state.target >= 0) drawBoundary(painter, m_state.target, zoom);
}

void StagePainter::drawBoundary(QPainter& painter, int unit, double zoom) const {
    const QLineF& place = m_marks.places[static_cast<std::size_t>(unit)];
    const bool moving = unit == m_state.target;
    const bool pinned = std::ranges::find(m_state.pins, unit) != m_state.pins.end();
    const bool inPlan = std::ranges::any_of(
        m_marks.plan->answer.stages, [unit](const PlannedStage& s) { return s.first == unit; });
    const bool near = unit == m_state.selected || unit == m_state.hovered;
    const QColor colour = moving                               ? m_palette.accent
                          : pinned && m_state.clash && !inPlan ? m_palette.bad
                          : pinned                             ? m_palette.pin
                          : near                               ? m_palette.accent
                                                               : m_palette.text;
    const double width = std::max(near || moving ? 2.4 : 1.5, 1 / zoom);
    painter.setPen(QPen(colour, width, pinned || moving ? Qt::SolidLine : Qt::DashLine));
    painter.drawLine(place);
    const QRectF handle = handleOf(place, zoom);
    painter.setPen(QPen(colour, width));
    painter.setBrush(pinned || moving ? colour : m_palette.canvas);
    painter.drawRoundedRect(handle, handle.height() / 3, handle.height() / 3);
    const QColor ink = pinned || moving ? m_palette.textOn(colour) : colour;
    painter.setPen(QPen(ink, std::max(1.2, 0.8 / zoom)));
    for (const double off : {-0.18, 0.18}) { // ribs to hold it by
        const double y = handle.center().y() + off * handle.height();
        painter.drawLine(QPointF(handle.left() + handle.width() * 0.28, y),
                         QPointF(handle.right() - handle.width() * 0.28, y));
    }
    if (unit == m_state.selected) {
        const double out = 3 / std::max(zoom, 0.2);
        painter.setPen(QPen(m_palette.accent, width));
        painter.setBrush(Qt::NoBrush);
        painter.drawRoundedRect(handle.adjusted(-out, -out, out, out), out, out);
    }
    if (zoom < kLabelZoom && !near && !moving) return;
    QString label = shortName(m_marks.plan->nameOf(unit));
    if (moving && !m_state.preview.isEmpty()) label += QStringLiteral(" · ") + m_state.preview;
    drawLabel(painter, label, handle, colour);
}

void StagePainter::drawLabel(QPainter& painter, const QString& label, const QRectF& handle,
                             const QColor& colour) const {
    const double scale = handle.height() / kHandleHeight;
    QFont font = m_metrics.small;
    font.setPointSizeF(font.pointSizeF() * scale);
    const QFontMetricsF metrics(font);
    const double width = metrics.horizontalAdvance(label) + 10 * scale;
    const QRectF box(handle.left() - width - 4 * scale, handle.center().y() - metrics.height() / 2,
                     width, metrics.height());
    QColor ground = m_palette.canvas;
    ground.setAlphaF(0.85F);
    painter.fillRect(box, ground);
    painter.setFont(font);
    painter.setPen(colour);
    painter.drawText(box, Qt::AlignCenter, label);
}

} // namespace shardlens
