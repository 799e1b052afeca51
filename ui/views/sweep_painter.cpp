// SPDX-License-Identifier: Apache-2.0
// See sweep_painter.h. Colour is never the only cue: the front is a line with rings, what does not
// fit is small and lies beyond the limit's own line, what has no plan is a cross.
#include "ui/views/sweep_painter.h"

#include "ui/format.h"

#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <cmath>

namespace shardlens {

namespace {

constexpr double kAxisGap = 6;
constexpr int kSmallestCell = 44; ///< width that a cell's figure needs

void cross(QPainter& painter, QPointF at, double half) {
    painter.drawLine(at + QPointF(-half, -half), at + QPointF(half, half));
    painter.drawLine(at + QPointF(-half, half), at + QPointF(half, -half));
}

} // namespace

void SweepPainter::paint() {
    m_painter.setRenderHint(QPainter::Antialiasing);
    paintHead();
    if (m_g.shape == SweepShape::Scatter)
        paintScatter();
    else if (m_g.shape == SweepShape::Line)
        paintLine();
    else
        paintMap();
}

/// What the quantities are: of the vertical axis, or of the cells.
void SweepPainter::paintHead() {
    m_painter.setPen(m_palette.muted);
    const QString words = m_g.shape == SweepShape::Scatter ? measureName(SweepMeasure::Memory)
                                                           : measureName(m_g.measure);
    m_painter.drawText(QRectF(kAxisGap, 2, m_g.plot.right() - kAxisGap, m_g.headHeight),
                       Qt::AlignLeft | Qt::AlignVCenter, words);
    if (m_g.shape != SweepShape::Scatter) return;
    const double line = QFontMetricsF(m_painter.font()).height();
    m_painter.drawText(
        QRectF(m_g.plot.left(), m_g.plot.bottom() + line + kAxisGap, m_g.plot.width(), line + 2),
        Qt::AlignRight | Qt::AlignVCenter, measureName(SweepMeasure::Time));
}

void SweepPainter::paintVertical(SweepMeasure measure) {
    const QFontMetricsF metrics(m_painter.font());
    const int most = std::max(2, static_cast<int>(m_g.plot.height() / (2.2 * metrics.height())));
    for (const double tick : m_g.y.ticks(most)) {
        const double y = m_g.yOf(tick);
        m_painter.setPen(QPen(m_palette.faint, 1));
        m_painter.drawLine(QPointF(m_g.plot.left(), y), QPointF(m_g.plot.right(), y));
        m_painter.setPen(m_palette.muted);
        m_painter.drawText(
            QRectF(0, y - metrics.height() / 2, m_g.plot.left() - kAxisGap, metrics.height()),
            Qt::AlignRight | Qt::AlignVCenter, formatMeasure(tick, measure));
    }
    m_painter.setPen(QPen(m_palette.border, 1));
    m_painter.drawLine(m_g.plot.bottomLeft(), m_g.plot.bottomRight());
    m_painter.drawLine(m_g.plot.topLeft(), m_g.plot.bottomLeft());
}

void SweepPainter::paintTimeAxis() {
    const QFontMetricsF metrics(m_painter.font());
    const double width = metrics.horizontalAdvance(QStringLiteral("0000 ms")) + 10;
    for (const double tick : m_g.x.ticks(std::max(2, static_cast<int>(m_g.plot.width() / width)))) {
        const double x = m_g.xOf(tick);
        m_painter.setPen(QPen(m_palette.faint, 1));
        m_painter.drawLine(QPointF(x, m_g.plot.top()), QPointF(x, m_g.plot.bottom()));
        m_painter.setPen(m_palette.muted);
        m_painter.drawText(QRectF(x - width / 2, m_g.plot.bottom() + 3, width, metrics.height()),
                           Qt::AlignCenter, formatTime(tick));
    }
}

// --- scatter
// --------------------------------------------------------------------------------------

QColor SweepPainter::pointColour(const SweepRow& row) const {
    return row.fits ? m_palette.category(0) : Palette::mix(m_palette.canvas, m_palette.muted, 0.45);
}

void SweepPainter::paintScatter() {
    paintTimeAxis();
    paintVertical(SweepMeasure::Memory);
    m_stamps ? stampPoints() : paintPoints();
    paintLimit();
    paintFront();
}

void SweepPainter::paintPoints() {
    m_painter.setPen(Qt::NoPen);
    for (const bool fits : {false, true})
        for (const int row : m_shown) {
            if (m_data.row(row).fits != fits) continue;
            m_painter.setBrush(pointColour(m_data.row(row)));
            const double radius = fits ? 2 : 1.4;
            m_painter.drawEllipse(m_g.pointOf(m_data, row), radius, radius);
        }
}

/// Squares with their corners off, straight into the pixels.
void SweepPainter::stampPoints() {
    const double ratio = m_stamps->devicePixelRatio();
    const int width = m_stamps->width(), height = m_stamps->height();
    auto* bits = reinterpret_cast<QRgb*>(m_stamps->bits());
    const qsizetype stride = m_stamps->bytesPerLine() / qsizetype(sizeof(QRgb));
    for (const bool fits : {false, true}) {
        const int half = std::max(1, static_cast<int>(std::lround((fits ? 1.6 : 1) * ratio)));
        for (const int row : m_shown) {
            if (m_data.row(row).fits != fits) continue;
            const QPointF at = m_g.pointOf(m_data, row) * ratio;
            const int x = static_cast<int>(at.x()), y = static_cast<int>(at.y());
            if (x < half || y < half || x >= width - half || y >= height - half) continue;
            const QRgb colour = pointColour(m_data.row(row)).rgb();
            for (int dy = -half; dy <= half; ++dy)
                for (int dx = -half; dx <= half; ++dx)
                    if (half == 1 || std::abs(dx) + std::abs(dy) < 2 * half)
                        bits[(y + dy) * stride + x + dx] = colour;
        }
    }
}

void SweepPainter::paintFront() {
    const std::vector<int> front = frontOf(m_data, m_shown);
    if (front.empty()) return;
    QPainterPath path(m_g.pointOf(m_data, front.front()));
    for (std::size_t i = 1; i < front.size(); ++i) {
        const QPointF next = m_g.pointOf(m_data, front[i]);
        path.lineTo(next.x(), path.currentPosition().y()); // nothing is known in between
        path.lineTo(next);
    }
    m_painter.setBrush(Qt::NoBrush);
    m_painter.setPen(QPen(m_palette.text, 1.4));
    m_painter.drawPath(path);
    for (const int row : front) {
        m_painter.setBrush(m_data.row(row).fits ? m_palette.category(0) : m_palette.canvas);
        m_painter.drawEllipse(m_g.pointOf(m_data, row), 3.6, 3.6);
    }
}

/// Where the memory of a device ends.
void SweepPainter::paintLimit() {
    const double limit = m_data.table().memoryLimit;
    if (limit <= 0 || limit < m_g.y.low() || limit > m_g.y.high()) return;
    const double y = m_g.yOf(limit);
    m_painter.setPen(QPen(m_palette.bad, 1.4, Qt::DashLine));
    m_painter.drawLine(QPointF(m_g.plot.left(), y), QPointF(m_g.plot.right(), y));
    const QString words = SweepModel::tr("limit %1").arg(formatBytes(limit));
    const QFontMetricsF metrics(m_painter.font());
    const QRectF place(m_g.plot.right() - metrics.horizontalAdvance(words) - 8,
                       y - metrics.height() - 3, metrics.horizontalAdvance(words) + 8,
                       metrics.height() + 2);
    m_painter.fillRect(place, Palette::mix(m_palette.canvas, m_palette.bad, 0.08));
    m_painter.setPen(m_palette.text);
    m_painter.drawText(place, Qt::AlignCenter, words);
}

// --- one setting
// ----------------------------------------------------------------------------------

/// Values under the plot, or left of it; those that do not fit are left out.
void SweepPainter::paintValues(const SweepAxis& axis, bool below) {
    const QFontMetricsF metrics(m_painter.font());
    const auto count = static_cast<int>(axis.values.size());
    const double room = below ? m_g.plot.width() / count : m_g.plot.height() / count;
    double needed = metrics.height();
    if (below)
        for (const std::string& value : axis.values)
            needed = std::max(needed, metrics.horizontalAdvance(text(value)) + 8);
    const int every = std::max(1, static_cast<int>(std::ceil(needed / room)));
    m_painter.setPen(m_palette.muted);
    for (int i = 0; i < count; i += every) {
        const QString words = text(axis.values[static_cast<std::size_t>(i)]);
        if (below) {
            const double x = m_g.plot.left() + (i + 0.5) * room;
            m_painter.drawText(
                QRectF(x - room * every / 2, m_g.plot.bottom() + 3, room * every, metrics.height()),
                Qt::AlignCenter, words);
        } else {
            const double y = m_g.plot.top() + (i + 0.5) * room;
            m_painter.drawText(
                QRectF(0, y - metrics.height() / 2, m_g.plot.left() - kAxisGap, metrics.height()),
                Qt::AlignRight | Qt::AlignVCenter, words);
        }
    }
    const QString title = text(titleOf(axis.parameter));
    if (below)
        m_painter.drawText(QRectF(m_g.plot.left(), m_g.plot.bottom() + metrics.height() + kAxisGap,
                                  m_g.plot.width(), metrics.height() + 2),
                           Qt::AlignRight | Qt::AlignVCenter, title);
    else
        m_painter.drawText(QRectF(kAxisGap, m_g.plot.bottom() + metrics.height() + kAxisGap,
                                  m_g.plot.width(), metrics.height() + 2),
                           Qt::AlignLeft | Qt::AlignVCenter, SweepModel::tr("↑ %1").arg(title));
}

void SweepPainter::paintLine() {
    paintVertical(m_g.measure);
    paintValues(m_data.axes().front(), true);
    if (m_g.measure == SweepMeasure::Memory) paintLimit();
    std::vector<int> rows = m_shown;
    std::ranges::sort(rows);
    QPainterPath path;
    int before = -2; // a gap where there is no plan
    for (const int row : rows) {
        if (!m_data.row(row).error.empty()) continue;
        const QPointF at = m_g.pointOf(m_data, row);
        before + 1 == row ? path.lineTo(at) : path.moveTo(at);
        before = row;
    }
    m_painter.setBrush(Qt::NoBrush);
    m_painter.setPen(QPen(m_palette.category(0), 2));
    m_painter.drawPath(path);
    for (const int row : rows) {
        const QPointF at = m_g.pointOf(m_data, row);
        if (!m_data.row(row).error.empty()) {
            m_painter.setPen(QPen(m_palette.bad, 1.6));
            cross(m_painter, at, 3.5);
            continue;
        }
        m_painter.setPen(QPen(m_palette.canvas, 1));
        m_painter.setBrush(m_palette.category(0));
        m_painter.drawEllipse(at, 3.8, 3.8);
    }
}

// --- two settings
// ---------------------------------------------------------------------------------

void SweepPainter::paintMap() {
    const QFontMetricsF metrics(m_painter.font());
    m_painter.setRenderHint(QPainter::Antialiasing, false);
    for (const int row : m_shown) {
        const SweepRow& point = m_data.row(row);
        QRectF cell = m_g.rectOf(m_data, row);
        if (std::min(cell.width(), cell.height()) > 6) cell.adjust(0, 0, -1, -1);
        if (!point.error.empty()) {
            m_painter.fillRect(cell, m_palette.frame);
            m_painter.fillRect(cell, QBrush(m_palette.faint, Qt::BDiagPattern));
            m_painter.setPen(QPen(m_palette.bad, 1.4));
            if (std::min(cell.width(), cell.height()) > 10) cross(m_painter, cell.center(), 3);
            continue;
        }
        const double value = measureOf(point, m_g.measure);
        const QColor ground = m_palette.scale(m_g.heat.fraction(value));
        m_painter.fillRect(cell, ground);
        if (cell.width() < kSmallestCell || cell.height() < metrics.height() + 2) continue;
        m_painter.setPen(m_palette.textOn(ground));
        const QString words = formatMeasure(value, m_g.measure);
        if (metrics.horizontalAdvance(words) < cell.width() - 2)
            m_painter.drawText(cell, Qt::AlignCenter, words);
    }
    m_painter.setRenderHint(QPainter::Antialiasing);
    paintValues(m_data.axes().back(), true);
    paintValues(m_data.axes().front(), false);
    paintColours();
}

void SweepPainter::paintColours() {
    const QFontMetricsF metrics(m_painter.font());
    const QRectF bar(m_g.plot.right() + 14, m_g.plot.top(), 12, m_g.plot.height());
    for (int i = 0; i < 64; ++i)
        m_painter.fillRect(QRectF(bar.left(), bar.bottom() - bar.height() * (i + 1) / 64, 12,
                                  bar.height() / 64 + 1),
                           m_palette.scale((i + 0.5) / 64));
    m_painter.setPen(m_palette.muted);
    for (const double tick : m_g.heat.ticks(std::max(2, static_cast<int>(bar.height() / 50)))) {
        const double y = bar.bottom() - bar.height() * m_g.heat.fraction(tick);
        m_painter.drawText(QRectF(bar.right() + 4, y - metrics.height() / 2, 66, metrics.height()),
                           Qt::AlignLeft | Qt::AlignVCenter, formatMeasure(tick, m_g.measure));
    }
}

// --- marks
// ----------------------------------------------------------------------------------------

void SweepPainter::paintMarks(const SweepPaintState& state) {
    m_painter.setRenderHint(QPainter::Antialiasing);
    m_painter.setBrush(Qt::NoBrush);
    const auto mark = [&](int row, const QColor& colour, double width, double around) {
        if (row < 0 || row >= m_data.rows()) return;
        const QRectF where = m_g.rectOf(m_data, row).adjusted(-around, -around, around, around);
        m_painter.setPen(QPen(colour, width));
        if (m_g.shape == SweepShape::Map)
            m_painter.drawRect(where.adjusted(around, around, -around - 1, -around - 1));
        else
            m_painter.drawEllipse(where);
    };
    mark(state.hovered, m_palette.text, 1.2, 1.5);
    mark(state.selected, m_palette.canvas, 4.5, 3);
    mark(state.selected, m_palette.accent, 2.4, 3);
    if (state.focus) mark(state.selected, m_palette.accent, 1, 6);
}

} // namespace shardlens
