// SPDX-License-Identifier: Apache-2.0
// See megatron_grid.h.
#include "core/plan/planners/megatron_grid.h"

#include "core/error.h"
#include "core/plan/planners/megatron_rules.h"
#include "core/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace shardlens {

namespace {

constexpr int kMostSamples = 64;

/// First and last unit of each of p equal stages; what lies before and after the layers goes with
/// the first and the last. Empty if p does not divide them.
std::vector<std::pair<std::size_t, std::size_t>> equalStages(const StageUnits& units, int p) {
    std::vector<std::size_t> layers;
    for (std::size_t u = 0; u < units.units.size(); ++u)
        if (units.units[u].run >= 0) layers.push_back(u);
    const auto stages = static_cast<std::size_t>(p);
    if (stages == 1) return {{0, units.units.size() - 1}};
    if (layers.empty() || layers.size() % stages != 0) return {};
    const std::size_t each = layers.size() / stages;
    std::vector<std::pair<std::size_t, std::size_t>> result;
    for (std::size_t s = 0; s < stages; ++s)
        result.emplace_back(s == 0 ? 0 : layers[s * each],
                            s + 1 == stages ? units.units.size() - 1 : layers[(s + 1) * each] - 1);
    return result;
}

std::vector<int> powersOfTwo(int most) {
    std::vector<int> found;
    for (int n = 1; n <= most; n *= 2) found.push_back(n);
    return found;
}

class Grid {
public:
    Grid(StagePricer& pricer, const PipelineRequest& request, std::stop_token stop, double below)
        : m_pricer(pricer), m_request(request), m_pool(pricer.pools().front()),
          m_stop(std::move(stop)), m_below(below) {}

    std::vector<GridPoint> run() {
        if (m_request.pins.inside) return {}; // Megatron-LM's layout is none of the variants
        const std::int64_t most = std::min<std::int64_t>(m_request.largestSamples, kMostSamples);
        for (const int tp : powersOfTwo(m_pool.devicesPerNode))
            for (std::int64_t samples = 1; samples <= most; ++samples)
                if (m_request.batch % samples == 0) addSizes(tp, static_cast<int>(samples));
        markFront();
        return std::move(m_points);
    }

private:
    void addSizes(int tp, int samples) {
        const MegatronModel* model = facts(samples);
        if (!model) return;
        const int groups = m_pool.devices() / tp;
        const int largest = std::max(m_request.largestContext, m_request.pins.context.value_or(1));
        for (const bool sequence : {false, true})
            for (const int cp : powersOfTwo(std::min(groups, largest)))
                for (const int ep : powersOfTwo(static_cast<int>(std::min<std::int64_t>(
                         std::max<std::int64_t>(model->experts, 1), groups))))
                    if (ep == 1 || ep % cp == 0) {
                        GridPoint point;
                        point.tensor = tp;
                        point.samples = samples;
                        point.sequenceParallel = sequence;
                        point.context = cp;
                        point.expert = ep;
                        addReplica(*model, point);
                    }
    }

    /// nullptr if the model cannot have that many samples.
    const MegatronModel* facts(int samples) {
        try {
            const auto [at, isNew] = m_facts.try_emplace(samples);
            if (isNew) at->second = megatronModel(*m_pricer.model(samples));
            return &at->second;
        } catch (const InputError&) {
            m_facts.erase(samples);
            return nullptr;
        }
    }

    MegatronDegrees degreesOf(const GridPoint& point) const {
        return {.devices = m_pool.devices(),
                .tensor = point.tensor,
                .context = point.context,
                .pipeline = point.pipeline,
                .expert = point.expert,
                .expertTensor = point.tensor,
                .chunks = point.schedule.chunks,
                .sequenceParallel = point.sequenceParallel,
                .samples = point.samples,
                .batch = m_request.batch};
    }

