// SPDX-License-Identifier: Apache-2.0
// See alpa_planner.h.
#include "core/plan/planners/alpa_planner.h"

#include "core/error.h"
#include "core/plan/planners/submesh.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace shardlens {

namespace {

/// Alpa shards the weight update over the replicas and recomputes whole layers or nothing.
constexpr std::array kPolicies{StagePolicy{1, false, 0}, StagePolicy{1, true, 1}};

class AlpaPlanner {
public:
    AlpaPlanner(StagePricer& pricer, const PipelineRequest& request, int layers)
        : m_pricer(pricer), m_request(request), m_pool(pricer.pools().front()),
          m_shapes(submeshes(m_pool.nodes, m_pool.devicesPerNode, SubmeshSpace::All)) {
        for (const Submesh& shape : m_shapes) m_sizes.push_back(shape.devices());
        m_units = m_pricer.model(1)->units.units.size();
        const auto count = std::min(static_cast<std::size_t>(layers), m_units);
        for (std::size_t i = 0; i <= count; ++i) m_begin.push_back(i * m_units / count);
    }

    PipelineAnswer run() {
        PipelineAnswer best;
        best.seconds = std::numeric_limits<double>::infinity();
        for (std::int64_t m = m_request.batch; m >= 1; --m) {
            if (m_request.batch % m != 0) continue;
            if (m_request.microBatches ? *m_request.microBatches != m : m < 2) continue;
            ++best.combinations;
            consider(static_cast<int>(m), best);
        }
        if (best.stages.empty())
            throw PlanError("no division into stages fits the memory", "planner alpa",
                            "use more devices or more micro-batches");
        best.bound = best.seconds; // exact, in its own model
        return best;
    }

private:
    int layers() const { return static_cast<int>(m_begin.size()) - 1; }
    std::size_t firstUnit(int layer) const { return m_begin[static_cast<std::size_t>(layer)]; }
    std::size_t lastUnit(int layer) const {
        return m_begin[static_cast<std::size_t>(layer) + 1] - 1;
    }

    void consider(int m, PipelineAnswer& best) {
        const std::int64_t samples = m_request.batch / m;
        StageProblem problem(layers(), m_pool.devices(), m_sizes, m);
        m_configs.clear();
        for (std::size_t shape = 0; shape < m_shapes.size(); ++shape) {
            std::vector<LogicalShape> logical =
                logicalShapes(m_shapes[shape], samples, LogicalSpace::SingleNodeModelParallel);
            std::erase_if(logical, [](const LogicalShape& s) { return !s.batchForced; });
            for (const LogicalShape& l : logical)
                for (int v = 0; v < static_cast<int>(StagePricer::variants().size()); ++v)
                    offer(problem, static_cast<int>(shape), l, samples / l.data, v);
        }
        const auto division = divideStages(problem);
        if (!division || division->seconds >= best.seconds) return;
        ++best.solved;
        best.seconds = division->seconds;
        best.microBatches = m;
        best.stages.clear();
        for (const DividedStage& stage : division->stages) {
            const auto& [option, policy] = m_configs[static_cast<std::size_t>(stage.option.config)];
            const std::size_t first = firstUnit(stage.first), last = lastUnit(stage.last);
            best.stages.push_back(
                {static_cast<int>(first), static_cast<int>(last), option, policy,
                 m_pricer.replica(option.replica).price(first, last, option.replicas, policy)});
        }
    }

    void offer(StageProblem& problem, int shape, const LogicalShape& logical, std::int64_t samples,
               int variant) {
        const StageOptionInfo option{{0, {{"tp", logical.model}}, samples, variant}, logical.data};
        if (samples > m_request.largestSamples) return;
        StagePricer::Replica& replica = m_pricer.replica(option.replica);
        if (!replica.fits(logical.data)) return;
        const double limit = m_request.memoryLimitBytes.value_or(m_pool.device.memoryBytes);
        for (const StagePolicy& policy : kPolicies) {
            const int config = static_cast<int>(m_configs.size());
            m_configs.emplace_back(option, policy);
            for (int first = 0; first < layers(); ++first)
                for (int last = first; last < layers(); ++last) {
                    const StagePrice price =
                        replica.price(firstUnit(first), lastUnit(last), logical.data, policy);
                    const int most =
                        mostSuccessors(limit, price.transient, price.resident, price.perMicroBatch);
                    if (most >= 0)
                        problem.offer(first, last, shape, {price.seconds(), most, config});
                }
        }
    }

    StagePricer& m_pricer;
    const PipelineRequest& m_request;
    const Cluster& m_pool;
    std::vector<Submesh> m_shapes;
    std::vector<int> m_sizes;
    std::size_t m_units = 0;
    std::vector<std::size_t> m_begin; ///< first unit of each layer, then the number of units
    std::vector<std::pair<StageOptionInfo, StagePolicy>> m_configs;
};

} // namespace

PipelineAnswer planAlpa(StagePricer& pricer, const PipelineRequest& request, int layers) {
    const auto start = std::chrono::steady_clock::now();
    PipelineAnswer answer = AlpaPlanner(pricer, request, layers).run();
    answer.schedule.blocking = request.blockingTransfers; // in the engine; its objective has none
    const int count = static_cast<int>(answer.stages.size());
    for (int i = 0; i < count; ++i)
        answer.peakMemory =
            std::max(answer.peakMemory,
                     stageMemory(answer.stages[static_cast<std::size_t>(i)].price, answer.schedule,
                                 count - 1 - i, count, answer.microBatches));
    answer.simulated = simulatedSeconds(answer.schedule, answer.prices(), answer.microBatches);
    answer.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return answer;
}

} // namespace shardlens
