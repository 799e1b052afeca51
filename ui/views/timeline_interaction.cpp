// SPDX-License-Identifier: Apache-2.0
// Mouse and keys of the timeline view. The wheel zooms where the pointer is; a drag over bars
// chooses a range to zoom to; the middle or right button (or Shift) drags the picture; along the
// axis or the memory a drag moves the cursor.
#include "ui/views/timeline_view.h"

#include <QApplication>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QScrollBar>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace shardlens {

using namespace schedule;

namespace {

constexpr double kZoomStep = 1.25;

} // namespace

bool TimelineView::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip && m_picture) {
        auto* help = static_cast<QHelpEvent*>(event);
        showTip(help->globalPos(), help->pos());
        return true;
    }
    if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) {
        updateScrollBar();
    }
    return QWidget::event(event);
}

void TimelineView::resizeEvent(QResizeEvent*) {
    updateScrollBar();
}

void TimelineView::wheelEvent(QWheelEvent* event) {
    if (!m_picture) return event->ignore();
    const QPoint by = event->angleDelta();
    event->accept();
    if (event->modifiers() & Qt::ControlModifier) {
        m_rows->setValue(m_rows->value() - by.y());
    } else if (event->modifiers() & Qt::ShiftModifier || std::abs(by.x()) > std::abs(by.y())) {
        panBy(-(by.x() != 0 ? by.x() : by.y()));
    } else {
        const TimelineGeometry g = geometryNow();
        const double x = std::clamp(event->position().x(), g.plot.left(), g.plot.right());
        zoomAt(g.timeAt(x), std::pow(kZoomStep, by.y() / 120.0));
    }
}

void TimelineView::mousePressEvent(QMouseEvent* event) {
    if (!m_picture) return;
    const TimelineGeometry g = geometryNow();
    m_pressed = event->position();
    m_pressedWindow = m_window;
    const bool inPlot = g.plot.contains(m_pressed);
    if (event->button() != Qt::LeftButton || event->modifiers() & Qt::ShiftModifier) {
        m_drag = Drag::Pan;
        setCursor(Qt::ClosedHandCursor);
    } else if (!inPlot && (g.axis.contains(m_pressed) || g.memory.contains(m_pressed))) {
        m_drag = Drag::Cursor;
        setTime(g.timeAt(m_pressed.x()));
    } else {
        m_drag = Drag::Pressed;
    }
}

void TimelineView::mouseMoveEvent(QMouseEvent* event) {
    if (!m_picture) return;
    const TimelineGeometry g = geometryNow();
    const QPointF point = event->position();
    if (m_drag == Drag::Pressed && g.plot.contains(m_pressed) &&
        std::abs(point.x() - m_pressed.x()) >= QApplication::startDragDistance()) {
        m_drag = Drag::Range;
    }
    switch (m_drag) {
    case Drag::Range: {
        const auto at = [&g](double x) {
            return g.timeAt(std::clamp(x, g.plot.left(), g.plot.right()));
        };
        m_state.dragged = std::minmax({at(m_pressed.x()), at(point.x())});
        update();
        break;
    }
    case Drag::Pan: {
        const double by = (m_pressed.x() - point.x()) * g.perPixel;
        setRange(m_pressedWindow.begin + by, m_pressedWindow.end + by);
        m_rows->setValue(qRound(m_pressedWindow.scroll + m_pressed.y() - point.y()));
        break;
    }
    case Drag::Cursor:
        setTime(g.timeAt(point.x()));
        break;
    case Drag::None:
    case Drag::Pressed:
        if (const TaskId hovered = taskAt(point); hovered != m_state.hovered) {
            m_state.hovered = hovered;
            update();
        }
        break;
    }
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event) {
    if (!m_picture) return;
    if (m_drag == Drag::Range && m_state.dragged) {
        setRange(m_state.dragged->first, m_state.dragged->second);
    } else if (m_drag == Drag::Pressed) {
        click(event->position());
    }
    m_state.dragged.reset();
    m_drag = Drag::None;
    unsetCursor();
    update();
}

void TimelineView::click(QPointF point) {
    const TimelineGeometry g = geometryNow();
    const TaskId id = taskAt(point);
    selectTask(id);
    if (id == kNoTask) selectDevice(deviceAt(point));
    if (g.plot.contains(point)) setTime(g.timeAt(point.x()));
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event) {
    const TaskId id = taskAt(event->position());
    if (event->button() == Qt::LeftButton && id != kNoTask) emit editRequested(id);
}

TaskId TimelineView::lastDependency(TaskId id) const {
    const Program& program = m_picture->schedule().program;
    TaskId last = kNoTask;
    double arrived = 0;
    for (const Dependency& dependency : program.dependenciesOf(id)) {
        const double when = m_picture->end(dependency.task) + program.lags[dependency.lag];
        if (last != kNoTask && when <= arrived) continue;
        last = dependency.task;
        arrived = when;
    }
    // A barrier is no bar: what it waited for stands behind it.
    if (last != kNoTask && m_picture->laneOf(last) < 0) return lastDependency(last);
    return last;
}

