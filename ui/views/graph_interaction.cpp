// SPDX-License-Identifier: Apache-2.0
// Mouse and keys of the graph view. Arrows walk the edges as in kcachegrind's call graph: up to a
// producer, down to a consumer, left and right to what stands beside.
#include "ui/views/graph_view.h"

#include <QApplication>
#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QWheelEvent>

#include <cmath>
#include <limits>

namespace shardlens {

void GraphView::wheelEvent(QWheelEvent* event) {
    const QPoint delta = event->angleDelta();
    if (event->modifiers() & Qt::ShiftModifier) {
        m_origin -= QPointF(delta.y() != 0 ? delta.y() : delta.x(), 0) / m_zoom;
        update();
        emit viewChanged();
    } else if (delta.y() != 0) {
        zoomAt(event->position(), std::pow(1.0015, delta.y()));
    }
    event->accept();
}

void GraphView::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton) return;
    m_buttonDown = true;
    m_dragging = false;
    m_pressed = event->position();
    m_pressedOrigin = m_origin;
    if (event->button() == Qt::LeftButton && pressBoundary(m_pressed)) m_buttonDown = false;
}

void GraphView::mouseMoveEvent(QMouseEvent* event) {
    if (m_boundaryHeld && dragBoundary(event->position())) return;
    if (m_buttonDown) {
        const QPointF moved = event->position() - m_pressed;
        if (!m_dragging && moved.manhattanLength() >= QApplication::startDragDistance()) {
            m_dragging = true;
            setCursor(Qt::ClosedHandCursor);
        }
        if (m_dragging) {
            m_fitPending = false;
            m_origin = m_pressedOrigin - moved / m_zoom;
            update();
        }
        return;
    }
    const int boundary = boundaryAt(event->position());
    const int under = boundary >= 0 ? -1 : itemAt(event->position());
    if (under == m_state.hovered && boundary == m_state.stages.hovered) return;
    m_state.hovered = under;
    m_state.stages.hovered = boundary;
    setCursor(boundary >= 0 ? Qt::SizeVerCursor
              : under >= 0  ? Qt::PointingHandCursor
                            : Qt::ArrowCursor);
    update();
}

void GraphView::mouseReleaseEvent(QMouseEvent* event) {
    if (m_boundaryHeld) return dropBoundary(true);
    if (!m_buttonDown) return;
    m_buttonDown = false;
    setCursor(Qt::ArrowCursor);
    if (m_dragging) {
        emit viewChanged();
        return;
    }
    if (event->button() != Qt::LeftButton || !scene()) return;
    const QPointF at = toScene(event->position());
    const int id = scene()->itemAt(at);
    if (id < 0) return;
    const SceneItem& hit = item(id);
    if (hit.kind == ItemKind::Frame && clickControls(id, at)) return;
    for (const ParameterChip& chip : hit.chips) {
        if (!chip.rect.contains(at)) continue;
        const std::size_t repeat =
            hit.run < 0 ? 0 : m_overlay->repeats[static_cast<std::size_t>(hit.run)];
        const OpId reader = scene()->inRepeat(hit.op, hit.run, repeat);
        emit opRequested(
            scene()->graph->tensor(scene()->graph->op(reader).inputs[chip.port]).producer);
        return;
    }
    if (const int stage = stageAt(at); stage >= 0) {
        selectBoundary(-1);
        emit stageRequested(stage);
        return;
    }
    activate(id);
}

void GraphView::activate(int id) {
    selectBoundary(-1);
    const SceneItem& hit = item(id);
    if (hit.kind == ItemKind::Block || hit.kind == ItemKind::Frame)
        emit runRequested(hit.run);
    else
        emit opRequested(opOfItem(id));
}

bool GraphView::clickControls(int frame, QPointF at) {
    const FrameControls controls = GraphPainter::controlsOf(*m_overlay, frame);
    const int run = item(frame).run;
    const std::size_t repeat = m_overlay->repeats[static_cast<std::size_t>(run)];
    const std::size_t count = scene()->folding->runs[static_cast<std::size_t>(run)].count;
    if (controls.fold.contains(at)) {
        emit toggleRequested(run);
        return true;
    }
    if (controls.previous.contains(at)) {
        emit repeatRequested(run, (repeat + count - 1) % count);
        return true;
    }
    if (controls.next.contains(at)) {
        emit repeatRequested(run, (repeat + 1) % count);
        return true;
    }
    for (const FrameControls::Range& range : controls.ranges) {
        if (!range.rect.contains(at)) continue;
        emit repeatRequested(run, range.repeat);
        return true;
    }
    return false;
}

