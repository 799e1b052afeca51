// SPDX-License-Identifier: Apache-2.0
// The submeshes that a pipeline stage may get, the logical meshes laid over them, and where a set
// of submeshes lies on the cluster. The rules are Alpa's (Zheng et al., OSDI 2022, section 5.2, and
// stage_construction.py of alpa-projects/alpa): a stage has a power of two of one host's devices,
// or whole hosts. Any such shapes whose sizes add up to the cluster tile it (its appendix A).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardlens {

struct Submesh {
    int hosts = 1;
    int devicesPerHost = 1;
    int devices() const { return hosts * devicesPerHost; }
    auto operator<=>(const Submesh&) const = default;
};

enum class SubmeshSpace : std::uint8_t {
    All,             ///< any number of whole hosts
    PowerOfTwo,      ///< a power of two of them, or all of them
    SmallPowerOfTwo, ///< the same, at most four hosts
};

/// Ascending by size. @throws PlanError unless hosts >= 1 and devicesPerHost is a power of two
std::vector<Submesh> submeshes(int hosts, int devicesPerHost, SubmeshSpace space);

/// A two-dimensional view of a submesh: data-parallel by model-parallel.
struct LogicalShape {
    int data = 1, model = 1;
    bool batchForced = true; ///< the first axis splits the batch and nothing else
    auto operator<=>(const LogicalShape&) const = default;
};

enum class LogicalSpace : std::uint8_t {
    SingleNodeModelParallel, ///< model-parallel groups stay inside a host
    All,
};

/// Every (n / mp, mp) whose data axis divides the micro-batch, and (n, 1) once more with the choice
/// of the axis free.
/// @param microBatch samples of one micro-batch
std::vector<LogicalShape> logicalShapes(const Submesh& submesh, std::int64_t microBatch,
                                        LogicalSpace space);

/// Where a submesh lies: hosts and devices [host, host + hosts) x [device, device + devices).
struct Placement {
    int host = 0, device = 0;
    Submesh submesh;
    bool contains(int atHost, int atDevice) const;
};

/// A place for each of the shapes, in the order given, none over another. Large ones are placed
/// first, so that what is left over of a host is always whole.
/// @throws PlanError if the shapes are none of `submeshes` or do not fit
std::vector<Placement> placeSubmeshes(int hosts, int devicesPerHost,
                                      std::span<const Submesh> shapes);

} // namespace shardlens
