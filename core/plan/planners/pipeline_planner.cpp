// SPDX-License-Identifier: Apache-2.0
// See pipeline_planner.h.
#include "core/plan/planners/pipeline_planner.h"

#include "core/error.h"
#include "core/plan/planners/megatron_grid.h"
#include "core/plan/planners/stage_space.h"
#include "core/schedule/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

namespace shardlens {

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

PipelineAnswer answerOf(StageSpace& space, const PipelineCombination& combination,
                        const PipelineSolution& solution) {
    PipelineAnswer answer;
    answer.schedule = combination.schedule;
    answer.microBatches = combination.microBatches;
    for (const PipelineStage& stage : solution.stages) answer.stages.push_back(space.stage(stage));
    answer.seconds = stepSeconds(answer.schedule, answer.prices(), answer.microBatches);
    const int count = static_cast<int>(answer.stages.size());
    for (int i = 0; i < count; ++i)
        answer.peakMemory =
            std::max(answer.peakMemory,
                     stageMemory(answer.stages[static_cast<std::size_t>(i)].price, answer.schedule,
                                 count - 1 - i, count, answer.microBatches));
    return answer;
}

} // namespace

std::vector<StagePrice> PipelineAnswer::prices() const {
    std::vector<StagePrice> list;
    std::ranges::transform(stages, std::back_inserter(list), &PlannedStage::price);
    return list;
}

int PipelineAnswer::devices() const {
    return std::accumulate(stages.begin(), stages.end(), 0,
                           [](int sum, const PlannedStage& s) { return sum + s.option.devices(); });
}

double stageMemory(const StagePrice& price, const ScheduleModel& schedule, int behind, int stages,
                   double microBatches) {
    return price.resident + price.transient +
           schedule.inFlight(behind, stages, microBatches) * price.perMicroBatch;
}

PipelineAnswer planPipeline(StagePricer& pricer, const PipelineRequest& request,
                            std::stop_token stop) {
    const auto start = std::chrono::steady_clock::now();
    StageSpace space(pricer, request);
    const std::vector<PipelineCombination> combinations = space.combinations();
    PipelineAnswer best;
    best.seconds = std::numeric_limits<double>::infinity();
    double bound = best.seconds;
    if (pricer.pools().size() == 1) { // equal stages to begin with
        const std::vector<GridPoint> grid = megatronGrid(pricer, request);
        if (const GridPoint* point = bestOf(grid)) best = answerOf(pricer, request, *point);
    }
    std::size_t solved = 0;
    for (const PipelineCombination& combination : combinations) {
        if (combination.bound >= best.seconds * (1 - request.tolerance)) {
            bound = std::min(bound, combination.bound); // and so do all that follow
            break;
        }
        const PipelineProblem problem = space.problem(combination, best.seconds);
        const PipelineSolution solution = solvePipeline(problem, {.incumbent = best.seconds,
                                                                  .tolerance = request.tolerance,
                                                                  .resolution = request.resolution,
                                                                  .stop = stop});
        ++solved;
        bound = std::min(bound, std::max(solution.bound, combination.bound));
        if (solution.stages.empty()) continue;
        PipelineAnswer answer = answerOf(space, combination, solution);
        if (answer.seconds < best.seconds) best = std::move(answer);
    }
    if (best.stages.empty())
        throw PlanError(fmt::format("no pipeline fits into {:.1f} GiB a device: parameters, "
                                    "gradients and optimizer state alone are {:.1f} GiB a device",
                                    space.limit(0) / kGiB, space.leastMemory() / kGiB),
                        "pipeline", "use more devices, another batch, or fewer pins");
    best.bound = std::min(bound, best.seconds);
    best.combinations = combinations.size();
    best.solved = solved;
    best.simulated = simulatedSeconds(best.schedule, best.prices(), best.microBatches);
    best.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return best;
}

double simulatedSeconds(const ScheduleModel& schedule, const std::vector<StagePrice>& prices,
                        int microBatches) {
    schedule::ScheduleSpec spec;
    spec.name = schedule.name();
    spec.devices = static_cast<std::uint32_t>(prices.size());
    spec.microBatches = static_cast<std::uint32_t>(microBatches);
    spec.chunks = static_cast<std::uint32_t>(schedule.chunks);
    spec.times.clear();
    spec.transfer.clear();
    spec.flush = false; // each stage updates when its own gradients are there
    const double share = schedule.chunks;
    for (std::size_t stage = 0; stage < prices.size() * spec.chunks; ++stage) {
        const StagePrice& p = prices[stage % prices.size()];
        spec.times.push_back({p.forward / share, p.inputGrad / share, p.weightGrad / share,
                              p.recompute / share, p.step / share, 0});
        spec.transfer.push_back(p.send / 2);
    }
    spec.transfer.pop_back();
    if (spec.transfer.empty()) spec.transfer = {0};
    return schedule::makeSchedule(spec).timeline.makespan;
}

} // namespace shardlens
