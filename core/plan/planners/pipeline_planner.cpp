// SPDX-License-Identifier: Apache-2.0
// See pipeline_planner.h.
#include "core/plan/planners/pipeline_planner.h"

#include "core/error.h"
#include "core/plan/planners/megatron_grid.h"
#include "core/plan/planners/stage_space.h"
#include "core/schedule/catalogue.h"
#include "core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace shardlens {

namespace {

// Plans are looked for below a ceiling above the least bound: candidates that only slower plans
// have are not made. The ceiling is raised as long as there is none.
constexpr double kFirstExcess = 0.03, kRaise = 1.4, kLastExcess = 20;
// Labels of a bracket: few until there is a plan to beat.
constexpr std::size_t kFewLabels = 4'000, kManyLabels = 2'000'000;

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

double PipelineAnswer::bubble() const {
    double busiest = 0;
    for (const PlannedStage& stage : stages)
        busiest = std::max(busiest, microBatches * stage.price.seconds() + stage.price.step);
    return std::max(0.0, 1 - busiest / seconds);
}

int PipelineAnswer::devices() const {
    return std::accumulate(stages.begin(), stages.end(), 0,
                           [](int sum, const PlannedStage& s) { return sum + s.option.devices(); });
}

bool allows(const StagePins& pins, const StageOptionInfo& option) {
    return pins.data.value_or(option.replicas) == option.replicas &&
           pins.inside.value_or(option.replica.variant) == option.replica.variant &&
           (!pins.tensor || *pins.tensor * option.replicas == option.devices());
}

bool allowsRecompute(const StagePins& pins, const StagePolicy& policy) {
    if (!pins.recompute) return true;
    return policy.fullShare == (*pins.recompute == Recompute::Full ? 1 : 0) &&
           policy.selective == (*pins.recompute != Recompute::None);
}

double stageMemory(const StagePrice& price, const ScheduleModel& schedule, int behind, int stages,
                   double microBatches) {
    return price.resident + price.transient +
           schedule.inFlight(behind, stages, microBatches) * price.perMicroBatch;
}

namespace {

class Planner {
public:
    Planner(StagePricer& pricer, const PipelineRequest& request, std::stop_token stop)
        : m_pricer(pricer), m_request(request), m_stop(std::move(stop)), m_space(pricer, request),
          m_combinations(m_space.combinations()) {
        m_best.seconds = std::numeric_limits<double>::infinity();
    }

    PipelineAnswer run() {
        if (m_combinations.empty())
            throw PlanError("batch, devices and layers cannot be divided as the pins ask",
                            "pipeline", "use another batch or fewer pins");
        takeEqualStages(m_combinations.front().bound * (1 + kFirstExcess));
        double excess = kFirstExcess, ceiling = 0;
        while (!m_combinations.empty() && ceiling < m_best.seconds) {
            ceiling = excess > kLastExcess ? std::numeric_limits<double>::infinity()
                                           : m_combinations.front().bound * (1 + excess);
            for (const std::size_t labels : {kFewLabels, kManyLabels}) look(ceiling, labels);
            if (std::isinf(ceiling)) break;
            excess *= kRaise;
        }
        takeEqualStages(m_best.seconds);
        if (m_best.stages.empty())
            throw PlanError(fmt::format("no pipeline fits into {:.1f} GiB a device: parameters, "
                                        "gradients and optimizer state alone are {:.1f} GiB a "
                                        "device",
                                        m_space.limit(0) / kGiB, m_space.leastMemory() / kGiB),
                            "pipeline", "use more devices, another batch, or fewer pins");
        m_best.bound = std::min(m_best.bound, m_best.seconds);
        m_best.combinations = m_combinations.size();
        m_best.simulated = simulatedSeconds(m_best.schedule, m_best.prices(), m_best.microBatches);
        return std::move(m_best);
    }

private:
    /// The best plan of equal stages as Megatron-LM lays them out, if it is below and better.
    void takeEqualStages(double below) {
        if (m_pricer.pools().size() > 1) return;
        const std::vector<GridPoint> grid = megatronGrid(m_pricer, m_request, m_stop, below);
        const GridPoint* point = bestOf(grid);
        if (!point || point->seconds >= m_best.seconds) return;
        PipelineAnswer answer = answerOf(m_pricer, m_request, *point);
        answer.bound = m_best.bound;
        answer.solved = m_best.solved;
        m_best = std::move(answer);
    }

