// SPDX-License-Identifier: Apache-2.0
// Equal stages, as Megatron-LM is set up by hand: every combination of tensor, pipeline and data
// degree, chunks a device, micro-batch, ZeRO stage and recomputation that is valid, each with its
// time and memory under the same costs as our own search (reference planners.md section 4).
// Rules: degrees multiply to the devices, pipeline x chunks divides the layers, the micro-batch and
// data degree divide the batch, interleaving needs micro-batches divisible by the stages, tensor
// groups stay inside a node. Sequence, context and expert parallelism are choices inside the tensor
// group: its variants, from quickest to leanest, split parameters or the sequence.
#pragma once

#include "core/plan/planners/pipeline_planner.h"

namespace shardlens {

struct GridPoint {
    ScheduleKind schedule = ScheduleKind::OneFOneB;
    int tensor = 1, pipeline = 1, chunks = 1, data = 1;
    int samples = 1; ///< of a replica's micro-batch
    int microBatches = 1;
    int variant = 0;
    StagePolicy policy;
    double seconds = 0; ///< of a step
    double memory = 0;  ///< bytes, of the fullest device
    double bubble = 0;  ///< share of the step that the slowest stage does not work
    bool fits = false;
    bool front = false; ///< no point is quicker and leaner
};

/// All valid points, tensor degree slowest; memory decides `fits` only. Empty where the layers
/// cannot be divided at all.
std::vector<GridPoint> megatronGrid(StagePricer& pricer, const PipelineRequest& request);

/// The quickest that fits; nullptr if none does.
const GridPoint* bestOf(const std::vector<GridPoint>& points);

/// The stages of a point. Its bound is 0: it is no optimum of anything.
PipelineAnswer answerOf(StagePricer& pricer, const PipelineRequest& request,
                        const GridPoint& point);

/// A request that only this point answers: it opens a point of a sweep as a plan.
PipelineSetup setupOf(const GridPoint& point);

std::string gridJson(const std::vector<GridPoint>& points);
/// @param most points that are listed, quickest first, those of the front in any case
std::string gridText(const std::vector<GridPoint>& points, std::size_t most = 20);

} // namespace shardlens
