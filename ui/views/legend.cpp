// SPDX-License-Identifier: Apache-2.0
// See legend.h.
#include "ui/views/legend.h"

#include "ui/format.h"

#include <QPainter>
#include <QResizeEvent>

namespace shardlens {

namespace {

constexpr double kMargin = 8, kEntryGap = 16;

} // namespace

Legend::Legend(QWidget* parent) : QWidget(parent) {
    setObjectName(QStringLiteral("legend"));
    setAccessibleName(tr("Legend"));
    QFont small = font();
    small.setPointSizeF(small.pointSizeF() * 0.88);
    setFont(small);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    fitHeight();
}

void Legend::setOverlay(std::shared_ptr<const GraphOverlay> overlay) {
    m_overlay = std::move(overlay);
    setAccessibleDescription(plainText());
    fitHeight();
    update();
}

void Legend::setColourMode(ColourMode mode) {
    m_mode = mode;
    setAccessibleDescription(plainText());
    fitHeight();
    update();
}

QString Legend::most() const {
    if (!m_overlay) return {};
    switch (m_mode) {
    case ColourMode::Time:
        return formatCost(m_overlay->most.time, m_overlay->unit);
    case ColourMode::Communication:
        return formatCost(m_overlay->most.communication, m_overlay->unit);
    case ColourMode::Memory:
        return formatBytes(m_overlay->most.memory);
    case ColourMode::None:
        break;
    }
    return {};
}

std::vector<Legend::Entry> Legend::entries() const {
    using Sign = Entry::Sign;
    std::vector<Entry> list;
    if (m_mode != ColourMode::None) {
        const QString what = m_mode == ColourMode::Time            ? tr("compute time")
                             : m_mode == ColourMode::Communication ? tr("communication")
                                                                   : tr("memory a device");
        list.push_back({Sign::Scale, 0, tr("%1, 0 to %2").arg(what, most())});
    }
    if (m_overlay && m_overlay->stage >= 0)
        list.push_back({Sign::Boundary, 0,
                        tr("inside stage %1, one micro-batch of a replica").arg(m_overlay->stage)});
    if (m_overlay && !m_overlay->axisNames.empty()) {
        for (int a = 0; a < static_cast<int>(m_overlay->axisNames.size()); ++a)
            list.push_back(
                {Sign::Axis, a,
                 tr("sharded over %1").arg(m_overlay->axisNames[static_cast<std::size_t>(a)])});
        list.push_back({Sign::Partial, 0, tr("partial sum")});
        list.push_back({Sign::Collective, 0,
                        tr("AR all-reduce, AG all-gather, RS reduce-scatter, A2A all-to-all")});
        list.push_back({Sign::Backward, 0, tr("backward")});
        list.push_back({Sign::Step, 0, tr("once a step")});
        list.push_back({Sign::Pin, 0, tr("pinned")});
    }
    if (m_overlay && m_overlay->stages.plan) {
        list.push_back({Sign::Boundary, 0, tr("stage boundary")});
        list.push_back({Sign::Boundary, 1, tr("pinned")});
    }
    list.push_back({Sign::Parameter, 0, tr("parameter")});
    list.push_back({Sign::Family, static_cast<int>(OpFamily::Contraction), tr("matrix")});
    list.push_back({Sign::Family, static_cast<int>(OpFamily::Attention), tr("attention")});
    list.push_back({Sign::Family, static_cast<int>(OpFamily::Vector), tr("vector")});
    list.push_back({Sign::Family, static_cast<int>(OpFamily::View), tr("view")});
    list.push_back({Sign::Family, static_cast<int>(OpFamily::Source), tr("input")});
    list.push_back({Sign::Family, static_cast<int>(OpFamily::Opaque), tr("not understood")});
    return list;
}

QString Legend::plainText() const {
    QStringList labels;
    for (const Entry& entry : entries()) labels << entry.label;
    return labels.join(QStringLiteral("; "));
}

double Legend::signWidth(const Entry& entry) const {
    const QFontMetricsF metrics(font());
    switch (entry.sign) {
    case Entry::Sign::Scale:
        return 90;
    case Entry::Sign::Axis:
        return metrics.horizontalAdvance(
                   m_overlay->axisNames[static_cast<std::size_t>(entry.index)]) +
               10;
    case Entry::Sign::Collective:
        return 26;
    case Entry::Sign::Boundary:
        return 18;
    case Entry::Sign::Family:
        return 6;
    default:
        return 14;
    }
}

std::vector<QRectF> Legend::place(const std::vector<Entry>& list) const {
    const QFontMetricsF metrics(font());
    const double line = metrics.height() + 4;
    std::vector<QRectF> rects;
    double x = kMargin, y = 4;
    for (const Entry& entry : list) {
        const double wide = signWidth(entry) + 5 + metrics.horizontalAdvance(entry.label);
        if (x > kMargin && x + wide > width() - kMargin) {
            x = kMargin;
            y += line;
        }
        rects.emplace_back(x, y, wide, line);
        x += wide + kEntryGap;
    }
    return rects;
}

void Legend::fitHeight() {
    const std::vector<QRectF> rects = place(entries());
    setFixedHeight(static_cast<int>(rects.back().bottom()) + 4);
}

QSize Legend::sizeHint() const {
    return {400, height()};
}

void Legend::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    if (event->oldSize().width() != event->size().width()) fitHeight();
}

