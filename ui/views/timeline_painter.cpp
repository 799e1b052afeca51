// SPDX-License-Identifier: Apache-2.0
// Rows of a timeline: names, bars with labels, idle times. What is around and above them is in
// timeline_marks.cpp.
#include "ui/views/timeline_painter.h"

#include "ui/format.h"

#include <algorithm>
#include <cmath>

namespace shardlens {

using namespace schedule;

namespace {

constexpr double kLeastBar = 3; ///< pixels; narrower bars (on average) become a strip

} // namespace

QString barLabel(const Task& task, double width, double digit) {
    const QString pass = text(passText(task.pass));
    QString number = QString::number(task.microBatch);
    if (task.slice > 0) number += QStringLiteral(".%1").arg(task.slice);
    const double room = width - 2;
    if (digit * static_cast<double>(pass.size() + number.size()) + digit / 2 <= room) {
        return pass + QChar(0x2009) + number;
    }
    if (digit * static_cast<double>(number.size()) <= room) return number;
    return {};
}

TimelinePainter::TimelinePainter(const TimelinePicture& picture, const TimelineGeometry& geometry,
                                 const TimelinePaintState& state, QPainter& painter)
    : m_picture(picture), m_geometry(geometry), m_state(state), m_painter(painter),
      m_palette(picture.palette()), m_metrics(painter.font()),
      m_digit(m_metrics.horizontalAdvance(u'0')) {
}

void TimelinePainter::paint() {
    rows();
    names();
    axis();
    idleBars();
    memory();
    keys();
    marks();
    cursor();
}

void TimelinePainter::rows() {
    m_painter.save();
    m_painter.setClipRect(m_geometry.plot);
    for (std::size_t l = 0; l < m_picture.lanes().size(); ++l) lane(l);
    m_painter.restore();
}

void TimelinePainter::names() {
    m_painter.save();
    m_painter.setClipRect(m_geometry.names);
    const double every = std::ceil((m_metrics.height() - 4) / m_geometry.rowHeight);
    const auto step = static_cast<std::size_t>(std::max(1.0, every));
    for (std::size_t r = 0; r < m_geometry.rows; r += step) {
        const QRectF row = m_geometry.row(r);
        if (row.bottom() < m_geometry.plot.top() || row.top() > m_geometry.plot.bottom()) continue;
        const bool chosen =
            m_picture.rows()[r].device >= 0 && m_picture.rows()[r].device == m_state.device;
        const QRectF place(m_geometry.names.left() + 6, row.center().y() - m_metrics.height() / 2,
                           m_geometry.names.width() - 12, m_metrics.height());
        m_painter.setPen(chosen ? m_palette.accent : m_palette.text);
        m_painter.drawText(place, Qt::AlignRight | Qt::AlignVCenter, m_picture.rows()[r].name);
        if (chosen) {
            m_painter.fillRect(QRectF(m_geometry.names.left() + 2, row.top(), 3, row.height() - 3),
                               m_palette.accent);
        }
    }
    m_painter.restore();
}

void TimelinePainter::lane(std::size_t index) {
    const TimelineLane& lane = m_picture.lanes()[index];
    const QRectF place = m_geometry.lane(m_picture, index);
    if (place.bottom() < m_geometry.plot.top() || place.top() > m_geometry.plot.bottom()) return;
    const auto range = m_picture.seen(lane, m_geometry.begin, m_geometry.end());
    if (static_cast<double>(range.count()) * kLeastBar > place.width()) {
        return strip(index, place);
    }
    if (lane.compute) {
        gaps(place, m_picture.rows()[lane.row].device);
    } else {
        m_painter.fillRect(place, Palette::mix(m_palette.canvas, m_palette.faint, 0.35));
    }
    bars(index, range);
}

void TimelinePainter::gaps(const QRectF& place, int device) {
    const auto all = m_picture.idle(device);
    auto gap = std::ranges::upper_bound(all, m_geometry.begin, {}, &Idle::end);
    for (; gap != all.end() && gap->begin < m_geometry.end(); ++gap) {
        const double left = std::max(m_geometry.xAt(gap->begin), place.left() - 2);
        const double right = std::min(m_geometry.xAt(gap->end), place.right() + 2);
        const QRectF area(left, place.top(), right - left, place.height());
        m_painter.fillRect(area, causeTint(m_palette, gap->cause));
        if (area.width() < 5 || area.height() < 5) continue;
        const QColor line = Palette::mix(m_palette.canvas, causeColour(m_palette, gap->cause), 0.5);
        fillHatched(m_painter, area, line, causeHatch(gap->cause));
    }
}

void TimelinePainter::bars(std::size_t index, TimelinePicture::Range range) {
    const TimelineLane& lane = m_picture.lanes()[index];
    const double labelled = m_metrics.ascent() * 0.85; // lower bars have no label
    for (std::size_t i = range.first; i < range.last; ++i) {
        const TaskId id = lane.order[i];
        QRectF bar = m_geometry.bar(m_picture, index, id);
        const double left = std::max(bar.left(), m_geometry.plot.left() - 4);
        const double right = std::min(bar.right(), m_geometry.plot.right() + 4);
        // A hairline between neighbours, where it can be afforded.
        bar = QRectF(left, bar.top(), right - left - (right - left > 4 ? 1 : 0), bar.height());
        const QRgb colour = m_picture.colourOf(id);
        m_painter.fillRect(bar, QColor(colour));
        if (m_picture.isUpperHalf(id) && bar.height() > 6) {
            m_painter.fillRect(QRectF(bar.left(), bar.bottom() - 1, bar.width(), 1),
                               m_palette.canvas);
        }
        if (bar.height() >= labelled && bar.width() > m_digit + 4) label(id, bar, colour);
    }
}

void TimelinePainter::label(TaskId id, const QRectF& bar, QRgb colour) {
    const QString words = barLabel(m_picture.task(id), bar.width(), m_digit);
    if (words.isEmpty()) return;
    m_painter.setPen(m_palette.textOn(QColor(colour)));
    const double width = m_metrics.horizontalAdvance(words);
    m_painter.drawText(QPointF(bar.center().x() - width / 2,
                               bar.center().y() + (m_metrics.ascent() - m_metrics.descent()) / 2),
                       words);
}

void TimelinePainter::strip(std::size_t index, const QRectF& place) {
    const auto width = static_cast<int>(std::ceil(place.width()));
    QImage columns(width, 1, QImage::Format_RGB32);
    m_picture.strip(
        m_picture.lanes()[index], m_geometry.begin, m_geometry.perPixel,
        std::span(reinterpret_cast<QRgb*>(columns.scanLine(0)), static_cast<std::size_t>(width)));
    m_painter.drawImage(QRectF(place.left(), place.top(), width, place.height()), columns,
                        QRectF(0, 0, width, 1));
}

} // namespace shardlens
