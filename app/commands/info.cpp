// SPDX-License-Identifier: Apache-2.0
// `shardlens info MODEL`: what a model file holds, before any planning.
#include "app/commands/commands.h"
#include "app/model_file.h"
#include "core/plan/model_summary.h"

#include <fmt/format.h>

#include <memory>

namespace shardlens::app {

namespace {

struct InfoOptions {
    std::string model;
    RequestOptions request;
    bool json = false;
};

int info(const InfoOptions& options) {
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
    command->add_flag("--json", options->json, "Write JSON");
    command->callback([options, &action] { action = [options] { return info(*options); }; });
}

} // namespace shardlens::app
