// SPDX-License-Identifier: Apache-2.0
// `shardlens sweep MODEL`: every valid equal-stage plan with its time and memory, as a table or as
// JSON, the front of time against memory marked.
#include "app/commands/commands.h"
#include "app/commands/pipeline.h"
#include "core/plan/planners/megatron_grid.h"

#include <fmt/format.h>

#include <memory>

namespace shardlens::app {

namespace {

struct SweepOptions {
    std::string model;
    RequestOptions request;
    PipelineOptions pipeline;
    bool json = false;
};

int sweep(const SweepOptions& options) {
    ModelFile file = openModelFile(options.model, options.request);
    options.pipeline.apply(file.request);
    StagePricer pricer = makeStagePricer(file.file, file.bundle, file.request);
    const auto grid = megatronGrid(pricer, pipelineRequest(file.request));
    fmt::print("{}", options.json ? gridJson(grid) + "\n" : gridText(grid));
    return 0;
}

} // namespace

void addSweep(CLI::App& app, Action& action) {
    auto* command =
        app.add_subcommand("sweep", "Price every equal-stage plan of a model: time against memory");
    const auto options = std::make_shared<SweepOptions>();
    command->add_option("MODEL", options->model, "Model file of any supported kind, or a session")
        ->required();
    addWorkloadOptions(*command, options->request);
    addPlanningOptions(*command, options->request);
    addPipelineOptions(*command, options->pipeline);
    command->add_flag("--json", options->json, "Write all points as JSON");
    command->callback([options, &action] { action = [options] { return sweep(*options); }; });
}

} // namespace shardlens::app
