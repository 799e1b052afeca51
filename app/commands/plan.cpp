// SPDX-License-Identifier: Apache-2.0
// `shardlens plan MODEL`: the best plan of a model on a cluster, as a report or as JSON; or the
// choice problem behind it, unfolded, for other solvers. With --pipeline the plan of a whole job.
#include "app/commands/commands.h"
#include "app/commands/pipeline.h"
#include "core/error.h"
#include "core/plan/planner.h"
#include "core/solve/contest_file.h"

#include <fmt/format.h>

#include <fstream>
#include <memory>

namespace shardlens::app {

namespace {

struct PlanOptions {
    std::string model, problemFile;
    RequestOptions request;
    PipelineOptions pipeline;
    bool json = false, tieLayers = false;
};

void writeProblem(const PlanContext& context, const std::string& name) {
    solve::IntervalProblem problem = solve::unfold(choiceProblem(context).problem);
    problem.name = context.graph->name;
    std::ofstream file(name, std::ios::binary);
    solve::writeContest(file, problem);
    file.close();
    if (!file) throw Error("the file could not be written", name, "check folder and free space");
}

int plan(const PlanOptions& options) {
    if (options.pipeline.pipeline)
        return runPipeline(options.model, options.request, options.pipeline, options.json);
    const ModelFile file = openModelFile(options.model, options.request);
    const auto context = makeContext(file.bundle.graph, file.bundle.folding, file.request);
    if (!options.problemFile.empty()) {
        writeProblem(*context, options.problemFile);
        return 0;
    }
    PlannerOptions planner;
    planner.tieLayers = options.tieLayers;
    const Plan best = optimise(context, planner);
    fmt::print("{}", options.json ? toJson(best) + "\n" : toText(best));
    return 0;
}

} // namespace

void addPlan(CLI::App& app, Action& action) {
    auto* command = app.add_subcommand("plan", "Find the best plan of a model on a cluster");
    const auto options = std::make_shared<PlanOptions>();
    command->add_option("MODEL", options->model, "Model file of any supported kind, or a session")
        ->required();
    addWorkloadOptions(*command, options->request);
    addPlanningOptions(*command, options->request);
    command->add_flag("--tie-layers", options->tieLayers,
                      "Give equal blocks equal plans, and show what that costs");
    command->add_flag("--pipeline", options->pipeline.pipeline,
                      "Divide the model into pipeline stages; --mesh and --pin do not apply");
    addPipelineOptions(*command, options->pipeline);
    command->add_flag("--json", options->json, "Write the whole plan as JSON");
    command->add_option("--export-problem", options->problemFile,
                        "Only write the choice problem, unfolded, as `shardlens solve` reads it");
    command->callback([options, &action] { action = [options] { return plan(*options); }; });
}

} // namespace shardlens::app
