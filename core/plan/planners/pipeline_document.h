// SPDX-License-Identifier: Apache-2.0
// The whole-plan document: what a plan of stages is, without what it costs, so that it can be
// written, read, edited and priced again on any pricer. Canonical: every key is written, in one
// order; equal plans give equal bytes. Reading is strict.
#pragma once

#include "core/plan/planners/pipeline_planner.h"

namespace shardlens {

struct PipelineDocument {
    std::string model, cluster; ///< names, for people
    int nodes = 1;
    std::int64_t batch = 1;
    std::string madeBy = "optimum"; ///< "optimum", "alpa", "megatron", "user"
    ScheduleModel schedule;
    int microBatches = 1;
    struct Stage {
        int first = 0, last = 0; ///< units, both included
        StageOptionInfo option;
        StagePolicy policy;
    };
    std::vector<Stage> stages;
    /// Who set a field ("schedule", "micro_batches", "stages[2].first"): "user" for pins; fields
    /// that are not named are the planner's.
    std::map<std::string, std::string> provenance;
};

PipelineDocument documentOf(const PipelineAnswer& answer, const StagePricer& pricer,
                            const PipelineRequest& request, std::string model, std::string madeBy);

std::string toJson(const PipelineDocument& document);
/// With figures, for reports: time, bound, gap, memory, by stage, and what ops do inside of each.
std::string toJson(const PipelineDocument& document, const PipelineAnswer& answer,
                   StagePricer& pricer);
/// Figures are skipped. @throws InputError
PipelineDocument pipelineFromJson(const std::string& text);

/// What is wrong with a plan, one sentence each; empty if nothing: stages cover all units in order,
/// devices and memory suffice, micro-batches and replicas divide the batch, the schedule's rules.
std::vector<std::string> problemsOf(const PipelineDocument& document, StagePricer& pricer,
                                    const PipelineRequest& request);

/// Prices a plan by the closed form and by the event engine; its bound is 0.
/// @throws PlanError with the first of its problems other than memory
PipelineAnswer evaluatePipeline(const PipelineDocument& document, StagePricer& pricer,
                                const PipelineRequest& request);

std::string toText(const PipelineDocument& document, const PipelineAnswer& answer,
                   StagePricer& pricer); ///< for the terminal

} // namespace shardlens
