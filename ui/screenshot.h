// SPDX-License-Identifier: Apache-2.0
// A picture of the window with a model or session in it, for documents and for a look without a
// display.
#pragma once

#include <QSize>
#include <QString>

namespace shardlens {

struct ScreenshotOptions {
    QSize size{1600, 1000}; ///< pixels
    bool dark = false;
    bool folded = false; ///< the whole page instead of an opened block
    bool stages = false; ///< the whole job: stages on the folded page, panel and timeline
};

/// Opens `file` in a window that is not shown on any screen, waits for plan and drawing, opens the
/// block that repeats most and selects its most expensive op, and writes a PNG. A session that was
/// looked at before is shown as it was left. Folded: the whole page, nothing opened. Needs a
/// QApplication (any platform, also offscreen).
/// @throws Error if the file cannot be opened, nothing is ready in time, or `out` cannot be written
void renderScreenshot(const QString& file, const QString& out, const ScreenshotOptions& wish);

} // namespace shardlens
