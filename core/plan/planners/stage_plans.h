// SPDX-License-Identifier: Apache-2.0
// What the stages of a job do inside their meshes, op by op: the choices that their prices are of
// (where a stage is computed in chunks, those of each chunk by itself, as it is received and sent).
// Stages with one mesh and one size of micro-batch share a Plan of the whole model, in which their
// ops are decided and those of other stages are not.
#pragma once

#include "core/plan/plan.h"
#include "core/plan/planners/virtual_stages.h"

#include <memory>
#include <string>
#include <vector>

namespace shardlens {

struct StagePlan {
    /// Shapes, collectives and figures of one micro-batch on one replica; collectives of stages
    /// that it is not of are left out. Its totals are of no use.
    std::shared_ptr<const Plan> plan;
    std::vector<bool> decided; ///< by OpId: of a stage that the plan is of
};

/// By stage; stages with equal meshes share theirs. @throws PlanError, InputError
std::vector<std::shared_ptr<const StagePlan>>
stagePlans(StagePricer& pricer, const std::vector<PlannedStage>& stages, int chunks);

/// Equal units in a row whose ops chose alike.
struct UnitChoices {
    int first = 0, last = 0; ///< units, both included
    /// Ops of the first unit and their choice ("n@tp"), those that are replicated left out.
    std::vector<std::pair<OpId, std::string>> choices;
};
std::vector<UnitChoices> choicesOf(const StagePlan& plan, const StageUnits& units,
                                   const std::vector<VirtualStage>& pieces, int stage);

} // namespace shardlens
