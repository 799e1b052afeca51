// SPDX-License-Identifier: Apache-2.0
// Devices, links and clusters, read from the hardware catalogue in resources/hardware (data sheet
// figures, each with its source), and the logical mesh laid over a cluster.
#pragma once

#include "core/model/tensor.h"

#include <string>
#include <string_view>
#include <vector>

namespace shardlens {

/// One accelerator. Rates are peak data-sheet figures; efficiencies belong to the cost model.
struct Device {
    std::string name;
    double matrixFlops16 = 0; ///< FLOP/s, bf16 or fp16 dense
    double matrixFlops8 = 0;  ///< FLOP/s, fp8; 0 if absent
    double vectorFlops32 = 0; ///< FLOP/s
    double memoryBytes = 0;
    double memoryBandwidth = 0; ///< bytes/s
    std::string source;         ///< where the figures come from
    std::string sureness;       ///< "seen", "unverified", … as the catalogue states it

    double matrixFlops(DType dtype) const; ///< peak for a matrix product of that type
};

/// A network level.
struct Link {
    std::string name;
    double bandwidth = 0; ///< bytes/s per device and direction
    double latency = 0;   ///< seconds per step of a collective
    std::string source;
};

struct Cluster {
    std::string name;
    std::string description;
    Device device;
    int devicesPerNode = 1; ///< devices that share the scale-up link
    int nodes = 1;
    Link scaleUp;  ///< inside the node
    Link scaleOut; ///< between nodes, per device

    int devices() const { return devicesPerNode * nodes; }
};

/// Names of the clusters the catalogue knows, with one line of description each.
struct ClusterInfo {
    std::string name, description;
};
std::vector<ClusterInfo> knownClusters();

/// @param devicesPerNode how many of a node's devices are used; 0 = all
/// @throws PlanError with the list of known names, or the number of devices that a node has
Cluster clusterByName(std::string_view name, int nodes, int devicesPerNode = 0);

inline constexpr std::size_t kMaxMeshAxes = 4;

/// A named axis of the mesh and the link its collectives run over.
struct MeshAxis {
    std::string name;
    int size = 1;
    Link link; ///< effective link of a ring along this axis, all rings of the mesh at once
    bool crossesNodes = false;
};

/// A logical mesh; the last axis is innermost: its neighbours are neighbouring devices.
struct Mesh {
    std::vector<MeshAxis> axes;

    int devices() const;
    int axisIndex(std::string_view name) const; ///< -1 if absent
    std::string toString() const;               ///< "dp=8,tp=8"
    /// Coordinates of a device along each axis (device 0 .. devices()-1).
    std::vector<int> coordinates(int device) const;
};

struct AxisSize {
    std::string name;
    int size = 1;
};
/// Parses "dp=8,tp=8". @throws PlanError
std::vector<AxisSize> parseMesh(std::string_view text);

/// Lays axes over the cluster, fastest innermost (costs.md section 3, "Group placement"): an axis
/// inside the node uses the scale-up link; one that spans nodes with r members per node is fed by
/// min(scale-up, r * NIC). @throws PlanError if sizes do not fit the cluster
Mesh layMesh(const Cluster& cluster, const std::vector<AxisSize>& axes);

/// A mesh suggestion for a cluster: tp inside the node, dp across.
std::vector<AxisSize> defaultMesh(const Cluster& cluster);

} // namespace shardlens
