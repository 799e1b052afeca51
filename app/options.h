// SPDX-License-Identifier: Apache-2.0
// Options that several subcommands share. They are kept as changes to a request, because what they
// change is only known once the file has been opened: a proposal for a model, or a session's own
// request. A text of the wrong form is a usage error.
#pragma once

#include "core/plan/request.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <vector>

namespace shardlens::app {

struct RequestOptions {
    std::vector<std::function<void(PlanRequest&)>> changes; ///< in the order given
    bool placed = false; ///< the cluster, its size or the mesh is among them

    PlanRequest applied(PlanRequest request) const;
};

/// --batch, --seq, --mode and --bind: what turns a model file into a graph of known sizes.
void addWorkloadOptions(CLI::App& command, RequestOptions& options);

/// --cluster, --nodes, --mesh, --memory-limit, --cost-model, --alpha, --beta and --pin.
void addPlanningOptions(CLI::App& command, RequestOptions& options);

struct Size {
    int width = 0, height = 0;
};
/// @throws CLI::ValidationError unless "WxH" with both in 200 … 10000
Size parseSize(const std::string& text);

} // namespace shardlens::app
