// SPDX-License-Identifier: Apache-2.0
// Devices × time: who computes what when, why devices wait, and how their memory goes up and down.
// One plain widget: it paints through TimelinePainter, finds bars by binary search, and turns mouse
// and keys into zoom, selection and the time of the cursor. It changes nothing of the schedule.
#pragma once

#include "ui/views/timeline_painter.h"

#include <QElapsedTimer>
#include <QTimer>
#include <QWidget>

class QScrollBar;

namespace shardlens {

class TimelineView : public QWidget {
    Q_OBJECT

public:
    explicit TimelineView(QWidget* parent = nullptr);

    /// Shows a picture. What is looked at and selected stays where the new one has it too.
    void setPicture(std::shared_ptr<const TimelinePicture> picture);
    const std::shared_ptr<const TimelinePicture>& picture() const { return m_picture; }
    void setStale(bool stale);
    bool isStale() const { return m_stale; }
    /// Shown in the middle while there is no picture.
    void setPlaceholder(const QString& text);
    const QString& placeholder() const { return m_placeholder; }

    double begin() const { return m_window.begin; }
    double end() const { return m_window.end; }
    void setRange(double begin, double end);
    bool isFitted() const; ///< the whole step is in sight
    void fitAll();
    void fitSelection();
    void zoomAt(double time, double factor);
    void zoomBy(double factor); ///< around the selected bar, the cursor, or the middle
    void panBy(double pixels);
    void ensureVisible(schedule::TaskId id);

    std::optional<double> time() const { return m_state.time; }
    void setTime(std::optional<double> time); ///< of the cursor
    void stepTime(bool forward);              ///< to the next moment in which something changes
    bool isPlaying() const { return m_play.isActive(); }
    void setPlaying(bool playing);

    schedule::TaskId selected() const { return m_state.selected; }
    void selectTask(schedule::TaskId id); ///< kNoTask: nothing
    int device() const { return m_state.device; }
    void selectDevice(int device); ///< whose memory is shown; -1: the highest
    void ensureDeviceVisible(int device);
    /// To the bar that the selected one waited for longest, or the first that waits for it.
    void followDependency(bool back);

    // By id, for tests, accessibility and export. Widget coordinates.
    TimelineGeometry geometryNow() const;
    QRectF taskRect(schedule::TaskId id) const;
    schedule::TaskId taskAt(QPointF point) const;
    int deviceAt(QPointF point) const;
    QString describe(schedule::TaskId id) const;
    QString describeRow(std::size_t row) const;
    QRectF rowRect(std::size_t row) const { return geometryNow().row(row); }

signals:
    void viewChanged();
    void timeChanged();
    void taskSelected(shardlens::schedule::TaskId id);
    void deviceSelected(int device);
    void playingChanged(bool playing);
    void editRequested(shardlens::schedule::TaskId id);

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    enum class Drag { None, Pressed, Range, Pan, Cursor };

    schedule::TaskId lastDependency(schedule::TaskId id) const;
    schedule::TaskId firstFollower(schedule::TaskId id) const;
    void walk(int steps);     ///< along the stream of the selected bar
    void walkRows(int steps); ///< to the bar of another stream at the same time
    bool timeKey(const QKeyEvent& event);
    void click(QPointF point);
    void advance(); ///< while playing
    void updateScrollBar();
    void showTip(QPoint globalPosition, QPointF point);
    void drawBadge(QPainter& painter) const;

    std::shared_ptr<const TimelinePicture> m_picture;
    TimelineWindow m_window;
    TimelinePaintState m_state;
    QScrollBar* m_rows = nullptr;
    QTimer m_play, m_staleDelay;
    QElapsedTimer m_sinceFrame;
    QString m_placeholder;
    bool m_stale = false, m_staleShown = false;
    Drag m_drag = Drag::None;
    QPointF m_pressed;
    TimelineWindow m_pressedWindow;
};

/// Makes rows and bars of timelines known to assistive technology. Call once at start.
void installTimelineAccessibility();

} // namespace shardlens
