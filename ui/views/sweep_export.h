// SPDX-License-Identifier: Apache-2.0
// Sweeps as files: the shown points as CSV, the chart as PNG or SVG. Made in the background.
#pragma once

#include "ui/views/sweep_geometry.h"

#include <QByteArray>
#include <QFont>
#include <QSize>

namespace shardlens {

struct SweepExport {
    std::shared_ptr<const SweepData> data;
    std::vector<int> shown; ///< rows of the sweep, as they are to be listed
    SweepMeasure measure = SweepMeasure::Time;
    QSize size{900, 560}; ///< of the picture, before pixelRatio
    double pixelRatio = 2;
    QFont font;
    bool dark = false;
};

/// The bytes of a file, in the format that its ending says.
/// @throws InputError naming the endings there are
QByteArray exportSweep(const SweepExport& wish, const QString& file);

} // namespace shardlens
