// SPDX-License-Identifier: Apache-2.0
// Mouse, wheel and keys of the mesh view. Arrows walk devices, or nodes where these are tiles.
#include "ui/views/mesh_view.h"

#include <QApplication>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace shardlens {

namespace {

constexpr double kKeyZoom = 1.25;

} // namespace

void MeshView::setView(QPointF origin, double zoom) {
    m_zoom = std::clamp(zoom, 1.0, m_geometry.mostZoom());
    m_origin = {std::clamp(origin.x(), 0.0, (m_zoom - 1) * width()),
                std::clamp(origin.y(), 0.0, (m_zoom - 1) * height())};
    update();
}

void MeshView::zoomAt(QPointF point, double factor) {
    const QPointF page = toPage(point);
    const double zoom = std::clamp(m_zoom * factor, 1.0, m_geometry.mostZoom());
    setView(page * zoom - point, zoom);
}

void MeshView::show(const QRectF& rect) {
    const auto shift = [](double low, double high, double size) {
        return high - low > size || low < 0 ? low : std::max(0.0, high - size);
    };
    setView(m_origin + QPointF(shift(rect.left(), rect.right(), width()),
                               shift(rect.top(), rect.bottom(), height())),
            m_zoom);
}

void MeshView::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    place();
}

void MeshView::select(int device) {
    m_selected = device;
    setAccessibleDescription(device < 0       ? QString()
                             : showsDevices() ? describe(device)
                                              : describeNode(m_geometry.nodeOf(device)));
    update();
    emit deviceSelected(device);
}

void MeshView::wheelEvent(QWheelEvent* event) {
    zoomAt(event->position(), std::exp2(event->angleDelta().y() / 480.0));
    event->accept();
}

void MeshView::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    m_down = true;
    m_pressed = event->position();
    m_pressedOrigin = m_origin;
}

void MeshView::mouseMoveEvent(QMouseEvent* event) {
    if (!m_down) return;
    const QPointF moved = event->position() - m_pressed;
    if (!m_dragging && moved.manhattanLength() < QApplication::startDragDistance()) return;
    m_dragging = true;
    setCursor(Qt::ClosedHandCursor);
    setView(m_pressedOrigin - moved, m_zoom);
}

void MeshView::mouseReleaseEvent(QMouseEvent* event) {
    if (!m_down || event->button() != Qt::LeftButton) return;
    if (!m_dragging) select(deviceAt(event->position()));
    m_down = m_dragging = false;
    unsetCursor();
}

void MeshView::keyPressEvent(QKeyEvent* event) {
    const int key = event->key();
    if (key == Qt::Key_Plus || key == Qt::Key_Equal || key == Qt::Key_Minus) {
        const QPointF at =
            m_selected < 0 ? QPointF(rect().center()) : deviceRect(m_selected).center();
        return zoomAt(at, key == Qt::Key_Minus ? 1 / kKeyZoom : kKeyZoom);
    }
    if (key == Qt::Key_0) return fit();
    const int inner = m_mesh.axes.empty() ? 1 : m_mesh.axes.back().size;
    const int beside = showsDevices() ? 1 : m_geometry.devicesPerNode;
    const int below = showsDevices() ? inner : m_geometry.devicesPerNode * m_geometry.nodeColumns;
    const int step = key == Qt::Key_Left    ? -beside
                     : key == Qt::Key_Right ? beside
                     : key == Qt::Key_Up    ? -below
                     : key == Qt::Key_Down  ? below
                                            : 0;
    if (step == 0 || m_geometry.isEmpty()) return QWidget::keyPressEvent(event);
    const int last = static_cast<int>(m_geometry.devices.size()) - 1;
    select(m_selected < 0 ? 0 : std::clamp(m_selected + step, 0, last));
    show(showsDevices() ? deviceRect(m_selected) : nodeRect(m_geometry.nodeOf(m_selected)));
}

bool MeshView::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const QString tip = describeAt(QPointF(help->pos()));
        if (tip.isEmpty())
            QToolTip::hideText();
        else
            QToolTip::showText(help->globalPos(), tip, this);
        return true;
    }
    return QWidget::event(event);
}

} // namespace shardlens
