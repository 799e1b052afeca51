// SPDX-License-Identifier: Apache-2.0
// Devices and clusters by name.
#include "core/cluster/cluster.h"

#include "core/cluster/catalogue.h"
#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens {

namespace {

constexpr int kMaxDevices = 1 << 20;

} // namespace

double Device::matrixFlops(DType dtype) const {
    const int bits = bitsOf(dtype);
    if (bits > 0 && bits <= 8 && matrixFlops8 > 0) return matrixFlops8;
    if (bits > 16 && vectorFlops32 > 0) return vectorFlops32;
    return matrixFlops16;
}

std::vector<ClusterInfo> knownClusters() {
    std::vector<ClusterInfo> infos;
    std::ranges::transform(builtinCatalogue().clusters, std::back_inserter(infos),
                           [](const Cluster& c) { return ClusterInfo{c.name, c.description}; });
    return infos;
}

Cluster clusterByName(std::string_view name, int nodes, int devicesPerNode) {
    const std::vector<Cluster>& clusters = builtinCatalogue().clusters;
    const auto found = std::ranges::find(clusters, name, &Cluster::name);
    if (found == clusters.end()) {
        std::vector<std::string_view> names;
        std::ranges::transform(clusters, std::back_inserter(names), &Cluster::name);
        throw PlanError(fmt::format("unknown cluster \"{}\"", name), {},
                        fmt::format("the clusters are: {}", fmt::join(names, ", ")));
    }
    const int most = kMaxDevices / found->devicesPerNode;
    if (nodes < 1 || nodes > most) {
        throw PlanError(fmt::format("{} nodes of {} are not possible", nodes, name), {},
                        fmt::format("ask for 1 to {} nodes", most));
    }
    if (devicesPerNode < 0 || devicesPerNode > found->devicesPerNode) {
        throw PlanError(
            fmt::format("{} devices of a node of {} are not possible", devicesPerNode, name), {},
            fmt::format("use 1 to {}", found->devicesPerNode));
    }
    Cluster cluster = *found;
    cluster.nodes = nodes;
    if (devicesPerNode > 0) cluster.devicesPerNode = devicesPerNode;
    return cluster;
}

} // namespace shardlens