    void addReplica(const MegatronModel& model, GridPoint point) {
        const int groups = m_pool.devices() / point.tensor / point.context;
        for (int pp = 1; pp <= groups; ++pp) {
            if (m_request.stages > 0 && pp != m_request.stages) continue;
            point.pipeline = pp;
            if (!brokenRule(degreesOf(point), model).empty()) continue;
            point.data = groups / pp;
            point.microBatches = static_cast<int>(m_request.batch / point.data / point.samples);
            if (m_request.microBatches && *m_request.microBatches != point.microBatches) continue;
            if (!allowsDegrees(point)) continue;
            const StageOptionInfo option = optionOf(point);
            if (option.replicas < 1) continue; // the experts need more data-parallel ranks
            if (leastSeconds(point) >= m_below) continue;
            addStages(option, point, model);
        }
    }

    /// By the least that units take with as many samples and tensor ranks, which a context group
    /// shares at best. Experts may be quicker on more ranks, each of which reads fewer of them.
    double leastSeconds(const GridPoint& point) {
        if (std::isinf(m_below) || point.expert > 1) return 0;
        const auto [at, isNew] = m_leastSeconds.try_emplace({point.tensor, point.samples});
        UnitFloor& all = at->second;
        if (isNew) {
            const ReplicaKey key{0, {{"tp", point.tensor}}, point.samples, 0};
            const std::vector<UnitFloor>& floors = m_pricer.floors(key);
            for (const StageUnit& unit : m_pricer.model(point.samples)->units.units)
                all.seconds += floors[unit.kind].seconds;
        }
        int chunks = 1;
        for (const int v : m_request.chunks) chunks = std::max(chunks, v);
        double least = std::numeric_limits<double>::infinity();
        for (const std::string& name : m_request.schedules) {
            const ScheduleModel schedule = m_request.schedule(name, chunks);
            if (schedule.kind == ScheduleKind::ZeroBubbleH1) continue; // Megatron-LM has none
            least = std::min(least,
                             boundOf(all, 0, schedule, point.microBatches, 1.0 / point.pipeline));
        }
        return least / point.context;
    }

    void addStages(const StageOptionInfo& option, const GridPoint& point,
                   const MegatronModel& model) {
        if (m_stop.stop_requested()) throw Cancelled();
        try {
            StagePricer::Replica& replica = m_pricer.replica(option.replica);
            if (!replica.fits(option.replicas)) return;
            const auto stages = equalStages(replica.model().units, point.pipeline);
            if (stages.empty() || crossesCut(stages)) return;
            addPolicies(replica, stages, point, model);
        } catch (const InputError&) { // the model cannot have that many samples
        }
    }

    bool allowsDegrees(const GridPoint& point) const {
        const StagePins& pins = m_request.pins;
        return pins.tensor.value_or(point.tensor) == point.tensor &&
               pins.context.value_or(point.context) == point.context &&
               pins.expert.value_or(point.expert) == point.expert &&
               pins.data.value_or(point.data) == point.data &&
               pins.sequenceParallel.value_or(point.sequenceParallel) == point.sequenceParallel;
    }

    bool crossesCut(const std::vector<std::pair<std::size_t, std::size_t>>& stages) const {
        return std::ranges::any_of(m_request.cuts, [&](int cut) {
            return std::ranges::none_of(stages, [&](const auto& stage) {
                return stage.first == static_cast<std::size_t>(cut);
            });
        });
    }

    void addPolicies(StagePricer::Replica& replica,
                     const std::vector<std::pair<std::size_t, std::size_t>>& stages,
                     GridPoint point, const MegatronModel& model) {
        const int replicas = optionOf(point).replicas;
        const bool uniform = isUniform(replica);
        for (int zero = 0; zero <= (point.data * point.context > 1 ? 3 : 0); ++zero)
            for (const auto& [selective, full] :
                 {std::pair{false, 0.0}, {true, 0.0}, {true, 1.0}}) {
                point.policy = {zero, selective, full};
                const bool sharded = point.data * point.context > 1;
                if (sharded && m_request.pins.zero.value_or(zero) != zero) continue;
                if (!allowsRecompute(m_request.pins, point.policy)) continue;
                std::vector<StagePrice> prices;
                for (std::size_t s = 0; s < stages.size(); ++s) {
                    const bool inner = s >= 2 && s + 1 < stages.size() && uniform;
                    prices.push_back(inner ? prices.back()
                                           : replica.price(stages[s].first, stages[s].second,
                                                           replicas, point.policy));
                }
                addSchedules(prices, model, point);
            }
    }

