// SPDX-License-Identifier: Apache-2.0
// See pipeline_job.h.
#include "core/plan/planners/pipeline_job.h"

#include "core/error.h"
#include "core/plan/planners/alpa_planner.h"
#include "core/plan/planners/megatron_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace shardlens {

namespace {

PipelineAnswer megatronPlan(StagePricer& pricer, const PipelineRequest& request,
                            std::stop_token stop) {
    const std::vector<GridPoint> grid = megatronGrid(pricer, request, std::move(stop));
    const GridPoint* best = bestOf(grid);
    if (grid.empty())
        throw PlanError("no equal-stage plan is valid for these devices, layers and this batch",
                        "planner megatron", "use another batch or another number of devices");
    if (!best)
        throw PlanError(fmt::format("none of {} equal-stage plans fits the memory", grid.size()),
                        "planner megatron", "use more devices or another batch");
    PipelineAnswer answer = answerOf(pricer, request, *best);
    answer.combinations = grid.size();
    answer.simulated = simulatedSeconds(answer.schedule, answer.prices(), answer.microBatches);
    return answer;
}

/// A pin, and how to take it out of a setup.
struct NamedPin {
    std::string name;
    std::function<void(PipelineSetup&)> remove;
};

std::vector<NamedPin> pinsOf(const PipelineSetup& setup) {
    std::vector<NamedPin> pins;
    for (const int cut : setup.cuts)
        pins.push_back({fmt::format("stage boundary {}", cut),
                        [cut](PipelineSetup& s) { std::erase(s.cuts, cut); }});
    const auto add = [&](const std::optional<int>& value, std::string_view name, auto remove) {
        if (value) pins.push_back({fmt::format("{} {}", name, *value), remove});
    };
    if (setup.schedules.size() == 1)
        pins.push_back({fmt::format("schedule {}", setup.schedules.front()),
                        [](PipelineSetup& s) { s.schedules.clear(); }});
    add(setup.chunks, "chunks", [](PipelineSetup& s) { s.chunks.reset(); });
    add(setup.microBatches, "micro-batches", [](PipelineSetup& s) { s.microBatches.reset(); });
    add(setup.stages, "stages", [](PipelineSetup& s) { s.stages.reset(); });
    add(setup.pins.tensor, "tensor degree", [](PipelineSetup& s) { s.pins.tensor.reset(); });
    add(setup.pins.data, "data degree", [](PipelineSetup& s) { s.pins.data.reset(); });
    add(setup.pins.context, "context degree", [](PipelineSetup& s) { s.pins.context.reset(); });
    add(setup.pins.expert, "expert degree", [](PipelineSetup& s) { s.pins.expert.reset(); });
    if (setup.pins.sequenceParallel)
        pins.push_back(
            {"sequence parallelism", [](PipelineSetup& s) { s.pins.sequenceParallel.reset(); }});
    add(setup.pins.zero, "ZeRO stage", [](PipelineSetup& s) { s.pins.zero.reset(); });
    add(setup.pins.inside, "choices inside", [](PipelineSetup& s) { s.pins.inside.reset(); });
    if (setup.pins.recompute)
        pins.push_back({"recomputation", [](PipelineSetup& s) { s.pins.recompute.reset(); }});
    return pins;
}

PipelineAnswer planWith(StagePricer& pricer, const PlanRequest& request, std::stop_token stop) {
    const PipelineRequest wanted = pipelineRequest(request);
    const std::string planner = request.pipeline ? request.pipeline->planner : "optimum";
    if (planner == "megatron") return megatronPlan(pricer, wanted, std::move(stop));
    if (planner == "alpa") return planAlpa(pricer, wanted);
    return planPipeline(pricer, wanted, std::move(stop));
}

/// Degrees that only equal stages have; the optimum's own choices inside a stage cover them.
void checkOptimum(const PipelineSetup& setup) {
    const StagePins& pins = setup.pins;
    if (setup.planner == "megatron" || !(pins.context || pins.expert || pins.sequenceParallel))
        return;
    throw PlanError(fmt::format("it does not take the pin '{}'", pins.context ? "context degree"
                                                                 : pins.expert
                                                                     ? "expert degree"
                                                                     : "sequence parallelism"),
                    "planner " + setup.planner, "remove the pin, or choose planner megatron");
}

/// Alpa's planner knows one schedule and no pins but the micro-batches.
void checkAlpa(const PipelineSetup& setup) {
    if (setup.planner != "alpa") return;
    PipelineSetup others = setup;
    others.microBatches.reset();
    std::erase(others.schedules, "1f1b");
    if (const auto pins = pinsOf(others); !pins.empty())
        throw PlanError(fmt::format("it does not take the pin '{}'", pins.front().name),
                        "planner alpa", "remove the pin, or choose another planner");
}

} // namespace

