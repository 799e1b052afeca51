// SPDX-License-Identifier: Apache-2.0
// See sweep_geometry.h.
#include "ui/views/sweep_geometry.h"

#include "core/units.h"

#include <algorithm>

namespace shardlens {

namespace {

constexpr double kMark = 7; ///< width of a mark

double unitOf(SweepMeasure measure) {
    return measure == SweepMeasure::Memory ? kGiB : measure == SweepMeasure::Bubble ? 0.01 : 1;
}

std::vector<double> valuesOf(const SweepData& data, const std::vector<int>& shown,
                             SweepMeasure measure) {
    std::vector<double> values;
    for (const int row : shown)
        if (data.row(row).error.empty()) values.push_back(measureOf(data.row(row), measure));
    return values;
}

double widestValue(const SweepData& data, const SweepAxis& axis, const QFontMetricsF& metrics) {
    double width = metrics.horizontalAdvance(data.title(0));
    for (const std::string& value : axis.values)
        width = std::max(width, metrics.horizontalAdvance(QString::fromStdString(value)));
    return width;
}

} // namespace

SweepShape shapeOf(const SweepData& data) {
    return data.axes().empty()       ? SweepShape::Scatter
           : data.axes().size() == 1 ? SweepShape::Line
                                     : SweepShape::Map;
}

QPointF SweepGeometry::pointOf(const SweepData& data, int index) const {
    const SweepRow& row = data.row(index);
    if (shape == SweepShape::Scatter) return {xOf(row.seconds), yOf(row.memory)};
    const double across = plot.left() + plot.width() * (index % columns + 0.5) / columns;
    const int down = index / columns;
    if (shape == SweepShape::Map) return {across, plot.top() + plot.height() * (down + 0.5) / rows};
    return {across, row.error.empty() ? yOf(measureOf(row, measure)) : plot.bottom() - kMark};
}

QRectF SweepGeometry::rectOf(const SweepData& data, int index) const {
    const QPointF middle = pointOf(data, index);
    QSizeF size(kMark, kMark);
    if (shape == SweepShape::Map) size = {plot.width() / columns, plot.height() / rows};
    return {middle - QPointF(size.width() / 2, size.height() / 2), size};
}

SweepGeometry layOutSweep(const SweepData& data, const std::vector<int>& shown,
                          SweepMeasure measure, QSizeF size, const QFontMetricsF& metrics) {
    SweepGeometry g;
    g.shape = shapeOf(data);
    g.measure = measure;
    const double line = metrics.height();
    double left = metrics.horizontalAdvance(QStringLiteral("000.0 GiB")) + 14;
    double right = 14;
    if (g.shape == SweepShape::Scatter) {
        g.x = ChartScale::of(valuesOf(data, shown, SweepMeasure::Time));
        g.y = ChartScale::of(valuesOf(data, shown, SweepMeasure::Memory), kGiB);
    } else {
        g.columns = static_cast<int>(data.axes().back().values.size());
        const ChartScale scale = ChartScale::of(valuesOf(data, shown, measure), unitOf(measure));
        (g.shape == SweepShape::Line ? g.y : g.heat) = scale;
    }
    if (g.shape == SweepShape::Map) {
        g.rows = static_cast<int>(data.axes().front().values.size());
        left = widestValue(data, data.axes().front(), metrics) + 22;
        right = 14 + 84; // the scale of colours
    }
    g.headHeight = line + 10;
    g.plot = QRectF(left, g.headHeight + 2, std::max(size.width() - left - right, 20.0),
                    std::max(size.height() - g.headHeight - 2 * line - 20, 20.0));
    return g;
}

std::vector<int> frontOf(const SweepData& data, const std::vector<int>& shown) {
    std::vector<int> front;
    for (const int row : shown)
        if (data.row(row).front) front.push_back(row);
    std::ranges::stable_sort(front, {}, [&](int row) { return data.row(row).seconds; });
    return front;
}

} // namespace shardlens
