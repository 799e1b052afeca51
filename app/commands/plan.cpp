// SPDX-License-Identifier: Apache-2.0
// `shardlens plan MODEL`: the best plan of a model on a cluster, as a report or as JSON.
#include "app/commands/commands.h"
#include "app/model_file.h"
#include "core/plan/planner.h"

#include <fmt/format.h>

#include <memory>

namespace shardlens::app {

namespace {

struct PlanOptions {
    std::string model;
    RequestOptions request;
    bool json = false;
};

int plan(const PlanOptions& options) {
    const ModelFile file = openModelFile(options.model, options.request);
    const Plan best = optimise(makeContext(file.bundle.graph, file.bundle.folding, file.request));
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
    command->add_flag("--json", options->json, "Write the whole plan as JSON");
    command->callback([options, &action] { action = [options] { return plan(*options); }; });
}

} // namespace shardlens::app
