// SPDX-License-Identifier: Apache-2.0
// Paints the chart of a sweep: on the screen, and into PNG and SVG files. The many points of a
// scatter are stamped into an image pixel by pixel where the chart is kept as one (a QPainter call
// each would take a frame's time); in vector files they are marks.
#pragma once

#include "ui/views/sweep_geometry.h"

#include <QImage>

class QPainter;

namespace shardlens {

struct SweepPaintState {
    int selected = -1, hovered = -1; ///< rows of the sweep
    bool focus = false;
};

class SweepPainter {
public:
    SweepPainter(const SweepData& data, const std::vector<int>& shown,
                 const SweepGeometry& geometry, const Palette& palette, QPainter& painter)
        : m_data(data), m_shown(shown), m_g(geometry), m_palette(palette), m_painter(painter) {}

    void paint(); ///< all but what moves with the mouse
    void paintMarks(const SweepPaintState& state);
    /// Stamps points instead of drawing them one by one; into an image of the whole chart.
    void useStamps(QImage* image) { m_stamps = image; }

private:
    void paintHead();
    void paintScatter();
    void paintPoints();
    void stampPoints();
    void paintFront();
    void paintLimit();
    void paintLine();
    void paintMap();
    void paintColours();
    void paintVertical(SweepMeasure measure);
    void paintTimeAxis();
    void paintValues(const SweepAxis& axis, bool below);
    QColor pointColour(const SweepRow& row) const;

    const SweepData& m_data;
    const std::vector<int>& m_shown;
    const SweepGeometry& m_g;
    const Palette& m_palette;
    QPainter& m_painter;
    QImage* m_stamps = nullptr;
};

} // namespace shardlens
