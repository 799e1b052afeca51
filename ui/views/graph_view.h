// SPDX-License-Identifier: Apache-2.0
// The centre of the window: the folded model with its plan, to be looked at, walked and pinned. One
// plain widget: it paints through GraphPainter, finds items through the scene's grid index, and
// turns mouse and keys into requests; it changes nothing itself. Whoever owns it answers by handing
// it a new overlay (which holds the scene).
#pragma once

#include "ui/views/graph_painter.h"

#include <QPointer>
#include <QTimer>
#include <QWidget>

namespace shardlens {

class GraphView : public QWidget {
    Q_OBJECT

public:
    explicit GraphView(QWidget* parent = nullptr);

    /// Shows a picture. With a new scene the spot that `keep` names stays under its place.
    void setOverlay(std::shared_ptr<const GraphOverlay> overlay);
    const GraphOverlay* overlay() const { return m_overlay.get(); }

    /// Marks what is selected: an op (also inside a folded block) or a whole run. Does not scroll.
    void setSelection(OpId op, int run);
    void setStale(bool stale);
    /// The stage that is selected; -1 for none.
    void setSelectedStage(int stage);
    /// Boundaries that the request pins. @param clash they cannot hold
    void setStagePins(std::vector<int> pins, bool clash);
    void setColourMode(ColourMode mode);
    ColourMode colourMode() const { return m_state.colour; }
    void setMatches(std::set<int> items);
    /// Shown in the middle while there is no model.
    void setPlaceholder(const QString& text);

    double zoom() const { return m_zoom; }
    QPointF sceneCentre() const { return toScene(QPointF(rect().center())); }
    void setView(QPointF sceneCentre, double zoom);
    void fitAll();
    void fitSelection();
    void zoomBy(double factor);
    /// Scrolls, if need be, until an item is visible.
    void ensureVisible(int item);
    void centreOn(int item);

    // By id, for tests, accessibility and export. Widget coordinates.
    int itemCount() const;
    QRectF itemRect(int item) const;
    int itemAt(QPointF point) const;
    int itemOfOp(OpId op) const;
    int itemOfRun(int run) const;
    int selectedItem() const { return m_state.selected; }
    OpId opOfItem(int item) const;    ///< of the repeat that is looked at; kNoOp for blocks
    QString describe(int item) const; ///< one line of plain text, for tips and screen readers
    void activate(int item);          ///< as a click does
    QRectF chipRect(OpId op) const;
    // Stage boundaries, by the unit that a stage begins with.
    std::vector<int> boundaries() const; ///< that are shown, along the flow
    QRectF handleRect(int boundary) const;
    QPointF placeOf(int unit) const; ///< where the handle of a boundary there is held
    /// Null if the item has no part in that chunk of the stage.
    QRectF bandRect(int item, int stage, int chunk = 0) const;
    int boundaryAt(QPointF widget) const; ///< whose handle is there; -1 for none
    int selectedBoundary() const { return m_state.stages.selected; }
    void selectBoundary(int boundary); ///< -1: none
    /// Asks for a stage to begin with another unit, as a drag does; ignored while the plan of the
    /// last move is awaited. @return whether it was asked for
    bool moveBoundary(int boundary, int to);
    bool isMoving() const { return m_state.stages.moved >= 0; } ///< by hand, or until it is planned
    void settleBoundary();                                      ///< shows no move any more
    /// What a boundary that is dragged there would lead to, in words.
    void setPreview(int boundary, const QString& words);
    QString describeBoundary(int boundary) const;
    QString describeStage(int stage) const;
    FrameControls frameControls(int item) const; ///< widget coordinates

signals:
    void opRequested(OpId op);
    void runRequested(int run);
    void toggleRequested(int run);
    void repeatRequested(int run, std::size_t repeat);
    void menuRequested(OpId op, int run, QPoint globalPosition);
    void stageRequested(int stage);
    void boundaryAimed(int from, int to); ///< while it is dragged, each place once
    void boundaryMoved(int from, int to);
    void boundarySelected(int boundary);
    void boundaryMenuRequested(int boundary, QPoint globalPosition);
    void viewChanged();

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    const GraphScene* scene() const { return m_overlay ? m_overlay->scene.get() : nullptr; }
    const SceneItem& item(int id) const { return scene()->items[static_cast<std::size_t>(id)]; }
    QPointF toScene(QPointF widget) const { return widget / m_zoom + m_origin; }
    QPointF toWidget(QPointF scenePoint) const { return (scenePoint - m_origin) * m_zoom; }
    QRectF toWidget(const QRectF& rect) const;
    void zoomAt(QPointF widget, double factor);
    void fit(const QRectF& area, double most);
    bool isFittedTo(QSize size) const; ///< whether the view is as fitAll() makes it at that size
    bool clickControls(int frame, QPointF scenePoint);
    void updateSelectedItem();
    void follow(Qt::Key key);
    int neighbourBeside(int from, bool right) const;
    void showTip(QPoint globalPosition, QPointF widget);
    QString edgeTip(QPointF scenePoint) const;
    int stageAt(QPointF scenePoint) const; ///< of a folded run
    bool pressBoundary(QPointF widget);
    bool dragBoundary(QPointF widget);
    void dropBoundary(bool keep);
    void setTarget(int target);
    void aimBoundary(int steps); ///< by key: the target moves, Enter takes it
    bool boundaryKey(const QKeyEvent& event);
    void stepBoundary(int steps);
    QRegion canvasIn(const QRect& area) const;
    void drawBadge(QPainter& painter) const;

    std::shared_ptr<const GraphOverlay> m_overlay;
    GraphPaintState m_state;
    std::set<int> m_matches;
    OpId m_selectedOp = kNoOp;
    int m_selectedRun = -1;
    double m_zoom = 1;
    QPointF m_origin;
    bool m_fitPending = true; ///< fit once there is a size and a scene
    bool m_stale = false;
    QTimer m_staleDelay; ///< short re-solves do not flicker
    QPointF m_pressed, m_pressedOrigin;
    bool m_dragging = false, m_buttonDown = false, m_boundaryHeld = false;
    QString m_placeholder;
};

/// Makes the items of graph views known to assistive technology. Call once at start.
void installGraphAccessibility();

} // namespace shardlens
