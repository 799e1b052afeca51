// SPDX-License-Identifier: Apache-2.0
// The planner `optimum` for whole jobs: stages x devices x logical mesh x micro-batch x schedule x
// recomputation x ZeRO stage, under the memory of every stage, for the shortest step. Each size of
// micro-batch with each schedule is a combination; combinations are bounded by what their units
// take at least, and only those that may be better than the best so far are built and solved
// (pipeline_problem.h). The bound holds for the space that is searched: meshes of PipelineRequest,
// stages whose inner choices are one of StagePricer::variants(), schedules by their closed form.
#pragma once

#include "core/plan/pipeline_setup.h"
#include "core/plan/planners/pipeline_problem.h"
#include "core/plan/planners/stage_pricer.h"
#include "core/schedule/spec.h"

#include <optional>
#include <string>

namespace shardlens {

struct PipelineRequest {
    std::int64_t batch = 8;                 ///< sequences or samples of a step
    std::optional<double> memoryLimitBytes; ///< per device; default: the device's memory
    /// Schedules to choose from, as core/schedule names them.
    std::vector<std::string> schedules{"1f1b", "interleaved", "zb-h1"};
    std::vector<int> chunks{2, 3, 4, 6}; ///< of interleaved schedules
    std::int64_t largestSamples = 64;    ///< of one replica's micro-batch
    int largestContext = 8;              ///< context-parallel degree of equal-stage plans
    int insideAxes = 1;             ///< most axes of a replica's mesh in the free search: 1 or 2
    bool blockingTransfers = false; ///< between stages; see ScheduleModel::blocking
    // Pins.
    std::optional<int> microBatches;
    std::vector<int> cuts; ///< units that a stage must begin with
    int stages = 0;        ///< how many; 0 = any
    StagePins pins;        ///< of every stage
    double tolerance = 0.009, resolution = 0.004;

    /// @throws PlanError as ScheduleModel::named
    ScheduleModel schedule(std::string_view name, int deviceChunks = 1) const {
        return ScheduleModel::named(name, deviceChunks, blockingTransfers);
    }
};

struct PlannedStage {
    int first = 0, last = 0; ///< units, both included
    StageOptionInfo option;
    StagePolicy policy;
    StagePrice price;
};

struct PipelineAnswer {
    ScheduleModel schedule;
    int microBatches = 1;
    std::vector<PlannedStage> stages;
    double seconds = 0;                       ///< of a step, closed form
    double bound = 0;                         ///< no plan of the space takes less
    double simulated = 0;                     ///< of a step, by the event engine
    double peakMemory = 0;                    ///< bytes, of the fullest device
    std::size_t combinations = 0, solved = 0; ///< sizes and schedules: all, and those solved
    double milliseconds = 0;

    double bubble() const; ///< share of the step that the busiest stage does not work
    double gap() const { return (seconds - bound) / seconds; }
    std::vector<StagePrice> prices() const;
    int devices() const;
};

/// Prices and replicas are kept in the pricer: asking again with other pins is quick.
/// @throws PlanError when nothing fits, saying what would; Cancelled
PipelineAnswer planPipeline(StagePricer& pricer, const PipelineRequest& request,
                            std::stop_token stop = {});

bool allows(const StagePins& pins, const StageOptionInfo& option);
bool allowsRecompute(const StagePins& pins, const StagePolicy& policy);

/// Bytes that a stage needs on each device. @param behind stages after it
double stageMemory(const StagePrice& price, const ScheduleModel& schedule, int behind, int stages,
                   double microBatches);

/// What the event engine runs: the schedule with the times of each stage.
schedule::ScheduleSpec scheduleOf(const ScheduleModel& schedule,
                                  const std::vector<StagePrice>& prices, int microBatches);

/// Seconds of a step by the event engine. @throws PlanError
double simulatedSeconds(const ScheduleModel& schedule, const std::vector<StagePrice>& prices,
                        int microBatches);

} // namespace shardlens
