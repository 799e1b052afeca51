// SPDX-License-Identifier: Apache-2.0
// What is shown and what is said of it. See mesh_view.h.
#include "ui/views/mesh_view.h"

#include "ui/format.h"

#include <algorithm>
#include <map>

namespace shardlens {

std::vector<DeviceShard> shardsOf(const Shape& shape, const SideLayout& side, const Mesh& mesh) {
    std::vector<DeviceShard> shards(static_cast<std::size_t>(mesh.devices()));
    const Shape local = localShape(shape, side, mesh);
    std::map<std::vector<std::int64_t>, int> numbers;
    for (int device = 0; device < mesh.devices(); ++device) {
        const std::vector<int> place = mesh.coordinates(device);
        std::vector<std::int64_t> part(shape.size(), 0);
        for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
            if (side[a] < 0 || static_cast<std::size_t>(side[a]) >= shape.size()) continue;
            std::int64_t& index = part[static_cast<std::size_t>(side[a])];
            index = index * mesh.axes[a].size + place[a];
        }
        DeviceShard& shard = shards[static_cast<std::size_t>(device)];
        for (std::size_t d = 0; d < shape.size(); ++d) {
            const std::int64_t begin = std::min(part[d] * local[d], shape[d]);
            shard.slices.emplace_back(begin, std::min(begin + local[d], shape[d]));
        }
        shard.shard = numbers.try_emplace(part, static_cast<int>(numbers.size())).first->second;
    }
    return shards;
}

MeshView::MeshView(QWidget* parent) : QWidget(parent) {
    setObjectName(QStringLiteral("meshView"));
    setAccessibleName(tr("Device mesh"));
    setFocusPolicy(Qt::StrongFocus);
    setMinimumSize(160, 90);
    setAttribute(Qt::WA_OpaquePaintEvent);
}

void MeshView::setMesh(const Mesh& mesh, int devicesPerNode) {
    const std::size_t nodes = m_geometry.nodes.size();
    m_mesh = mesh;
    m_devicesPerNode = std::max(1, devicesPerNode);
    if (m_selected >= m_mesh.devices()) m_selected = -1;
    m_shards.clear();
    place();
    if (m_geometry.nodes.size() != nodes) fit(); // else it stays as it was looked at
    update();
}

void MeshView::setShards(std::vector<DeviceShard> shards, const Shape& shape) {
    m_shards = std::move(shards);
    m_shape = shape;
    m_shardCount = 0;
    for (const DeviceShard& shard : m_shards)
        m_shardCount = std::max(m_shardCount, shard.shard + 1);
    update();
}

void MeshView::setStages(std::vector<int> byDevice, QStringList held) {
    m_stages = std::move(byDevice);
    m_held = std::move(held);
    update();
}

void MeshView::setSelectedStage(int stage) {
    if (stage == m_selectedStage) return;
    m_selectedStage = stage;
    update();
}

int MeshView::stageOf(int device) const {
    const auto index = static_cast<std::size_t>(device);
    return index < m_stages.size() ? m_stages[index] : -1;
}

void MeshView::clear() {
    m_mesh = {};
    m_shards.clear();
    m_selected = -1;
    place();
    update();
}

void MeshView::place() {
    const int devices = m_mesh.axes.empty() ? 0 : m_mesh.devices();
    const int inner = devices == 0 ? 1 : m_mesh.axes.back().size;
    m_geometry =
        placeMesh(devices, m_devicesPerNode, inner, QSizeF(size()), fontMetrics().height() + 1);
    setView(m_origin, m_zoom);
}

QString MeshView::sliceText(int device) const {
    if (m_shards.empty()) return {};
    QStringList parts;
    const auto& slices = m_shards.at(static_cast<std::size_t>(device)).slices;
    for (std::size_t d = 0; d < slices.size(); ++d)
        parts << (slices[d].first == 0 && slices[d].second == m_shape[d]
                      ? QStringLiteral(":")
                      : QStringLiteral("%1:%2").arg(slices[d].first).arg(slices[d].second));
    return QStringLiteral("[%1]").arg(parts.join(QStringLiteral(", ")));
}

QString MeshView::describe(int device) const {
    QStringList place;
    const std::vector<int> coordinates = m_mesh.coordinates(device);
    for (std::size_t a = 0; a < m_mesh.axes.size(); ++a)
        place << QStringLiteral("%1=%2").arg(text(m_mesh.axes[a].name)).arg(coordinates[a]);
    QString label = tr("Device %1 (%2), node %3")
                        .arg(device)
                        .arg(place.join(QStringLiteral(", ")))
                        .arg(device / m_devicesPerNode);
    if (stageOf(device) >= 0) label += QStringLiteral(", ") + stagesText(device, device + 1);
    if (!m_shards.empty()) {
        const int shard = m_shards[static_cast<std::size_t>(device)].shard;
        const auto alike =
            std::count_if(m_shards.begin(), m_shards.end(),
                          [shard](const auto& other) { return other.shard == shard; });
        label +=
            tr(" holds %1, shard %2 of %3").arg(sliceText(device)).arg(shard).arg(m_shardCount);
        if (alike > 1) label += tr(", as %1 others do").arg(alike - 1);
    }
    return label;
}

QString MeshView::stagesText(int first, int end) const {
    QStringList parts;
    for (int device = first, last = -1; device < end; ++device) {
        const int stage = stageOf(device);
        if (stage >= 0 && stage != last)
            parts << tr("stage %1 (%2)").arg(stage).arg(m_held.at(stage));
        last = stage;
    }
    return parts.join(QStringLiteral(", "));
}

QString MeshView::describeNode(int node) const {
    const auto [first, end] = m_geometry.devicesOf(node);
    QString label = end - first == 1
                        ? tr("Node %1, device %2").arg(node).arg(first)
                        : tr("Node %1, devices %2–%3").arg(node).arg(first).arg(end - 1);
    const QString stages = stagesText(first, end);
    if (!stages.isEmpty()) label += QStringLiteral(", ") + stages;
    return label;
}

QString MeshView::describeAt(QPointF point) const {
    if (showsDevices()) {
        const int device = deviceAt(point);
        return device < 0 ? QString() : describe(device);
    }
    const int node = nodeAt(point);
    return node < 0 ? QString() : describeNode(node);
}

int MeshView::deviceAt(QPointF point) const {
    const int device = m_geometry.deviceAt(toPage(point));
    const int node = nodeAt(point);
    if (device >= 0 || node < 0 || showsDevices()) return device;
    return m_geometry.devicesOf(node).first; // a tile is hit anywhere
}

} // namespace shardlens
