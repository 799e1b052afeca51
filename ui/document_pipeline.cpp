// SPDX-License-Identifier: Apache-2.0
// The whole job as stages: planned in the background whenever what it depends on changes, and the
// steps that move, pin and free its boundaries.
#include "ui/document.h"
#include "ui/format.h"

#include <algorithm>
#include <cmath>

namespace shardlens {

namespace {

/// What of a request a pipeline depends on: not the mesh and pins of the plan on one mesh.
std::string questionOf(PlanRequest request) {
    request.mesh.clear();
    request.pins.clear();
    request.alpha.clear();
    request.beta.clear();
    return toJson(request);
}

} // namespace

void Document::forgetPipeline() {
    m_pipelines->cancel();
    m_pipeline = nullptr;
    m_pipelineQuestion.clear();
    m_pipelineError.clear();
    m_pipelineStale = m_planningPipeline = false;
    m_selectedStage = -1;
}

void Document::resolvePipeline(bool again) {
    if (!m_request.pipeline) {
        const bool stage = m_selectedStage >= 0;
        forgetPipeline();
        emit pipelineChanged();
        if (stage) emit selectionChanged();
        return;
    }
    const std::string question = questionOf(m_request);
    if (question == m_pipelineQuestion && !again) return;
    m_pipelineQuestion = question;
    m_pipelineStale = m_pipeline != nullptr;
    m_planningPipeline = true;
    m_pipelineError.clear();
    m_pipelines->solve(m_bundle, m_session->content().model.absolutePath, m_request);
    emit pipelineChanged();
}

void Document::fetchPipeline() {
    auto result = m_pipelines->takeResult();
    if (!result) return;
    if (result->generation == m_previewed) return tellPreview(*result);
    m_planningPipeline = false;
    if (result->plan) {
        m_pipeline = std::move(result->plan);
        m_pipelineStale = false;
        m_selectedStage = std::min(m_selectedStage, m_pipeline->stages() - 1);
    } else {
        m_pipelineError =
            result->cancelled ? tr("Planning the pipeline was cancelled.") : text(result->error);
    }
    emit pipelineChanged();
    if (m_pipeline && selectedStage() >= 0) emit selectionChanged(); // its ops may be others
}

void Document::selectStage(int stage) {
    if (!m_pipeline || stage >= m_pipeline->stages()) stage = -1;
    if (stage == m_selectedStage && (stage >= 0 || selectedStage() < 0)) return;
    m_selectedStage = stage;
    m_selectedOp = kNoOp;
    m_selectedRun = -1;
    m_alternatives.reset();
    requestAlternatives();
    emit selectionChanged();
}

int Document::selectedStage() const {
    if (!m_pipeline) return -1;
    if (m_selectedStage >= 0 || m_selectedOp == kNoOp) return m_selectedStage;
    return m_pipeline->graph == m_bundle.graph ? m_pipeline->stageOf(m_selectedOp) : -1;
}

bool Document::changePipeline(const std::optional<PipelineSetup>& setup, const QString& label) {
    PlanRequest request = m_request;
    request.pipeline = setup;
    return changeSetup(request, label);
}

void Document::previewBoundary(int from, int to) {
    const auto setup = withMoved(from, to);
    if (!setup || m_planningPipeline) return;
    PlanRequest request = m_request;
    request.pipeline = setup;
    m_previewedBoundary = to;
    m_previewed = m_pipelines->solve(m_bundle, m_session->content().model.absolutePath, request);
}

void Document::tellPreview(const PipelineResult& result) {
    QString words = text(result.error);
    if (result.plan && m_pipeline) {
        const double seconds = result.plan->answer.seconds;
        const double more = seconds - m_pipeline->answer.seconds;
        words = tr("%1 a step (%2%3)")
                    .arg(formatTime(seconds), more < 0 ? QStringLiteral("−") : QStringLiteral("+"),
                         formatTime(std::abs(more)));
    }
    emit previewed(m_previewedBoundary, words);
}

std::optional<PipelineSetup> Document::withMoved(int from, int to) const {
    if (!m_pipeline || !m_request.pipeline || from == to) return std::nullopt;
    const int cut = m_pipeline->cutFor(from, to);
    if (cut < 0) return std::nullopt;
    PipelineSetup setup = *m_request.pipeline;
    std::erase(setup.cuts, m_pipeline->cutOf(from));
    std::erase(setup.cuts, cut);
    setup.cuts.insert(std::ranges::upper_bound(setup.cuts, cut), cut);
    return setup;
}

bool Document::moveBoundary(int from, int to) {
    const auto setup = withMoved(from, to);
    if (!setup) return false;
    return changePipeline(setup, tr("Move stage boundary to %1").arg(text(m_pipeline->nameOf(to))));
}

bool Document::pinBoundary(int boundary) {
    if (!m_pipeline || !m_request.pipeline || m_pipeline->isPinned(boundary)) return false;
    const int cut = m_pipeline->cutOf(boundary);
    if (cut < 0) return false;
    PipelineSetup setup = *m_request.pipeline;
    setup.cuts.insert(std::ranges::upper_bound(setup.cuts, cut), cut);
    return changePipeline(setup,
                          tr("Pin stage boundary %1").arg(text(m_pipeline->nameOf(boundary))));
}

bool Document::freeBoundary(int boundary) {
    if (!m_request.pipeline) return false;
    PipelineSetup setup = *m_request.pipeline;
    const int cut = m_pipeline ? m_pipeline->cutOf(boundary) : boundary;
    if (std::erase(setup.cuts, cut) == 0) return false;
    const QString name = m_pipeline ? text(m_pipeline->nameOf(boundary)) : QString();
    return changePipeline(setup, tr("Free stage boundary %1").arg(name));
}

} // namespace shardlens
