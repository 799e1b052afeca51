// SPDX-License-Identifier: Apache-2.0
// Geometry and painting of the graph view; mouse and keys are in graph_interaction.cpp, what it
// says of its items in graph_tips.cpp.
#include "ui/views/graph_view.h"

#include "ui/format.h"
#include "ui/theme.h"

#include <QHelpEvent>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace shardlens {

namespace {

constexpr double kLeastZoom = 0.004, kMostZoom = 4;

/// At which an area just fits into a widget with a margin, at most `most`.
double fittingZoom(const QRectF& area, QSize size, double most) {
    constexpr double kMargin = 32; // both sides together
    return std::min(
        {most, (size.width() - kMargin) / area.width(), (size.height() - kMargin) / area.height()});
}

} // namespace

GraphView::GraphView(QWidget* parent) : QWidget(parent) {
    setObjectName(QStringLiteral("graphView"));
    setAccessibleName(tr("Model graph"));
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setMinimumSize(240, 160);
    setAttribute(Qt::WA_OpaquePaintEvent);
    m_staleDelay.setSingleShot(true);
    m_staleDelay.setInterval(kStaleDelayMilliseconds);
    connect(&m_staleDelay, &QTimer::timeout, this, [this] {
        m_state.stale = m_stale;
        update();
    });
}

void GraphView::setOverlay(std::shared_ptr<const GraphOverlay> overlay) {
    const bool sameScene = m_overlay && overlay && m_overlay->scene == overlay->scene;
    const bool sameModel = m_overlay && overlay && m_overlay->scene->graph == overlay->scene->graph;
    // A block that opens or closes stays where it is on the screen: keep the selected item's top.
    QPointF anchor;
    const int runBefore = m_state.selected >= 0 ? item(m_state.selected).run : -1;
    int anchored = -1;
    if (sameModel && !sameScene && m_state.selected >= 0) {
        const int before = runBefore >= 0 ? itemOfRun(runBefore) : m_state.selected;
        anchored = runBefore;
        anchor = toWidget(QPointF(item(before).rect.center().x(), item(before).rect.top()));
    }
    const OpId anchorOp = anchored < 0 && m_state.selected >= 0 ? item(m_state.selected).op : kNoOp;
    m_overlay = std::move(overlay);
    if (!sameScene) {
        m_state.hovered = -1;
        m_matches.clear();
    }
    if (!sameScene) {
        m_boundaryHeld = false;
        m_state.stages.moved = m_state.stages.target = m_state.stages.hovered = -1;
    }
    if (!m_overlay) {
        m_fitPending = true;
        m_state.selected = -1;
    } else if (!sameModel) {
        m_fitPending = true;
    } else if (!sameScene) {
        const int now = anchored >= 0 ? itemOfRun(anchored) : itemOfOp(anchorOp);
        if (now >= 0) {
            const QPointF top(item(now).rect.center().x(), item(now).rect.top());
            m_origin = top - anchor / m_zoom;
        }
    }
    m_state.matches = &m_matches;
    updateSelectedItem();
    const std::vector<int> shown = boundaries();
    if (std::ranges::find(shown, selectedBoundary()) == shown.end()) {
        m_boundaryHeld = false;
        selectBoundary(-1);
    }
    if (m_fitPending && m_overlay && width() > 0 && isVisible()) fitAll();
    update();
}

void GraphView::setSelection(OpId op, int run) {
    m_selectedOp = op;
    m_selectedRun = run;
    updateSelectedItem();
    update();
}

void GraphView::updateSelectedItem() {
    m_state.selected = -1;
    m_state.selectedChip = kNoOp;
    if (!scene()) return;
    if (m_selectedRun >= 0) {
        m_state.selected = itemOfRun(m_selectedRun);
    } else if (m_selectedOp != kNoOp) {
        m_state.selected = itemOfOp(m_selectedOp);
        if (const ParameterChip* chip = scene()->chipOf(m_selectedOp, m_state.selected))
            m_state.selectedChip = chip->op;
    }
}

void GraphView::setStale(bool stale) {
    m_stale = stale;
    if (!stale) {
        m_staleDelay.stop();
        m_state.stale = false;
        update();
    } else if (!m_staleDelay.isActive()) {
        m_staleDelay.start();
    }
}

void GraphView::setColourMode(ColourMode mode) {
    m_state.colour = mode;
    update();
}

