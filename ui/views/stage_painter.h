// SPDX-License-Identifier: Apache-2.0
// Draws the stages of a whole job on the graph: bands in the colour of the stage on what it
// computes, and boundaries as lines across the flow, each with a handle to drag. A pinned boundary
// is solid with a filled handle, the planner's is dashed with an open one; a pin that cannot hold
// is red; where a round of chunks begins there is a line without a handle. Where handles would
// cover each other only those are drawn that are pinned, selected or under the mouse. Beside the
// chunks of the selected stage stand their layers. Pure, as GraphPainter is.
#pragma once

#include "ui/theme.h"
#include "ui/views/stage_marks.h"

class QPainter;

namespace shardlens {

struct StagePaintState {
    int selectedStage = -1;
    std::vector<int> pins;           ///< boundaries that the request pins, in the plan or not
    bool clash = false;              ///< they cannot hold
    int selected = -1, hovered = -1; ///< boundaries
    int moved = -1, target = -1;     ///< boundary being dragged, and where to
    QString preview;                 ///< what comes of it, while that is not done
};

class StagePainter {
public:
    StagePainter(const GraphScene& scene, const StageMarks& marks, const Palette& palette,
                 const StagePaintState& state);

    /// Bands of an item, under its text.
    void drawBands(QPainter& painter, int item, double zoom) const;
    void drawBoundaries(QPainter& painter, const QRectF& area, double zoom) const;

    /// Boundaries that are drawn: of the plan, and pinned ones that are not in it yet.
    static std::vector<int> shownBoundaries(const StageMarks& marks, const StagePaintState& state);
    /// Scene coordinates; not smaller on the screen than can be grasped.
    static QRectF handleOf(const QLineF& place, double zoom);

private:
    void drawBoundary(QPainter& painter, int unit, double zoom) const;
    void drawChunkStarts(QPainter& painter, double zoom) const;
    void drawChunkLabels(QPainter& painter, double zoom) const;
    void drawBandLabel(QPainter& painter, const StageBand& band, double zoom) const;
    bool isPinned(int unit) const;
    bool isCrowded(const std::vector<int>& shown, std::size_t index, double zoom) const;
    void drawLabel(QPainter& painter, const QString& label, const QRectF& handle,
                   const QColor& colour) const;
    QColor colourOf(int stage) const;

    const GraphScene& m_scene;
    const StageMarks& m_marks;
    const Palette& m_palette;
    const StagePaintState& m_state;
    BoxMetrics m_metrics;
};

} // namespace shardlens
