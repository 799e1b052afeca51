// SPDX-License-Identifier: Apache-2.0
// The device mesh, node by node, with what each device holds of one tensor. Devices that hold the
// same shard have the same colour and number; the slice is written in where there is room. A mesh
// of many nodes is a page of tiles, a node each, in the colours of its stage or shards; wheel and
// keys zoom in until devices, their numbers and their slices show, and dragging moves the page.
#pragma once

#include "core/cluster/cluster.h"
#include "core/cost/layout.h"
#include "ui/views/mesh_geometry.h"

#include <QWidget>

#include <memory>
#include <vector>

class QPainter;

namespace shardlens {

/// What one device holds of a tensor.
struct DeviceShard {
    std::vector<std::pair<std::int64_t, std::int64_t>> slices; ///< [begin, end) by dimension
    int shard = 0;                                             ///< equal numbers hold equal slices
};

/// By device. Several axes on one dimension cut it in mesh order, outer axis major.
std::vector<DeviceShard> shardsOf(const Shape& shape, const SideLayout& side, const Mesh& mesh);

class MeshView : public QWidget {
    Q_OBJECT

public:
    explicit MeshView(QWidget* parent = nullptr);
    void setMesh(const Mesh& mesh, int devicesPerNode);
    /// @param shards by device; empty: no tensor is shown
    void setShards(std::vector<DeviceShard> shards, const Shape& shape);
    /// Which stage of the whole job each device works for; -1 or missing: none.
    /// @param held by stage: its layers, in words
    void setStages(std::vector<int> byDevice, QStringList held);
    void setSelectedStage(int stage);
    int selectedStage() const { return m_selectedStage; }
    int stageOf(int device) const;
    void clear();

    int deviceCount() const { return m_mesh.devices(); }
    int nodeCount() const { return static_cast<int>(m_geometry.nodes.size()); }
    // Widget coordinates.
    QRectF deviceRect(int device) const {
        return toWidget(m_geometry.devices.at(static_cast<std::size_t>(device)));
    }
    QRectF nodeRect(int node) const {
        return toWidget(m_geometry.nodes.at(static_cast<std::size_t>(node)));
    }
    /// Where nodes are tiles, also of what is beside its devices.
    int deviceAt(QPointF point) const;
    int nodeAt(QPointF point) const { return m_geometry.nodeAt(toPage(point)); }
    QString describeAt(QPointF point) const; ///< what a tip says; empty: nothing there
    int selectedDevice() const { return m_selected; }
    QString describe(int device) const;
    QString describeNode(int node) const;
    QString sliceText(int device) const; ///< "[0:4, :, 512:1024]"

    double zoom() const { return m_zoom; }                                ///< 1: all of it
    bool showsDevices() const { return m_geometry.showsDevices(m_zoom); } ///< else nodes as tiles
    void zoomAt(QPointF point, double factor);
    void fit() { setView({}, 1); }

signals:
    void deviceSelected(int device);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    QRectF toWidget(const QRectF& page) const {
        return {page.topLeft() * m_zoom - m_origin, page.size() * m_zoom};
    }
    QPointF toPage(QPointF widget) const { return (widget + m_origin) / m_zoom; }
    void place();
    /// @param origin of the widget on the enlarged page; kept on it
    void setView(QPointF origin, double zoom);
    void select(int device);
    void show(const QRectF& rect);                ///< scrolls until it is in sight
    QString stagesText(int first, int end) const; ///< of devices
    QColor colourOf(int device) const;
    void drawTile(QPainter& painter, int node) const;
    void drawTileText(QPainter& painter, int node, const QColor& ground) const;
    void drawNode(QPainter& painter, int node) const;
    void drawDevice(QPainter& painter, int device) const;
    void drawDeviceText(QPainter& painter, const QRectF& cell, int device) const;
    void drawFrame(QPainter& painter, const QRectF& cell, bool ofStage, bool selected) const;

    Mesh m_mesh;
    int m_devicesPerNode = 1;
    std::vector<DeviceShard> m_shards;
    Shape m_shape;
    int m_shardCount = 0;
    MeshGeometry m_geometry;
    double m_zoom = 1;
    QPointF m_origin, m_pressed, m_pressedOrigin;
    bool m_down = false, m_dragging = false;
    int m_selected = -1;
    std::vector<int> m_stages; ///< by device
    QStringList m_held;        ///< by stage
    int m_selectedStage = -1;
};

} // namespace shardlens
