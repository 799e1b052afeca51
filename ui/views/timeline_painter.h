// SPDX-License-Identifier: Apache-2.0
// Paints a timeline picture with a geometry into any painter: the widget's, an image's, an SVG's.
// Where bars are at least a few pixels wide they are drawn one by one with labels; elsewhere a lane
// is one strip of pixel columns from the levels of detail, so that a frame costs pixels, not bars.
#pragma once

#include "ui/views/timeline_geometry.h"

#include <QPainter>

#include <limits>
#include <optional>

namespace shardlens {

struct TimelinePaintState {
    schedule::TaskId selected = schedule::kNoTask, hovered = schedule::kNoTask;
    int device = -1;                                  ///< whose memory is shown; -1: the highest
    std::optional<double> time;                       ///< of the cursor
    std::optional<std::pair<double, double>> dragged; ///< times of the range being chosen
    bool focused = false;
};

class TimelinePainter {
public:
    TimelinePainter(const TimelinePicture& picture, const TimelineGeometry& geometry,
                    const TimelinePaintState& state, QPainter& painter);

    void paint();

private:
    // timeline_painter.cpp: rows
    void rows();
    void names();
    void lane(std::size_t index);
    void gaps(const QRectF& place, int device);
    void bars(std::size_t index, TimelinePicture::Range range);
    void label(schedule::TaskId id, const QRectF& bar, QRgb colour);
    void strip(std::size_t index, const QRectF& place);
    // timeline_marks.cpp: everything around and above them
    void axis();
    void idleBars();
    void memory();
    void keys();
    void marks();
    void dependencies(schedule::TaskId id);
    void arrow(schedule::TaskId from, schedule::TaskId to);
    void outline(schedule::TaskId id, const QColor& colour, double width);
    void outlineIn(int lane, schedule::TaskId id, const QColor& colour, double width);
    void cursor();

    const TimelinePicture& m_picture;
    const TimelineGeometry& m_geometry;
    const TimelinePaintState& m_state;
    QPainter& m_painter;
    const Palette& m_palette;
    QFontMetricsF m_metrics;
    double m_digit = 8; ///< width
};

/// "F 3", "3" or nothing, whatever fits into a bar.
QString barLabel(const schedule::Task& task, double width, double digit);

} // namespace shardlens