TaskId TimelineView::firstFollower(TaskId id) const {
    TaskId first = kNoTask;
    for (const Dependency& follower : m_picture->schedule().program.followersOf(id)) {
        const bool shown = m_picture->laneOf(follower.task) >= 0;
        const TaskId task = shown ? follower.task : firstFollower(follower.task);
        if (task == kNoTask) continue;
        if (first == kNoTask || m_picture->start(task) < m_picture->start(first)) first = task;
    }
    return first;
}

void TimelineView::followDependency(bool back) {
    if (!m_picture || m_state.selected == kNoTask) return;
    const TaskId next = back ? lastDependency(m_state.selected) : firstFollower(m_state.selected);
    if (next == kNoTask) return;
    selectTask(next);
    setTime(m_picture->start(next));
    ensureVisible(next);
}

void TimelineView::walk(int steps) {
    const int index = m_picture->laneOf(m_state.selected);
    if (index < 0) return;
    const TimelineLane& lane = m_picture->lanes()[static_cast<std::size_t>(index)];
    const auto at = static_cast<std::ptrdiff_t>(m_picture->positionOf(lane, m_state.selected));
    const std::ptrdiff_t next =
        std::clamp<std::ptrdiff_t>(at + steps, 0, std::ssize(lane.order) - 1);
    selectTask(lane.order[static_cast<std::size_t>(next)]);
    setTime(m_picture->start(m_state.selected));
    ensureVisible(m_state.selected);
}

void TimelineView::walkRows(int steps) {
    const int count = static_cast<int>(m_picture->lanes().size());
    const double now = m_state.time.value_or(m_window.begin);
    const int from = m_state.selected == kNoTask ? (steps > 0 ? -1 : count)
                                                 : m_picture->laneOf(m_state.selected);
    const int to = std::clamp(from + steps, 0, count - 1);
    const TimelineLane& lane = m_picture->lanes()[static_cast<std::size_t>(to)];
    if (lane.order.empty()) return;
    // What runs now, or else what comes next.
    const std::size_t at = m_picture->seen(lane, now, now).first;
    selectTask(lane.order[std::min(at, lane.order.size() - 1)]);
    ensureVisible(m_state.selected);
}

bool TimelineView::timeKey(const QKeyEvent& event) {
    const bool forward = event.key() == Qt::Key_Right || event.key() == Qt::Key_Down;
    switch (event.key()) {
    case Qt::Key_Left:
    case Qt::Key_Right:
        if (event.modifiers() & Qt::ControlModifier) {
            panBy((forward ? 0.2 : -0.2) * geometryNow().plot.width());
        } else if (m_state.selected != kNoTask) {
            walk(forward ? 1 : -1);
        } else {
            stepTime(forward);
        }
        return true;
    case Qt::Key_Up:
    case Qt::Key_Down:
        walkRows(forward ? 1 : -1);
        return true;
    case Qt::Key_Home:
        setTime(0);
        if (!isFitted()) setRange(0, m_window.end - m_window.begin);
        return true;
    case Qt::Key_End: {
        const double whole = m_picture->makespan();
        setTime(whole);
        setRange(whole - (m_window.end - m_window.begin), whole);
        return true;
    }
    case Qt::Key_Space:
        setPlaying(!isPlaying());
        return true;
    default:
        return false;
    }
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
    if (!m_picture || event->modifiers() & Qt::AltModifier) return QWidget::keyPressEvent(event);
    if (timeKey(*event)) return;
    switch (event->key()) {
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        return zoomBy(kZoomStep);
    case Qt::Key_Minus:
        return zoomBy(1 / kZoomStep);
    case Qt::Key_0:
        return fitAll();
    case Qt::Key_F:
        return fitSelection();
    case Qt::Key_P:
        return followDependency(true);
    case Qt::Key_S:
        return followDependency(false);
    case Qt::Key_PageUp:
    case Qt::Key_PageDown:
        m_rows->triggerAction(event->key() == Qt::Key_PageUp ? QScrollBar::SliderPageStepSub
                                                             : QScrollBar::SliderPageStepAdd);
        return;
    case Qt::Key_Escape:
        if (m_state.selected == kNoTask && !m_state.time) break;
        selectTask(kNoTask);
        setTime(std::nullopt);
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (m_state.selected != kNoTask) emit editRequested(m_state.selected);
        return;
    default:
        break;
    }
    QWidget::keyPressEvent(event);
}

void TimelineView::leaveEvent(QEvent*) {
    m_state.hovered = kNoTask;
    update();
}

void TimelineView::focusInEvent(QFocusEvent*) {
    update();
}

void TimelineView::focusOutEvent(QFocusEvent*) {
    update();
}

} // namespace shardlens
