// SPDX-License-Identifier: Apache-2.0
// What `plan --pipeline` and `sweep` share: options of whole jobs.
#pragma once

#include "app/model_file.h"
#include "core/plan/planners/pipeline_job.h"

#include <CLI/CLI.hpp>

namespace shardlens::app {

struct PipelineOptions {
    bool pipeline = false;
    std::string planner;
    std::vector<std::string> schedules;
    std::vector<int> cuts;
    int chunks = 0, microBatches = 0, stages = 0, tensor = 0, data = 0, zero = -1;
    int context = 0, expert = 0, insideAxes = 0;
    std::string recompute, sequenceParallel, transfers;

    /// Over what the request has already (of a session).
    void apply(PlanRequest& request) const;
};

/// --planner, --schedule, --transfers, --chunks, --micro-batches, --stages, --cut, --tp,
/// --inside-axes, --dp, --cp, --ep, --sp, --zero and --recompute.
void addPipelineOptions(CLI::App& command, PipelineOptions& options);

/// Plans stages with the planner asked for and prints the plan.
int runPipeline(const std::string& model, const RequestOptions& request,
                const PipelineOptions& options, bool json);

} // namespace shardlens::app
