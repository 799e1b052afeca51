// SPDX-License-Identifier: Apache-2.0
// Draws a scene with its overlay. Pure: everything it needs is in its arguments, so that the same
// code paints the view, an exported picture and a test image. Detail follows the zoom: far out,
// boxes are bare colour; labels appear once they can be read.
#pragma once

#include "ui/theme.h"
#include "ui/views/graph_overlay.h"
#include "ui/views/stage_painter.h"

#include <set>

class QPainter;

namespace shardlens {

enum class ColourMode { None, Time, Communication, Memory };

struct GraphPaintState {
    ColourMode colour = ColourMode::None;
    int selected = -1;         ///< item
    OpId selectedChip = kNoOp; ///< the selected parameter, in the scene's sample repeat
    int hovered = -1;
    bool focused = false; ///< draw a focus frame round the selected item
    bool stale = false;   ///< the plan is being replaced
    const std::set<int>* matches = nullptr;
    StagePaintState stages;
};

/// Where the controls in a frame's header are, scene coordinates.
struct FrameControls {
    struct Range {
        QRectF rect;
        std::size_t repeat = 0; ///< jumped to by a click
        QString text;
        bool current = false;
    };
    QRectF fold, previous, next, repeat;
    std::vector<Range> ranges;
};

/// Value of an item under a colour mode, 0 .. 1 on a square-root scale (long tails stay visible).
double heatFraction(const Heat& heat, const Heat& most, ColourMode mode);

class GraphPainter {
public:
    GraphPainter(const GraphOverlay& overlay, const Palette& palette, const GraphPaintState& state);

    /// @param painter already transformed to scene coordinates
    /// @param area    scene rectangle to draw
    /// @param zoom    pixels a scene unit
    void paint(QPainter& painter, const QRectF& area, double zoom) const;

    static FrameControls controlsOf(const GraphOverlay& overlay, int frame);
    /// "layers 0–56 | 57 | 58–125 differ"
    static QString rangesText(const std::vector<RepeatRange>& ranges);

private:
    void drawFrame(QPainter& painter, int id, double zoom) const;
    void drawEdge(QPainter& painter, int id, double zoom) const;
    void drawEdgeLabels(QPainter& painter, int id) const;
    void drawItem(QPainter& painter, int id, double zoom) const;
    void drawOp(QPainter& painter, int id, const QColor& fill) const;
    void drawBlock(QPainter& painter, int id, const QColor& fill) const;
    void drawPort(QPainter& painter, int id) const;
    void drawStrip(QPainter& painter, QPointF at, const TensorMark& mark, double room) const;
    void drawChip(QPainter& painter, const ParameterChip& chip, const ChipMark& mark) const;
    void drawShape(QPainter& painter, const QRectF& rect, const TensorMark& mark) const;
    void drawLozenge(QPainter& painter, const Lozenge& lozenge) const;
    void drawPin(QPainter& painter, QPointF at) const;
    QColor fillOf(int id) const;
    QPen outlineOf(int id, double zoom) const;
    QString axisText(const std::vector<std::uint8_t>& axes) const;

    const GraphOverlay& m_overlay;
    const GraphScene& m_scene;
    const Palette& m_palette;
    GraphPaintState m_state;
    BoxMetrics m_metrics;
    StagePainter m_stages; ///< after what it refers to
};

} // namespace shardlens
