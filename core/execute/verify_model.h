// SPDX-License-Identifier: Apache-2.0
// Verifies plans of a whole model: shrinks it, plans it on the same mesh, and runs it.
#pragma once

#include "core/execute/shrink.h"
#include "core/execute/verify.h"

namespace shardlens {

/// A model made small, and what was asked of the planner for it.
struct SmallModel {
    std::shared_ptr<const PlanContext> context;
    std::size_t opsBefore = 0;
    double parametersBefore = 0, forwardFlops = 0;
};

/// @throws PlanError if the mesh has more devices than are worth a thread each, or the shrunk model
///         is still too large for reference kernels
SmallModel shrinkForVerification(const Graph& graph, const Folding& folding,
                                 const PlanRequest& request);

/// A request for a mesh that is smaller than its cluster: as many devices of one node, if that has
/// them. Others come back as they are.
PlanRequest onAsManyDevices(PlanRequest request);

/// The choices of a plan for the real model, for the ops and tensors that remain of it.
/// @throws PlanError naming an op that the plan does not know
Decisions carriedOver(const Plan& plan, const PlanContext& small);

/// Pins that repeat the choices of a plan document (as toJson() writes it), for the ops that the
/// graph has. @throws InputError if it is no such document
std::vector<Pin> pinsOfPlan(const std::string& json, const Graph& graph, const Mesh& mesh);

} // namespace shardlens