void GraphView::setMatches(std::set<int> items) {
    m_matches = std::move(items);
    update();
}

void GraphView::setPlaceholder(const QString& text) {
    m_placeholder = text;
    update();
}

QRectF GraphView::toWidget(const QRectF& rect) const {
    return QRectF(toWidget(rect.topLeft()), rect.size() * m_zoom);
}

void GraphView::setView(QPointF sceneCentre, double zoom) {
    m_fitPending = false;
    m_zoom = std::clamp(zoom, kLeastZoom, kMostZoom);
    m_origin = sceneCentre - QPointF(rect().center()) / m_zoom;
    update();
    emit viewChanged();
}

void GraphView::fit(const QRectF& area, double most) {
    if (area.isEmpty() || width() < 2 || height() < 2) return;
    setView(area.center(), fittingZoom(area, size(), most));
}

bool GraphView::isFittedTo(QSize size) const {
    if (!scene() || scene()->bounds.isEmpty() || size.width() < 2 || size.height() < 2)
        return false;
    const double zoom = std::clamp(fittingZoom(scene()->bounds, size, 1.0), kLeastZoom, kMostZoom);
    const QPointF middle = m_origin + QPointF(size.width(), size.height()) / (2 * m_zoom);
    const QPointF off = (middle - scene()->bounds.center()) * m_zoom; // pixels
    return qFuzzyCompare(m_zoom, zoom) && off.manhattanLength() < 3;
}

void GraphView::fitAll() {
    if (scene()) fit(scene()->bounds, 1.0);
}

void GraphView::fitSelection() {
    if (m_state.selected < 0) return fitAll();
    fit(item(m_state.selected).rect.adjusted(-60, -60, 60, 60), 1.4);
}

void GraphView::zoomAt(QPointF widget, double factor) {
    const QPointF fixed = toScene(widget);
    m_fitPending = false;
    m_zoom = std::clamp(m_zoom * factor, kLeastZoom, kMostZoom);
    m_origin = fixed - widget / m_zoom;
    update();
    emit viewChanged();
}

void GraphView::zoomBy(double factor) {
    zoomAt(QPointF(rect().center()), factor);
}

void GraphView::centreOn(int id) {
    setView(item(id).rect.center(), m_zoom);
}

void GraphView::ensureVisible(int id) {
    const QRectF where = itemRect(id);
    const QRectF room = QRectF(rect()).adjusted(12, 12, -12, -12);
    if (room.contains(where)) return;
    QPointF shift;
    if (where.width() > room.width() || where.left() < room.left())
        shift.setX(where.left() - room.left());
    else if (where.right() > room.right())
        shift.setX(where.right() - room.right());
    if (where.height() > room.height() || where.top() < room.top())
        shift.setY(where.top() - room.top());
    else if (where.bottom() > room.bottom())
        shift.setY(where.bottom() - room.bottom());
    m_origin += shift / m_zoom;
    m_fitPending = false;
    update();
    emit viewChanged();
}

int GraphView::itemCount() const {
    return scene() ? static_cast<int>(scene()->items.size()) : 0;
}

QRectF GraphView::itemRect(int id) const {
    return toWidget(item(id).rect);
}

int GraphView::itemAt(QPointF point) const {
    return scene() ? scene()->itemAt(toScene(point)) : -1;
}

int GraphView::itemOfOp(OpId op) const {
    return scene() ? scene()->itemOf(op) : -1;
}

int GraphView::itemOfRun(int run) const {
    if (!scene()) return -1;
    const auto& items = scene()->items;
    const auto found = std::find_if(items.begin(), items.end(), [run](const SceneItem& shown) {
        return shown.run == run && (shown.kind == ItemKind::Block || shown.kind == ItemKind::Frame);
    });
    return found == items.end() ? -1 : static_cast<int>(found - items.begin());
}

OpId GraphView::opOfItem(int id) const {
    const SceneItem& shown = item(id);
    if (shown.kind == ItemKind::Block || shown.kind == ItemKind::Frame) return kNoOp;
    const std::size_t repeat =
        shown.run < 0 ? 0 : m_overlay->repeats[static_cast<std::size_t>(shown.run)];
    if (shown.kind == ItemKind::Op) return scene()->inRepeat(shown.op, shown.run, repeat);
    return scene()->graph->tensor(scene()->tensorInRepeat(shown, repeat)).producer;
}

