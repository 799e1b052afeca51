// SPDX-License-Identifier: Apache-2.0
// What is asked of the planner: cluster, mesh, workload, cost model, limit, pins and pipeline. This
// is the document that the command line builds from options, the window edits, and a session keeps.
#pragma once

#include "core/cluster/cluster.h"
#include "core/plan/pipeline_setup.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shardlens {

enum class Mode : std::uint8_t { Train, Infer };

/// A choice fixed by the user.
struct Pin {
    /// Which ops: a glob over op names ("layers.57.*.q_proj"; * and ? as in the shell), or
    /// "class:NAME" for every op of the class whose representative is NAME.
    std::string target;
    /// Choice text as toString(Choice) writes it: "b@dp,n@tp", "replicated". Axes that are not
    /// mentioned are idle.
    std::string choice;
    friend bool operator==(const Pin&, const Pin&) = default;
};

struct PlanRequest {
    std::string cluster = "dgx-h100";
    int nodes = 1;
    int devicesPerNode = 0;       ///< how many of each node's devices are used; 0 = all
    std::vector<AxisSize> mesh;   ///< empty = defaultMesh
    std::int64_t batch = 8;       ///< sequences (or samples) of one step
    std::int64_t sequence = 2048; ///< tokens
    std::map<std::string, std::int64_t> bindings; ///< further symbolic dimensions of the model
    Mode mode = Mode::Train;
    std::optional<double> memoryLimitBytes; ///< per device; default: the device's memory
    std::string costModel = "roofline";     ///< or "alpa"
    std::vector<double> alpha, beta;        ///< of the alpa model, per axis
    std::vector<Pin> pins;
    std::optional<PipelineSetup> pipeline; ///< the job is also planned as stages
};

std::string toJson(const PlanRequest& request);
PlanRequest requestFromJson(const std::string& text); ///< @throws InputError

} // namespace shardlens
