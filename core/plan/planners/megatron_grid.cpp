// SPDX-License-Identifier: Apache-2.0
// See megatron_grid.h.
#include "core/plan/planners/megatron_grid.h"

#include "core/error.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

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

class Grid {
public:
    Grid(StagePricer& pricer, const PipelineRequest& request)
        : m_pricer(pricer), m_request(request), m_pool(pricer.pools().front()) {}

    std::vector<GridPoint> run() {
        for (int tp = 1; tp <= m_pool.devicesPerNode; tp *= 2)
            for (int samples = 1;
                 samples <= std::min<std::int64_t>(m_request.largestSamples, kMostSamples);
                 ++samples)
                if (m_request.batch % samples == 0) addReplica(tp, samples);
        markFront();
        return std::move(m_points);
    }

private:
    void addReplica(int tp, int samples) {
        std::vector<StagePricer::Replica*> variants;
        try {
            for (int v = 0; v < static_cast<int>(StagePricer::variants().size()); ++v)
                variants.push_back(&m_pricer.replica({0, {{"tp", tp}}, samples, v}));
        } catch (const InputError&) {
            return; // the model cannot have that many samples
        }
        const int groups = m_pool.devices() / tp;
        for (int pp = 1; pp <= groups; ++pp) {
            if (groups % pp != 0 || !variants.front()->fits(groups / pp)) continue;
            if (m_request.stages > 0 && pp != m_request.stages) continue;
            const int dp = groups / pp;
            if (!allowsDegrees(tp, dp)) continue;
            if (m_request.batch % (std::int64_t{dp} * samples) != 0) continue;
            const auto stages = equalStages(variants.front()->model().units, pp);
            if (stages.empty() || crossesCut(stages)) continue;
            GridPoint point;
            point.tensor = tp;
            point.pipeline = pp;
            point.data = dp;
            point.samples = samples;
            point.microBatches = static_cast<int>(m_request.batch / dp / samples);
            if (m_request.microBatches && *m_request.microBatches != point.microBatches) continue;
            for (point.variant = 0; point.variant < static_cast<int>(variants.size());
                 ++point.variant)
                if (m_request.pins.inside.value_or(point.variant) == point.variant)
                    addPolicies(*variants[static_cast<std::size_t>(point.variant)], stages, point);
        }
    }

