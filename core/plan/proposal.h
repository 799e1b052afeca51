// SPDX-License-Identifier: Apache-2.0
// What to plan a model for when its user has said nothing yet: a cluster just large enough.
#pragma once

#include "core/plan/model_bundle.h"

namespace shardlens {

/// Training on dgx-h100: nodes double until parameters, gradients and optimizer state fill at most
/// half of the memory; the default mesh of that cluster; a batch that its data axes can split.
PlanRequest proposeRequest(const Graph& graph);

struct ProposedModel {
    ModelBundle bundle; ///< sized for `request`
    PlanRequest request;
};

/// Reads a model and proposes a request for it. @throws InputError; Cancelled
ProposedModel loadWithProposal(const std::filesystem::path& path, std::stop_token stop = {});

} // namespace shardlens
