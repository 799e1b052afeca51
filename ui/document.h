// SPDX-License-Identifier: Apache-2.0
// The open session as the views see it: model, request with its pins, plan, selection, undo stack.
// The one place that changes any of it. A change by the user is checked, written to the session
// file in one transaction, and only then shown (an undo step). Loading, solving and pricing run in
// the background; their results arrive as signals. Nothing here waits.
#pragma once

#include "core/plan/model_bundle.h"
#include "core/plan/pipeline_service.h"
#include "core/plan/planning_service.h"
#include "core/store/session.h"

#include <QObject>
#include <QString>
#include <QUndoStack>

#include <map>

namespace shardlens {

struct DocumentOptions {
    PlanningFunctions functions = PlanningFunctions::real();
    PipelinePlanner pipeline = planJob;
    /// Where sessions without a name of their own are kept. Empty: the user's data folder.
    std::filesystem::path temporaryFolder;
};

enum class MessageKind { Information, Warning, Error };

class Document : public QObject {
    Q_OBJECT

public:
    explicit Document(DocumentOptions options = {}, QObject* parent = nullptr);
    ~Document() override;

    // The file
    /// Opens a model or a session in the background: loaded() or message() follows.
    void open(const QString& path);
    bool saveAs(const QString& path);
    bool isOpen() const { return m_session != nullptr; }
    bool isLoading() const { return m_loading; }
    bool isReadOnly() const { return m_session && m_session->readOnly(); }
    bool isTemporary() const { return m_temporary; }
    QString readOnlyReason() const;
    QString path() const;  ///< of the session file
    QString title() const; ///< model name, or the session's file name

    // What is shown
    const std::shared_ptr<const Graph>& graph() const { return m_bundle.graph; }
    const std::shared_ptr<const Folding>& folding() const { return m_bundle.folding; }
    const ModelBundle& bundle() const { return m_bundle; }
    std::filesystem::path modelFile() const; ///< of the model that is open; empty if none is
    const PlanRequest& request() const { return m_request; }
    const std::shared_ptr<const Plan>& plan() const { return m_plan; }
    bool isStale() const { return m_stale; } ///< the plan answers an older request
    bool isSolving() const { return m_solving; }
    const QString& planError() const { return m_planError; }
    const std::optional<PlanningProgress>& progress() const { return m_progress; }
    const std::optional<AlternativesResult>& alternatives() const { return m_alternatives; }
    bool alternativesPending() const { return m_alternativesPending; }
    std::string costUnit() const; ///< of times: "s", or the cost model's own

    // The whole job as stages, where the request asks for it
    const std::shared_ptr<const PipelinePlan>& pipeline() const { return m_pipeline; }
    bool isPipelineStale() const { return m_pipelineStale; } ///< it answers an older request
    bool isPlanningPipeline() const { return m_planningPipeline; }
    const QString& pipelineError() const { return m_pipelineError; }
    /// Plans what a moved boundary would lead to, without a step; previewed() says it in words.
    void previewBoundary(int from, int to);

    // Selection: an op, or a run of blocks, or a stage, or nothing
    OpId selectedOp() const { return m_selectedOp; }
    int selectedRun() const { return m_selectedRun; }
    void selectOp(OpId op);
    void selectRun(int run);
    void selectStage(int stage); ///< -1: none
    /// The stage that is selected, or that computes the selected op; -1 for none.
    int selectedStage() const;
    /// The stage that was selected itself, to be looked into; -1 for none.
    int chosenStage() const { return m_pipeline ? m_selectedStage : -1; }