PipelineRequest pipelineRequest(const PlanRequest& request) {
    PipelineRequest result;
    result.batch = request.batch;
    result.memoryLimitBytes = request.memoryLimitBytes;
    if (!request.pipeline) return result;
    const PipelineSetup& setup = *request.pipeline;
    if (!setup.schedules.empty()) result.schedules = setup.schedules;
    if (setup.chunks) result.chunks = {*setup.chunks};
    result.blockingTransfers = setup.blockingTransfers;
    // ZB-H1 overlaps; refused only where nothing else may be chosen
    if (setup.blockingTransfers && result.schedules.size() > 1)
        std::erase(result.schedules, "zb-h1");
    result.insideAxes = setup.insideAxes;
    result.microBatches = setup.microBatches;
    result.cuts = setup.cuts;
    result.stages = setup.stages.value_or(0);
    result.pins = setup.pins;
    return result;
}

std::string pricingOf(const PlanRequest& request) {
    PlanRequest relevant;
    relevant.cluster = request.cluster;
    relevant.nodes = request.nodes;
    relevant.devicesPerNode = request.devicesPerNode;
    relevant.sequence = request.sequence;
    relevant.bindings = request.bindings;
    relevant.mode = request.mode;
    relevant.costModel = request.costModel;
    return toJson(relevant);
}

StagePricer makeStagePricer(const std::filesystem::path& file, const ModelBundle& bundle,
                            const PlanRequest& request) {
    if (request.costModel != "roofline")
        throw PlanError("pipelines are priced by the roofline model", "cost model",
                        "choose roofline");
    const auto sizedModel = [file, request, whole = bundle](std::int64_t samples) {
        if (samples == request.batch) return stagedModel(whole.graph, whole.folding);
        PlanRequest other = request;
        other.batch = samples;
        const ModelBundle sized = loadModel(file, importOptions(other));
        const auto& bindings = sized.source->bindings;
        if (std::ranges::none_of(bindings, [&](const auto& b) { return b.second == samples; }))
            throw InputError("its batch is fixed", file.string(),
                             "give a model whose batch can be chosen");
        return stagedModel(sized.graph, sized.folding);
    };
    return {{clusterByName(request.cluster, request.nodes, request.devicesPerNode)}, sizedModel};
}

PipelineAnswer planJob(StagePricer& pricer, const PlanRequest& request, std::stop_token stop) {
    if (request.pipeline) {
        checkAlpa(*request.pipeline);
        checkOptimum(*request.pipeline);
    }
    try {
        return planWith(pricer, request, stop);
    } catch (const PlanError& error) {
        if (!request.pipeline) throw;
        // Pins without any one of which there is a plan are at fault.
        std::vector<std::string> guilty;
        for (const NamedPin& pin : pinsOf(*request.pipeline)) {
            PlanRequest freed = request;
            pin.remove(*freed.pipeline);
            try {
                planWith(pricer, freed, stop);
                guilty.push_back(pin.name);
            } catch (const PlanError&) { // not this one alone
            }
        }
        if (guilty.empty()) throw;
        throw PlanError(fmt::format("the pin{} '{}' cannot hold{}: {}",
                                    guilty.size() == 1 ? "" : "s", fmt::join(guilty, "', '"),
                                    guilty.size() == 1 ? "" : " together", error.problem()),
                        "pipeline", "remove it, or use more devices or another batch");
    }
}

} // namespace shardlens
