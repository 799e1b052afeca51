// SPDX-License-Identifier: Apache-2.0
// See timeline_geometry.h.
#include "ui/views/timeline_geometry.h"

#include "ui/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace shardlens {

namespace {

constexpr double kLeastRow = 17, kMostRow = 46;
constexpr double kComputeShare = 0.64; ///< of a row's height, where there are other streams
constexpr double kRowGap = 3;          ///< between rows

/// 1, 2 or 5 times a power of ten, at least `least`.
double niceStep(double least) {
    const double power = std::pow(10.0, std::floor(std::log10(least)));
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor * power >= least * (1 - 1e-9)) return factor * power;
    }
    return 10 * power;
}

} // namespace

QRectF TimelineGeometry::row(std::size_t index) const {
    return {plot.left(), plot.top() + rowHeight * static_cast<double>(index) - scroll, plot.width(),
            rowHeight};
}

int TimelineGeometry::rowAt(double y) const {
    if (y < plot.top() || y >= plot.bottom() || !(rowHeight > 0)) return -1;
    const double index = std::floor((y - plot.top() + scroll) / rowHeight);
    return index >= 0 && index < static_cast<double>(rows) ? static_cast<int>(index) : -1;
}

QRectF TimelineGeometry::lane(const TimelinePicture& picture, std::size_t index) const {
    const TimelineLane& shown = picture.lanes()[index];
    const TimelineRow& its = picture.rows()[shown.row];
    const double gap = rowHeight > 8 ? kRowGap : rowHeight > 3 ? 1 : 0;
    const QRectF whole = row(shown.row).adjusted(0, 0, 0, -gap);
    if (its.lanes == 1) return whole;
    const double tall = std::round(whole.height() * kComputeShare);
    if (shown.compute) return {whole.left(), whole.top(), whole.width(), tall};
    const double each = (whole.height() - tall) / (its.lanes - 1);
    const double top = whole.top() + tall + each * static_cast<double>(index - its.firstLane - 1);
    return {whole.left(), top + 1, whole.width(), std::max(1.0, each - 1)};
}

QRectF TimelineGeometry::bar(const TimelinePicture& picture, std::size_t index,
                             schedule::TaskId id) const {
    const QRectF place = lane(picture, index);
    const double left = xAt(picture.start(id)), right = xAt(picture.end(id));
    const double half = std::floor(place.height() / 2);
    if (picture.isLowerHalf(id)) {
        return {left, place.top() + half, right - left, place.height() - half};
    }
    return {left, place.top(), right - left, picture.isUpperHalf(id) ? half : place.height()};
}

TimelineGeometry layOutTimeline(const TimelinePicture& picture, QSizeF page,
                                const QFontMetricsF& metrics, const TimelineWindow& window,
                                bool fitRows) {
    TimelineGeometry g;
    const double line = std::ceil(metrics.height());
    double name = 0;
    for (const TimelineRow& row : {picture.rows().front(), picture.rows().back()}) {
        name = std::max(name, metrics.horizontalAdvance(row.name));
    }
    const double left =
        std::ceil(std::max(name, metrics.horizontalAdvance(QStringLiteral("memory 0000")))) + 14;
    const double right = page.width() > 640 ? 132 : page.width() > 420 ? 84 : 10;
    const double top = line + 10, keyHeight = page.height() > 150 ? line + 8 : 0;
    const double memoryHeight =
        page.height() > 190 ? std::clamp(page.height() * 0.2, 40.0, 110.0) : 0;
    const double width = std::max(16.0, page.width() - left - right);
    const double height =
        std::max(8.0, page.height() - top - keyHeight - memoryHeight - (memoryHeight > 0 ? 8 : 0));
    g.plot = {left, top, width, height};
    g.names = {0, top, left, height};
    g.axis = {left, 0, width, top};
    g.idle = {left + width + 8, top, std::max(0.0, right - 10), height};
    g.memory = {left, g.plot.bottom() + 8, width, memoryHeight > 0 ? memoryHeight - 8 : 0};
    g.keys = {8, page.height() - keyHeight, page.width() - 16, keyHeight};
    g.rows = picture.rows().size();
    const double fitted = std::min(height / static_cast<double>(g.rows), kMostRow);
    g.rowHeight = fitRows ? fitted : std::max(kLeastRow, fitted);
    g.scroll = std::clamp(window.scroll, 0.0, std::max(0.0, g.contentHeight() - height));
    g.begin = window.begin;
    g.perPixel = std::max((window.end - window.begin) / width, 1e-300);
    return g;
}

TimeAxis timeAxis(double begin, double end, double perPixel, double leastPixels,
                  double secondsPerUnit) {
    struct Unit {
        double seconds;
        const char* name;
    };
    constexpr std::array<Unit, 4> kUnits = {{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}}};
    TimeAxis axis;
    double scale = 1; // shown number = time * scale
    if (secondsPerUnit > 0) {
        const double seconds = std::max(std::abs(begin), std::abs(end)) * secondsPerUnit;
        const auto* unit =
            std::ranges::find_if(kUnits, [seconds](const Unit& u) { return seconds >= u.seconds; });
        if (unit == kUnits.end()) --unit;
        axis.unit = QString::fromUtf8(unit->name);
        scale = secondsPerUnit / unit->seconds;
    }
    const double step = niceStep(std::max(perPixel * leastPixels * scale, 1e-300));
    const int decimals = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 12);
    const double first = std::ceil(begin * scale / step - 1e-9);
    const double last = std::floor(end * scale / step + 1e-9);
    if (!(last - first < 1000)) return axis;
    for (double i = first + 0.0; i <= last; ++i) { // + 0.0: never a negative zero
        axis.ticks.push_back(
            {i * step / scale, QString::fromStdString(fmt::format("{:.{}f}", i * step, decimals))});
    }
    return axis;
}

QString timelineNumber(double value, double secondsPerUnit) {
    if (std::abs(value) < 1e-12) value = 0;
    if (secondsPerUnit > 0) return formatTime(value * secondsPerUnit);
    return QString::fromStdString(fmt::format("{:.6g}", value));
}

} // namespace shardlens
