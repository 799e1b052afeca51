// SPDX-License-Identifier: Apache-2.0
// How boxes, strips, chips and collectives look. See graph_painter.h.
#include "ui/format.h"
#include "ui/views/graph_painter.h"

#include <QObject>
#include <QPainter>
#include <QPainterPath>

namespace shardlens {

namespace {

constexpr double kTitleZoom = 0.24;
constexpr double kDetailZoom = 0.42;

} // namespace

void GraphPainter::drawItem(QPainter& painter, int id, double zoom) const {
    const SceneItem& item = m_scene.items[static_cast<std::size_t>(id)];
    if (item.kind == ItemKind::Frame) {
        if (m_overlay.items[static_cast<std::size_t>(id)].pinned)
            drawPin(painter, item.rect.topRight() + QPointF(-34, -2));
        return;
    }
    const QColor fill = fillOf(id);
    if (zoom < 0.1) { // bare colour
        const bool plain = fill == m_palette.surface;
        painter.fillRect(item.rect, id == m_state.selected ? m_palette.accent
                                    : plain                ? m_palette.border
                                                           : fill);
        return;
    }
    if (item.kind == ItemKind::PortIn || item.kind == ItemKind::PortOut) {
        if (zoom >= kTitleZoom) drawPort(painter, id);
        return;
    }
    painter.setPen(outlineOf(id, zoom));
    painter.setBrush(fill);
    if (item.kind == ItemKind::Block) { // a stack of sheets
        painter.drawRoundedRect(item.rect.adjusted(8, 6, 0, 0), 6, 6);
        painter.drawRoundedRect(item.rect.adjusted(4, 3, -4, -3), 6, 6);
        painter.drawRoundedRect(sheetOf(item), 6, 6);
        m_stages.drawBands(painter, id, zoom);
        if (zoom >= kTitleZoom) drawBlock(painter, id, fill);
    } else {
        painter.drawRoundedRect(item.rect, 5, 5);
        m_stages.drawBands(painter, id, zoom);
        const OpFamily family = familyOf(m_scene.graph->op(item.op).kind);
        QPainterPath clip;
        clip.addRoundedRect(item.rect.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
        painter.save();
        painter.setClipPath(clip, Qt::IntersectClip);
        painter.fillRect(QRectF(item.rect.topLeft(), QSizeF(m_metrics.stripe, item.rect.height())),
                         m_palette.family(family));
        painter.restore();
        if (zoom >= kDetailZoom) {
            drawOp(painter, id, fill);
        } else if (zoom >= kTitleZoom) {
            painter.setFont(m_metrics.title);
            painter.setPen(m_palette.textOn(fill));
            painter.drawText(item.rect.adjusted(10, 2, -4, -2), Qt::AlignCenter,
                             QFontMetricsF(m_metrics.title)
                                 .elidedText(item.title, Qt::ElideRight, item.rect.width() - 16));
        }
    }
    const ItemMark& mark = m_overlay.items[static_cast<std::size_t>(id)];
    if (mark.pinned) drawPin(painter, item.rect.topLeft() + QPointF(2, -2));
    if (zoom >= kDetailZoom)
        for (const Lozenge& lozenge : mark.own) drawLozenge(painter, lozenge);
}

void GraphPainter::drawOp(QPainter& painter, int id, const QColor& fill) const {
    const SceneItem& item = m_scene.items[static_cast<std::size_t>(id)];
    const ItemMark& mark = m_overlay.items[static_cast<std::size_t>(id)];
    const double left = item.rect.left() + m_metrics.stripe + m_metrics.padding;
    const QRectF head(left, item.rect.top() + m_metrics.padding * 0.75,
                      item.rect.right() - left - m_metrics.padding, m_metrics.titleHeight);
    const QColor ink = m_palette.textOn(fill);
    const QFontMetricsF small(m_metrics.small), title(m_metrics.title);
    const double kindWidth = std::min(small.horizontalAdvance(item.subtitle), head.width() * 0.5);
    const double room = head.width() - kindWidth - 8;
    painter.setFont(m_metrics.title);
    painter.setPen(ink);
    painter.drawText(head, Qt::AlignLeft | Qt::AlignVCenter,
                     title.elidedText(item.title, Qt::ElideMiddle, room));
    painter.setFont(m_metrics.small);
    painter.setPen(Palette::mix(ink, fill, 0.22));
    painter.drawText(head, Qt::AlignRight | Qt::AlignVCenter,
                     small.elidedText(item.subtitle, Qt::ElideRight, kindWidth + 1));
    drawStrip(painter, QPointF(left, head.bottom() + 3), mark.result, head.width());
    for (std::size_t c = 0; c < item.chips.size() && c < mark.chips.size(); ++c)
        drawChip(painter, item.chips[c], mark.chips[c]);
}

void GraphPainter::drawStrip(QPainter& painter, QPointF at, const TensorMark& mark,
                             double room) const {
    painter.setFont(m_metrics.small);
    const double height = m_metrics.stripHeight(), half = m_metrics.smallHeight + 1;
    double x = at.x();
    const double end = at.x() + room;
    if (mark.dims.empty()) {
        painter.setPen(m_palette.muted);
        painter.drawText(QRectF(x, at.y(), room, half), Qt::AlignLeft | Qt::AlignVCenter,
                         QObject::tr("scalar"));
        x += QFontMetricsF(m_metrics.small).horizontalAdvance(QObject::tr("scalar")) + 8;
    }
    for (const DimMark& dim : mark.dims) {
        const double width = m_metrics.cellWidth(dim.global);
        if (x + width > end + 1) { // more dimensions than the widest box holds
            painter.setPen(m_palette.muted);
            painter.drawText(QRectF(x, at.y(), end - x, half), Qt::AlignLeft, QStringLiteral("…"));
            return;
        }
        const QRectF cell(x, at.y(), width, height);
        const QRectF upper(x, at.y(), width, half), lower(x, at.y() + half, width, height - half);
        const bool sharded = !dim.axes.empty();
        painter.setPen(QPen(sharded ? m_palette.axis(dim.axes.front()) : m_palette.faint, 1));
        painter.setBrush(m_palette.canvas);
        painter.drawRoundedRect(cell, 3, 3);
        painter.setPen(m_palette.text);
        painter.drawText(upper, Qt::AlignCenter, QString::number(dim.global));
        double part = lower.left();
        for (const std::uint8_t axis : dim.axes) {
            const QRectF pill(part, lower.top(), width / static_cast<double>(dim.axes.size()),
                              lower.height());
            const QColor ground = m_palette.axis(axis);
            painter.fillRect(pill.adjusted(1, 0, -1, -1), ground);
            painter.setPen(m_palette.textOn(ground));
            painter.drawText(pill, Qt::AlignCenter,
                             QFontMetricsF(m_metrics.small)
                                 .elidedText(axisText({axis}), Qt::ElideRight, pill.width()));
            part = pill.right();
        }
        x += width + m_metrics.cellGap;
    }
    for (const std::uint8_t axis : mark.partial) {
        const QString label = QStringLiteral("Σ") + axisText({axis});
        const double width = QFontMetricsF(m_metrics.small).horizontalAdvance(label) + 8;
        if (x + width > end + 6) return;
        const QRectF cell(x + 1, at.y(), width, height);
        const QColor colour = m_palette.axis(axis);
        painter.setPen(QPen(colour, 1.2, Qt::DashLine));
        painter.setBrush(Palette::mix(m_palette.canvas, colour, 0.18));
        painter.drawRoundedRect(cell, 3, 3);
        painter.setPen(m_palette.text);
        painter.drawText(cell, Qt::AlignCenter, label);
        x += width + m_metrics.cellGap;
    }
}

void GraphPainter::drawChip(QPainter& painter, const ParameterChip& chip,
                            const ChipMark& mark) const {
    const bool selected = chip.op == m_state.selectedChip;
    painter.setPen(QPen(selected ? m_palette.accent : m_palette.faint, selected ? 2 : 1));
    painter.setBrush(m_palette.canvas);
    painter.drawRoundedRect(chip.rect, 3, 3);
    const QFontMetricsF small(m_metrics.small);
    const bool constant = m_scene.graph->op(chip.op).kind == OpKind::Constant;
    const QPointF middle(chip.rect.left() + 9, chip.rect.center().y());
    painter.setPen(QPen(m_palette.muted, 1));
    painter.setBrush(constant ? QBrush(Qt::NoBrush) : QBrush(m_palette.muted));
    painter.drawPolygon(QPolygonF({middle + QPointF(0, -4), middle + QPointF(4, 0),
                                   middle + QPointF(0, 4), middle + QPointF(-4, 0)}));
    double right = chip.rect.right() - 3;
    for (const Lozenge& lozenge : mark.collectives)
        if (!lozenge.rect.isNull()) right = std::min(right, lozenge.rect.left() - 3);
    double x = chip.rect.left() + 17;
    painter.setFont(m_metrics.small);
    QRectF shape(0, chip.rect.top() + 1, 0, chip.rect.height() - 2);
    double shapeWidth = 0;
    for (const DimMark& dim : mark.tensor.dims)
        shapeWidth +=
            small.horizontalAdvance(QString::number(dim.global) +
                                    (dim.axes.empty() ? QString() : u'/' + axisText(dim.axes))) +
            12;
    const double nameRoom = std::max(30.0, right - x - shapeWidth - 6);
    const QString name = small.elidedText(chip.name, Qt::ElideRight, nameRoom);
    painter.setPen(m_palette.text);
    painter.drawText(QRectF(x, chip.rect.top(), nameRoom, chip.rect.height()),
                     Qt::AlignLeft | Qt::AlignVCenter, name);
    x += small.horizontalAdvance(name) + 6;
    shape.setLeft(x);
    shape.setRight(right);
    if (shape.width() > 20) {
        painter.save();
        painter.setClipRect(shape, Qt::IntersectClip);
        drawShape(painter, shape, mark.tensor);
        painter.restore();
    }
    for (const Lozenge& lozenge : mark.collectives)
        if (!lozenge.rect.isNull()) drawLozenge(painter, lozenge);
}

void GraphPainter::drawShape(QPainter& painter, const QRectF& rect, const TensorMark& mark) const {
    const QFontMetricsF small(m_metrics.small);
    painter.setFont(m_metrics.small);
    double x = rect.left() + 2;
    const auto put = [&](const QString& label, const QColor& colour) {
        const double width = small.horizontalAdvance(label);
        painter.setPen(colour);
        painter.drawText(QRectF(x, rect.top(), width + 1, rect.height()),
                         Qt::AlignLeft | Qt::AlignVCenter, label);
        x += width;
    };
    const auto pill = [&](const QString& label, const QColor& ground, bool dashed) {
        const double width = small.horizontalAdvance(label) + 8;
        const QRectF box(x, rect.top() + 1, width - 1, rect.height() - 2);
        painter.setPen(dashed ? QPen(ground, 1, Qt::DashLine) : QPen(Qt::NoPen));
        painter.setBrush(dashed ? Palette::mix(m_palette.canvas, ground, 0.18) : ground);
        painter.drawRoundedRect(box, 3, 3);
        painter.setPen(dashed ? m_palette.text : m_palette.textOn(ground));
        painter.drawText(box, Qt::AlignCenter, label);
        x += width;
    };
    if (mark.dims.empty()) put(QObject::tr("scalar"), m_palette.muted);
    for (std::size_t d = 0; d < mark.dims.size(); ++d) {
        if (d > 0) put(QStringLiteral(" × "), m_palette.muted);
        const DimMark& dim = mark.dims[d];
        if (dim.axes.empty())
            put(QString::number(dim.global), m_palette.muted);
        else
            pill(QString::number(dim.global) + u'/' + axisText(dim.axes),
                 m_palette.axis(dim.axes.front()), false);
    }
    for (const std::uint8_t axis : mark.partial) {
        put(QStringLiteral("  "), m_palette.muted);
        pill(QStringLiteral("Σ") + axisText({axis}), m_palette.axis(axis), true);
    }
}

void GraphPainter::drawLozenge(QPainter& painter, const Lozenge& lozenge) const {
    const QRectF& rect = lozenge.rect;
    if (rect.isNull()) return;
    const QColor colour = m_palette.axis(lozenge.axis);
    const double tip = rect.height() / 2;
    painter.setPen(
        QPen(colour, 1.4, lozenge.phase == Phase::Forward ? Qt::SolidLine : Qt::DashLine));
    painter.setBrush(Palette::mix(m_palette.surface, colour, m_palette.dark_ ? 0.30 : 0.22));
    painter.drawPolygon(QPolygonF(
        {QPointF(rect.left(), rect.center().y()), QPointF(rect.left() + tip * 0.7, rect.top()),
         QPointF(rect.right() - tip * 0.7, rect.top()), QPointF(rect.right(), rect.center().y()),
         QPointF(rect.right() - tip * 0.7, rect.bottom()),
         QPointF(rect.left() + tip * 0.7, rect.bottom())}));
    painter.setFont(m_metrics.small);
    painter.setPen(m_palette.text);
    painter.drawText(rect, Qt::AlignCenter, lozengeText(lozenge, m_overlay));
}

void GraphPainter::drawBlock(QPainter& painter, int id, const QColor& fill) const {
    const SceneItem& item = m_scene.items[static_cast<std::size_t>(id)];
    const ItemMark& mark = m_overlay.items[static_cast<std::size_t>(id)];
    const QRectF face = item.rect.adjusted(10, m_metrics.padding - 1, -18, -6 - m_metrics.padding);
    const QColor ink = m_palette.textOn(fill), soft = Palette::mix(ink, fill, 0.22);
    painter.setPen(Qt::NoPen);
    painter.setBrush(soft);
    const QPointF at(face.left() + 4, face.top() + m_metrics.titleHeight / 2);
    painter.drawPolygon(QPolygonF({at + QPointF(-4, -5), at + QPointF(5, 0), at + QPointF(-4, 5)}));
    painter.setFont(m_metrics.title);
    painter.setPen(ink);
    painter.drawText(
        QRectF(face.left() + 16, face.top(), face.width() - 16, m_metrics.titleHeight),
        Qt::AlignLeft | Qt::AlignVCenter,
        QFontMetricsF(m_metrics.title).elidedText(item.title, Qt::ElideMiddle, face.width() - 16));
    painter.setFont(m_metrics.small);
    painter.setPen(soft);
    const QFontMetricsF small(m_metrics.small);
    const auto line = [&](int row, const QString& content) {
        painter.drawText(
            QRectF(face.left() + 16,
                   face.top() + m_metrics.titleHeight + 4 + row * (m_metrics.smallHeight + 2),
                   face.width() - 16, m_metrics.smallHeight + 2),
            Qt::AlignLeft | Qt::AlignVCenter,
            small.elidedText(content, Qt::ElideRight, face.width() - 16));
    };
    line(0, item.subtitle);
    if (!m_overlay.plan) return;
    line(1, QObject::tr("compute %1 · comm %2 · %3")
                .arg(formatCost(mark.heat.time, m_overlay.unit),
                     formatCost(mark.heat.communication, m_overlay.unit),
                     formatBytes(mark.heat.memory)));
    if (m_scene.folding->runs[static_cast<std::size_t>(item.run)].count == 1) return;
    const QString ranges = rangesText(mark.ranges);
    line(2, ranges.isEmpty() ? QObject::tr("all blocks alike")
                             : QObject::tr("blocks %1 differ").arg(ranges));
}

void GraphPainter::drawPort(QPainter& painter, int id) const {
    const SceneItem& item = m_scene.items[static_cast<std::size_t>(id)];
    painter.setPen(
        QPen(id == m_state.selected ? m_palette.accent : m_palette.border, 1, Qt::DashLine));
    painter.setBrush(m_palette.canvas);
    painter.drawRoundedRect(item.rect, item.rect.height() / 2, item.rect.height() / 2);
    const QFontMetricsF small(m_metrics.small);
    const QRectF inner = item.rect.adjusted(12, 0, -12, 0);
    const double right = small.horizontalAdvance(item.subtitle);
    painter.setFont(m_metrics.small);
    painter.setPen(m_palette.muted);
    painter.drawText(inner, Qt::AlignRight | Qt::AlignVCenter, item.subtitle);
    painter.setPen(m_palette.text);
    painter.drawText(inner, Qt::AlignLeft | Qt::AlignVCenter,
                     small.elidedText(item.title, Qt::ElideMiddle, inner.width() - right - 6));
}

void GraphPainter::drawPin(QPainter& painter, QPointF at) const {
    painter.save();
    painter.translate(at);
    painter.rotate(25);
    painter.setPen(QPen(m_palette.surface, 1));
    painter.setBrush(m_palette.pin);
    painter.drawRect(QRectF(-1.2, 4, 2.4, 9));
    painter.drawRoundedRect(QRectF(-6, 1, 12, 4.5), 2, 2);
    painter.drawEllipse(QRectF(-4.5, -6, 9, 9));
    painter.restore();
}

} // namespace shardlens
