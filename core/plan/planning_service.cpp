// SPDX-License-Identifier: Apache-2.0
// See planning_service.h. Generation numbers are the service's own and are checked twice: when a
// worker delivers and when the owner fetches.
#include "core/plan/planning_service.h"

#include "core/error.h"

#include <cmath>
#include <exception>
#include <limits>
#include <utility>

namespace shardlens {

namespace {

double gapOf(double incumbent, double bound) {
    if (!std::isfinite(incumbent)) return std::numeric_limits<double>::infinity();
    if (incumbent <= bound) return 0;
    return (incumbent - bound) / std::abs(incumbent);
}

double secondsSince(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool differInPinsOnly(PlanRequest a, PlanRequest b) {
    a.pins.clear();
    b.pins.clear();
    return toJson(a) == toJson(b);
}

} // namespace

PlanningFunctions PlanningFunctions::real() {
    return {[](std::shared_ptr<const PlanContext> context, const PlannerOptions& options) {
                return shardlens::optimise(std::move(context), options);
            },
            [](const Plan& plan, OpId op, const PlannerOptions& options) {
                return shardlens::alternatives(plan, op, options);
            }};
}

PlanningService::PlanningService(std::function<void()> wake, PlanningFunctions functions)
    : m_wake(std::move(wake)), m_functions(std::move(functions)) {
}

void PlanningService::post() {
    if (!m_awake.exchange(true)) m_wake();
}

std::uint64_t PlanningService::solve(std::shared_ptr<const Graph> graph,
                                     std::shared_ptr<const Folding> folding, PlanRequest request,
                                     std::shared_ptr<const PlanContext> previous) {
    std::uint64_t generation = 0;
    {
        const std::lock_guard lock(m_mutex);
        generation = ++m_solveGeneration;
        m_progress.reset();
        m_result.reset();
    }
    ContextMaker context = [graph = std::move(graph), folding = std::move(folding),
                            request = std::move(request), previous = std::move(previous)] {
        if (previous && previous->graph == graph && differInPinsOnly(previous->request, request))
            return withPins(*previous, request.pins);
        return makeContext(graph, folding, request);
    };
    m_solveLane.submit([this, generation, context = std::move(context)](
                           const std::stop_token& stop) { solveJob(generation, stop, context); });
    return generation;
}

void PlanningService::solveJob(std::uint64_t generation, const std::stop_token& stop,
                               const ContextMaker& makeContext) {
    const auto start = Clock::now();
    PlanningResult result;
    result.generation = generation;
    const auto progress = [this, generation, start](const solve::Progress& step) {
        const std::lock_guard lock(m_mutex);
        if (generation != m_solveGeneration) return;
        m_progress = PlanningProgress{generation,          step.incumbent,
                                      step.bound,          gapOf(step.incumbent, step.bound),
                                      secondsSince(start), step.stage};
        post();
    };
    try {
        result.plan = std::make_shared<const Plan>(
            m_functions.optimise(makeContext(), PlannerOptions{stop, progress}));
    } catch (const Cancelled&) {
        result.cancelled = true;
    } catch (const std::exception& error) {
        result.error = error.what();
    }
    result.elapsed = secondsSince(start);
    const std::lock_guard lock(m_mutex);
    if (generation != m_solveGeneration) return;
    m_progress.reset();
    m_result = std::move(result);
    post();
}

void PlanningService::cancelSolve() {
    // A job that already runs ends with Cancelled and reports it; one that only waits is forgotten,
    // so its end is reported here.
    const std::lock_guard lock(m_mutex);
    if (!m_solveLane.busy()) return;
    m_solveLane.cancel();
    m_progress.reset();
    PlanningResult result;
    result.generation = ++m_solveGeneration;
    result.cancelled = true;
    m_result = std::move(result);
    post();
}

std::uint64_t PlanningService::alternatives(std::shared_ptr<const Plan> plan, OpId op) {
    std::uint64_t generation = 0;
    {
        const std::lock_guard lock(m_mutex);
        generation = ++m_alternativesGeneration;
        m_alternatives.reset();
    }
    m_alternativesLane.submit(
        [this, generation, plan = std::move(plan), op](const std::stop_token& stop) {
            AlternativesResult result{generation, op, plan, {}, {}};
            try {
                result.list = m_functions.alternatives(*plan, op, PlannerOptions{stop, {}});
            } catch (const Cancelled&) {
                return;
            } catch (const std::exception& error) {
                result.error = error.what();
            }
            const std::lock_guard lock(m_mutex);
            if (generation != m_alternativesGeneration) return;
            m_alternatives = std::move(result);
            post();
        });
    return generation;
}

void PlanningService::cancelAlternatives() {
    m_alternativesLane.cancel();
    const std::lock_guard lock(m_mutex);
    ++m_alternativesGeneration;
    m_alternatives.reset();
}

std::optional<PlanningProgress> PlanningService::takeProgress() {
    m_awake = false;
    const std::lock_guard lock(m_mutex);
    return std::exchange(m_progress, std::nullopt);
}

std::optional<PlanningResult> PlanningService::takeResult() {
    m_awake = false;
    const std::lock_guard lock(m_mutex);
    return std::exchange(m_result, std::nullopt);
}

std::optional<AlternativesResult> PlanningService::takeAlternatives() {
    m_awake = false;
    const std::lock_guard lock(m_mutex);
    return std::exchange(m_alternatives, std::nullopt);
}

void PlanningService::waitForIdle() {
    m_solveLane.waitForIdle();
    m_alternativesLane.waitForIdle();
}

} // namespace shardlens
