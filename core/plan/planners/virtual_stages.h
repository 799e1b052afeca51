// SPDX-License-Identifier: Apache-2.0
// Which units each stage of a plan computes. Without chunks these are its stretch of the model. An
// interleaved schedule cuts what a stage holds into v chunks that are not contiguous (Narayanan
// 2021, section 2.2): of p stages, chunk c of stage d is virtual stage c p + d of the model. The
// one rule for everything that shows or checks where layers are: a stage holds as many layers
// (units inside of runs) as its stretch has, in v equal chunks; virtual stages take them in the
// order of the model; what lies before the first layer (embedding) belongs to the first chunk of
// the first stage, what lies behind the last one (head) to the last chunk of the last stage, and
// anything between two layers goes with the layer behind it.
#pragma once

#include "core/plan/planners/pipeline_planner.h"
#include "core/plan/stage_units.h"

#include <span>
#include <string>
#include <vector>

namespace shardlens {

/// What a stage computes in one go.
struct VirtualStage {
    int stage = 0, chunk = 0;
    int first = 0, last = -1; ///< units, both included; none if last < first

    friend bool operator==(const VirtualStage&, const VirtualStage&) = default;
};

/// In the order of the model: number s lies on stage s mod p as its chunk s / p. If a stage's
/// layers are no multiple of its chunks (no planner makes such a plan), later chunks have one more.
/// @param stages with their stretches, in order  @param chunks of each stage, at least 1
std::vector<VirtualStage> virtualStages(const StageUnits& units,
                                        std::span<const PlannedStage> stages, int chunks);

/// "layers 4-5", or "embed_tokens to layer 5" where not all are layers.
std::string stretchName(const StageUnits& units, int first, int last);

/// All chunks of a stage: "layers 4-5, 20-21".
std::string chunksName(const StageUnits& units, std::span<const VirtualStage> all, int stage);

} // namespace shardlens
