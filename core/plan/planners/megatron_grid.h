// SPDX-License-Identifier: Apache-2.0
// Equal stages, as Megatron-LM is set up by hand: every combination of tensor, context, pipeline,
// expert and data degree, sequence parallelism, chunks a device, micro-batch, ZeRO stage and
// recomputation that its rules allow (megatron_rules.h), each with its time and memory under the
// same costs as our own search (reference planners.md section 4). What happens inside a stage is
// Megatron's layout (megatron_layout.h), priced op by op on the mesh of the stage: nothing is a
// correction on top. Expert groups lie over data-parallel ranks, after all context-parallel ones
// (rank order tp, cp, ep, dp, pp), so that an expert degree is a multiple of the context degree or
// 1; the expert tensor degree is the tensor degree. Tensor groups stay inside a node.
#pragma once

#include "core/plan/planners/pipeline_planner.h"

#include <limits>
#include <stop_token>

namespace shardlens {

struct GridPoint {
    ScheduleModel schedule{};
    int tensor = 1, pipeline = 1, data = 1;
    int context = 1, expert = 1;
    bool sequenceParallel = false;
    int samples = 1; ///< of a data-parallel rank's micro-batch
    int microBatches = 1;
    StagePolicy policy{};
    double seconds = 0; ///< of a step
    double memory = 0;  ///< bytes, of the fullest device
    double bubble = 0;  ///< share of the step that the slowest stage does not work
    bool fits = false;
    bool front = false; ///< no point is quicker and leaner
};

/// All valid points, tensor degree slowest; memory decides `fits` only. Empty where the layers
/// cannot be divided at all. @param below seconds: points that take as long at least, by what their
/// units take without Megatron's layout, may be left out. @throws Cancelled
std::vector<GridPoint> megatronGrid(StagePricer& pricer, const PipelineRequest& request,
                                    std::stop_token stop = {},
                                    double below = std::numeric_limits<double>::infinity());

/// The quickest that fits; nullptr if none does.
const GridPoint* bestOf(const std::vector<GridPoint>& points);

std::string_view recomputeText(const StagePolicy& policy); ///< "none", "selective", "full"

/// Devices and layout of a point's stages.
StageOptionInfo optionOf(const GridPoint& point);

/// The stages of a point. Its bound is 0: it is no optimum of anything.
PipelineAnswer answerOf(StagePricer& pricer, const PipelineRequest& request,
                        const GridPoint& point);

/// A request that only this point answers: it opens a point of a sweep as a plan.
PipelineSetup setupOf(const GridPoint& point);

std::string gridJson(const std::vector<GridPoint>& points);
/// @param most points that are listed, quickest first, those of the front in any case
std::string gridText(const std::vector<GridPoint>& points, std::size_t most = 20);

} // namespace shardlens
