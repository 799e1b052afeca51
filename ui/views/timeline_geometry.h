// SPDX-License-Identifier: Apache-2.0
// Where everything of a timeline is on the page: names at the left, bars in the middle under the
// time axis, idle times at the right, memory under the bars on the same axis, the key at the
// bottom. Plain values, so that the widget, the exported picture and the tests agree.
#pragma once

#include "ui/views/timeline_picture.h"

#include <QFontMetricsF>
#include <QRectF>

namespace shardlens {

/// What is looked at.
struct TimelineWindow {
    double begin = 0, end = 1; ///< in the schedule's unit
    double scroll = 0;         ///< pixels of rows above the visible ones
};

struct TimelineGeometry {
    QRectF names, axis, plot, idle, memory, keys; ///< of the page
    double begin = 0, perPixel = 1;               ///< time at plot.left(), and of a pixel
    double rowHeight = 0, scroll = 0;
    std::size_t rows = 0;

    double timeAt(double x) const { return begin + (x - plot.left()) * perPixel; }
    double xAt(double time) const { return plot.left() + (time - begin) / perPixel; }
    double end() const { return timeAt(plot.right()); }
    QRectF row(std::size_t index) const;
    int rowAt(double y) const; ///< -1: none
    /// Of a stream: compute is the tall one, others are below it.
    QRectF lane(const TimelinePicture& picture, std::size_t lane) const;
    /// Of a bar; joint ones have half the height each.
    QRectF bar(const TimelinePicture& picture, std::size_t lane, schedule::TaskId id) const;
    double contentHeight() const { return rowHeight * static_cast<double>(rows); }
};

/// @param fitRows all rows are on the page, however low they get; otherwise they scroll
TimelineGeometry layOutTimeline(const TimelinePicture& picture, QSizeF page,
                                const QFontMetricsF& metrics, const TimelineWindow& window,
                                bool fitRows = false);

struct TimeTick {
    double time = 0;
    QString text;
};
/// Ticks at 1, 2 or 5 times a power of ten, at least `leastPixels` apart.
struct TimeAxis {
    QString unit; ///< "ms"; empty for plain numbers
    std::vector<TimeTick> ticks;
};
TimeAxis timeAxis(double begin, double end, double perPixel, double leastPixels,
                  double secondsPerUnit);
/// A time, a duration or a memory of the schedule, as people read it.
QString timelineNumber(double value, double secondsPerUnit);

} // namespace shardlens
