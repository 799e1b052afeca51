// SPDX-License-Identifier: Apache-2.0
// What colours and hatches of a timeline mean. Bars are coloured by one of four things and idle
// times by their cause; the pass shows in every mode (backward passes are deeper, weight gradients
// paler), and each cause has a hatch besides its tint, so that colour is never the only cue.
#pragma once

#include "core/schedule/timeline.h"
#include "ui/theme.h"

#include <QRectF>
#include <QString>

#include <vector>

class QPainter;

namespace shardlens {

enum class TimelineColour : std::uint8_t { Pass, Stage, MicroBatch, Chunk };
constexpr int kTimelineColours = 4;

QColor barColour(const Palette& palette, TimelineColour mode, const schedule::Task& task,
                 const schedule::Program& program);
QColor causeColour(const Palette& palette, schedule::Cause cause); ///< full, for the stacked bars
QColor causeTint(const Palette& palette, schedule::Cause cause);   ///< ground of an idle time
Qt::BrushStyle causeHatch(schedule::Cause cause);
/// Translated words of what is painted.
QString timelineText(const char* source);
QString causeName(schedule::Cause cause); ///< translated
QString passName(schedule::Pass pass);    ///< "forward", "weight gradient" …

/// Fills with a hatch. In SVG with lines of its own: patterns of Qt's generator are not understood
/// by every viewer.
void fillHatched(QPainter& painter, const QRectF& area, const QColor& colour, Qt::BrushStyle hatch);

struct TimelineKey {
    QString text;
    QColor colour;
    Qt::BrushStyle hatch = Qt::SolidPattern;
};
/// The passes, stages, micro-batches or chunks that occur, then the causes that occur.
std::vector<TimelineKey> timelineKeys(const Palette& palette, TimelineColour mode,
                                      const schedule::Program& program,
                                      const schedule::Account& account);

} // namespace shardlens