    // Steps of the user. @return false, after a message, if the step could not be made
    /// Pins one op, or with `allBlocks` every op of its class.
    bool pin(OpId op, const QString& choice, bool allBlocks = false);
    /// Removes the pins made for this op or its class.
    bool unpin(OpId op);
    bool removePin(std::size_t index);
    /// Another cluster, mesh, workload, … A workload that sizes the model anew is read first.
    bool changeSetup(const PlanRequest& request, const QString& label);
    /// Pins that hold an op, by index into request().pins.
    std::vector<std::size_t> pinsOf(OpId op) const;
    /// Whether the planner named this pin among those that clash.
    bool pinClashes(std::size_t index) const;
    /// Turns pipelines on, off, or asks for other ones.
    bool changePipeline(const std::optional<PipelineSetup>& setup, const QString& label);
    /// A stage shall begin with unit `to` in place of `from`: a pin. Boundaries are first units of
    /// stages or of their chunks; all chunks of a stage are pinned alike.
    bool moveBoundary(int from, int to);
    bool pinBoundary(int boundary);
    bool freeBoundary(int boundary);
    QUndoStack* undoStack() { return &m_undo; }

    void cancel(); ///< loading or solving, whichever runs
    void solveAgain();

    // View state: kept in the session, never an undo step
    QString viewState(const QString& key) const;
    void setViewState(const QString& key, const QString& json);

    /// Blocks until the background is idle and its results are in; for tests and screenshots.
    bool waitForIdle(int milliseconds);

signals:
    void loadingChanged();
    void loaded();       ///< another session is open; everything changed
    void modelChanged(); ///< the graph was read anew for another workload
    void requestChanged();
    void planChanged();     ///< also when only its staleness or error changed
    void pipelineChanged(); ///< likewise
    void previewed(int boundary, const QString& words);
    void progressChanged();
    void alternativesChanged();
    void selectionChanged();
    void message(shardlens::MessageKind kind, const QString& text);

private:
    friend class StepCommand;
    struct Opened;
    struct Workload;

    void fetch();
    void finishOpen(std::uint64_t generation, const std::shared_ptr<Opened>& opened);
    void finishReload(std::uint64_t generation, const std::shared_ptr<Opened>& opened,
                      const PlanRequest& request, const QString& label);
    void rebuildUndo();
    bool applyStep(const PlanRequest& request, const QString& label, const QString& kind);
    bool undoStep();
    bool redoStep();
    void afterUndo(); ///< request taken from the session; model and plan follow
    void reload(const PlanRequest& request, const QString& label);
    void useBundle(const ModelBundle& bundle, const PlanRequest& request);
    void resolve();
    void resolvePipeline(bool again = false);
    void fetchPipeline();
    void tellPreview(const PipelineResult& result);
    std::optional<PipelineSetup> withMoved(int from, int to) const;
    void forgetPipeline(); ///< with what runs; emits nothing
    void requestAlternatives();
    void fail(const QString& text);
    std::optional<std::string> opName(OpId op) const;
    std::filesystem::path temporaryFolder() const;
    void discardIfUntouched();

    DocumentOptions m_options;
    std::unique_ptr<Session> m_session;
    bool m_temporary = false;
    ModelBundle m_bundle;
    std::map<std::string, ModelBundle> m_bundles; ///< by workload, so that undo need not read
    PlanRequest m_request;
    std::shared_ptr<const Plan> m_plan;
    QString m_planError;
    bool m_stale = false, m_solving = false, m_loading = false, m_replaying = false;
    std::optional<PlanningProgress> m_progress;
    std::optional<AlternativesResult> m_alternatives;
    bool m_alternativesPending = false;
    OpId m_selectedOp = kNoOp;
    int m_selectedRun = -1, m_selectedStage = -1;
    std::shared_ptr<const PipelinePlan> m_pipeline;
    std::string m_pipelineQuestion; ///< what of the request the newest answer is for
    QString m_pipelineError;
    bool m_pipelineStale = false, m_planningPipeline = false;
    std::uint64_t m_previewed = 0; ///< generation of a preview that runs
    int m_previewedBoundary = -1;
    QUndoStack m_undo;
    std::map<std::string, std::string> m_viewState;

    std::unique_ptr<PlanningService> m_planning; // last: their threads end first
    std::unique_ptr<PipelineService> m_pipelines;
    std::unique_ptr<BackgroundLane> m_loadLane;
};

} // namespace shardlens
