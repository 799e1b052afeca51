// SPDX-License-Identifier: Apache-2.0
// Stages in the graph view: what is where, and boundaries moved with mouse or keys. A drag shows
// where the boundary would be; only its end asks for the move. With keys: brackets walk along the
// boundaries, arrows aim the selected one, Enter moves it there.
#include "ui/format.h"
#include "ui/views/graph_view.h"

#include <QKeyEvent>

#include <algorithm>

namespace shardlens {

namespace {

constexpr double kGrasp = 3; ///< pixels around a handle

} // namespace

void GraphView::setSelectedStage(int stage) {
    if (stage == m_state.stages.selectedStage) return;
    m_state.stages.selectedStage = stage;
    update();
}

void GraphView::setStagePins(std::vector<int> pins, bool clash) {
    m_state.stages.pins = std::move(pins);
    m_state.stages.clash = clash;
    update();
}

std::vector<int> GraphView::boundaries() const {
    if (!m_overlay) return {};
    return StagePainter::shownBoundaries(m_overlay->stages, m_state.stages);
}

QRectF GraphView::handleRect(int boundary) const {
    const QLineF place = m_overlay->stages.places.at(static_cast<std::size_t>(boundary));
    return place.isNull() ? QRectF() : toWidget(StagePainter::handleOf(place, m_zoom));
}

QPointF GraphView::placeOf(int unit) const {
    return handleRect(unit).center();
}

QRectF GraphView::bandRect(int item, int stage, int chunk) const {
    if (!m_overlay || !m_overlay->stages.plan) return {};
    for (const StageBand& band : m_overlay->stages.bands.at(static_cast<std::size_t>(item)))
        if (band.stage == stage && band.chunk == chunk) return toWidget(band.rect);
    return {};
}

int GraphView::stageAt(QPointF at) const {
    const int id = scene()->itemAt(at);
    if (id < 0 || !m_overlay->stages.plan) return -1;
    if (item(id).kind != ItemKind::Block || item(id).stagesTop <= 0) return -1;
    for (const StageBand& band : m_overlay->stages.bands[static_cast<std::size_t>(id)])
        if (band.rect.contains(at)) return band.stage;
    return -1;
}

QString GraphView::describeStage(int stage) const {
    const PipelinePlan& plan = *m_overlay->stages.plan;
    const PlannedStage& planned = plan.answer.stages[static_cast<std::size_t>(stage)];
    const auto [first, end] = plan.devicesOf(stage);
    return tr("Stage %1 of %2: %3\ndevices %4–%5, %6 a device\n%7 a micro-batch")
        .arg(stage)
        .arg(plan.stages())
        .arg(text(plan.chunksOf(stage)))
        .arg(first)
        .arg(end - 1)
        .arg(formatBytes(plan.memoryOf(stage)), formatTime(planned.price.seconds()));
}

QString GraphView::describeBoundary(int boundary) const {
    const PipelinePlan& plan = *m_overlay->stages.plan;
    const auto& pins = m_state.stages.pins;
    const bool pinned = std::ranges::find(pins, plan.cutOf(boundary)) != pins.end();
    QString words = (pinned ? tr("A stage begins with %1, pinned\nDrag to move it, Del frees it")
                            : tr("A stage begins with %1\nDrag to move and pin it"))
                        .arg(text(plan.nameOf(boundary)));
    if (plan.answer.schedule.chunks > 1) words += tr("\nThe other chunks of the stage move along");
    return words;
}

void GraphView::selectBoundary(int boundary) {
    if (boundary == m_state.stages.selected) return;
    m_state.stages.selected = boundary;
    m_state.stages.moved = m_state.stages.target = -1;
    setAccessibleDescription(boundary < 0 ? QString() : describeBoundary(boundary));
    update();
    emit boundarySelected(boundary);
}

int GraphView::boundaryAt(QPointF widget) const {
    int best = -1;
    double least = std::numeric_limits<double>::infinity();
    for (const int boundary : boundaries()) {
        const QRectF handle = handleRect(boundary).adjusted(-kGrasp, -kGrasp, kGrasp, kGrasp);
        const double distance = std::abs(handle.center().y() - widget.y());
        if (!handle.contains(widget) || distance >= least) continue;
        least = distance;
        best = boundary;
    }
    return best;
}

bool GraphView::pressBoundary(QPointF widget) {
    const int boundary = boundaryAt(widget);
    if (boundary < 0) return false;
    selectBoundary(boundary);
    m_boundaryHeld = true;
    return true;
}

bool GraphView::dragBoundary(QPointF widget) {
    StagePaintState& stages = m_state.stages;
    // The handle is at the left end of its line: aim from the middle of what it was.
    const QLineF from = m_overlay->stages.places[static_cast<std::size_t>(stages.selected)];
    const QPointF at(toScene(widget).x() + from.length() / 2, toScene(widget).y());
    const int target = m_overlay->stages.nearestPlace(at);
    setTarget(target);
    return true;
}

void GraphView::setTarget(int target) {
    StagePaintState& stages = m_state.stages;
    if (target == stages.target) return;
    stages.moved = stages.selected;
    stages.target = target;
    stages.preview.clear();
    update();
    if (target != stages.moved) emit boundaryAimed(stages.moved, target);
}

void GraphView::setPreview(int boundary, const QString& words) {
    if (boundary != m_state.stages.target) return;
    m_state.stages.preview = words;
    setAccessibleDescription(words);
    update();
}

void GraphView::dropBoundary(bool keep) {
    StagePaintState& stages = m_state.stages;
    const int from = stages.moved, to = stages.target;
    m_boundaryHeld = false;
    if (!keep || from < 0 || to == from || to < 0) {
        stages.moved = stages.target = -1;
        update();
        return;
    }
    stages.selected = -1; // the new plan's boundary is another one
    update();             // until it is there, the boundary is shown where it was dropped
    emit boundaryMoved(from, to);
}

bool GraphView::moveBoundary(int boundary, int to) {
    if (isMoving() || to == boundary || to < 1 ||
        to >= static_cast<int>(m_overlay->stages.places.size()))
        return false;
    m_state.stages.moved = boundary;
    m_state.stages.target = to;
    dropBoundary(true);
    return true;
}

void GraphView::settleBoundary() {
    if (m_boundaryHeld || m_state.stages.moved < 0) return;
    m_state.stages.moved = m_state.stages.target = -1;
    update();
}

void GraphView::aimBoundary(int steps) {
    StagePaintState& stages = m_state.stages;
    const int last = static_cast<int>(m_overlay->stages.places.size()) - 1;
    const int from = stages.target < 0 ? stages.selected : stages.target;
    setTarget(std::clamp(from + steps, 1, last));
}

void GraphView::stepBoundary(int steps) {
    const std::vector<int> all = boundaries();
    if (all.empty()) return;
    const auto at = std::ranges::find(all, selectedBoundary());
    const auto count = static_cast<std::ptrdiff_t>(all.size());
    std::ptrdiff_t next = steps > 0 ? 0 : count - 1;
    if (at != all.end()) next = (at - all.begin() + steps + count) % count;
    selectBoundary(all[static_cast<std::size_t>(next)]);
    const QPointF where = placeOf(selectedBoundary());
    if (!QRectF(rect()).contains(where)) setView(toScene(where), m_zoom);
}

bool GraphView::boundaryKey(const QKeyEvent& event) {
    const int key = event.key();
    if (key == Qt::Key_BracketLeft || key == Qt::Key_BracketRight) {
        stepBoundary(key == Qt::Key_BracketRight ? 1 : -1);
        return true;
    }
    if (selectedBoundary() < 0 || event.modifiers() != Qt::NoModifier) return false;
    switch (key) {
    case Qt::Key_Up:
    case Qt::Key_Down:
        aimBoundary(key == Qt::Key_Down ? 1 : -1);
        return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        dropBoundary(true);
        return true;
    case Qt::Key_Escape:
        if (m_state.stages.target >= 0)
            dropBoundary(false);
        else
            selectBoundary(-1);
        return true;
    default:
        return false;
    }
}

} // namespace shardlens
