// SPDX-License-Identifier: Apache-2.0
// The device mesh, node by node, with what each device holds of one tensor. Devices that hold the
// same shard have the same colour and number; the slice is written in where there is room.
#pragma once

#include "core/cluster/cluster.h"
#include "core/cost/layout.h"

#include <QWidget>

#include <memory>
#include <vector>

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
    QRectF deviceRect(int device) const { return m_cells.at(static_cast<std::size_t>(device)); }
    int deviceAt(QPointF point) const;
    int selectedDevice() const { return m_selected; }
    QString describe(int device) const;
    QString sliceText(int device) const; ///< "[0:4, :, 512:1024]"

signals:
    void deviceSelected(int device);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    void place();
    void select(int device);
    QColor colourOf(int shard) const;
    void drawDevice(class QPainter& painter, int device) const;

    Mesh m_mesh;
    int m_devicesPerNode = 1;
    std::vector<DeviceShard> m_shards;
    Shape m_shape;
    int m_shardCount = 0;
    std::vector<QRectF> m_cells, m_nodes;
    int m_selected = -1;
    std::vector<int> m_stages; ///< by device
    QStringList m_held;        ///< by stage
    int m_selectedStage = -1;
};

} // namespace shardlens
