// SPDX-License-Identifier: Apache-2.0
// How the mesh view is painted: nodes as tiles while their devices are too small to be told apart,
// then devices, with as much written in as there is room for.
#include "ui/theme.h"
#include "ui/views/mesh_view.h"

#include <QPainter>

#include <algorithm>

namespace shardlens {

namespace {

constexpr double kWeak = 0.32, kStrong = 0.75; ///< of a stage's colour; the selected one's

bool hasRoom(const QFontMetricsF& metrics, const QRectF& place, const QStringList& lines) {
    if (place.height() < metrics.height() * static_cast<double>(lines.size())) return false;
    return std::ranges::all_of(lines, [&](const QString& line) {
        return place.width() >= metrics.horizontalAdvance(line) + 2;
    });
}

} // namespace

QColor MeshView::colourOf(int device) const {
    const Palette& palette = Palette::of(this);
    if (!m_shards.empty()) {
        const int shard = m_shards[static_cast<std::size_t>(device)].shard;
        if (m_shardCount <= 7) return palette.category(static_cast<std::size_t>(shard));
        return palette.scale(0.08 + 0.84 * shard / std::max(1, m_shardCount - 1));
    }
    const int stage = stageOf(device);
    if (stage < 0) return palette.surface;
    return Palette::mix(
        palette.surface,
        palette.numbered(static_cast<std::size_t>(stage), static_cast<std::size_t>(m_held.size())),
        stage == m_selectedStage ? kStrong : kWeak);
}

void MeshView::drawFrame(QPainter& painter, const QRectF& cell, bool ofStage, bool selected) const {
    const Palette& palette = Palette::of(this);
    painter.setBrush(Qt::NoBrush);
    if (ofStage) {
        painter.setPen(QPen(palette.accent, 2));
        painter.drawRect(cell);
    }
    if (selected) {
        painter.setPen(QPen(palette.text, 2));
        painter.drawRect(cell);
    }
}

void MeshView::drawDevice(QPainter& painter, int device) const {
    const QRectF cell = deviceRect(device).adjusted(1, 1, -1, -1);
    const QColor ground = colourOf(device);
    painter.fillRect(cell, ground);
    const int stage = stageOf(device);
    drawFrame(painter, cell, stage >= 0 && stage == m_selectedStage, device == m_selected);
    painter.setPen(Palette::of(this).textOn(ground));
    drawDeviceText(painter, cell, device);
}

void MeshView::drawDeviceText(QPainter& painter, const QRectF& cell, int device) const {
    const QFontMetricsF metrics(painter.font());
    const QString number = QString::number(device);
    if (!hasRoom(metrics, cell, {number})) return;
    if (m_shards.empty()) {
        painter.drawText(cell, Qt::AlignCenter, number);
        return;
    }
    const QString slice = sliceText(device);
    if (hasRoom(metrics, cell, {number, slice})) {
        const QRectF upper(cell.left(), cell.top(), cell.width(), cell.height() / 2);
        painter.drawText(upper, Qt::AlignCenter, number);
        painter.drawText(upper.translated(0, cell.height() / 2), Qt::AlignCenter, slice);
        return;
    }
    const bool wide = hasRoom(metrics, cell, {number + QStringLiteral(" ·000")});
    painter.drawText(cell, Qt::AlignCenter,
                     wide ? QStringLiteral("%1 ·%2").arg(number).arg(
                                m_shards[static_cast<std::size_t>(device)].shard)
                          : number);
}

void MeshView::drawTile(QPainter& painter, int node) const {
    const QRectF tile = nodeRect(node);
    const auto [first, end] = m_geometry.devicesOf(node);
    const QColor ground = colourOf(first);
    bool equal = true;
    for (int device = first + 1; device < end && equal; ++device)
        equal = colourOf(device) == ground;
    painter.fillRect(tile, ground);
    const double each = tile.width() / (end - first);
    for (int device = first; device < end && !equal; ++device)
        painter.fillRect(
            QRectF(tile.left() + (device - first) * each, tile.top(), each, tile.height()),
            colourOf(device));
    bool ofStage = false;
    for (int device = first; device < end && m_selectedStage >= 0; ++device)
        ofStage = ofStage || stageOf(device) == m_selectedStage;
    drawFrame(painter, tile, ofStage, m_selected >= first && m_selected < end);
    drawTileText(painter, node, equal ? ground : QColor());
}

/// @param ground invalid: of several colours
void MeshView::drawTileText(QPainter& painter, int node, const QColor& ground) const {
    const Palette& palette = Palette::of(this);
    const auto [first, end] = m_geometry.devicesOf(node);
    const QFontMetricsF metrics(painter.font());
    const QRectF tile = nodeRect(node).adjusted(1, 1, -1, -1);
    const QString number = QString::number(node);
    for (const QStringList& lines :
         {QStringList{tr("node %1").arg(node), tr("%1 devices").arg(end - first)},
          QStringList{number, QStringLiteral("×%1").arg(end - first)}, QStringList{number}}) {
        if (!hasRoom(metrics, tile, lines)) continue;
        const QString words = lines.join(u'\n');
        QRectF box;
        if (!ground.isValid()) {
            painter.drawText(tile, Qt::AlignCenter | Qt::TextDontPrint, words, &box);
            painter.fillRect(box.adjusted(-1, 0, 1, 0), palette.canvas);
        }
        painter.setPen(ground.isValid() ? palette.textOn(ground) : palette.text);
        painter.drawText(tile, Qt::AlignCenter, words);
        return;
    }
}

void MeshView::drawNode(QPainter& painter, int node) const {
    const Palette& palette = Palette::of(this);
    const QRectF frame = nodeRect(node);
    painter.setPen(QPen(palette.border, 1));
    painter.setBrush(palette.frame);
    painter.drawRoundedRect(frame, 3, 3);
    const QRectF headline(frame.left() + 5, frame.top() + 1, frame.width() - 9,
                          m_geometry.headline * m_zoom + 2);
    const QFontMetricsF metrics(painter.font());
    painter.setPen(palette.muted);
    for (const QString& words : {tr("node %1").arg(node), QString::number(node)}) {
        if (m_geometry.headline <= 0 || !hasRoom(metrics, headline, {words})) continue;
        painter.drawText(headline, Qt::AlignLeft | Qt::AlignVCenter, words);
        break;
    }
    const auto [first, end] = m_geometry.devicesOf(node);
    for (int device = first; device < end; ++device) drawDevice(painter, device);
}

void MeshView::paintEvent(QPaintEvent*) {
    const Palette& palette = Palette::of(this);
    QPainter painter(this);
    painter.fillRect(rect(), palette.canvas);
    QFont small = font();
    small.setPointSizeF(small.pointSizeF() * 0.8);
    painter.setFont(small);
    if (m_geometry.isEmpty()) {
        painter.setPen(palette.muted);
        painter.drawText(rect(), Qt::AlignCenter, tr("No mesh yet"));
        return;
    }
    for (int node = 0; node < nodeCount(); ++node) {
        if (!nodeRect(node).intersects(QRectF(rect()))) continue;
        if (showsDevices())
            drawNode(painter, node);
        else
            drawTile(painter, node);
    }
    if (hasFocus()) {
        painter.setPen(palette.accent);
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(rect().adjusted(0, 0, -1, -1));
    }
}

} // namespace shardlens
