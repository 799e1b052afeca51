// SPDX-License-Identifier: Apache-2.0
// See pipeline.h.
#include "app/commands/pipeline.h"

#include "core/plan/planners/pipeline_document.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens::app {

namespace {

void addPinOptions(CLI::App& command, PipelineOptions& options) {
    const auto number = [&](const char* name, int& value, const char* what) {
        command.add_option(name, value, what)->check(CLI::PositiveNumber);
    };
    number("--chunks", options.chunks, "Only this number of chunks of a device (interleaved)");
    number("--micro-batches", options.microBatches, "Only this number of micro-batches");
    number("--stages", options.stages, "Only this number of stages");
    command
        .add_option("--cut", options.cuts,
                    "A stage begins with this unit (0 is the embedding, 1 the first layer); may "
                    "be given several times")
        ->check(CLI::PositiveNumber);
    number("--tp", options.tensor, "Only this many devices that share a micro-batch");
    command
        .add_option("--inside-axes", options.insideAxes,
                    "Most axes of the mesh inside a stage (planner optimum); 2 takes longer")
        ->check(CLI::Range(1, 2));
    number("--dp", options.data, "Only this many replicas of each stage");
    number("--cp", options.context, "Only this context-parallel degree (planner megatron)");
    number("--ep", options.expert, "Only this expert-parallel degree (planner megatron)");
    command
        .add_option("--sp", options.sequenceParallel,
                    "Sequence parallelism in the tensor group: on or off (planner megatron)")
        ->check(CLI::IsMember({"on", "off"}));
    command.add_option("--zero", options.zero, "Only this ZeRO stage")->check(CLI::Range(0, 3));
    command.add_option("--recompute", options.recompute, "Only this recomputation")
        ->check(CLI::IsMember({"none", "selective", "full"}));
}

} // namespace

void PipelineOptions::apply(PlanRequest& request) const {
    PipelineSetup setup = request.pipeline.value_or(PipelineSetup{});
    const auto pin = [](std::optional<int>& field, int value, int none) {
        if (value != none) field = value;
    };
    if (!planner.empty()) setup.planner = planner;
    if (!schedules.empty()) setup.schedules = schedules;
    if (!cuts.empty()) {
        setup.cuts = cuts;
        std::ranges::sort(setup.cuts);
        const auto repeated = std::ranges::unique(setup.cuts);
        setup.cuts.erase(repeated.begin(), repeated.end());
    }
    if (!transfers.empty()) setup.blockingTransfers = areBlocking(transfers);
    if (insideAxes > 0) setup.insideAxes = insideAxes;
    pin(setup.chunks, chunks, 0);
    pin(setup.microBatches, microBatches, 0);
    pin(setup.stages, stages, 0);
    pin(setup.pins.tensor, tensor, 0);
    pin(setup.pins.data, data, 0);
    pin(setup.pins.context, context, 0);
    pin(setup.pins.expert, expert, 0);
    if (!sequenceParallel.empty()) setup.pins.sequenceParallel = sequenceParallel == "on";
    pin(setup.pins.zero, zero, -1);
    if (!recompute.empty())
        setup.pins.recompute = recompute == "none"        ? Recompute::None
                               : recompute == "selective" ? Recompute::Selective
                                                          : Recompute::Full;
    request.pipeline = std::move(setup);
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
        .add_option("--transfers", options.transfers,
                    "Between stages: overlapped with computing, or blocking the sender")
        ->check(CLI::IsMember({"overlapped", "blocking"}));
    addPinOptions(command, options);
}

int runPipeline(const std::string& model, const RequestOptions& request,
                const PipelineOptions& options, bool json) {
    ModelFile file = openModelFile(model, request);
    options.apply(file.request);
    StagePricer pricer = makeStagePricer(file.file, file.bundle, file.request);
    const PipelineAnswer answer = planJob(pricer, file.request);
    const PipelineDocument document =
        documentOf(answer, pricer, pipelineRequest(file.request), file.bundle.graph->name,
                   file.request.pipeline->planner);
    fmt::print("{}",
               json ? toJson(document, answer, pricer) + "\n" : toText(document, answer, pricer));
    return 0;
}

} // namespace shardlens::app
