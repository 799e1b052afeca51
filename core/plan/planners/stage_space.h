// SPDX-License-Identifier: Apache-2.0
// All ways to run a stretch of a model as a stage, for one size of micro-batch and one schedule:
// the candidates of a PipelineProblem. Stretches inside a run are equal and have one list.
#pragma once

#include "core/plan/planners/pipeline_planner.h"
#include "core/plan/planners/stage_floors.h"

namespace shardlens {

/// One size of micro-batch and one schedule.
struct PipelineCombination {
    std::int64_t samples = 1; ///< of a micro-batch, all replicas together
    int microBatches = 1;
    ScheduleModel schedule;
    int stages = 0; ///< that memory and order are reckoned with; 0 = not fixed
    double bound = 0;
};

class StageSpace {
public:
    StageSpace(StagePricer& pricer, const PipelineRequest& request);

    int units() const { return static_cast<int>(m_model->units.units.size()); }
    DeviceCounts devices() const;
    double limit(std::size_t pool) const;

    /// All combinations, each with a bound, least first.
    std::vector<PipelineCombination> combinations();
    /// @param incumbent candidates that cannot be part of a quicker plan are left out
    PipelineProblem problem(const PipelineCombination& combination, double incumbent);
    /// What a candidate of the last problem stands for.
    PlannedStage stage(const PipelineStage& stage);
    /// Least bytes a device that any plan needs, for messages.
    double leastMemory();

private:
    /// Replicas of one kind, with what they are bounded by in the combination at hand.
    struct Option {
        StageOptionInfo info;
        StagePricer::Replica* replica = nullptr;
        std::vector<double> bound; ///< by unit: sum of the least up to it
    };
    struct Choice {
        std::size_t option;
        StagePolicy policy;
    };
    /// All candidates of a size and schedule, whatever the number of stages: in place of
    /// StageCandidate::mostBehind stands how many micro-batches they have room for.
    struct Offers {
        std::vector<Option> options;
        std::vector<double> least;   ///< by unit: sum of the least of all options up to it
        std::vector<Choice> choices; ///< by candidate id
        std::vector<std::vector<StageCandidate>> lists;
        std::vector<std::pair<std::pair<int, int>, int>> uses; ///< stretch and list
    };
    std::vector<StageOptionInfo> options(std::int64_t samples);
    double boundOf(const std::vector<StageOptionInfo>& options, const ScheduleModel& schedule,
                   int microBatches, int stages);
    double shareOf(const StageOptionInfo& option) const;
    Offers& offersOf(const PipelineCombination& combination, double incumbent);
    void setOptions(const PipelineCombination& combination, Offers& offers);
    void addPolicies(const PipelineCombination& combination, int first, int last,
                     std::size_t option, double slack, Offers& offers,
                     std::vector<StageCandidate>& list);
    bool allowed(const PipelineCombination& combination, int first, int last) const;
    StagePricer& m_pricer;
    const PipelineRequest& m_request;
    std::shared_ptr<const StagedModel> m_model;
    std::vector<std::int64_t> m_sizes; ///< samples of a replica's micro-batch that work
    StageFloors m_floors;
    double m_devices = 0; ///< of all pools
    using OfferKey = std::tuple<std::int64_t, ScheduleKind, int>;
    std::map<OfferKey, Offers> m_offers;
    Offers* m_last = nullptr; ///< of the last problem
};

} // namespace shardlens
