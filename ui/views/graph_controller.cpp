// SPDX-License-Identifier: Apache-2.0
// Blocks, repeats, selection and view state. Search and the context menu: graph_search.cpp.
#include "ui/views/graph_controller.h"

#include "ui/format.h"
#include "ui/views/legend.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QJsonArray>
#include <QJsonDocument>

namespace shardlens {

namespace {

const QString kStateKey = QStringLiteral("graph");
constexpr int kSaveDelayMilliseconds = 300;
constexpr std::size_t kMostHistory = 200;
constexpr const char* kColourNames[] = {"none", "time", "communication", "memory"};

} // namespace

GraphController::GraphController(Document& document, GraphView& view, Legend& legend,
                                 LayoutFunction layout, QObject* parent)
    : QObject(parent), m_document(document), m_view(view), m_legend(legend),
      m_layout(std::move(layout)), m_searchLane(std::make_unique<BackgroundLane>()) {
    m_saveDelay.setSingleShot(true);
    m_saveDelay.setInterval(kSaveDelayMilliseconds);
    connect(&m_saveDelay, &QTimer::timeout, this, &GraphController::saveViewStateNow);
    connect(&m_document, &Document::loaded, this, [this] { loadModel(true); });
    connect(&m_document, &Document::modelChanged, this, [this] { loadModel(false); });
    connect(&m_document, &Document::selectionChanged, this, &GraphController::takeSelection);
    connect(&m_document, &Document::planChanged, this, [this] {
        m_view.setStale(m_document.isStale());
        if (!m_document.isStale()) m_picture.setPlan(m_document.plan());
    });
    connect(&m_picture, &GraphPicture::ready, this, &GraphController::takeOverlay);
    connect(&m_picture, &GraphPicture::failed, this, &GraphController::failed);
    connect(&m_view, &GraphView::opRequested, &m_document, &Document::selectOp);
    connect(&m_view, &GraphView::runRequested, &m_document, &Document::selectRun);
    connect(&m_view, &GraphView::toggleRequested, this, &GraphController::toggleRun);
    connect(&m_view, &GraphView::repeatRequested, this, &GraphController::setRepeat);
    connect(&m_view, &GraphView::viewChanged, this, &GraphController::saveSoon);
    connectStages();
}

void GraphController::loadModel(bool restore) {
    const auto& folding = m_document.folding();
    if (restore) {
        m_open.clear();
        m_repeats.clear();
        m_history.clear();
        m_historyAt = 0;
    }
    // A graph read anew may have other runs.
    std::erase_if(m_open, [&](int run) { return run >= static_cast<int>(folding->runs.size()); });
    m_repeats.resize(folding->runs.size(), 0);
    m_matches.clear();
    m_match = -1;
    emit matchesChanged(-1, 0);
    if (restore) {
        m_view.setOverlay(nullptr);
        restoreViewState();
    }
    m_picture.clear();
    m_picture.setModel(m_document.graph(), folding);
    m_roomForStages = m_document.request().pipeline.has_value();
    m_picture.setRepeats(m_repeats);
    requestScene();
}

void GraphController::restoreViewState() {
    m_restoreCentre.reset();
    const QJsonObject state =
        QJsonDocument::fromJson(m_document.viewState(kStateKey).toUtf8()).object();
    if (state.isEmpty()) return;
    const QJsonArray open = state[QStringLiteral("open")].toArray();
    for (const auto& run : open)
        if (run.toInt(-1) >= 0 && run.toInt() < static_cast<int>(m_repeats.size()))
            m_open.insert(run.toInt());
    const QJsonArray repeats = state[QStringLiteral("repeats")].toArray();
    for (std::size_t r = 0; r < m_repeats.size() && static_cast<int>(r) < repeats.size(); ++r)
        m_repeats[r] = static_cast<std::size_t>(
            std::clamp<qint64>(repeats[static_cast<int>(r)].toInteger(), 0,
                               static_cast<qint64>(m_document.folding()->runs[r].count) - 1));
    m_parameters = state[QStringLiteral("parameters")].toBool(true);
    emit parametersShownChanged(m_parameters);
    const QString colour = state[QStringLiteral("colour")].toString();
    for (int mode = 0; mode < 4; ++mode)
        if (colour == QLatin1String(kColourNames[mode]))
            setColourMode(static_cast<ColourMode>(mode));
    if (state.contains(QStringLiteral("zoom"))) {
        m_restoreZoom = state[QStringLiteral("zoom")].toDouble(1);
        m_restoreCentre =
            QPointF(state[QStringLiteral("x")].toDouble(), state[QStringLiteral("y")].toDouble());
    }
    const std::string op = state[QStringLiteral("op")].toString().toStdString();
    const int run = state[QStringLiteral("run")].toInt(-1);
    if (const auto found = m_document.graph()->findOp(op))
        m_document.selectOp(*found);
    else if (run >= 0 && run < static_cast<int>(m_repeats.size()))
        m_document.selectRun(run);
}

QJsonObject GraphController::stateJson() const {
    QJsonArray open, repeats;
    for (const int run : m_open) open.append(run);
    for (const std::size_t repeat : m_repeats) repeats.append(static_cast<qint64>(repeat));
    QJsonObject state{{QStringLiteral("open"), open},
                      {QStringLiteral("repeats"), repeats},
                      {QStringLiteral("parameters"), m_parameters},
                      {QStringLiteral("colour"),
                       QLatin1String(kColourNames[static_cast<int>(m_view.colourMode())])},
                      {QStringLiteral("zoom"), m_view.zoom()},
                      {QStringLiteral("x"), m_view.sceneCentre().x()},
                      {QStringLiteral("y"), m_view.sceneCentre().y()}};
    if (m_document.selectedOp() != kNoOp)
        state[QStringLiteral("op")] = text(m_document.graph()->op(m_document.selectedOp()).name);
    if (m_document.selectedRun() >= 0) state[QStringLiteral("run")] = m_document.selectedRun();
    return state;
}

void GraphController::saveViewStateNow() {
    m_saveDelay.stop();
    if (!m_document.isOpen() || !m_view.overlay() || m_restoreCentre) return;
    m_document.setViewState(
        kStateKey, QString::fromUtf8(QJsonDocument(stateJson()).toJson(QJsonDocument::Compact)));
}

void GraphController::requestScene() {
    SceneOptions options;
    options.openRuns = m_open;
    options.showParameters = m_parameters;
    options.roomForStages = m_roomForStages;
    options.font = m_view.font();
    options.layout = m_layout;
    m_picture.setOptions(std::move(options));
    emit busyChanged(true);
}

void GraphController::takeOverlay(std::shared_ptr<const GraphOverlay> overlay) {
    m_view.setOverlay(overlay);
    m_view.settleBoundary();
    m_legend.setOverlay(overlay);
    m_view.setStale(m_document.isStale());
    if (m_restoreCentre) {
        m_view.setView(*m_restoreCentre, m_restoreZoom);
        m_restoreCentre.reset();
    }
    takeSelection();
    markMatches();
    if (m_reveal != kNoOp) {
        const int item = m_view.itemOfOp(m_reveal);
        m_reveal = kNoOp;
        if (item >= 0) {
            if (m_view.zoom() < 0.5) m_view.setView(m_view.sceneCentre(), 0.9);
            m_view.centreOn(item);
        }
    }
    emit busyChanged(busy());
    emit pictureReady();
}

void GraphController::takeSelection() {
    const OpId op = m_document.selectedOp();
    m_view.setSelection(op, m_document.selectedRun());
    m_view.setSelectedStage(m_document.selectedStage());
    if (!m_document.isPlanningPipeline())
        m_picture.setPipeline(m_document.pipeline(), m_document.chosenStage());
    if (op == kNoOp) return saveSoon();
    const Folding& folding = *m_document.folding();
    const int run = folding.classes[folding.classOf[op]].run;
    if (run >= 0 && m_repeats[static_cast<std::size_t>(run)] != folding.instanceOf[op]) {
        m_repeats[static_cast<std::size_t>(run)] = folding.instanceOf[op];
        m_picture.setRepeats(m_repeats);
    }
    if (!m_walkingHistory && (m_history.empty() || m_history[m_historyAt] != op)) {
        if (!m_history.empty()) m_history.resize(m_historyAt + 1);
        m_history.push_back(op);
        if (m_history.size() > kMostHistory) m_history.erase(m_history.begin());
        m_historyAt = m_history.size() - 1;
    }
    saveSoon();
}

void GraphController::showOp(OpId op) {
    if (!m_document.graph() || op >= m_document.graph()->ops().size()) return;
    const Folding& folding = *m_document.folding();
    const int run = folding.classes[folding.classOf[op]].run;
    m_document.selectOp(op);
    if (run >= 0 && !m_open.contains(run)) {
        m_reveal = op;
        openRun(run);
        return;
    }
    if (const int item = m_view.itemOfOp(op); item >= 0) {
        if (m_view.zoom() < 0.5) m_view.setView(m_view.sceneCentre(), 0.9);
        m_view.ensureVisible(item);
    }
}

void GraphController::toggleRun(int run) {
    if (m_open.contains(run)) {
        m_open.erase(run);
        const OpId op = m_document.selectedOp();
        const Folding& folding = *m_document.folding();
        if (op != kNoOp && folding.classes[folding.classOf[op]].run == run)
            m_document.selectRun(run);
        requestScene();
        saveSoon();
    } else {
        openRun(run);
    }
}

void GraphController::openRun(int run) {
    if (run < 0 || run >= static_cast<int>(m_repeats.size()) || !m_open.insert(run).second) return;
    requestScene();
    saveSoon();
}

std::size_t GraphController::repeatOf(int run) const {
    return m_repeats.at(static_cast<std::size_t>(run));
}

void GraphController::setRepeat(int run, std::size_t repeat) {
    const Folding& folding = *m_document.folding();
    if (run < 0 || run >= static_cast<int>(folding.runs.size())) return;
    repeat = std::min(repeat, folding.runs[static_cast<std::size_t>(run)].count - 1);
    const OpId op = m_document.selectedOp();
    const bool inside = op != kNoOp && folding.classes[folding.classOf[op]].run == run;
    m_repeats[static_cast<std::size_t>(run)] = repeat;
    m_picture.setRepeats(m_repeats);
    if (inside) m_document.selectOp(folding.member(folding.classOf[op], repeat));
    saveSoon();
}

void GraphController::setParametersShown(bool shown) {
    if (shown == m_parameters) return;
    m_parameters = shown;
    emit parametersShownChanged(shown);
    if (m_document.isOpen()) requestScene();
    saveSoon();
}

void GraphController::setColourMode(ColourMode mode) {
    if (mode == m_view.colourMode()) return;
    m_view.setColourMode(mode);
    m_legend.setColourMode(mode);
    emit colourModeChanged(mode);
    saveSoon();
}

void GraphController::goToProducer() {
    const OpId op = m_document.selectedOp();
    if (op == kNoOp) return;
    const Graph& graph = *m_document.graph();
    for (const TensorId tensor : graph.op(op).inputs)
        if (tensor != kNoTensor) return showOp(graph.tensor(tensor).producer);
}

void GraphController::goToConsumer() {
    const OpId op = m_document.selectedOp();
    if (op == kNoOp) return;
    const Graph& graph = *m_document.graph();
    for (const TensorId tensor : graph.op(op).outputs)
        for (const Graph::Use& use : graph.uses(tensor)) return showOp(use.op);
}

void GraphController::goBack() {
    if (m_history.empty() || m_historyAt == 0) return;
    m_walkingHistory = true;
    showOp(m_history[--m_historyAt]);
    m_walkingHistory = false;
}

void GraphController::goForward() {
    if (m_historyAt + 1 >= m_history.size()) return;
    m_walkingHistory = true;
    showOp(m_history[++m_historyAt]);
    m_walkingHistory = false;
}

void GraphController::copyName() const {
    if (m_document.selectedOp() != kNoOp)
        QGuiApplication::clipboard()->setText(
            text(m_document.graph()->op(m_document.selectedOp()).name));
}

} // namespace shardlens
