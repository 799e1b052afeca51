// SPDX-License-Identifier: Apache-2.0
// What `plan --pipeline` and `sweep` share: options of whole jobs, and a model that can be sized
// for every micro-batch.
#pragma once

#include "app/model_file.h"
#include "core/plan/planners/pipeline_planner.h"

#include <CLI/CLI.hpp>

namespace shardlens::app {

struct PipelineOptions {
    bool pipeline = false;
    std::string planner = "optimum";
    std::vector<std::string> schedules;
    std::vector<int> cuts;
    int microBatches = 0, stages = 0;

    PipelineRequest request(const PlanRequest& plan) const;
};

/// --planner, --schedule, --micro-batches, --stages and --cut.
void addPipelineOptions(CLI::App& command, PipelineOptions& options);

/// Plans stages with the planner asked for and prints the plan.
int runPipeline(const std::string& model, const RequestOptions& request,
                const PipelineOptions& options, bool json);

/// Prices stages of the model on the request's cluster.
StagePricer pricerOf(const std::string& model, const ModelFile& file);

} // namespace shardlens::app