    /// Anything better than the best so far, and below the ceiling.
    void look(double ceiling, std::size_t mostLabels) {
        double bound = ceiling;
        for (PipelineCombination& combination : m_combinations) {
            if (m_stop.stop_requested()) throw Cancelled();
            const double below = std::min(m_best.seconds, ceiling);
            if (combination.bound >= below * (1 - m_request.tolerance)) {
                bound = std::min(bound, combination.bound); // and so do all that follow
                break;
            }
            solve(combination, below, mostLabels);
            bound = std::min(bound, combination.bound);
        }
        m_best.bound = bound;
        std::ranges::stable_sort(m_combinations, {}, &PipelineCombination::bound);
    }

    void solve(PipelineCombination& combination, double below, std::size_t mostLabels) {
        const PipelineProblem* problem = m_space.problem(combination, below);
        if (!problem || combination.bound >= below * (1 - m_request.tolerance)) return;
        const PipelineSolution solution =
            solvePipeline(*problem, {.incumbent = below,
                                     .tolerance = m_request.tolerance,
                                     .resolution = m_request.resolution,
                                     .mostLabels = mostLabels,
                                     .stop = m_stop});
        ++m_best.solved;
        combination.bound = std::max(solution.bound, combination.bound);
        if (solution.stages.empty()) return;
        PipelineAnswer answer = answerOf(m_space, combination, solution);
        if (answer.seconds >= m_best.seconds) return;
        answer.solved = m_best.solved;
        m_best = std::move(answer);
    }

    StagePricer& m_pricer;
    const PipelineRequest& m_request;
    std::stop_token m_stop;
    StageSpace m_space;
    std::vector<PipelineCombination> m_combinations; ///< the least bound first
    PipelineAnswer m_best;
};

} // namespace

PipelineAnswer planPipeline(StagePricer& pricer, const PipelineRequest& request,
                            std::stop_token stop) {
    const auto start = std::chrono::steady_clock::now();
    PipelineAnswer best = Planner(pricer, request, std::move(stop)).run();
    best.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return best;
}

schedule::ScheduleSpec scheduleOf(const ScheduleModel& schedule,
                                  const std::vector<StagePrice>& prices, int microBatches) {
    schedule::ScheduleSpec spec;
    spec.name = schedule.name();
    spec.devices = static_cast<std::uint32_t>(prices.size());
    spec.microBatches = static_cast<std::uint32_t>(microBatches);
    spec.chunks = static_cast<std::uint32_t>(schedule.chunks);
    if (schedule.blocking) spec.transfers = schedule::Transfers::Blocking;
    spec.times.clear();
    spec.transfer.clear();
    const double share = schedule.chunks;
    for (std::size_t stage = 0; stage < prices.size() * spec.chunks; ++stage) {
        const StagePrice& p = prices[stage % prices.size()];
        spec.times.push_back({p.forward / share, p.inputGrad / share, p.weightGrad / share,
                              p.recompute / share, p.step / share, 0});
        const bool last = stage % prices.size() + 1 == prices.size();
        spec.transfer.push_back(last ? wrapSeconds(prices) : p.send / 2);
    }
    spec.transfer.pop_back();
    if (spec.transfer.empty()) spec.transfer = {0};
    return spec;
}

double simulatedSeconds(const ScheduleModel& schedule, const std::vector<StagePrice>& prices,
                        int microBatches) {
    return schedule::makeSchedule(scheduleOf(schedule, prices, microBatches)).timeline.makespan;
}

} // namespace shardlens