void Legend::drawSign(QPainter& painter, const Entry& entry, const QRectF& where) const {
    const Palette& palette = Palette::of(this);
    const QPointF middle = where.center();
    switch (entry.sign) {
    case Entry::Sign::Scale:
        for (int i = 0; i < 90; ++i)
            painter.fillRect(QRectF(where.left() + i, middle.y() - 5, 1.2, 10),
                             palette.scale(std::sqrt(i / 89.0)));
        break;
    case Entry::Sign::Axis: {
        const QColor colour = palette.axis(static_cast<std::size_t>(entry.index));
        painter.setPen(Qt::NoPen);
        painter.setBrush(colour);
        painter.drawRoundedRect(where.adjusted(0, 1, 0, -1), 3, 3);
        painter.setPen(palette.textOn(colour));
        painter.drawText(where, Qt::AlignCenter,
                         m_overlay->axisNames[static_cast<std::size_t>(entry.index)]);
        break;
    }
    case Entry::Sign::Partial:
        painter.setPen(QPen(palette.muted, 1, Qt::DashLine));
        painter.setBrush(Qt::NoBrush);
        painter.drawRoundedRect(where.adjusted(0, 1, 0, -1), 3, 3);
        painter.setPen(palette.text);
        painter.drawText(where, Qt::AlignCenter, QStringLiteral("Σ"));
        break;
    case Entry::Sign::Collective:
        painter.setPen(QPen(palette.muted, 1.3));
        painter.setBrush(Qt::NoBrush);
        painter.drawPolygon(QPolygonF(
            {QPointF(where.left(), middle.y()), QPointF(where.left() + 5, middle.y() - 6),
             QPointF(where.right() - 5, middle.y() - 6), QPointF(where.right(), middle.y()),
             QPointF(where.right() - 5, middle.y() + 6),
             QPointF(where.left() + 5, middle.y() + 6)}));
        break;
    case Entry::Sign::Backward:
    case Entry::Sign::Step:
        painter.setPen(palette.text);
        painter.drawText(where, Qt::AlignCenter,
                         entry.sign == Entry::Sign::Step ? QStringLiteral("↻")
                                                         : QStringLiteral("◂"));
        break;
    case Entry::Sign::Parameter:
        painter.setPen(Qt::NoPen);
        painter.setBrush(palette.muted);
        painter.drawPolygon(QPolygonF({middle + QPointF(0, -5), middle + QPointF(5, 0),
                                       middle + QPointF(0, 5), middle + QPointF(-5, 0)}));
        break;
    case Entry::Sign::Boundary: {
        const QColor colour = entry.index == 1 ? palette.pin : palette.text;
        painter.setPen(QPen(colour, 1.5));
        painter.setBrush(entry.index == 1 ? colour : palette.surface);
        painter.drawRoundedRect(QRectF(where.left(), middle.y() - 5, 16, 10), 3, 3);
        break;
    }
    case Entry::Sign::Pin:
        painter.setPen(Qt::NoPen);
        painter.setBrush(palette.pin);
        painter.drawEllipse(middle, 4.5, 4.5);
        painter.drawRect(QRectF(middle.x() - 1, middle.y() + 3, 2, 5));
        break;
    case Entry::Sign::Family:
        painter.fillRect(QRectF(where.left(), middle.y() - 6, 5, 12),
                         palette.family(static_cast<OpFamily>(entry.index)));
        break;
    }
}

void Legend::paintEvent(QPaintEvent*) {
    const Palette& palette = Palette::of(this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect(), palette.surface);
    painter.setPen(palette.faint);
    painter.drawLine(0, 0, width(), 0);
    const std::vector<Entry> list = entries();
    const std::vector<QRectF> rects = place(list);
    for (std::size_t i = 0; i < list.size(); ++i) {
        QRectF sign = rects[i];
        sign.setWidth(signWidth(list[i]));
        drawSign(painter, list[i], sign.adjusted(0, 1, 0, -1));
        painter.setPen(palette.muted);
        painter.drawText(QRectF(sign.right() + 5, rects[i].top(), rects[i].right() - sign.right(),
                                rects[i].height()),
                         Qt::AlignLeft | Qt::AlignVCenter, list[i].label);
    }
}

} // namespace shardlens
