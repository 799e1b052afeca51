// SPDX-License-Identifier: Apache-2.0
// From a graph to a plan in one call, for tests.
#pragma once

#include "core/plan/planner.h"

#include <algorithm>

namespace shardlens::test {

inline std::shared_ptr<const PlanContext> contextOf(const Graph& graph, const PlanRequest& request,
                                                    bool folded = true) {
    auto shared = std::make_shared<const Graph>(graph);
    auto folding =
        std::make_shared<const Folding>(folded ? fold(*shared) : trivialFolding(*shared));
    return makeContext(shared, folding, request);
}

/// Alpa's cost model on a bare two-axis mesh.
inline PlanRequest alpaRequest(int n0, int n1, double alpha, double beta0, double beta1) {
    PlanRequest request;
    request.costModel = "alpa";
    request.mesh = {{"x", n0}, {"y", n1}};
    request.alpha = {alpha, alpha};
    request.beta = {beta0, beta1};
    return request;
}

inline std::size_t countCollectives(const Plan& plan, CollectiveKind kind, double bytes = 0) {
    return static_cast<std::size_t>(
        std::ranges::count_if(plan.collectives, [&](const PlannedCollective& c) {
            return c.step.kind == kind && (bytes == 0 || c.step.bytes == bytes);
        }));
}

inline std::string choiceOf(const Plan& plan, std::string_view op) {
    const std::optional<OpId> id = plan.context->graph->findOp(op);
    if (!id) return "no such op";
    return toString(plan.decisions.op[*id], factorRule(viewOf(*plan.context->graph, *id)),
                    plan.context->mesh);
}

} // namespace shardlens::test
