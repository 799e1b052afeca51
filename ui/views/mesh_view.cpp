// SPDX-License-Identifier: Apache-2.0
// See mesh_view.h. Inside a node, columns follow the innermost mesh axis; nodes flow in rows.
#include "ui/views/mesh_view.h"

#include "ui/format.h"
#include "ui/theme.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <cmath>
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
}

void MeshView::setMesh(const Mesh& mesh, int devicesPerNode) {
    m_mesh = mesh;
    m_devicesPerNode = std::max(1, devicesPerNode);
    if (m_selected >= m_mesh.devices()) m_selected = -1;
    m_shards.clear();
    place();
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
    m_cells.clear();
    m_nodes.clear();
    m_selected = -1;
    update();
}

void MeshView::place() {
    m_cells.clear();
    m_nodes.clear();
    const int devices = m_mesh.axes.empty() ? 0 : m_mesh.devices();
    if (devices == 0) return;
    const int perNode = std::min(m_devicesPerNode, devices);
    const int inner = std::max(1, m_mesh.axes.back().size);
    const int columns = std::min(inner, perNode);
    const int rows = (perNode + columns - 1) / columns;
    const int nodes = (devices + perNode - 1) / perNode;
    constexpr double kGap = 6, kInset = 3;
    const double headline = nodes > 1 ? fontMetrics().height() + 1 : 0;
    // The number of node columns that leaves the largest cells.
    double best = -1, cellWidth = 0, cellHeight = 0;
    int nodeColumns = 1;
    for (int c = 1; c <= nodes; ++c) {
        const int r = (nodes + c - 1) / c;
        const double w = (width() - kGap * (c + 1)) / static_cast<double>(c);
        const double h = (height() - kGap * (r + 1)) / static_cast<double>(r);
        const double cw = (w - 2 * kInset) / columns;
        const double ch = (h - 2 * kInset - headline) / rows;
        const double score = std::min(cw * 0.45, ch); // wide cells have room for the slice
        if (score > best) {
            best = score;
            nodeColumns = c;
            cellWidth = std::min(cw, 150.0);
            cellHeight = std::min(ch, 44.0);
        }
    }
    cellWidth = std::max(cellWidth, 2.0);
    cellHeight = std::max(cellHeight, 2.0);
    const double nodeWidth = columns * cellWidth + 2 * kInset;
    const double nodeHeight = rows * cellHeight + 2 * kInset + headline;
    for (int n = 0; n < nodes; ++n) {
        const int nodeRow = n / nodeColumns;
        const QPointF corner(kGap + (n % nodeColumns) * (nodeWidth + kGap),
                             kGap + nodeRow * (nodeHeight + kGap));
        m_nodes.emplace_back(corner, QSizeF(nodeWidth, nodeHeight));
        for (int d = 0; d < perNode && n * perNode + d < devices; ++d) {
            const int row = d / columns;
            m_cells.emplace_back(corner.x() + kInset + (d % columns) * cellWidth,
                                 corner.y() + kInset + headline + row * cellHeight, cellWidth,
                                 cellHeight);
        }
    }
}

