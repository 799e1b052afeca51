// SPDX-License-Identifier: Apache-2.0
// Runs a plan for real: every rank of the mesh holds only its shards, computes its part of every op
// and meets the others in collectives, forward, backward and through one optimizer step. What each
// rank holds and which collectives run follow from the plan's choices exactly as its prices do.
#pragma once

#include "core/execute/communicator.h"
#include "core/execute/step.h"
#include "core/plan/pricing.h"

namespace shardlens {

/// A collective that one rank took part in.
struct RanCollective {
    CollectiveStep step;
    Phase phase = Phase::Forward;
    TensorId tensor = kNoTensor; ///< as in PlannedCollective
    OpId from = kNoOp, to = kNoOp;
};

/// What one rank holds after a step; local arrays, in the layouts that the plan says.
struct RankStep {
    StepValues local;
    std::vector<SideLayout> gradientSides; ///< by tensor: how `local.gradients` are laid out
    std::vector<RanCollective> collectives;
};

/// One rank's part of the step.
RankStep runRank(const Plan& plan, const Feeds& feeds, Communicator& communicator);

struct ShardedRun {
    /// Whole tensors put together from the shards; partial sums added up.
    StepValues step;
    std::vector<RanCollective> collectives; ///< of rank 0
    /// The largest difference, over all tensors, between copies that should be equal.
    double replicaDifference = 0;
};

/// All ranks of the plan's mesh, in this process.
/// @throws Error where the plan cuts something unevenly or an op cannot be executed
ShardedRun runSharded(const Plan& plan, const Feeds& feeds);

} // namespace shardlens
