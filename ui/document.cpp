// SPDX-License-Identifier: Apache-2.0
// State, selection, solving and view state of the document; opening is in document_open.cpp, the
// steps of the user in document_steps.cpp.
#include "ui/document.h"

#include "core/error.h"
#include "ui/document_parts.h"
#include "ui/format.h"

#include <QCoreApplication>
#include <QDeadlineTimer>
#include <QFileInfo>
#include <QStandardPaths>

namespace shardlens {

Document::Document(DocumentOptions options, QObject* parent)
    : QObject(parent), m_options(std::move(options)) {
    // The wake-up comes from a worker: it only posts, once until fetched.
    m_planning = std::make_unique<PlanningService>(
        [this] { QMetaObject::invokeMethod(this, &Document::fetch, Qt::QueuedConnection); },
        m_options.functions);
    m_pipelines = std::make_unique<PipelineService>(
        [this] { QMetaObject::invokeMethod(this, &Document::fetchPipeline, Qt::QueuedConnection); },
        m_options.pipeline);
    m_loadLane = std::make_unique<BackgroundLane>();
}

Document::~Document() {
    m_loadLane.reset();
    m_pipelines.reset();
    m_planning.reset();
    m_undo.clear();
    discardIfUntouched();
}

void Document::discardIfUntouched() {
    if (!m_session || !m_temporary || m_session->readOnly()) return;
    if (!m_session->content().steps.empty()) return;
    try {
        Session::discard(std::move(*m_session));
    } catch (const Error&) {
        // Nothing of the user's is lost: the file holds no step and can be opened again.
    }
    m_session.reset();
}

std::filesystem::path Document::temporaryFolder() const {
    if (!m_options.temporaryFolder.empty()) return m_options.temporaryFolder;
    const QString base = QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation);
    return std::filesystem::path(base.toStdString()) / "unsaved";
}

QString Document::readOnlyReason() const {
    return isReadOnly() ? text(m_session->readOnlyReason()) : QString();
}

std::filesystem::path Document::modelFile() const {
    return m_session ? std::filesystem::path(m_session->content().model.absolutePath)
                     : std::filesystem::path();
}

QString Document::path() const {
    return m_session ? text(m_session->path().string()) : QString();
}

QString Document::title() const {
    if (!m_session) return {};
    if (!m_temporary) return QFileInfo(path()).completeBaseName();
    const QString name = text(m_bundle.graph->name);
    const QString file = QFileInfo(text(m_session->content().model.path)).completeBaseName();
    return file.isEmpty() ? name : file;
}

std::optional<std::string> Document::opName(OpId op) const {
    if (!m_bundle.graph || op >= m_bundle.graph->ops().size()) return std::nullopt;
    return m_bundle.graph->op(op).name;
}

std::string Document::costUnit() const {
    if (m_plan) return m_plan->context->cost->unit();
    return m_request.costModel == "alpa" ? "Alpa units" : "s";
}

void Document::selectOp(OpId op) {
    if (op == m_selectedOp && m_selectedRun < 0 && m_selectedStage < 0) return;
    m_selectedOp = op;
    m_selectedRun = m_selectedStage = -1;
    m_alternatives.reset();
    requestAlternatives();
    emit selectionChanged();
}

void Document::selectRun(int run) {
    if (run == m_selectedRun) return;
    m_selectedRun = run;
    m_selectedStage = -1;
    m_selectedOp = kNoOp;
    m_alternatives.reset();
    requestAlternatives();
    emit selectionChanged();
}

void Document::requestAlternatives() {
    const bool possible = m_selectedOp != kNoOp && m_plan && !m_stale;
    m_planning->cancelAlternatives();
    m_alternativesPending = possible;
    if (possible) m_planning->alternatives(m_plan, m_selectedOp);
    emit alternativesChanged();
}

void Document::resolve() {
    if (!m_bundle.graph) return;
    m_stale = m_plan != nullptr;
    m_solving = true;
    m_planError.clear();
    m_progress.reset();
    m_planning->cancelAlternatives();
    m_alternativesPending = false;
    m_planning->solve(m_bundle.graph, m_bundle.folding, m_request,
                      m_plan ? m_plan->context : nullptr);
    emit planChanged();
    emit progressChanged();
    resolvePipeline();
}

void Document::solveAgain() {
    resolve();
    resolvePipeline(true);
}

void Document::fetch() {
    auto progress = m_planning->takeProgress();
    auto result = m_planning->takeResult();
    auto alternatives = m_planning->takeAlternatives();
    if (progress && m_solving) {
        m_progress = std::move(progress);
        emit progressChanged();
    }
    if (result) {
        m_solving = false;
        m_progress.reset();
        if (result->plan) {
            m_plan = std::move(result->plan);
            m_stale = false;
            m_planError.clear();
        } else {
            m_planError = result->cancelled ? tr("Solving was cancelled.") : text(result->error);
        }
        emit progressChanged();
        emit planChanged();
        if (!m_stale) requestAlternatives();
    }
    if (alternatives && alternatives->op == m_selectedOp) {
        m_alternativesPending = false;
        m_alternatives = std::move(alternatives);
        emit alternativesChanged();
    }
}

void Document::cancel() {
    if (m_loading) {
        m_loadLane->cancel();
        m_loading = false;
        emit loadingChanged();
        emit message(MessageKind::Information, tr("Opening was cancelled."));
    } else if (m_solving || m_planningPipeline) {
        m_planning->cancelSolve();
        m_pipelines->cancel();
        if (std::exchange(m_planningPipeline, false)) {
            m_pipelineError = tr("Planning the pipeline was cancelled.");
            emit pipelineChanged();
        }
    }
}

void Document::fail(const QString& text) {
    emit message(MessageKind::Error, text);
}

QString Document::viewState(const QString& key) const {
    const auto found = m_viewState.find(key.toStdString());
    return found == m_viewState.end() ? QString() : text(found->second);
}

void Document::setViewState(const QString& key, const QString& json) {
    std::string& value = m_viewState[key.toStdString()];
    if (value == json.toStdString()) return;
    value = json.toStdString();
    if (!m_session || m_session->readOnly()) return;
    try {
        m_session->setViewState(key.toStdString(), value);
    } catch (const Error& error) {
        fail(text(error.what()));
    }
}

bool Document::waitForIdle(int milliseconds) {
    const QDeadlineTimer deadline(milliseconds);
    while (m_loading || m_solving || m_alternativesPending || m_planningPipeline) {
        if (deadline.hasExpired()) return false;
        QCoreApplication::processEvents(QEventLoop::AllEvents | QEventLoop::WaitForMoreEvents, 20);
    }
    return true;
}

} // namespace shardlens
