// SPDX-License-Identifier: Apache-2.0
// The planner `alpa`: Alpa's inter-operator level with stage costs from our own model. Layers are
// clustered, every stretch of them is priced on every submesh and logical mesh, and divideStages()
// finds the exact optimum of Alpa's objective: what crosses between stages and what comes once a
// step are not in it. The answer's simulated time has both, so that the difference shows.
#pragma once

#include "core/plan/planners/pipeline_planner.h"
#include "core/plan/planners/stage_division.h"

namespace shardlens {

/// @param layers clusters of units, as equal in number as can be (Alpa uses 6 to 16)
/// @throws PlanError when nothing fits, or hosts have no power of two of devices
PipelineAnswer planAlpa(StagePricer& pricer, const PipelineRequest& request, int layers = 16);

} // namespace shardlens
