// SPDX-License-Identifier: Apache-2.0
// Planning in the background, for a window: one lane solves, another prices the alternatives of
// one op. A newer request supersedes an older one; what an older one still delivers is dropped by
// its generation number. Progress and results wait in latest-value mailboxes; the owner is woken
// once for any number of them and fetches them from its own thread. No Qt here.
//
//   owner thread                       solve lane                alternatives lane
//   solve(request) ----------------->  makeContext, optimise
//   wake() <- once, coalesced -------  progress, progress, …
//   takeProgress()
//   wake() <-------------------------  result
//   takeResult()
//   alternatives(plan, op) ------------------------------------>  alternatives
//   wake() <----------------------------------------------------  result
#pragma once

#include "core/plan/background_lane.h"
#include "core/plan/planner.h"

#include <atomic>
#include <chrono>

namespace shardlens {

/// The functions the service runs, so that tests can put slow or failing ones in their place.
struct PlanningFunctions {
    std::function<Plan(std::shared_ptr<const PlanContext>, const PlannerOptions&)> optimise;
    std::function<std::vector<Alternative>(const Plan&, OpId, const PlannerOptions&)> alternatives;
    static PlanningFunctions real();
};

/// Where a running solve stands.
struct PlanningProgress {
    std::uint64_t generation = 0;
    double incumbent = 0; ///< cost model units; infinite until there is one
    double bound = 0;
    double gap = 0;     ///< (incumbent - bound) / incumbent; infinite without an incumbent
    double elapsed = 0; ///< seconds
    std::string stage;
};

/// What became of a solve: a plan, or the reason there is none.
struct PlanningResult {
    std::uint64_t generation = 0;
    std::shared_ptr<const Plan> plan;
    std::string error;      ///< a sentence for people; empty when there is a plan
    bool cancelled = false; ///< stopped on request; nothing went wrong
    double elapsed = 0;     ///< seconds, context and evaluation included
};

struct AlternativesResult {
    std::uint64_t generation = 0;
    OpId op = kNoOp;
    std::shared_ptr<const Plan> plan; ///< the plan they were priced against
    std::vector<Alternative> list;
    std::string error;
};

class PlanningService {
public:
    /// @param wake called from a worker when something is to be fetched, at most once until the
    ///             next take…(); it must only post a message to the owner's thread
    explicit PlanningService(std::function<void()> wake,
                             PlanningFunctions functions = PlanningFunctions::real());
    /// Cancels and joins; wake is not called afterwards.
    ~PlanningService() = default;

    /// @param previous the context of an earlier plan, if any: when only pins have changed since,
    ///                 its prices are used again
    std::uint64_t solve(std::shared_ptr<const Graph> graph, std::shared_ptr<const Folding> folding,
                        PlanRequest request, std::shared_ptr<const PlanContext> previous = nullptr);
    void cancelSolve();
    bool solving() const { return m_solveLane.busy(); }

    /// @param plan made by optimise()
    std::uint64_t alternatives(std::shared_ptr<const Plan> plan, OpId op);
    void cancelAlternatives();

    // Fetches the newest value, if there is one that has not been fetched and is not stale.
    std::optional<PlanningProgress> takeProgress();
    std::optional<PlanningResult> takeResult();
    std::optional<AlternativesResult> takeAlternatives();

    /// Blocks until both lanes are idle; for tests.
    void waitForIdle();

private:
    using Clock = std::chrono::steady_clock;
    using ContextMaker = std::function<std::shared_ptr<const PlanContext>()>;
    void solveJob(std::uint64_t generation, const std::stop_token& stop,
                  const ContextMaker& makeContext);
    void post();

    std::function<void()> m_wake;
    PlanningFunctions m_functions;
    std::atomic<bool> m_awake = false;

    std::mutex m_mutex; // guards the mailboxes and the current generations
    std::optional<PlanningProgress> m_progress;
    std::optional<PlanningResult> m_result;
    std::optional<AlternativesResult> m_alternatives;
    std::uint64_t m_solveGeneration = 0;
    std::uint64_t m_alternativesGeneration = 0;

    BackgroundLane m_solveLane; // last: their threads end before the mailboxes go
    BackgroundLane m_alternativesLane;
};

} // namespace shardlens