    /// Whether all layers are of one run, so that inner stages are equal.
    static bool isUniform(const StagePricer::Replica& replica) {
        int run = -1;
        for (const StageUnit& unit : replica.model().units.units) {
            if (unit.run < 0) continue;
            if (run >= 0 && unit.run != run) return false;
            run = unit.run;
        }
        return true;
    }

    void addSchedules(const std::vector<StagePrice>& prices, const MegatronModel& model,
                      GridPoint point) {
        for (const std::string& name : m_request.schedules) {
            const ScheduleModel plain = m_request.schedule(name);
            if (plain.kind == ScheduleKind::ZeroBubbleH1) continue; // Megatron-LM has none
            if (plain.kind != ScheduleKind::Interleaved) {
                addPoint(plain, prices, point);
                continue;
            }
            for (const int v : m_request.chunks) {
                MegatronDegrees degrees = degreesOf(point);
                degrees.chunks = v;
                if (brokenRule(degrees, model).empty())
                    addPoint(m_request.schedule(name, v), prices, point);
            }
        }
    }

    void addPoint(const ScheduleModel& schedule, const std::vector<StagePrice>& prices,
                  GridPoint point) {
        const double m = point.microBatches;
        const int count = static_cast<int>(prices.size());
        point.schedule = schedule;
        point.seconds = stepSeconds(schedule, prices, m);
        double busiest = 0;
        for (int s = 0; s < count; ++s) {
            const StagePrice& price = prices[static_cast<std::size_t>(s)];
            point.memory =
                std::max(point.memory, stageMemory(price, schedule, count - 1 - s, count, m));
            busiest = std::max(busiest, m * price.seconds() + price.step);
        }
        point.bubble = 1 - busiest / point.seconds;
        point.fits = point.memory <= m_request.memoryLimitBytes.value_or(m_pool.device.memoryBytes);
        m_points.push_back(point);
    }

