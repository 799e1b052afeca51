// SPDX-License-Identifier: Apache-2.0
// Checks and prices of whole-plan documents; see pipeline_document.h.
#include "core/plan/planners/pipeline_document.h"

#include "core/error.h"
#include "core/plan/planners/stage_plans.h"
#include "core/plan/planners/virtual_stages.h"
#include "core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shardlens {

namespace {

std::string meshText(const StageOptionInfo& option) {
    std::string text = fmt::format("{} x", option.replicas);
    for (const AxisSize& axis : option.replica.axes)
        text += fmt::format(" {}={}", axis.name, axis.size);
    return text;
}

/// The stretch, or how many units in chunks that are not contiguous.
std::string unitsText(const PlannedStage& stage, int chunks) {
    return chunks > 1 ? fmt::format("{} in {}", stage.last - stage.first + 1, chunks)
                      : fmt::format("{}-{}", stage.first, stage.last);
}

/// Chunks are equal: a stage must have a multiple of them in layers.
void checkChunks(const PipelineDocument& d, const StageUnits& units,
                 std::vector<std::string>& problems) {
    for (std::size_t i = 0; i < d.stages.size(); ++i) {
        const PipelineDocument::Stage& stage = d.stages[i];
        const auto begin = units.units.begin();
        const auto layers = std::count_if(begin + stage.first, begin + stage.last + 1,
                                          [](const StageUnit& unit) { return unit.run >= 0; });
        if (layers % d.schedule.chunks != 0)
            problems.push_back(fmt::format("stage {} has {} layers, which are no {} equal chunks",
                                           i, layers, d.schedule.chunks));
    }
}

/// Problems of the stages one by one, and of their order.
void checkStages(const PipelineDocument& d, StagePricer& pricer,
                 std::vector<std::string>& problems) {
    const int units =
        static_cast<int>(pricer.model(d.stages[0].option.replica.samples)->units.units.size());
    DeviceCounts used{};
    int next = 0;
    for (std::size_t i = 0; i < d.stages.size(); ++i) {
        const PipelineDocument::Stage& stage = d.stages[i];
        if (stage.first != next || stage.last < stage.first || stage.last >= units)
            problems.push_back(fmt::format("stage {} has units {} to {}, where {} is next of {}", i,
                                           stage.first, stage.last, next, units));
        next = stage.last + 1;
        if (stage.option.replicas * stage.option.replica.samples * d.microBatches != d.batch)
            problems.push_back(fmt::format(
                "stage {} takes {} samples on {} replicas in {} micro-batches, the batch is {}", i,
                stage.option.replica.samples, stage.option.replicas, d.microBatches, d.batch));
        const std::uint8_t pool = stage.option.replica.pool;
        if (pool >= pricer.pools().size()) {
            problems.push_back(fmt::format("stage {} is on devices of kind {}", i, int{pool}));
            continue;
        }
        used[pool] += stage.option.devices();
        if (!pricer.replica(stage.option.replica).fits(stage.option.replicas))
            problems.push_back(
                fmt::format("stage {} ({}) fills no whole nodes", i, meshText(stage.option)));
    }
    if (next != units)
        problems.push_back(fmt::format("the stages end with unit {} of {}", next - 1, units));
    for (std::size_t pool = 0; pool < pricer.pools().size(); ++pool)
        if (used[pool] > pricer.pools()[pool].devices())
            problems.push_back(fmt::format("the stages use {} devices, {} has {}", used[pool],
                                           pricer.pools()[pool].name,
                                           pricer.pools()[pool].devices()));
}

std::vector<std::string> structureProblems(const PipelineDocument& d, StagePricer& pricer) {
    std::vector<std::string> problems;
    if (d.stages.empty()) return {"the plan has no stage"};
    if (d.microBatches < 1) return {"the plan has no micro-batch"};
    checkStages(d, pricer, problems);
    if (problems.empty() && d.schedule.chunks > 1)
        checkChunks(d, pricer.model(d.stages[0].option.replica.samples)->units, problems);
    const int p = static_cast<int>(d.stages.size());
    if (d.schedule.kind == ScheduleKind::Interleaved && d.microBatches % p != 0)
        problems.push_back(fmt::format("{} micro-batches are no multiple of {} stages, as "
                                       "interleaving needs",
                                       d.microBatches, p));
    return problems;
}

} // namespace

PipelineDocument documentOf(const PipelineAnswer& answer, const StagePricer& pricer,
                            const PipelineRequest& request, std::string model, std::string madeBy) {
    PipelineDocument d;
    d.model = std::move(model);
    d.cluster = pricer.pools().front().name;
    d.nodes = pricer.pools().front().nodes;
    d.batch = request.batch;
    d.madeBy = std::move(madeBy);
    d.schedule = answer.schedule;
    d.microBatches = answer.microBatches;
    for (const PlannedStage& stage : answer.stages)
        d.stages.push_back({stage.first, stage.last, stage.option, stage.policy});
    if (request.microBatches) d.provenance["micro_batches"] = "user";
    if (request.schedules.size() == 1) d.provenance["schedule"] = "user";
    for (std::size_t i = 0; i < d.stages.size(); ++i)
        if (std::ranges::find(request.cuts, d.stages[i].first) != request.cuts.end())
            d.provenance[fmt::format("stages[{}].first", i)] = "user";
    return d;
}

