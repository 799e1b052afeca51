// SPDX-License-Identifier: Apache-2.0
// What the graph view says of its items and edges, for tips and screen readers.
#include "ui/format.h"
#include "ui/views/graph_view.h"

#include <QToolTip>

#include <cmath>
#include <ranges>

namespace shardlens {

namespace {

constexpr std::size_t kMostInTip = 12; // tensors of a bundle

} // namespace

QString GraphView::describe(int id) const {
    const SceneItem& shown = item(id);
    const ItemMark& mark = m_overlay->items[static_cast<std::size_t>(id)];
    QStringList parts{shown.title};
    if (!shown.subtitle.isEmpty()) parts << shown.subtitle;
    if (shown.kind == ItemKind::Op) {
        const OpId op = opOfItem(id);
        const Op& source = scene()->graph->op(op);
        parts = QStringList{text(source.name), shown.subtitle};
        if (!source.outputs.empty())
            parts << formatShape(scene()->graph->tensor(source.outputs[0]).spec.shape);
        if (!mark.choice.isEmpty()) parts << tr("sharding %1").arg(mark.choice);
        if (mark.pinned) parts << tr("pinned");
    }
    if (m_overlay->plan && (shown.kind == ItemKind::Op || shown.kind == ItemKind::Block)) {
        parts << tr("compute %1").arg(formatCost(mark.heat.time, m_overlay->unit));
        parts << tr("communication %1").arg(formatCost(mark.heat.communication, m_overlay->unit));
        parts << tr("memory %1 a device").arg(formatBytes(mark.heat.memory));
    }
    return parts.join(QStringLiteral(", "));
}

void GraphView::showTip(QPoint globalPosition, QPointF widget) {
    if (!scene()) return;
    const QPointF at = toScene(widget);
    const int boundary = boundaryAt(widget);
    QString tip = boundary >= 0 ? describeBoundary(boundary) : edgeTip(at);
    const int id = itemAt(widget);
    if (const int stage = stageAt(at); tip.isEmpty() && stage >= 0) tip = describeStage(stage);
    if (tip.isEmpty() && id >= 0) {
        tip = describe(id).replace(QStringLiteral(", "), QStringLiteral("\n"));
        for (const ParameterChip& chip : item(id).chips)
            if (chip.rect.contains(at)) tip = text(scene()->graph->op(chip.op).name);
    }
    if (tip.isEmpty())
        QToolTip::hideText();
    else
        QToolTip::showText(globalPosition, tip, this);
}

QString GraphView::edgeTip(QPointF at) const {
    for (const int id : scene()->edgesIn(QRectF(at - QPointF(2, 2), QSizeF(4, 4)))) {
        const EdgeMark& mark = m_overlay->edges[static_cast<std::size_t>(id)];
        const SceneEdge& edge = scene()->edges[static_cast<std::size_t>(id)];
        const std::size_t repeat =
            edge.run < 0 ? 0 : m_overlay->repeats[static_cast<std::size_t>(edge.run)];
        const Tensor& tensor = scene()->graph->tensor(scene()->tensorInRepeat(edge, repeat));
        for (const Lozenge& lozenge : mark.collectives) {
            if (!lozenge.rect.contains(at)) continue;
            return tr("%1 over %2, %3\n%4 · %5 · modelled\ntensor %6")
                .arg(text(nameOf(lozenge.kind)),
                     lozenge.axis < m_overlay->axisNames.size() ? m_overlay->axisNames[lozenge.axis]
                                                                : QString(),
                     text(nameOf(lozenge.phase)), formatBytes(lozenge.bytes),
                     formatCost(lozenge.cost, m_overlay->unit), text(tensor.name));
        }
        bool near = mark.label.contains(at);
        for (double t = 0; t <= 1.0 && !near; t += 0.02) {
            const QPointF off = pointOnCurve(edge.path, t) - at;
            near = std::hypot(off.x(), off.y()) < 5 / m_zoom;
        }
        if (!near || itemAt(toWidget(at)) >= 0) continue;
        if (edge.bundle.empty())
            return tr("%1\n%2 %3")
                .arg(text(tensor.name), formatShape(tensor.spec.shape),
                     text(nameOf(tensor.spec.dtype)));
        QStringList lines{bundleText(edge)};
        for (const SceneRead& read : edge.bundle | std::views::take(kMostInTip)) {
            const Tensor& each = scene()->graph->tensor(read.tensor);
            lines << tr("%1  %2").arg(text(each.name), formatShape(each.spec.shape));
        }
        if (edge.bundle.size() > kMostInTip) lines << QStringLiteral("…");
        return lines.join(u'\n');
    }
    return {};
}

} // namespace shardlens
