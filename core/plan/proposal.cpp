// SPDX-License-Identifier: Apache-2.0
// See proposal.h.
#include "core/plan/proposal.h"

#include <algorithm>

namespace shardlens {

namespace {

constexpr double kTrainingBytes = 18; ///< a parameter: value, gradient, optimizer state
constexpr double kStateShare = 0.5;   ///< of the memory; the rest is for activations
constexpr int kMostNodes = 128;

} // namespace

PlanRequest proposeRequest(const Graph& graph) {
    PlanRequest request;
    const double need = graph.parameterCount() * kTrainingBytes;
    Cluster cluster = clusterByName(request.cluster, request.nodes);
    while (request.nodes < kMostNodes &&
           need > kStateShare * cluster.device.memoryBytes * cluster.devices()) {
        request.nodes *= 2;
        cluster = clusterByName(request.cluster, request.nodes);
    }
    request.mesh = defaultMesh(cluster);
    for (const AxisSize& axis : request.mesh) {
        if (axis.name != "tp") request.batch = std::max<std::int64_t>(request.batch, axis.size);
    }
    return request;
}

ProposedModel loadWithProposal(const std::filesystem::path& path, std::stop_token stop) {
    const PlanRequest first;
    ProposedModel model;
    model.bundle = loadModel(path, importOptions(first, stop));
    model.request = proposeRequest(*model.bundle.source);
    if (sizingOf(model.request) != sizingOf(first)) {
        model.bundle = loadModel(path, importOptions(model.request, stop));
    }
    return model;
}

} // namespace shardlens
