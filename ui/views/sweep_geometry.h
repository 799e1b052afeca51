// SPDX-License-Identifier: Apache-2.0
// Where the points of a sweep lie in its chart. All equal-stage plans are a scatter of memory over
// time; one setting is a line over its values; two are a map of cells. Painter, hit test, keyboard,
// screen readers and tests ask here.
#pragma once

#include "ui/models/sweep_model.h"
#include "ui/views/chart_scale.h"

#include <QFontMetricsF>
#include <QRectF>

namespace shardlens {

enum class SweepShape { Scatter, Line, Map };
SweepShape shapeOf(const SweepData& data);

struct SweepGeometry {
    SweepShape shape = SweepShape::Scatter;
    SweepMeasure measure = SweepMeasure::Time; ///< of a line or a map
    QRectF plot;
    ChartScale x, y;           ///< scatter: seconds and bytes; line: y is the measure
    ChartScale heat;           ///< map: the measure, as a share of the colours
    int columns = 1, rows = 1; ///< values of the settings of line and map
    double headHeight = 0;     ///< of what is written above the plot

    /// The middle of a point's mark. One without a plan lies at the foot of a line.
    QPointF pointOf(const SweepData& data, int row) const;
    /// What a point covers: a mark, or its cell.
    QRectF rectOf(const SweepData& data, int row) const;
    double xOf(double seconds) const { return plot.left() + plot.width() * x.fraction(seconds); }
    double yOf(double value) const { return plot.bottom() - plot.height() * y.fraction(value); }
};

/// @param shown the rows that scales span
SweepGeometry layOutSweep(const SweepData& data, const std::vector<int>& shown,
                          SweepMeasure measure, QSizeF size, const QFontMetricsF& metrics);

/// Shown rows that have a plan and none quicker and leaner, quickest first.
std::vector<int> frontOf(const SweepData& data, const std::vector<int>& shown);

} // namespace shardlens
