// SPDX-License-Identifier: Apache-2.0
// What is around and above the rows of a timeline: time axis, idle times by cause, memory, key,
// selection with its dependencies, cursor.
#include "ui/format.h"
#include "ui/views/timeline_painter.h"

#include <QPainterPath>

#include <algorithm>
#include <cmath>

namespace shardlens {

using namespace schedule;

namespace {

constexpr std::size_t kMostArrows = 64; ///< of a barrier there may be thousands

} // namespace

void TimelinePainter::axis() {
    const QRectF& place = m_geometry.axis;
    const double widest = m_metrics.horizontalAdvance(QStringLiteral("000000.0")) + 24;
    const TimeAxis axis = timeAxis(m_geometry.begin, m_geometry.end(), m_geometry.perPixel, widest,
                                   m_picture.style().secondsPerUnit);
    m_painter.setPen(m_palette.muted);
    const QString title =
        axis.unit.isEmpty() ? timelineText("time") : timelineText("time, %1").arg(axis.unit);
    m_painter.drawText(QRectF(0, place.top(), place.left() - 6, place.height() - 4),
                       Qt::AlignRight | Qt::AlignVCenter, title);
    for (const TimeTick& tick : axis.ticks) {
        const double x = m_geometry.xAt(tick.time);
        const double half = m_metrics.horizontalAdvance(tick.text) / 2;
        m_painter.setPen(m_palette.border);
        m_painter.drawLine(QPointF(x, place.bottom() - 5), QPointF(x, place.bottom() - 1));
        if (m_geometry.memory.height() > 0) {
            m_painter.setPen(m_palette.faint);
            m_painter.drawLine(QPointF(x, m_geometry.memory.top()),
                               QPointF(x, m_geometry.memory.bottom()));
        }
        const double left = std::clamp(x - half, place.left(), place.right() - 2 * half);
        m_painter.setPen(m_palette.muted);
        m_painter.drawText(QPointF(left, place.bottom() - 7 - m_metrics.descent()), tick.text);
    }
    m_painter.setPen(m_palette.border);
    m_painter.drawLine(place.bottomLeft(), place.bottomRight());
}

void TimelinePainter::idleBars() {
    const QRectF& area = m_geometry.idle;
    const double makespan = m_picture.makespan();
    if (area.width() < 30 || !(makespan > 0)) return;
    const auto& devices = m_picture.schedule().account.devices;
    double most = 0;
    for (const DeviceUse& use : devices) most = std::max(most, makespan - use.busy);
    m_painter.setPen(m_palette.muted);
    m_painter.drawText(QRectF(area.left(), 0, area.width(), m_geometry.axis.height() - 4),
                       Qt::AlignLeft | Qt::AlignVCenter, timelineText("idle, by cause"));
    const double words = m_metrics.horizontalAdvance(QStringLiteral("100 % ")) + 4;
    const double room = std::max(10.0, area.width() - words);
    m_painter.save();
    m_painter.setClipRect(area);
    for (std::size_t r = 0; r < m_geometry.rows; ++r) {
        const int device = m_picture.rows()[r].device;
        const QRectF row = m_geometry.row(r);
        if (device < 0 || row.bottom() < area.top() || row.top() > area.bottom()) continue;
        const DeviceUse& use = devices[static_cast<std::size_t>(device)];
        const double height = std::clamp(row.height() - 6, 1.0, 18.0);
        const double top = row.center().y() - 1.5 - height / 2;
        double left = area.left(), idle = 0;
        for (std::size_t c = 0; c < kCauses; ++c) {
            if (!(use.idle[c] > 0) || !(most > 0)) continue;
            const auto cause = static_cast<Cause>(c);
            const double width = use.idle[c] / most * room;
            const QRectF part(left, top, width, height);
            const QColor colour = causeColour(m_palette, cause);
            m_painter.fillRect(part, Palette::mix(m_palette.canvas, colour, 0.4));
            fillHatched(m_painter, part, colour, causeHatch(cause));
            left += width;
            idle += use.idle[c];
        }
        if (row.height() < m_metrics.height() - 3) continue;
        m_painter.setPen(m_palette.text);
        m_painter.drawText(QRectF(left + 4, row.top(), words, row.height() - 3),
                           Qt::AlignLeft | Qt::AlignVCenter,
                           QStringLiteral("%1 %").arg(std::lround(100 * idle / makespan)));
    }
    m_painter.restore();
}

void TimelinePainter::memory() {
    const QRectF& area = m_geometry.memory;
    if (area.height() < 12) return;
    const auto& program = m_picture.schedule().program;
    const auto width = static_cast<std::size_t>(std::ceil(area.width()));
    std::vector<float> columns(width);
    m_picture.memory(m_state.device, m_geometry.begin, m_geometry.perPixel, columns);
    const double capacity = m_state.device >= 0
                                ? program.capacity[static_cast<std::size_t>(m_state.device)]
                                : *std::ranges::min_element(program.capacity);
    const double peak = m_picture.peakMemory();
    const double top = std::max(1e-300, std::isfinite(capacity) ? std::max(capacity, peak) : peak);
    const double scale = (area.height() - 4) / top;
    QPolygonF outline{area.bottomLeft()};
    for (std::size_t x = 0; x < width; ++x) {
        const double y = area.bottom() - scale * static_cast<double>(columns[x]);
        const double left = area.left() + static_cast<double>(x);
        if (outline.size() > 1 && outline.back().y() == y) {
            outline.back().setX(left + 1); // a level stretch is one edge
            if (outline.size() > 2 && outline[outline.size() - 2].y() == y) continue;
        }
        outline << QPointF(left, y) << QPointF(left + 1, y);
    }
    outline << area.bottomRight();
    m_painter.setPen(Qt::NoPen);
    m_painter.setBrush(Palette::mix(m_palette.canvas, m_palette.accent, 0.35));
    m_painter.drawPolygon(outline);
    m_painter.setBrush(Qt::NoBrush);
    m_painter.setPen(m_palette.border);
    m_painter.drawLine(area.bottomLeft(), area.bottomRight());
    const auto level = [&](double value, const QColor& colour, Qt::PenStyle style) {
        const double y = area.bottom() - scale * value;
        m_painter.setPen(QPen(colour, 1, style));
        m_painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    };
    const double own = m_state.device < 0
                           ? peak
                           : m_picture.schedule()
                                 .account.devices[static_cast<std::size_t>(m_state.device)]
                                 .peakMemory;
    level(own, m_palette.muted, Qt::DotLine);
    if (std::isfinite(capacity)) level(capacity, m_palette.bad, Qt::DashLine);
    m_painter.setPen(m_palette.text);
    const QString whose = m_state.device >= 0 ? timelineText("device %1").arg(m_state.device)
                                              : timelineText("highest");
    const double lines = area.height() > 2.6 * m_metrics.height() ? 2 : 1;
    const QRectF place(0, area.center().y() - lines * m_metrics.height() / 2, area.left() - 6,
                       lines * m_metrics.height());
    m_painter.drawText(place, Qt::AlignRight | Qt::AlignVCenter,
                       lines > 1 ? timelineText("memory\n%1").arg(whose) : timelineText("memory"));
    m_painter.setPen(m_palette.muted);
    m_painter.drawText(
        QRectF(m_geometry.idle.left(), area.top() - 2, m_geometry.idle.width(), m_metrics.height()),
        Qt::AlignLeft | Qt::AlignVCenter, timelineText("peak %1").arg(timelineNumber(own, 0)));
}

void TimelinePainter::keys() {
    const QRectF& area = m_geometry.keys;
    if (area.height() < 8) return;
    double left = area.left();
    const double box = m_metrics.ascent();
    for (const TimelineKey& key : m_picture.keys()) {
        const double words = m_metrics.horizontalAdvance(key.text);
        if (left + box + words + 8 > area.right()) break;
        const QRectF square(left, area.center().y() - box / 2, box, box);
        if (key.hatch == Qt::SolidPattern) {
            m_painter.fillRect(square, key.colour);
        } else {
            m_painter.fillRect(square, Palette::mix(m_palette.canvas, key.colour, 0.25));
            fillHatched(m_painter, square, key.colour, key.hatch);
        }
        m_painter.setPen(m_palette.text);
        m_painter.drawText(QRectF(left + box + 5, area.top(), words + 2, area.height()),
                           Qt::AlignLeft | Qt::AlignVCenter, key.text);
        left += box + words + 20;
    }
}

void TimelinePainter::outline(TaskId id, const QColor& colour, double width) {
    outlineIn(m_picture.laneOf(id), id, colour, width);
}

void TimelinePainter::outlineIn(int lane, TaskId id, const QColor& colour, double width) {
    if (lane < 0) return;
    QRectF bar = m_geometry.bar(m_picture, static_cast<std::size_t>(lane), id);
    bar.setLeft(std::max(bar.left(), m_geometry.plot.left() - 10));
    bar.setRight(std::clamp(bar.right(), bar.left() + 2, m_geometry.plot.right() + 10));
    m_painter.setPen(QPen(colour, width));
    m_painter.setBrush(Qt::NoBrush);
    m_painter.drawRect(bar.adjusted(0, 0, -1, 0));
}

void TimelinePainter::arrow(TaskId from, TaskId to) {
    const int first = m_picture.laneOf(from), last = m_picture.laneOf(to);
    if (first < 0 || last < 0) return;
    const QRectF a = m_geometry.bar(m_picture, static_cast<std::size_t>(first), from);
    const QRectF b = m_geometry.bar(m_picture, static_cast<std::size_t>(last), to);
    const QPointF tail(a.right() - 1, a.center().y()), head(b.left(), b.center().y());
    if (std::max(tail.x(), head.x()) < m_geometry.plot.left() - 2000 ||
        std::min(tail.x(), head.x()) > m_geometry.plot.right() + 2000) {
        return;
    }
    const double bend = std::max(12.0, std::abs(head.x() - tail.x()) / 2);
    // Along one row the curve leaves it, so that the bars between stay readable.
    const double rise = std::abs(head.y() - tail.y()) < 1 ? m_geometry.rowHeight : 0;
    QPainterPath path(tail);
    path.cubicTo(tail + QPointF(bend, -rise), head - QPointF(bend, rise), head);
    path.moveTo(head + QPointF(-6, -4));
    path.lineTo(head);
    path.lineTo(head + QPointF(-6, 4));
    const QPen line = m_painter.pen();
    m_painter.setBrush(Qt::NoBrush);
    m_painter.setPen(QPen(m_palette.canvas, 5)); // a halo, whatever the bars' colours
    m_painter.drawPath(path);
    m_painter.setPen(line);
    m_painter.drawPath(path);
}

void TimelinePainter::dependencies(TaskId id) {
    const auto& program = m_picture.schedule().program;
    m_painter.setRenderHint(QPainter::Antialiasing);
    std::size_t drawn = 0;
    for (const Dependency& dependency : program.dependenciesOf(id)) {
        if (++drawn > kMostArrows) break;
        m_painter.setPen(QPen(m_palette.accent, 1.6));
        arrow(dependency.task, id);
        outline(dependency.task, m_palette.accent, 1.6);
    }
    drawn = 0;
    for (const Dependency& dependency : program.followersOf(id)) {
        if (++drawn > kMostArrows) break;
        m_painter.setPen(QPen(m_palette.pin, 1.6, Qt::DashLine));
        arrow(id, dependency.task);
        outline(dependency.task, m_palette.pin, 1.6);
    }
}

void TimelinePainter::marks() {
    m_painter.save();
    m_painter.setClipRect(m_geometry.plot.adjusted(-1, -1, 1, 1));
    if (m_state.time) {
        for (std::size_t l = 0; l < m_picture.lanes().size(); ++l) {
            if (!m_geometry.plot.intersects(m_geometry.lane(m_picture, l))) continue;
            for (const bool lower : {false, true}) {
                const TaskId running = m_picture.taskAt(m_picture.lanes()[l], *m_state.time, lower);
                if (running == kNoTask) continue;
                outlineIn(static_cast<int>(l), running, m_palette.text, 2);
            }
        }
    }
    if (m_state.hovered != kNoTask) outline(m_state.hovered, m_palette.text, 1);
    if (m_state.selected != kNoTask) {
        dependencies(m_state.selected);
        m_painter.setRenderHint(QPainter::Antialiasing, false);
        outline(m_state.selected, m_palette.canvas, 5);
        outline(m_state.selected, m_palette.text, 3);
    }
    if (m_state.dragged) {
        const double left = m_geometry.xAt(m_state.dragged->first);
        const double right = m_geometry.xAt(m_state.dragged->second);
        QColor veil = m_palette.accent;
        veil.setAlphaF(0.25F);
        m_painter.fillRect(
            QRectF(left, m_geometry.plot.top(), right - left, m_geometry.plot.height()), veil);
    }
    m_painter.restore();
}

void TimelinePainter::cursor() {
    if (!m_state.time || *m_state.time < m_geometry.begin || *m_state.time > m_geometry.end()) {
        return;
    }
    const double x = m_geometry.xAt(*m_state.time);
    const double bottom =
        m_geometry.memory.height() > 0 ? m_geometry.memory.bottom() : m_geometry.plot.bottom();
    m_painter.setPen(QPen(m_palette.bad, 1.5));
    m_painter.drawLine(QPointF(x, m_geometry.axis.bottom() - 4), QPointF(x, bottom));
    const QString words = timelineNumber(*m_state.time, m_picture.style().secondsPerUnit);
    const double width = m_metrics.horizontalAdvance(words) + 8;
    const double left =
        std::clamp(x - width / 2, m_geometry.axis.left(), m_geometry.axis.right() - width);
    const QRectF flag(left, m_geometry.axis.top() + 1, width, m_metrics.height() + 2);
    m_painter.fillRect(flag, m_palette.bad);
    m_painter.setPen(m_palette.textOn(m_palette.bad));
    m_painter.drawText(flag, Qt::AlignCenter, words);
}

} // namespace shardlens
