// SPDX-License-Identifier: Apache-2.0
// Plans of whole jobs in the background, for a window: the plan with all that views show of it, and
// a lane that keeps the prices of stages between requests, so that a moved stage boundary is
// answered at once. Newest request and latest result only, as in planning_service.h. No Qt here.
#pragma once

#include "core/plan/background_lane.h"
#include "core/plan/planners/pipeline_document.h"
#include "core/plan/planners/pipeline_job.h"
#include "core/plan/planners/stage_plans.h"
#include "core/plan/planners/virtual_stages.h"
#include "core/schedule/spec.h"

#include <atomic>
#include <utility>

namespace shardlens {

/// A planned job beside the model whose ops its stages hold. Immutable.
struct PipelinePlan {
    std::shared_ptr<const Graph> graph;
    StageUnits units; ///< of `graph`; stages and boundaries count in these
    PlanRequest request;
    PipelineAnswer answer;
    PipelineDocument document;
    schedule::ScheduleSpec schedule;         ///< with the times of each stage
    std::vector<VirtualStage> virtualStages; ///< in the order of the model

    int stages() const { return static_cast<int>(answer.stages.size()); }
    /// The stage that computes an op; of a source the first that reads it; -1 for none.
    int stageOf(OpId op) const { return stageOfOp[op]; }
    /// First device of a stage and the one after its last: stages lie one after the other.
    std::pair<int, int> devicesOf(int stage) const;
    int stageOfDevice(int device) const; ///< -1: no stage uses it
    double memoryOf(int stage) const;    ///< bytes a device
    std::string nameOf(int unit) const { return unitName(units, unit); }
    /// "layers 4-5, 20-21": what a stage computes, chunk by chunk.
    std::string chunksOf(int stage) const { return chunksName(units, virtualStages, stage); }
    // Boundaries, by the first unit of a virtual stage. What pins them (PipelineSetup::cuts) says
    // where the stretch of the whole stage begins; all its chunks follow.
    /// Of a boundary between two stages; -1 where a chunk of the first stage begins, which follows
    /// from the others. What is no boundary of this plan stands for itself.
    int cutOf(int boundary) const;
    /// What to pin so that a boundary comes to lie at a unit, as chunks are equal; -1 if nothing
    /// does.
    int cutFor(int boundary, int unit) const;
    bool isPinned(int boundary) const;
    double bubble() const; ///< share of the step that the busiest stage does not work

    std::vector<int> stageOfOp; ///< by OpId
    /// By stage: what it does inside, its ops by their OpId in `graph`.
    std::vector<std::shared_ptr<const StagePlan>> inside;
    /// nullptr where the model has other ops at the size of a micro-batch, or for no stage (-1).
    std::shared_ptr<const StagePlan> insideOf(int stage) const;
};

/// @throws PlanError
PipelinePlan makePipelinePlan(const ModelBundle& bundle, const PlanRequest& request,
                              StagePricer& pricer, PipelineAnswer answer);

using PipelinePlanner =
    std::function<PipelineAnswer(StagePricer&, const PlanRequest&, std::stop_token)>;

struct PipelineResult {
    std::uint64_t generation = 0;
    std::shared_ptr<const PipelinePlan> plan;
    std::string error;      ///< a sentence for people; empty when there is a plan
    bool cancelled = false; ///< stopped on request; nothing went wrong
};

class PipelineService {
public:
    /// @param wake called from the worker when a result is to be fetched; it must only post
    explicit PipelineService(std::function<void()> wake, PipelinePlanner planner = planJob);
    ~PipelineService() = default; ///< cancels and joins; wake is not called afterwards

    /// @param file the model, read again for every size of micro-batch
    std::uint64_t solve(const ModelBundle& bundle, const std::filesystem::path& file,
                        const PlanRequest& request);
    void cancel(); ///< the result of what runs is dropped
    bool busy() const { return m_lane.busy(); }
    std::optional<PipelineResult> takeResult();
    void waitForIdle() { m_lane.waitForIdle(); } ///< for tests

private:
    /// The pricer of the last request; only the lane's thread touches it.
    struct Prices {
        std::shared_ptr<const Graph> graph;
        std::string key;
        StagePricer pricer;
    };
    StagePricer& pricerFor(const ModelBundle& bundle, const std::filesystem::path& file,
                           const PlanRequest& request);

    std::function<void()> m_wake;
    PipelinePlanner m_planner;
    std::optional<Prices> m_prices;

    std::mutex m_mutex; // guards the mailbox and the generation
    std::optional<PipelineResult> m_result;
    std::uint64_t m_generation = 0;

    BackgroundLane m_lane; // last: its thread ends before the mailbox goes
};

} // namespace shardlens
