// SPDX-License-Identifier: Apache-2.0
// Opening models and sessions, saving under another name, reading a model anew for another
// workload. Jobs run on the load lane and bring home plain values.
#include "core/error.h"
#include "core/model/graph_json.h"
#include "core/plan/proposal.h"
#include "core/store/session_bundle.h"
#include "ui/document_parts.h"
#include "ui/format.h"

namespace shardlens {

void Document::open(const QString& path) {
    m_loading = true;
    emit loadingChanged();
    const std::filesystem::path file = path.toStdString();
    // The lane numbers its jobs; only the newest may deliver.
    auto generation = std::make_shared<std::uint64_t>(0);
    const auto job = [this, file, folder = temporaryFolder(),
                      generation](const std::stop_token& stop) {
        auto opened = std::make_shared<Opened>();
        try {
            if (isSessionFile(file)) {
                opened->session = std::make_unique<Session>(Session::open(file));
                opened->request = opened->session->content().request;
                opened->bundle = bundleOf(*opened->session, stop);
                opened->temporary = opened->session->path().parent_path() == folder;
            } else {
                ProposedModel model = loadWithProposal(file, stop);
                opened->bundle = std::move(model.bundle);
                opened->request = std::move(model.request);
                NewSession fresh;
                fresh.model = describeModelFile(file, opened->bundle.source->format);
                fresh.graph = graphToJson(*opened->bundle.source);
                fresh.request = opened->request;
                fresh.viewState[kSnapshotSizing] = sizingOf(opened->request);
                opened->session =
                    std::make_unique<Session>(Session::createTemporary(folder, fresh));
                opened->temporary = true;
            }
        } catch (const Cancelled&) {
            opened->cancelled = true;
        } catch (const std::exception& error) {
            opened->error = error.what();
        }
        QMetaObject::invokeMethod(this,
                                  [this, generation, opened] { finishOpen(*generation, opened); });
    };
    *generation = m_loadLane->submit(job);
}

void Document::finishOpen(std::uint64_t generation, const std::shared_ptr<Opened>& opened) {
    if (generation != m_loadLane->generation()) return;
    m_loading = false;
    emit loadingChanged();
    if (opened->cancelled) return;
    if (!opened->error.empty()) return fail(text(opened->error));
    m_planning->cancelSolve();
    forgetPipeline();
    discardIfUntouched();
    m_session = std::move(opened->session);
    m_temporary = opened->temporary;
    m_viewState = m_session->content().viewState;
    m_request = opened->request;
    m_plan = nullptr;
    m_planError.clear();
    m_selectedOp = kNoOp;
    m_selectedRun = m_selectedStage = -1;
    m_alternatives.reset();
    m_bundles.clear();
    m_bundle = opened->bundle;
    m_bundles[sizingOf(m_request)] = m_bundle;
    rebuildUndo();
    emit loaded();
    emit requestChanged();
    emit selectionChanged();
    for (const std::string& note : opened->notes) emit message(MessageKind::Warning, text(note));
    if (isReadOnly())
        emit message(MessageKind::Information,
                     tr("Read-only: %1. Use Save As to work on a copy.").arg(readOnlyReason()));
    resolve();
}

void Document::reload(const PlanRequest& request, const QString& label) {
    m_loading = true;
    emit loadingChanged();
    auto generation = std::make_shared<std::uint64_t>(0);
    const auto job = [this, request, label, generation,
                      reference = m_session->content().model](const std::stop_token& stop) {
        auto opened = std::make_shared<Opened>();
        try {
            // The path comes from the session file: it is read only if it still is the same model.
            if (checkModelFile(reference) != ModelFileState::Same)
                throw InputError("the model file is not as it was when the session was made",
                                 reference.absolutePath,
                                 "open it again to plan it for another workload");
            opened->bundle = loadModel(reference.absolutePath, importOptions(request, stop));
            opened->reference = reference;
            opened->snapshot = graphToJson(*opened->bundle.source);
        } catch (const Cancelled&) {
            opened->cancelled = true;
        } catch (const std::exception& error) {
            opened->error = error.what();
        }
        QMetaObject::invokeMethod(this, [this, generation, opened, request, label] {
            finishReload(*generation, opened, request, label);
        });
    };
    *generation = m_loadLane->submit(job);
}

void Document::finishReload(std::uint64_t generation, const std::shared_ptr<Opened>& opened,
                            const PlanRequest& request, const QString& label) {
    if (generation != m_loadLane->generation()) return;
    m_loading = false;
    emit loadingChanged();
    if (opened->cancelled || !opened->error.empty()) {
        if (!opened->error.empty()) fail(text(opened->error));
        emit requestChanged(); // fields go back to what holds
        return;
    }
    m_bundles[sizingOf(request)] = opened->bundle;
    if (label.isEmpty()) { // undone to a workload that was not at hand
        useBundle(opened->bundle, request);
        resolve();
    } else if (!applyStep(request, label, QStringLiteral("setup"))) {
        return;
    }
    try {
        if (!m_session->readOnly()) {
            m_session->setModel(opened->reference, opened->snapshot);
            m_session->setViewState(kSnapshotSizing, sizingOf(request));
        }
    } catch (const Error& error) {
        fail(text(error.what()));
    }
}

void Document::useBundle(const ModelBundle& bundle, const PlanRequest& request) {
    if (bundle.graph == m_bundle.graph) return;
    const std::optional<std::string> selected = opName(m_selectedOp);
    m_bundle = bundle;
    m_bundles[sizingOf(request)] = bundle;
    m_plan = nullptr;
    forgetPipeline();
    m_alternatives.reset();
    m_selectedOp = selected ? m_bundle.graph->findOp(*selected).value_or(kNoOp) : kNoOp;
    if (m_selectedRun >= static_cast<int>(m_bundle.folding->runs.size())) m_selectedRun = -1;
    emit modelChanged();
    emit selectionChanged();
}

bool Document::saveAs(const QString& path) {
    if (!m_session) return false;
    try {
        auto saved = std::make_unique<Session>(m_session->saveAs(path.toStdString()));
        auto before = std::exchange(m_session, std::move(saved));
        if (m_temporary) Session::discard(std::move(*before));
        m_temporary = false;
    } catch (const Error& error) {
        fail(text(error.what()));
        return false;
    }
    emit requestChanged();
    return true;
}

} // namespace shardlens
