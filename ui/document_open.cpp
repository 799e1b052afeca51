// SPDX-License-Identifier: Apache-2.0
// Opening models and sessions, saving under another name, reading a model anew for another
// workload. Jobs run on the load lane and bring home plain values.
#include "core/error.h"
#include "core/model/graph_json.h"
#include "ui/document_parts.h"
#include "ui/format.h"

#include <fmt/format.h>

#include <array>
#include <fstream>

namespace shardlens {

namespace {

constexpr auto kWorkloadKey = "model.workload";
constexpr double kTrainingBytes = 18;    ///< a parameter: values, gradients, optimizer
constexpr double kStateShare = 0.5;      ///< of the memory, the rest is for activations
constexpr int kMostNodes = 128;

bool isSession(const std::filesystem::path& path) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) return false;
    std::ifstream file(path, std::ios::binary);
    std::vector<char> head(std::size_t{64} * 1024);
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(file.gcount()));
    return recognise(std::as_bytes(std::span(head)), std::filesystem::file_size(path)).kind ==
           FileKind::Session;
}

/// A model's first graph and the request it was sized for.
std::pair<ModelBundle, PlanRequest> firstGraph(const std::filesystem::path& path,
                                               const std::stop_token& stop) {
    PlanRequest request;
    ModelBundle bundle = loadModel(path, importOptions(request, stop));
    const std::string before = workloadKey(request);
    request = suggestedRequest(*bundle.graph);
    if (workloadKey(request) != before) bundle = loadModel(path, importOptions(request, stop));
    return {std::move(bundle), std::move(request)};
}

} // namespace

std::string workloadKey(const PlanRequest& request) {
    std::string key = fmt::format("{} {} {}", request.batch, request.sequence,
                                  request.mode == Mode::Train ? "train" : "infer");
    for (const auto& [name, value] : request.bindings) key += fmt::format(" {}={}", name, value);
    return key;
}

PlanRequest suggestedRequest(const Graph& graph) {
    PlanRequest request;
    const double need = graph.parameterCount() * kTrainingBytes;
    Cluster cluster = clusterByName(request.cluster, 1);
    while (request.nodes < kMostNodes &&
           need > kStateShare * cluster.device.memoryBytes * cluster.devices()) {
        request.nodes *= 2;
        cluster = clusterByName(request.cluster, request.nodes);
    }
    request.mesh = defaultMesh(cluster);
    for (const AxisSize& axis : request.mesh)
        if (axis.name != "tp") request.batch = std::max<std::int64_t>(request.batch, axis.size);
    return request;
}

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
            if (isSession(file)) {
                opened->session = std::make_unique<Session>(Session::open(file));
                opened->request = opened->session->content().request;
                opened->bundle = bundleOf(graphFromJson(opened->session->graph()), stop);
                opened->temporary = opened->session->path().parent_path() == folder;
                const auto& view = opened->session->content().viewState;
                const auto made = view.find(kWorkloadKey);
                if (made != view.end() && made->second != workloadKey(opened->request)) {
                    // Closed between a step and the reading it asked for.
                    opened->bundle =
                        loadModel(opened->session->content().model.absolutePath,
                                  importOptions(opened->request, stop));
                }
            } else {
                auto [bundle, request] = firstGraph(file, stop);
                opened->bundle = std::move(bundle);
                opened->request = std::move(request);
                NewSession fresh;
                fresh.model = describeModelFile(file, opened->bundle.source->format);
                fresh.graph = graphToJson(*opened->bundle.source);
                fresh.request = opened->request;
                fresh.viewState[kWorkloadKey] = workloadKey(opened->request);
                opened->session = std::make_unique<Session>(Session::createTemporary(folder, fresh));
                opened->temporary = true;
            }
        } catch (const Cancelled&) {
            opened->cancelled = true;
        } catch (const std::exception& error) {
            opened->error = error.what();
        }
        QMetaObject::invokeMethod(this, [this, generation, opened] {
            finishOpen(*generation, opened);
        });
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
    discardIfUntouched();
    m_session = std::move(opened->session);
    m_temporary = opened->temporary;
    m_viewState = m_session->content().viewState;
    m_request = opened->request;
    m_plan = nullptr;
    m_planError.clear();
    m_selectedOp = kNoOp;
    m_selectedRun = -1;
    m_alternatives.reset();
    m_bundles.clear();
    m_bundle = opened->bundle;
    m_bundles[workloadKey(m_request)] = m_bundle;
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
    m_bundles[workloadKey(request)] = opened->bundle;
    if (label.isEmpty()) { // undone to a workload that was not at hand
        useBundle(opened->bundle, request);
        resolve();
    } else if (!applyStep(request, label, QStringLiteral("setup"))) {
        return;
    }
    try {
        if (!m_session->readOnly()) {
            m_session->setModel(opened->reference, opened->snapshot);
            m_session->setViewState(kWorkloadKey, workloadKey(request));
        }
    } catch (const Error& error) {
        fail(text(error.what()));
    }
}

void Document::useBundle(const ModelBundle& bundle, const PlanRequest& request) {
    if (bundle.graph == m_bundle.graph) return;
    const std::optional<std::string> selected = opName(m_selectedOp);
    m_bundle = bundle;
    m_bundles[workloadKey(request)] = bundle;
    m_plan = nullptr;
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
