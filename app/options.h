// SPDX-License-Identifier: Apache-2.0
// Options that several subcommands share, and the texts they take: "NAME=VALUE", "dp=8,tp=8",
// "1600x1000". A text of the wrong form is a usage error.
#pragma once

#include "core/plan/request.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

namespace shardlens::app {

struct Size {
    int width = 0, height = 0;
};

/// @throws CLI::ValidationError unless "WxH" with both in 200 … 10000
Size parseSize(const std::string& text);

/// --batch, --seq, --mode and --bind: what turns a model file into a graph of known sizes.
void addWorkloadOptions(CLI::App& command, PlanRequest& request);

/// --cluster, --nodes, --mesh, --memory-limit, --cost-model, --alpha, --beta and --pin.
void addPlanningOptions(CLI::App& command, PlanRequest& request);

} // namespace shardlens::app