QColor MeshView::colourOf(int shard) const {
    const Palette& palette = Palette::of(this);
    if (m_shardCount <= 7) return palette.category(static_cast<std::size_t>(shard));
    return palette.scale(0.08 + 0.84 * shard / std::max(1, m_shardCount - 1));
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
    if (const int stage = stageOf(device); stage >= 0)
        label += tr(", stage %1 (%2)").arg(stage).arg(m_held.at(stage));
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

int MeshView::deviceAt(QPointF point) const {
    const auto found = std::find_if(m_cells.begin(), m_cells.end(),
                                    [&](const QRectF& cell) { return cell.contains(point); });
    return found == m_cells.end() ? -1 : static_cast<int>(found - m_cells.begin());
}

void MeshView::drawDevice(QPainter& painter, int device) const {
    const Palette& palette = Palette::of(this);
    const QRectF cell = m_cells[static_cast<std::size_t>(device)].adjusted(1, 1, -1, -1);
    QColor ground = palette.surface;
    const int stage = stageOf(device);
    if (!m_shards.empty())
        ground = colourOf(m_shards[static_cast<std::size_t>(device)].shard);
    else if (stage >= 0)
        ground = Palette::mix(palette.surface,
                              palette.numbered(static_cast<std::size_t>(stage),
                                               static_cast<std::size_t>(m_held.size())),
                              stage == m_selectedStage ? 0.75 : 0.32);
    painter.fillRect(cell, ground);
    if (stage >= 0 && stage == m_selectedStage) {
        painter.setPen(QPen(palette.accent, 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(cell);
    }
    if (device == m_selected) {
        painter.setPen(QPen(palette.text, 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(cell);
    }
    const QFontMetricsF metrics(painter.font());
    painter.setPen(palette.textOn(ground));
    const QString number = QString::number(device);
    const bool room =
        cell.height() >= metrics.height() && cell.width() >= metrics.horizontalAdvance(number) + 2;
    if (!room) return;
    const QString slice = sliceText(device);
    if (!slice.isEmpty() && cell.height() >= 2 * metrics.height() &&
        cell.width() >= metrics.horizontalAdvance(slice) + 4) {
        const QRectF upper(cell.left(), cell.top(), cell.width(), cell.height() / 2);
        painter.drawText(upper, Qt::AlignCenter, number);
        painter.drawText(upper.translated(0, cell.height() / 2), Qt::AlignCenter, slice);
        return;
    }
    if (!m_shards.empty() &&
        cell.width() >= metrics.horizontalAdvance(number + QStringLiteral(" ·000"))) {
        painter.drawText(cell, Qt::AlignCenter,
                         QStringLiteral("%1 ·%2").arg(number).arg(
                             m_shards[static_cast<std::size_t>(device)].shard));
        return;
    }
    painter.drawText(cell, Qt::AlignCenter, number);
}

void MeshView::paintEvent(QPaintEvent*) {
    const Palette& palette = Palette::of(this);
    QPainter painter(this);
    painter.fillRect(rect(), palette.canvas);
    QFont small = font();
    small.setPointSizeF(small.pointSizeF() * 0.8);
    painter.setFont(small);
    if (m_cells.empty()) {
        painter.setPen(palette.muted);
        painter.drawText(rect(), Qt::AlignCenter, tr("No mesh yet"));
        return;
    }
    for (std::size_t n = 0; n < m_nodes.size(); ++n) {
        painter.setPen(QPen(palette.border, 1));
        painter.setBrush(palette.frame);
        painter.drawRoundedRect(m_nodes[n], 3, 3);
        if (m_nodes.size() < 2 || m_nodes[n].height() < 24) continue;
        painter.setPen(palette.muted);
        painter.drawText(m_nodes[n].adjusted(5, 2, -4, 0), Qt::AlignLeft | Qt::AlignTop,
                         m_nodes[n].width() > 52 ? tr("node %1").arg(n) : QString::number(n));
    }
    for (int device = 0; device < static_cast<int>(m_cells.size()); ++device)
        drawDevice(painter, device);
    if (hasFocus()) {
        painter.setPen(palette.accent);
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(rect().adjusted(0, 0, -1, -1));
    }
}

void MeshView::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    place();
}

void MeshView::select(int device) {
    m_selected = device;
    setAccessibleDescription(device < 0 ? QString() : describe(device));
    update();
    emit deviceSelected(device);
}

void MeshView::mousePressEvent(QMouseEvent* event) {
    select(deviceAt(event->position()));
}

void MeshView::keyPressEvent(QKeyEvent* event) {
    const int inner = m_mesh.axes.empty() ? 1 : m_mesh.axes.back().size;
    const int step = event->key() == Qt::Key_Left    ? -1
                     : event->key() == Qt::Key_Right ? 1
                     : event->key() == Qt::Key_Up    ? -inner
                     : event->key() == Qt::Key_Down  ? inner
                                                     : 0;
    if (step == 0 || m_cells.empty()) return QWidget::keyPressEvent(event);
    select(std::clamp(m_selected + step, 0, static_cast<int>(m_cells.size()) - 1));
}

bool MeshView::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const int device = deviceAt(QPointF(help->pos()));
        if (device >= 0)
            QToolTip::showText(help->globalPos(), describe(device), this);
        else
            QToolTip::hideText();
        return true;
    }
    return QWidget::event(event);
}

} // namespace shardlens