    bool allowsDegrees(int tensor, int data) const {
        return m_request.pins.tensor.value_or(tensor) == tensor &&
               m_request.pins.data.value_or(data) == data;
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
                     GridPoint point) {
        for (int zero = 0; zero <= (point.data > 1 ? 3 : 0); ++zero)
            for (const auto& [selective, full] :
                 {std::pair{false, 0.0}, {true, 0.0}, {true, 1.0}}) {
                point.policy = {zero, selective, full};
                const bool sharded = point.data > 1;
                if (sharded && m_request.pins.zero.value_or(zero) != zero) continue;
                if (!allowsRecompute(m_request.pins, point.policy)) continue;
                std::vector<StagePrice> prices;
                for (std::size_t s = 0; s < stages.size(); ++s) {
                    const bool inner = s >= 2 && s + 1 < stages.size() && isUniform(replica);
                    prices.push_back(inner ? prices.back()
                                           : replica.price(stages[s].first, stages[s].second,
                                                           point.data, point.policy));
                }
                addSchedules(prices, layersOf(replica, stages), point);
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

    static int layersOf(const StagePricer::Replica& replica, const auto& stages) {
        const auto& units = replica.model().units.units;
        return static_cast<int>(std::ranges::count_if(
                   units, [](const StageUnit& unit) { return unit.run >= 0; })) /
               static_cast<int>(stages.size());
    }

    void addSchedules(const std::vector<StagePrice>& prices, int layers, GridPoint point) {
        for (const std::string& name : m_request.schedules) {
            const ScheduleModel plain = ScheduleModel::named(name);
            if (plain.kind == ScheduleKind::ZeroBubbleH1) continue; // Megatron-LM has none
            if (plain.kind != ScheduleKind::Interleaved) {
                addPoint(plain, prices, point);
                continue;
            }
            for (const int v : m_request.chunks)
                if (point.pipeline > 1 && layers % v == 0 &&
                    point.microBatches % point.pipeline == 0)
                    addPoint(ScheduleModel::named(name, v), prices, point);
        }
    }

    void addPoint(const ScheduleModel& schedule, const std::vector<StagePrice>& prices,
                  GridPoint point) {
        const double m = point.microBatches;
        const int count = static_cast<int>(prices.size());
        point.schedule = schedule.kind;
        point.chunks = schedule.chunks;
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
    std::vector<GridPoint> m_points;
};

std::string_view recomputeText(const StagePolicy& policy) {
    return policy.fullShare > 0 ? "full" : policy.selective ? "selective" : "none";
}

} // namespace

std::vector<GridPoint> megatronGrid(StagePricer& pricer, const PipelineRequest& request) {
    return Grid(pricer, request).run();
}

const GridPoint* bestOf(const std::vector<GridPoint>& points) {
    const GridPoint* best = nullptr;
    for (const GridPoint& point : points)
        if (point.fits && (!best || point.seconds < best->seconds)) best = &point;
    return best;
}

PipelineAnswer answerOf(StagePricer& pricer, const PipelineRequest&, const GridPoint& point) {
    PipelineAnswer answer;
    answer.schedule = {point.schedule, point.chunks};
    answer.microBatches = point.microBatches;
    const StageOptionInfo option{{0, {{"tp", point.tensor}}, point.samples, point.variant},
                                 point.data};
    StagePricer::Replica& replica = pricer.replica(option.replica);
    for (const auto& [first, last] : equalStages(replica.model().units, point.pipeline))
        answer.stages.push_back({static_cast<int>(first), static_cast<int>(last), option,
                                 point.policy,
                                 replica.price(first, last, point.data, point.policy)});
    answer.seconds = point.seconds;
    answer.peakMemory = point.memory;
    return answer;
}

PipelineSetup setupOf(const GridPoint& point) {
    PipelineSetup setup;
    setup.planner = "megatron";
    setup.schedules = {std::string(ScheduleModel{point.schedule, point.chunks}.name())};
    if (point.schedule == ScheduleKind::Interleaved) setup.chunks = point.chunks;
    setup.microBatches = point.microBatches;
    setup.stages = point.pipeline;
    setup.pins = {point.tensor, point.data, point.policy.zero,
                  point.policy.fullShare > 0 ? Recompute::Full
                  : point.policy.selective   ? Recompute::Selective
                                             : Recompute::None,
                  point.variant};
    return setup;
}

std::string gridJson(const std::vector<GridPoint>& points) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const GridPoint& p : points)
        list.push_back({{"tp", p.tensor},
                        {"schedule", ScheduleModel{p.schedule, p.chunks}.name()},
                        {"pp", p.pipeline},
                        {"vpp", p.chunks},
                        {"dp", p.data},
                        {"micro_batch", p.samples},
                        {"micro_batches", p.microBatches},
                        {"zero", p.policy.zero},
                        {"recompute", recomputeText(p.policy)},
                        {"inside", p.variant},
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
    text += "  tp  pp vpp   dp  mb  m    zero recompute  inside      time      memory  bubble\n";
    for (std::size_t i = 0; i < order.size(); ++i) {
        const GridPoint& p = *order[i];
        if (i >= most && !p.front) continue;
        text += fmt::format("{:>4}{:>4}{:>4}{:>5}{:>4}{:>5}{:>6} {:<10}{:>7}{:>10.4f} s{:>8.1f} GiB"
                            "{:>7.1f} %{}\n",
                            p.tensor, p.pipeline, p.chunks, p.data, p.samples, p.microBatches,
                            p.policy.zero, recomputeText(p.policy), p.variant, p.seconds,
                            p.memory / (1024.0 * 1024 * 1024), 100 * p.bubble,
                            p.front ? "  front" : "");
    }
    return text;
}

} // namespace shardlens
