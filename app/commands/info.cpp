// SPDX-License-Identifier: Apache-2.0
// `shardlens info MODEL`: what a model file holds, before any planning; with --twin the plan that a
// partitioned program follows.
#include "app/commands/commands.h"
#include "app/model_file.h"
#include "core/plan/model_summary.h"
#include "core/plan/twin_match.h"

#include <fmt/format.h>

#include <memory>

namespace shardlens::app {

namespace {

struct InfoOptions {
    std::string model;
    std::string twin; ///< the same model whole, or empty
    RequestOptions request;
    bool json = false;
};

int twinPlan(const InfoOptions& options) {
    const PlanRequest request = options.request.applied({});
    const ImportOptions import = importOptions(request);
    const TwinPlan twin = readTwinPlan(importModel(options.twin, import),
                                       importModel(options.model, import), request.mode);
    fmt::print("{}", options.json ? toJson(twin) + "\n" : toText(twin));
    return 0;
}

int info(const InfoOptions& options) {
    if (!options.twin.empty()) return twinPlan(options);
    const auto summary = summarise(openModelFile(options.model, options.request).bundle);
    fmt::print("{}", options.json ? toJson(summary) + "\n" : toText(summary));
    return 0;
}

} // namespace

void addInfo(CLI::App& app, Action& action) {
    auto* command = app.add_subcommand("info", "Say what a model file holds");
    const auto options = std::make_shared<InfoOptions>();
    command->add_option("MODEL", options->model, "Model file of any supported kind, or a session")
        ->required();
    addWorkloadOptions(*command, options->request);
    command
        ->add_option("--twin", options->twin,
                     "The same model for a single device: MODEL is taken as one device's program "
                     "of it, and the plan that it follows is printed")
        ->type_name("WHOLE");
    command->add_flag("--json", options->json, "Write JSON");
    command->callback([options, &action] { action = [options] { return info(*options); }; });
}

} // namespace shardlens::app
