// SPDX-License-Identifier: Apache-2.0
// Turns a request into a context: cluster, mesh, cost model, prices.
#include "core/error.h"
#include "core/plan/plan.h"
#include "core/plan/pricing.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace shardlens {

namespace {

/// Alpa's meshes are bare sizes with an alpha and a beta each; no cluster stands behind them.
void useAlpaModel(PlanContext& context) {
    const PlanRequest& request = context.request;
    if (request.mesh.empty())
        throw PlanError("the alpa cost model needs a mesh", "--mesh",
                        "write for example --mesh x=1,y=4");
    const std::size_t axes = request.mesh.size();
    std::vector<double> alpha = request.alpha, beta = request.beta;
    if (alpha.empty()) alpha.assign(axes, 1.0);
    if (beta.empty()) { // the last axis is ten times faster, Alpa's default for two axes
        beta.assign(axes, 1.0);
        if (axes > 1) beta.back() = 0.1;
    }
    if (alpha.size() != axes || beta.size() != axes)
        throw PlanError(
            fmt::format("{} mesh axes but {} alphas and {} betas", axes, alpha.size(), beta.size()),
            "cost model alpa", "give one of each per axis");
    for (const AxisSize& axis : request.mesh)
        context.mesh.axes.push_back(
            {axis.name, axis.size, {"alpa", 0, 0, "Alpa's cost formulas"}, false});
    context.cost = alpaModel(alpha, beta);
    context.memoryLimitBytes =
        request.memoryLimitBytes.value_or(std::numeric_limits<double>::infinity());
}

void checkRequest(const PlanRequest& request) {
    const auto positive = [](double value, const char* what) {
        if (!(value > 0))
            throw PlanError(fmt::format("{} must be positive, not {}", what, value),
                            "plan request");
    };
    positive(request.nodes, "the number of nodes");
    positive(static_cast<double>(request.batch), "the batch");
    positive(static_cast<double>(request.sequence), "the sequence length");
    if (request.memoryLimitBytes) positive(*request.memoryLimitBytes, "the memory limit");
    if (request.mesh.size() > kMaxMeshAxes)
        throw PlanError(
            fmt::format("a mesh has at most {} axes, not {}", kMaxMeshAxes, request.mesh.size()),
            "mesh");
    if (request.costModel != "roofline" && request.costModel != "alpa")
        throw PlanError(fmt::format("there is no cost model '{}'", request.costModel),
                        "plan request", "use roofline or alpa");
}

} // namespace

std::string_view nameOf(Phase phase) noexcept {
    switch (phase) {
    case Phase::Forward:
        return "forward";
    case Phase::Backward:
        return "backward";
    case Phase::Step:
        return "step";
    }
    return "?";
}

std::string_view nameOf(Provenance provenance) noexcept {
    switch (provenance) {
    case Provenance::Modelled:
        return "modelled";
    case Provenance::Measured:
        return "measured";
    case Provenance::Published:
        return "published";
    }
    return "?";
}

std::shared_ptr<const PlanContext> makeContext(std::shared_ptr<const Graph> graph,
                                               std::shared_ptr<const Folding> folding,
                                               const PlanRequest& request) {
    checkRequest(request);
    auto context = std::make_shared<PlanContext>();
    context->graph = std::move(graph);
    context->folding = std::move(folding);
    context->request = request;
    if (request.costModel == "alpa") {
        useAlpaModel(*context);
    } else {
        context->cluster = clusterByName(request.cluster, request.nodes, request.devicesPerNode);
        if (context->request.mesh.empty()) context->request.mesh = defaultMesh(context->cluster);
        context->mesh = layMesh(context->cluster, context->request.mesh);
        context->cost = rooflineModel(context->cluster);
        context->memoryLimitBytes =
            request.memoryLimitBytes.value_or(context->cluster.device.memoryBytes);
    }
    context->pricing = std::make_shared<Pricing>(context->graph, context->folding, request.mode,
                                                 context->mesh, context->cost);
    return context;
}

std::shared_ptr<const PlanContext> withPins(const PlanContext& context, std::vector<Pin> pins) {
    auto copy = std::make_shared<PlanContext>(context);
    copy->request.pins = std::move(pins);
    return copy;
}

} // namespace shardlens
