// SPDX-License-Identifier: Apache-2.0
// From a PlanRequest to the plan of a whole job: the one way for command line and window. The
// pricer is kept between requests, so that a moved pin is answered at once.
#pragma once

#include "core/plan/model_bundle.h"
#include "core/plan/planners/pipeline_planner.h"

namespace shardlens {

/// What the planners are asked. Without a pipeline block: nothing pinned.
PipelineRequest pipelineRequest(const PlanRequest& request);

/// What of a request a pricer depends on, as text: requests with equal texts may share one.
std::string pricingOf(const PlanRequest& request);

/// Prices stages of a model on the request's cluster. @param file the model is read from it again
/// for every size of micro-batch
/// @throws PlanError for a cost model other than roofline
StagePricer makeStagePricer(const std::filesystem::path& file, const ModelBundle& bundle,
                            const PlanRequest& request);

/// Plans with the planner that the request names. @throws PlanError naming the pins that cannot
/// hold, or what does not fit; Cancelled
PipelineAnswer planJob(StagePricer& pricer, const PlanRequest& request, std::stop_token stop = {});

} // namespace shardlens
