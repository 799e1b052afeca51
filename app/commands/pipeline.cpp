// SPDX-License-Identifier: Apache-2.0
// See pipeline.h.
#include "app/commands/pipeline.h"

#include "core/error.h"
#include "core/plan/planners/alpa_planner.h"
#include "core/plan/planners/megatron_grid.h"
#include "core/plan/planners/pipeline_document.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens::app {

namespace {

PipelineAnswer megatronPlan(StagePricer& pricer, const PipelineRequest& request) {
    const std::vector<GridPoint> grid = megatronGrid(pricer, request);
    const GridPoint* best = bestOf(grid);
    if (!best)
        throw PlanError(fmt::format("none of {} equal-stage plans fits the memory", grid.size()),
                        "planner megatron", "use more devices or another batch");
    PipelineAnswer answer = answerOf(pricer, request, *best);
    answer.combinations = grid.size();
    answer.simulated = simulatedSeconds(answer.schedule, answer.prices(), answer.microBatches);
    return answer;
}

} // namespace

PipelineRequest PipelineOptions::request(const PlanRequest& plan) const {
    PipelineRequest result;
    result.batch = plan.batch;
    result.memoryLimitBytes = plan.memoryLimitBytes;
    if (!schedules.empty()) result.schedules = schedules;
    if (microBatches > 0) result.microBatches = microBatches;
    result.cuts = cuts;
    result.stages = stages;
    return result;
}

void addPipelineOptions(CLI::App& command, PipelineOptions& options) {
    command.add_option("--planner", options.planner, "Who divides the model into stages")
        ->check(CLI::IsMember({"optimum", "alpa", "megatron"}))
        ->default_str("optimum");
    command
        .add_option("--schedule", options.schedules,
                    "Only this schedule; may be given several times")
        ->check(CLI::IsMember({"gpipe", "1f1b", "interleaved", "zb-h1"}));
    command
        .add_option("--micro-batches", options.microBatches, "Only this number of micro-batches")
        ->check(CLI::PositiveNumber);
    command.add_option("--stages", options.stages, "Only this number of stages")
        ->check(CLI::PositiveNumber);
    command
        .add_option("--cut", options.cuts,
                    "A stage begins with this unit (0 is the embedding, 1 the first layer); may "
                    "be given several times")
        ->check(CLI::PositiveNumber);
}

StagePricer pricerOf(const std::string& model, const ModelFile& file) {
    const PlanRequest& request = file.request;
    if (request.costModel != "roofline")
        throw PlanError("pipelines are priced by the roofline model", "--cost-model",
                        "leave the option out");
    const auto sized = [model, request, whole = file.bundle](std::int64_t samples) {
        if (samples == request.batch) return stagedModel(whole.graph, whole.folding);
        PlanRequest other = request;
        other.batch = samples;
        const ModelBundle bundle = loadModel(model, importOptions(other));
        const auto& bindings = bundle.source->bindings;
        if (std::ranges::none_of(bindings, [&](const auto& b) { return b.second == samples; }))
            throw InputError("its batch is fixed", model, "give a model whose batch can be chosen");
        return stagedModel(bundle.graph, bundle.folding);
    };
    return {{clusterByName(request.cluster, request.nodes, request.devicesPerNode)}, sized};
}

int runPipeline(const std::string& model, const RequestOptions& request,
                const PipelineOptions& options, bool json) {
    const ModelFile file = openModelFile(model, request);
    StagePricer pricer = pricerOf(model, file);
    const PipelineRequest wanted = options.request(file.request);
    const PipelineAnswer answer = options.planner == "alpa"       ? planAlpa(pricer, wanted)
                                  : options.planner == "megatron" ? megatronPlan(pricer, wanted)
                                                                  : planPipeline(pricer, wanted);
    const PipelineDocument document =
        documentOf(answer, pricer, wanted, file.bundle.graph->name, options.planner);
    fmt::print("{}", json ? toJson(document, answer) + "\n" : toText(document, answer, pricer));
    return 0;
}

} // namespace shardlens::app
