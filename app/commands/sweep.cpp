// SPDX-License-Identifier: Apache-2.0
// `shardlens sweep MODEL`: every valid equal-stage plan with its time and memory, or the best plan
// over one or two settings; as a table, as JSON or as CSV, the front of time against memory marked.
#include "core/plan/planners/sweep.h"

#include "app/commands/commands.h"
#include "app/commands/pipeline.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

namespace shardlens::app {

namespace {

struct SweepOptions {
    std::string model;
    RequestOptions request;
    PipelineOptions pipeline;
    std::vector<std::string> over;
    bool json = false, csv = false;
};

SweepTable tableOf(const SweepOptions& options) {
    ModelFile file = openModelFile(options.model, options.request);
    options.pipeline.apply(file.request);
    const SweepSource source{file.file, file.bundle};
    if (options.over.empty()) return runGrid(source, file.request).table;
    if (options.pipeline.planner.empty()) file.request.pipeline->planner = "megatron";
    SweepRequest request{file.request, {}};
    for (const std::string& axis : options.over) request.axes.push_back(sweepAxis(axis));
    return runSweep(source, request, [](const SweepRow&, std::size_t index, std::size_t all) {
        if (all > 1 && ::isatty(STDERR_FILENO) != 0)
            fmt::print(stderr, "\r{} of {} points{}", index + 1, all, index + 1 < all ? "" : "\n");
    });
}

int sweep(const SweepOptions& options) {
    const SweepTable table = tableOf(options);
    fmt::print("{}", options.json  ? sweepJson(table) + "\n"
                     : options.csv ? sweepCsv(table)
                                   : sweepText(table));
    return 0;
}

} // namespace

void addSweep(CLI::App& app, Action& action) {
    auto* command = app.add_subcommand(
        "sweep", "Price every equal-stage plan of a model, or plans over one or two settings");
    const auto options = std::make_shared<SweepOptions>();
    command->add_option("MODEL", options->model, "Model file of any supported kind, or a session")
        ->required();
    command->add_option("--over", options->over,
                        "A setting and its values, as in nodes=1,2,4 or batch=64..1024; may be "
                        "given twice. Settings: nodes, batch, sequence, micro_batches, stages, tp, "
                        "dp, schedule, zero, recompute, memory_gib");
    addWorkloadOptions(*command, options->request);
    addPlanningOptions(*command, options->request);
    addPipelineOptions(*command, options->pipeline);
    auto* json = command->add_flag("--json", options->json, "Write all points as JSON");
    command->add_flag("--csv", options->csv, "Write all points as CSV")->excludes(json);
    command->callback([options, &action] { action = [options] { return sweep(*options); }; });
}

} // namespace shardlens::app