void GraphView::mouseDoubleClickEvent(QMouseEvent* event) {
    const int id = itemAt(event->position());
    if (id < 0) return;
    if (item(id).kind == ItemKind::Block) emit toggleRequested(item(id).run);
    if (item(id).kind == ItemKind::Frame) {
        const FrameControls controls = frameControls(id);
        if (!controls.next.contains(event->position()) &&
            !controls.previous.contains(event->position()))
            emit toggleRequested(item(id).run);
        else
            clickControls(id, toScene(event->position()));
    }
}

void GraphView::contextMenuEvent(QContextMenuEvent* event) {
    if (!scene()) return;
    const bool byKey = event->reason() == QContextMenuEvent::Keyboard;
    if (const int boundary = byKey ? selectedBoundary() : boundaryAt(QPointF(event->pos()));
        boundary >= 0) {
        const QPoint at =
            byKey ? mapToGlobal(handleRect(boundary).center().toPoint()) : event->globalPos();
        selectBoundary(boundary);
        emit boundaryMenuRequested(boundary, at);
        return;
    }
    const int id = byKey ? m_state.selected : itemAt(QPointF(event->pos()));
    if (id < 0) return;
    OpId op = opOfItem(id);
    if (byKey && m_selectedOp != kNoOp) op = m_selectedOp;
    for (const ParameterChip& chip : item(id).chips) {
        if (byKey || !chip.rect.contains(toScene(QPointF(event->pos())))) continue;
        op = scene()->graph->tensor(scene()->graph->op(op).inputs[chip.port]).producer;
    }
    const QPoint where = byKey ? mapToGlobal(itemRect(id).center().toPoint()) : event->globalPos();
    emit menuRequested(op, op == kNoOp ? item(id).run : -1, where);
}

void GraphView::keyPressEvent(QKeyEvent* event) {
    if (!scene()) return QWidget::keyPressEvent(event);
    if (boundaryKey(*event)) return;
    switch (event->key()) {
    case Qt::Key_Up:
    case Qt::Key_Down:
    case Qt::Key_Left:
    case Qt::Key_Right:
        follow(static_cast<Qt::Key>(event->key()));
        return;
    case Qt::Key_Home:
        if (!scene()->items.empty()) {
            activate(0);
            ensureVisible(0);
        }
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
        if (m_state.selected >= 0 && item(m_state.selected).run >= 0)
            emit toggleRequested(item(m_state.selected).run);
        return;
    case Qt::Key_PageUp:
    case Qt::Key_PageDown:
        m_origin.ry() += (event->key() == Qt::Key_PageUp ? -0.8 : 0.8) * height() / m_zoom;
        update();
        emit viewChanged();
        return;
    default:
        QWidget::keyPressEvent(event);
    }
}

void GraphView::follow(Qt::Key key) {
    int next = -1;
    if (m_state.selected < 0) {
        next = scene()->items.empty() ? -1 : 0;
    } else if (key == Qt::Key_Left || key == Qt::Key_Right) {
        next = neighbourBeside(m_state.selected, key == Qt::Key_Right);
    } else {
        const SceneItem& from = item(m_state.selected);
        const auto& along = key == Qt::Key_Up ? from.edgesIn : from.edgesOut;
        if (!along.empty()) {
            const SceneEdge& edge = scene()->edges[static_cast<std::size_t>(along.front())];
            next = key == Qt::Key_Up ? edge.from : edge.to;
        } else if (from.parent >= 0) {
            next = from.parent;
        }
        // A port stands for what is outside the frame: walk on to the frame itself.
        if (next >= 0 && item(next).kind != ItemKind::Op && item(next).parent >= 0)
            next = item(next).parent;
    }
    if (next < 0) return;
    activate(next);
    ensureVisible(next);
}

int GraphView::neighbourBeside(int from, bool right) const {
    const SceneItem& here = item(from);
    int best = -1;
    double least = std::numeric_limits<double>::infinity();
    for (int id = 0; id < itemCount(); ++id) {
        const SceneItem& other = item(id);
        if (id == from || other.parent != here.parent || other.kind == ItemKind::PortIn ||
            other.kind == ItemKind::PortOut)
            continue;
        const double across = other.rect.center().x() - here.rect.center().x();
        if (right ? across <= 1 : across >= -1) continue;
        const double down = std::abs(other.rect.center().y() - here.rect.center().y());
        const double distance = std::abs(across) + 4 * down;
        if (distance < least) {
            least = distance;
            best = id;
        }
    }
    return best;
}

void GraphView::leaveEvent(QEvent* event) {
    QWidget::leaveEvent(event);
    m_state.hovered = m_state.stages.hovered = -1;
    update();
}

void GraphView::focusInEvent(QFocusEvent* event) {
    QWidget::focusInEvent(event);
    update();
}

void GraphView::focusOutEvent(QFocusEvent* event) {
    QWidget::focusOutEvent(event);
    update();
}

} // namespace shardlens
