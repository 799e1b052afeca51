// SPDX-License-Identifier: Apache-2.0
// All ways to run a stretch of a model as a stage, for one size of micro-batch and one schedule:
// the candidates of a PipelineProblem. Stretches inside a run are equal and have one list.
#pragma once

#include "core/plan/planners/pipeline_planner.h"

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
    /// @param below candidates that cannot be part of a quicker plan are left out
    /// @return nullptr if nothing is quicker; valid till the next call
    const PipelineProblem* problem(PipelineCombination& combination, double below);
    /// What a candidate of the last problem stands for.
    PlannedStage stage(const PipelineStage& stage);
    /// Least bytes a device that any plan needs, for messages.
    double leastMemory();

private:
    /// Replicas of one kind, with what they are bounded by in the combination at hand: sums up to
    /// each unit of the least of fill + gate * devices / all devices, and of fill + gate.
    struct Option {
        StageOptionInfo info;
        StagePricer::Replica* replica = nullptr;
        std::vector<double> bound, alone;
    };
    struct Choice {
        std::size_t option;
        StagePolicy policy;
        double room; ///< for micro-batches in flight
    };
    /// All candidates of a size and schedule that may be part of a plan below a limit, whatever the
    /// number of stages: StageCandidate::mostBehind is set by it later.
    struct Offers {
        explicit Offers(PipelineProblem stages) : problem(std::move(stages)) {}
        double below = 0; ///< seconds of a step
        double bound = 0; ///< of all plans below
        std::vector<Option> options;
        std::vector<double> least;   ///< by unit: sum of the least of all options up to it
        std::vector<Choice> choices; ///< by candidate id
        /// By first unit, and the last one from the first or, in a run, from the end of the run on:
        /// candidates while they are collected.
        std::vector<std::vector<std::vector<StageCandidate>>> lists;
        PipelineProblem problem;
    };
    void setGroups();
    const std::vector<StageOptionInfo>& options(std::int64_t samples);
    double boundOf(const std::vector<StageOptionInfo>& options, const ScheduleModel& schedule,
                   int microBatches, int stages);
    double shareOf(const StageOptionInfo& option) const;
    Offers& offersOf(const PipelineCombination& combination, double below);
    void setOptions(const PipelineCombination& combination, Offers& offers);
    void addOffers(const PipelineCombination& combination, int first, std::size_t option,
                   Offers& offers);
    void addPolicies(const PipelineCombination& combination, int first, int last,
                     std::size_t option, Offers& offers);
    void useLists(Offers& offers) const;
    int rowBegin(int first) const;
    /// Whether the layers of a stretch can be cut into the chunks of a schedule.
    bool fitsChunks(const ScheduleModel& schedule, int first, int last) const;
    StagePricer& m_pricer;
    const PipelineRequest& m_request;
    std::shared_ptr<const StagedModel> m_model;
    std::vector<int> m_cuts;           ///< of the request, ascending
    std::vector<int> m_layers;         ///< by unit: units of runs before it
    std::vector<int> m_groupEnd;       ///< by unit: last one of its kind in a row
    std::vector<std::int64_t> m_sizes; ///< samples of a replica's micro-batch that work
    double m_devices = 0;              ///< of all pools
    std::map<std::int64_t, std::vector<StageOptionInfo>> m_options; ///< by samples
    using OfferKey = std::tuple<std::int64_t, ScheduleKind, int>;
    std::map<OfferKey, std::unique_ptr<Offers>> m_offers;
    Offers* m_last = nullptr; ///< of the last problem
};

} // namespace shardlens
