// SPDX-License-Identifier: Apache-2.0
// Stages of the whole job between document and graph view. See graph_controller.h.
#include "ui/format.h"
#include "ui/views/graph_controller.h"

#include <QMenu>

namespace shardlens {

void GraphController::connectStages() {
    connect(&m_document, &Document::pipelineChanged, this, &GraphController::takePipeline);
    connect(&m_document, &Document::requestChanged, this, &GraphController::takePipeline);
    connect(&m_view, &GraphView::stageRequested, &m_document, &Document::selectStage);
    connect(&m_view, &GraphView::boundaryAimed, &m_document, &Document::previewBoundary);
    connect(&m_document, &Document::previewed, &m_view, &GraphView::setPreview);
    connect(&m_view, &GraphView::boundaryMoved, this, [this](int from, int to) {
        if (!m_document.moveBoundary(from, to)) m_view.settleBoundary();
    });
}

void GraphController::takePipeline() {
    if (!m_document.isOpen()) return;
    const auto& setup = m_document.request().pipeline;
    m_view.setStagePins(setup ? setup->cuts : std::vector<int>(),
                        !m_document.pipelineError().isEmpty());
    if (!m_document.isPlanningPipeline())
        m_picture.setPipeline(m_document.pipeline(), m_document.chosenStage());
    if (!m_document.pipelineError().isEmpty()) m_view.settleBoundary();
    m_view.setSelectedStage(m_document.selectedStage());
    if (m_roomForStages == setup.has_value()) return;
    m_roomForStages = setup.has_value();
    requestScene();
}

void GraphController::freeBoundaries() {
    if (!m_document.request().pipeline) return;
    PipelineSetup freed = *m_document.request().pipeline;
    freed.cuts.clear();
    m_document.changePipeline(freed, tr("Free all stage boundaries"));
}

QMenu* GraphController::makeBoundaryMenu(int boundary) {
    auto* menu = new QMenu(&m_view);
    menu->setObjectName(QStringLiteral("boundaryMenu"));
    const auto& setup = m_document.request().pipeline;
    const auto& plan = m_document.pipeline();
    const int cut = plan ? plan->cutOf(boundary) : boundary;
    const bool pinned = setup && std::ranges::find(setup->cuts, cut) != setup->cuts.end();
    QAction* pin = menu->addAction(tr("&Pin here"), this,
                                   [this, boundary] { m_document.pinBoundary(boundary); });
    QAction* free =
        menu->addAction(tr("&Free"), this, [this, boundary] { m_document.freeBoundary(boundary); });
    QAction* all =
        menu->addAction(tr("Free &all boundaries"), this, &GraphController::freeBoundaries);
    const bool writable = !m_document.isReadOnly();
    pin->setEnabled(writable && !pinned);
    free->setEnabled(writable && pinned);
    all->setEnabled(writable && setup && !setup->cuts.empty());
    return menu;
}

} // namespace shardlens
