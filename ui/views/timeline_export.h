// SPDX-License-Identifier: Apache-2.0
// A timeline as a file: picture (SVG, PNG, PDF) through the painter of the window, PyTorch's
// schedule CSV, Chrome/Perfetto trace. Needs a QGuiApplication for pictures, may run on any thread;
// a file is complete or not there.
#pragma once

#include "ui/views/timeline_picture.h"

#include <QFont>
#include <QSize>

#include <optional>

namespace shardlens {

enum class TimelineFormat { Svg, Png, Pdf, Csv, Trace };

struct TimelineExport {
    std::optional<TimelineFormat> format; ///< default: by the file's ending
    double begin = 0, end = 0;            ///< what is drawn; end <= begin: the whole step
    QSize size{1600, 0};                  ///< height 0: as the devices need
    double pixelRatio = 2;                ///< PNG: pixels of each logical one
    int device = -1;                      ///< whose memory is drawn; -1: the highest
    QFont font;
};

/// @throws InputError when the ending is unknown, PlanError when the format cannot say what the
/// schedule does, Error when the file cannot be written
void writeTimeline(const TimelinePicture& picture, const QString& file,
                   const TimelineExport& options = {});

} // namespace shardlens