QRectF GraphView::chipRect(OpId op) const {
    const int id = itemOfOp(op);
    const ParameterChip* chip = scene() ? scene()->chipOf(op, id) : nullptr;
    return chip ? toWidget(chip->rect) : QRectF();
}

FrameControls GraphView::frameControls(int id) const {
    FrameControls controls = GraphPainter::controlsOf(*m_overlay, id);
    for (QRectF* rect : {&controls.fold, &controls.previous, &controls.next, &controls.repeat})
        *rect = toWidget(*rect);
    for (FrameControls::Range& range : controls.ranges) range.rect = toWidget(range.rect);
    return controls;
}

/// What of an area is to be cleared. An opened block often fills the screen, which is then not
/// painted twice: all of it is as slow as everything that lies on it.
QRegion GraphView::canvasIn(const QRect& area) const {
    constexpr int kEdge = 8; ///< of a frame, with its corners
    QRegion canvas(area);
    if (!scene() || m_state.stale) return canvas; // what is stale is painted thin
    const int edge = static_cast<int>(std::ceil(kEdge * std::max(1.0, m_zoom)));
    for (const int id :
         scene()->itemsIn(QRectF(toScene(QPointF(area.topLeft())), QSizeF(area.size()) / m_zoom))) {
        if (item(id).kind != ItemKind::Frame) continue;
        const QRect inside =
            itemRect(id)
                .intersected(QRectF(area).adjusted(-2 * edge, -2 * edge, 2 * edge, 2 * edge))
                .toAlignedRect()
                .adjusted(edge, edge, -edge, -edge);
        if (inside.isValid()) canvas -= inside;
    }
    return canvas;
}

void GraphView::paintEvent(QPaintEvent* event) {
    QPainter painter(this);
    const Palette& palette = Palette::of(this);
    for (const QRect& part : canvasIn(event->rect())) painter.fillRect(part, palette.canvas);
    if (!m_overlay) {
        painter.setPen(palette.muted);
        painter.drawText(rect().adjusted(24, 24, -24, -24), Qt::AlignCenter | Qt::TextWordWrap,
                         m_placeholder);
        return;
    }
    GraphPaintState state = m_state;
    state.focused = hasFocus();
    painter.save();
    if (m_state.stale) painter.setOpacity(0.6);
    painter.scale(m_zoom, m_zoom);
    painter.translate(-m_origin);
    const QRectF area(toScene(QPointF(event->rect().topLeft())),
                      QSizeF(event->rect().size()) / m_zoom);
    GraphPainter(*m_overlay, palette, state).paint(painter, area, m_zoom);
    painter.restore();
    if (m_state.stale) drawBadge(painter);
    if (hasFocus()) {
        painter.setPen(QPen(palette.accent, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(rect().adjusted(0, 0, -1, -1));
    }
}

void GraphView::drawBadge(QPainter& painter) const {
    const Palette& palette = Palette::of(this);
    const QString label = tr("Solving again; the previous plan is shown");
    const QFontMetrics metrics(font());
    const QRect box(width() - metrics.horizontalAdvance(label) - 36, 10,
                    metrics.horizontalAdvance(label) + 24, metrics.height() + 10);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(palette.warning, 1));
    painter.setBrush(palette.surface);
    painter.drawRoundedRect(box, 6, 6);
    painter.setPen(palette.text);
    painter.drawText(box, Qt::AlignCenter, label);
}

void GraphView::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    if (m_overlay && (m_fitPending || isFittedTo(event->oldSize()))) {
        fitAll();                            // what showed everything goes on doing so
    } else if (event->oldSize().isValid()) { // keep the middle in the middle
        const QSize grown = event->size() - event->oldSize();
        m_origin -= QPointF(grown.width(), grown.height()) / (2 * m_zoom);
    }
}

bool GraphView::event(QEvent* event) {
    switch (event->type()) {
    case QEvent::ToolTip: {
        const auto* help = static_cast<QHelpEvent*>(event);
        showTip(help->globalPos(), QPointF(help->pos()));
        return true;
    }
    case QEvent::Show:
        if (m_fitPending && m_overlay) fitAll();
        break;
    case QEvent::PaletteChange:
        update();
        break;
    default:
        break;
    }
    return QWidget::event(event);
}

} // namespace shardlens