    void markFront() {
        std::vector<std::size_t> order(m_points.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::ranges::stable_sort(order, {}, [&](std::size_t i) {
            return std::pair(m_points[i].seconds, m_points[i].memory);
        });
        double leanest = std::numeric_limits<double>::infinity();
        for (const std::size_t i : order) {
            m_points[i].front = m_points[i].memory < leanest;
            leanest = std::min(leanest, m_points[i].memory);
        }
    }

    StagePricer& m_pricer;
    const PipelineRequest& m_request;
    const Cluster& m_pool;
    std::stop_token m_stop;
    double m_below; ///< seconds: points that cannot be quicker need not be priced
    std::map<std::pair<int, int>, UnitFloor> m_leastSeconds; ///< by tensor degree and samples
    std::map<int, MegatronModel> m_facts;                    ///< by samples
    std::vector<GridPoint> m_points;
};

} // namespace

std::string_view recomputeText(const StagePolicy& policy) {
    return policy.fullShare > 0 ? "full" : policy.selective ? "selective" : "none";
}

std::vector<GridPoint> megatronGrid(StagePricer& pricer, const PipelineRequest& request,
                                    std::stop_token stop, double below) {
    return Grid(pricer, request, std::move(stop), below).run();
}

StageOptionInfo optionOf(const GridPoint& point) {
    const int context =
        point.expert > 1 ? point.context : 1; // ranks that an expert group has of it
    const int ranks = point.expert / context;
    StageOptionInfo option;
    ReplicaKey& key = option.replica;
    if (ranks > 1) key.axes.push_back({"ep", ranks});
    if (point.context > 1) key.axes.push_back({point.expert > 1 ? "cp_ep" : "cp", point.context});
    key.axes.push_back({"tp", point.tensor});
    key.samples = std::int64_t{point.samples} * ranks;
    key.layout = point.sequenceParallel ? InsideLayout::MegatronSequence : InsideLayout::Megatron;
    option.replicas = point.data / ranks;
    return option;
}

const GridPoint* bestOf(const std::vector<GridPoint>& points) {
    const GridPoint* best = nullptr;
    for (const GridPoint& point : points)
        if (point.fits && (!best || point.seconds < best->seconds)) best = &point;
    return best;
}

PipelineAnswer answerOf(StagePricer& pricer, const PipelineRequest&, const GridPoint& point) {
    PipelineAnswer answer;
    answer.schedule = point.schedule;
    answer.microBatches = point.microBatches;
    const StageOptionInfo option = optionOf(point);
    StagePricer::Replica& replica = pricer.replica(option.replica);
    for (const auto& [first, last] : equalStages(replica.model().units, point.pipeline))
        answer.stages.push_back({static_cast<int>(first), static_cast<int>(last), option,
                                 point.policy,
                                 replica.price(first, last, option.replicas, point.policy)});
    answer.seconds = point.seconds;
    answer.peakMemory = point.memory;
    return answer;
}

PipelineSetup setupOf(const GridPoint& point) {
    PipelineSetup setup;
    setup.planner = "megatron";
    setup.schedules = {std::string(point.schedule.name())};
    if (point.schedule.kind == ScheduleKind::Interleaved) setup.chunks = point.schedule.chunks;
    setup.blockingTransfers = point.schedule.blocking;
    setup.microBatches = point.microBatches;
    setup.stages = point.pipeline;
    StagePins& pins = setup.pins;
    pins.tensor = point.tensor;
    pins.context = point.context;
    pins.expert = point.expert;
    pins.sequenceParallel = point.sequenceParallel;
    pins.data = point.data;
    pins.zero = point.policy.zero;
    pins.recompute = point.policy.fullShare > 0 ? Recompute::Full
                     : point.policy.selective   ? Recompute::Selective
                                                : Recompute::None;
    return setup;
}

std::string gridJson(const std::vector<GridPoint>& points) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const GridPoint& p : points)
        list.push_back({{"tp", p.tensor},
                        {"schedule", p.schedule.name()},
                        {"sp", p.sequenceParallel},
                        {"cp", p.context},
                        {"pp", p.pipeline},
                        {"vpp", p.schedule.chunks},
                        {"ep", p.expert},
                        {"dp", p.data},
                        {"micro_batch", p.samples},
                        {"micro_batches", p.microBatches},
                        {"zero", p.policy.zero},
                        {"recompute", recomputeText(p.policy)},
                        {"time_s", p.seconds},
                        {"memory_bytes", p.memory},
                        {"bubble", p.bubble},
                        {"fits", p.fits},
                        {"front", p.front}});
    return list.dump();
}

std::string gridText(const std::vector<GridPoint>& points, std::size_t most) {
    std::vector<const GridPoint*> order;
    for (const GridPoint& point : points)
        if (point.fits) order.push_back(&point);
    std::ranges::stable_sort(order, {}, [](const GridPoint* p) { return p->seconds; });
    std::string text = fmt::format("{} points, {} fit\n", points.size(), order.size());
    text += "  tp  sp  cp  pp vpp  ep   dp  mb    m  zero recompute       time      memory  "
            "bubble\n";
    for (std::size_t i = 0; i < order.size(); ++i) {
        const GridPoint& p = *order[i];
        if (i >= most && !p.front) continue;
        text += fmt::format("{:>4}{:>4}{:>4}{:>4}{:>4}{:>4}{:>5}{:>4}{:>5}{:>6} {:<10}{:>9.4f} s"
                            "{:>8.1f} GiB{:>7.1f} %{}\n",
                            p.tensor, p.sequenceParallel ? "on" : "-", p.context, p.pipeline,
                            p.schedule.chunks, p.expert, p.data, p.samples, p.microBatches,
                            p.policy.zero, recomputeText(p.policy), p.seconds, p.memory / kGiB,
                            100 * p.bubble, p.front ? "  front" : "");
    }
    return text;
}

} // namespace shardlens
