// SPDX-License-Identifier: Apache-2.0
// See solver_chart.h. Lines are steps: a value holds until the next is known. The bound is dashed
// and both are named at their ends, so that colour is not needed to tell them apart.
#include "ui/views/solver_chart.h"

#include "ui/format.h"
#include "ui/theme.h"

#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <cmath>

namespace shardlens {

namespace {

double valueOf(const solve::Progress& point, bool bound) {
    return bound ? point.bound : point.incumbent;
}

} // namespace

SolverChart::SolverChart(QWidget* parent) : QWidget(parent) {
    setObjectName(QStringLiteral("solverChart"));
    setAccessibleName(tr("Best cost and bound over time"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void SolverChart::setPoints(std::vector<solve::Progress> points,
                            std::function<QString(double)> format) {
    m_points = std::move(points);
    m_format = std::move(format);
    QString spoken;
    if (!m_points.empty()) {
        const auto& last = m_points.back();
        if (std::isfinite(last.incumbent)) spoken = tr("best %1").arg(m_format(last.incumbent));
        if (std::isfinite(last.bound)) {
            if (!spoken.isEmpty()) spoken += QStringLiteral(", ");
            spoken += tr("bound %1").arg(m_format(last.bound));
        }
        spoken += tr(" after %1").arg(formatTime(last.seconds));
    }
    setAccessibleDescription(spoken);
    setToolTip(spoken);
    update();
}

QColor SolverChart::ink(const Palette& palette, bool bound) {
    return bound ? palette.text : palette.accent;
}

SolverChart::Range SolverChart::range() const {
    double best = solve::kInfinite, bound = -solve::kInfinite;
    for (const auto& point : m_points) {
        best = std::min(best, point.incumbent);
        if (std::isfinite(point.bound)) bound = std::max(bound, point.bound);
    }
    if (!std::isfinite(best)) best = bound;
    if (!std::isfinite(bound)) bound = best;
    if (!std::isfinite(best)) return {};
    const double span = std::max({best - bound, 0.01 * std::abs(best), 1e-12});
    return {bound - 0.7 * span, best + 1.3 * span};
}

QRectF SolverChart::plot() const {
    const QFontMetricsF metrics(font());
    return QRectF(rect()).adjusted(6, metrics.height() + 6, -8, -metrics.height() - 8);
}

void SolverChart::paintAxes(QPainter& painter, const QRectF& plot, const Range& range) const {
    const Palette& palette = Palette::of(this);
    const double seconds = m_points.empty() ? 0 : m_points.back().seconds;
    for (int i = 0; i <= 3; ++i) {
        const double y = plot.bottom() - plot.height() * i / 3.0;
        painter.setPen(QPen(i == 0 ? palette.border : palette.faint, 1));
        painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
        if (m_points.empty() || i == 0) continue;
        painter.setPen(palette.muted);
        painter.drawText(QPointF(plot.left() + 2, y - 3),
                         m_format(range.low + (range.high - range.low) * i / 3.0));
    }
    painter.setPen(palette.muted);
    const QRectF under(plot.left(), plot.bottom() + 3, plot.width(), height() - plot.bottom() - 3);
    painter.drawText(under, Qt::AlignLeft | Qt::AlignTop, QStringLiteral("0"));
    painter.drawText(under, Qt::AlignRight | Qt::AlignTop, formatTime(seconds));
}

void SolverChart::paintLine(QPainter& painter, const QRectF& plot, const Range& range,
                            bool bound) const {
    const Palette& palette = Palette::of(this);
    const double seconds = std::max(m_points.back().seconds, 1e-9);
    const auto x = [&](double at) { return plot.left() + plot.width() * at / seconds; };
    const auto y = [&](double value) {
        const double share = (value - range.low) / (range.high - range.low);
        return plot.bottom() - plot.height() * std::clamp(share, 0.0, 1.0);
    };
    QPainterPath path;
    double last = 0;
    bool begun = false;
    for (const auto& point : m_points) {
        const double value = valueOf(point, bound);
        if (!std::isfinite(value)) continue;
        if (begun) path.lineTo(x(point.seconds), y(last));
        begun ? path.lineTo(x(point.seconds), y(value))
              : path.moveTo(m_points.size() == 1 ? plot.left() : x(point.seconds), y(value));
        last = value;
        begun = true;
    }
    if (!begun) return;
    path.lineTo(plot.right(), y(last));
    painter.setPen(QPen(ink(palette, bound), 2, bound ? Qt::DashLine : Qt::SolidLine));
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(path);
    const QString name = (bound ? tr("bound %1") : tr("best %1")).arg(m_format(last));
    const double high = QFontMetricsF(font()).height();
    const QRectF place(plot.left(), bound ? y(last) + 2 : y(last) - high - 2, plot.width() - 2,
                       high);
    painter.setPen(palette.text);
    painter.drawText(place, Qt::AlignRight | Qt::AlignVCenter, name);
}

void SolverChart::paintEvent(QPaintEvent*) {
    const Palette& palette = Palette::of(this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect(), palette.canvas);
    const QRectF area = plot();
    const Range shown = range();
    paintAxes(painter, area, shown);
    if (m_points.empty()) {
        painter.setPen(palette.muted);
        painter.drawText(area, Qt::AlignCenter, tr("Nothing solved yet"));
        return;
    }
    paintLine(painter, area, shown, true);
    paintLine(painter, area, shown, false);
}

} // namespace shardlens