std::vector<std::string> problemsOf(const PipelineDocument& document, StagePricer& pricer,
                                    const PipelineRequest& request) {
    std::vector<std::string> problems = structureProblems(document, pricer);
    if (!problems.empty()) return problems;
    const PipelineAnswer answer = evaluatePipeline(document, pricer, request);
    const int count = static_cast<int>(answer.stages.size());
    for (int i = 0; i < count; ++i) {
        const PlannedStage& stage = answer.stages[static_cast<std::size_t>(i)];
        const double needed =
            stageMemory(stage.price, answer.schedule, count - 1 - i, count, answer.microBatches);
        const double limit = request.memoryLimitBytes.value_or(
            pricer.pools()[stage.option.replica.pool].device.memoryBytes);
        if (needed > limit)
            problems.push_back(
                fmt::format("stage {} needs {:.1f} GiB a device, {:.1f} GiB are there", i,
                            needed / kGiB, limit / kGiB));
    }
    return problems;
}

PipelineAnswer evaluatePipeline(const PipelineDocument& document, StagePricer& pricer,
                                const PipelineRequest&) {
    const std::vector<std::string> problems = structureProblems(document, pricer);
    if (!problems.empty()) throw PlanError(problems.front(), "pipeline plan");
    PipelineAnswer answer;
    answer.schedule = document.schedule;
    answer.microBatches = document.microBatches;
    const int count = static_cast<int>(document.stages.size());
    for (int i = 0; i < count; ++i) {
        const PipelineDocument::Stage& stage = document.stages[static_cast<std::size_t>(i)];
        const StagePrice price =
            pricer.replica(stage.option.replica)
                .price(static_cast<std::size_t>(stage.first), static_cast<std::size_t>(stage.last),
                       stage.option.replicas, stage.policy);
        answer.stages.push_back({stage.first, stage.last, stage.option, stage.policy, price});
        answer.peakMemory =
            std::max(answer.peakMemory, stageMemory(price, answer.schedule, count - 1 - i, count,
                                                    answer.microBatches));
    }
    answer.seconds = stepSeconds(answer.schedule, answer.prices(), answer.microBatches);
    answer.simulated = simulatedSeconds(answer.schedule, answer.prices(), answer.microBatches);
    return answer;
}

namespace {

/// Whether an op reads a weight matrix.
bool readsWeights(const Graph& graph, OpId op) {
    return std::ranges::any_of(graph.op(op).inputs, [&](TensorId in) {
        return in != kNoTensor && graph.tensor(in).spec.shape.size() > 1 &&
               graph.op(graph.tensor(in).producer).kind == OpKind::Parameter;
    });
}

/// What ops with weights do in the first stage of each mesh, in the longest run of units alike.
std::string insideText(const PipelineAnswer& answer, const std::vector<VirtualStage>& pieces,
                       StagePricer& pricer) {
    std::string text;
    const StagePlan* before = nullptr;
    const auto plans = stagePlans(pricer, answer.stages, answer.schedule.chunks);
    for (std::size_t s = 0; s < plans.size(); ++s) {
        if (plans[s].get() == std::exchange(before, plans[s].get())) continue;
        const Graph& graph = *plans[s]->plan->context->graph;
        const StageUnits& units = pricer.model(answer.stages[s].option.replica.samples)->units;
        const auto all = choicesOf(*plans[s], units, pieces, static_cast<int>(s));
        const UnitChoices& most = *std::ranges::max_element(
            all, {}, [](const UnitChoices& unit) { return unit.last - unit.first; });
        std::vector<std::string> choices;
        for (const auto& [op, choice] : most.choices)
            if (readsWeights(graph, op)) choices.push_back(graph.op(op).name + " " + choice);
        text += fmt::format("  in stage {}, units {}-{}: {}\n", s, most.first, most.last,
                            choices.empty() ? "every weight is whole"
                                            : fmt::format("{}", fmt::join(choices, ", ")));
    }
    return text;
}

} // namespace

std::string toText(const PipelineDocument& document, const PipelineAnswer& answer,
                   StagePricer& pricer) {
    std::string text = fmt::format(
        "{} on {} x {}: {} stages, {}{}{}, {} micro-batches\n", document.model, document.nodes,
        document.cluster, answer.stages.size(), answer.schedule.name(),
        answer.schedule.chunks > 1 ? fmt::format(" x {}", answer.schedule.chunks) : "",
        answer.schedule.blocking ? " with blocking transfers" : "", answer.microBatches);
    text += fmt::format("  step          {:.4f} s", answer.seconds);
    if (answer.bound > 0)
        text += fmt::format(", no plan below {:.4f} s (gap {:.2f} %)", answer.bound,
                            100 * answer.gap());
    text += fmt::format("\n  event engine  {:.4f} s\n  peak memory   {:.1f} GiB a device\n",
                        answer.simulated, answer.peakMemory / kGiB);
    text += "  stage  units      devices       samples  ZeRO  recompute      F        I        W"
            "        kept\n";
    const StageUnits& units = pricer.model(answer.stages[0].option.replica.samples)->units;
    const auto pieces = virtualStages(units, answer.stages, answer.schedule.chunks);
    for (std::size_t i = 0; i < answer.stages.size(); ++i) {
        const PlannedStage& s = answer.stages[i];
        const std::string recompute = s.policy.fullShare > 0
                                          ? fmt::format("{:.0f} % full", 100 * s.policy.fullShare)
                                      : s.policy.selective ? "selective"
                                                           : "none";
        text += fmt::format("  {:>5}  {:^9}  {:<13} {:>6}  {:>4}  {:<10} {:>8.4f} {:>8.4f} "
                            "{:>8.4f} {:>7.2f} GiB  {}\n",
                            i, unitsText(s, answer.schedule.chunks), meshText(s.option),
                            s.option.replica.samples, s.policy.zero, recompute, s.price.forward,
                            s.price.inputGrad, s.price.weightGrad, s.price.perMicroBatch / kGiB,
                            chunksName(units, pieces, static_cast<int>(i)));
    }
    return text + insideText(answer, pieces, pricer);
}

} // namespace shardlens
