// SPDX-License-Identifier: Apache-2.0
// See stage_painter.h.
#include "ui/views/stage_painter.h"

#include "ui/format.h"

#include <QFontMetricsF>
#include <QObject>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace shardlens {

namespace {

constexpr double kLabelZoom = 0.42;
constexpr double kLeastText = 6;          ///< pixels
constexpr double kLabelGap = 18;          ///< beside a box, beyond its boundaries' overhang
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
        painter.setPen(m_palette.textOn(ground));
        drawBandLabel(painter, band, zoom);
    }
}

/// As large as the band has room for, if that can be read.
void StagePainter::drawBandLabel(QPainter& painter, const StageBand& band, double zoom) const {
    const double room = std::min(1.0, band.rect.height() / m_metrics.smallHeight);
    const double scale = std::floor(4 * room) / 4; // few sizes: each font is made ready once
    if (scale * m_metrics.smallHeight * zoom < kLeastText) return;
    QFont font = m_metrics.small;
    font.setPointSizeF(font.pointSizeF() * scale);
    painter.setFont(font);
    const bool chunks = m_marks.plan->answer.schedule.chunks > 1;
    painter.drawText(band.rect, Qt::AlignCenter,
                     chunks ? QObject::tr("stage %1 · chunk %2").arg(band.stage).arg(band.chunk)
                            : QObject::tr("stage %1").arg(band.stage));
}

std::vector<int> StagePainter::shownBoundaries(const StageMarks& marks,
                                               const StagePaintState& state) {
    std::vector<int> shown = marks.boundaries();
    std::vector<int> held; // pins that the plan has are shown where its chunks begin
    for (const int unit : shown) held.push_back(marks.plan->cutOf(unit));
    for (const int pin : state.pins)
        if (pin >= 1 && static_cast<std::size_t>(pin) < marks.places.size() &&
            std::ranges::find(held, pin) == held.end())
            shown.push_back(pin);
    std::ranges::sort(shown);
    const auto repeated = std::ranges::unique(shown);
    shown.erase(repeated.begin(), repeated.end());
    return shown;
}

QRectF StagePainter::handleOf(const QLineF& place, double zoom) {
    // Not larger on the screen either: near by, more of them have room.
    const double scale = std::max(1 / std::max(1.0, zoom), kHandlePixels / (kHandleHeight * zoom));
    const double width = kHandleWidth * scale, height = kHandleHeight * scale;
    return {place.x1() - width, place.y1() - height / 2, width, height};
}

void StagePainter::drawBoundaries(QPainter& painter, const QRectF& area, double zoom) const {
    if (!m_marks.plan) return;
    drawChunkStarts(painter, zoom);
    drawChunkLabels(painter, zoom);
    const std::vector<int> shown = shownBoundaries(m_marks, m_state);
    for (std::size_t i = 0; i < shown.size(); ++i) {
        const int unit = shown[i];
        const QLineF& place = m_marks.places[static_cast<std::size_t>(unit)];
        if (place.isNull() || unit == m_state.moved) continue;
        if (place.y1() < area.top() - 40 / zoom || place.y1() > area.bottom() + 40 / zoom) continue;
        const bool meant = unit == m_state.selected || unit == m_state.hovered || isPinned(unit);
        if (meant || !isCrowded(shown, i, zoom)) drawBoundary(painter, unit, zoom);
    }
    if (m_state.target >= 0) drawBoundary(painter, m_state.target, zoom);
}

void StagePainter::drawChunkStarts(QPainter& painter, double zoom) const {
    painter.setPen(QPen(m_palette.muted, std::max(1.5, 1 / zoom), Qt::DotLine));
    for (const int unit : m_marks.chunkStarts())
        painter.drawLine(m_marks.places[static_cast<std::size_t>(unit)]);
}

void StagePainter::drawChunkLabels(QPainter& painter, double zoom) const {
    const PipelinePlan& plan = *m_marks.plan;
    if (m_state.selectedStage < 0 || plan.answer.schedule.chunks == 1) return;
    QFont font = m_metrics.small; // not smaller on the screen than can be read
    font.setPointSizeF(font.pointSizeF() * std::max(1.0, 0.6 / zoom));
    const QFontMetricsF metrics(font);
    painter.setFont(font);
    for (std::size_t item = 0; item < m_marks.bands.size(); ++item) {
        if (m_scene.items[item].kind != ItemKind::Block) continue;
        for (const StageBand& band : m_marks.bands[item]) {
            if (band.stage != m_state.selectedStage) continue;
            const auto piece = std::ranges::find_if(plan.virtualStages, [&](const auto& other) {
                return other.stage == band.stage && other.chunk == band.chunk;
            });
            const QString label = text(stretchName(plan.units, piece->first, piece->last));
            QRectF box(band.rect.right() + kLabelGap, band.rect.center().y() - metrics.height() / 2,
                       metrics.horizontalAdvance(label) + kLabelGap, metrics.height());
            painter.fillRect(box, m_palette.canvas);
            painter.setPen(m_palette.accent);
            painter.drawText(box, Qt::AlignCenter, label);
        }
    }
}

/// Whether a handle would cover that of a neighbour: nothing is to be seen of either then.
bool StagePainter::isCrowded(const std::vector<int>& shown, std::size_t index, double zoom) const {
    const auto handle = [&](std::size_t i) {
        const QLineF& place = m_marks.places[static_cast<std::size_t>(shown[i])];
        return place.isNull() ? QRectF() : handleOf(place, zoom);
    };
    const QRectF own = handle(index);
    return (index > 0 && own.intersects(handle(index - 1))) ||
           (index + 1 < shown.size() && own.intersects(handle(index + 1)));
}

bool StagePainter::isPinned(int unit) const {
    return std::ranges::find(m_state.pins, m_marks.plan->cutOf(unit)) != m_state.pins.end();
}

void StagePainter::drawBoundary(QPainter& painter, int unit, double zoom) const {
    const QLineF& place = m_marks.places[static_cast<std::size_t>(unit)];
    const bool moving = unit == m_state.target;
    const bool pinned = isPinned(unit);
    const std::vector<int> planned = m_marks.boundaries();
    const bool inPlan = std::ranges::find(planned, unit) != planned.end();
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
