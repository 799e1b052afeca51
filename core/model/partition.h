// SPDX-License-Identifier: Apache-2.0
// What a file says of how its graph is, or was, spread over devices: XLA's dumps, printed FX graphs
// of tensor-parallel programs and sharding dumps carry it. A graph is either global (whole shapes,
// with shardings noted beside them) or local (one device's program: local shapes, and collectives
// as ops of kind Collective).
#pragma once

#include "core/model/tensor.h"

#include <map>
#include <string>
#include <vector>

namespace shardlens {

struct PartitionAxis {
    std::string name;
    std::int64_t size = 1;
    friend bool operator==(const PartitionAxis&, const PartitionAxis&) = default;
};

/// The layout of one tensor.
struct TensorSharding {
    /// Per dimension the axes (index into Partition::mesh) that cut it, major first.
    std::vector<std::vector<std::uint8_t>> dims;
    std::vector<std::uint8_t> partial; ///< axes over which the value is a partial sum
    friend bool operator==(const TensorSharding&, const TensorSharding&) = default;
};

struct Partition {
    std::string madeBy;       ///< "XLA SPMD", "Megatron (FX)", "Shardy", "MaxText"
    std::int64_t devices = 1; ///< what the file says; the mesh's product where both are known
    bool local = false;       ///< the graph's shapes are those of one device
    std::vector<PartitionAxis> mesh; ///< empty if the file names no axes and none can be derived
    std::map<TensorId, TensorSharding> shardings; ///< of the tensors that the file speaks of
    friend bool operator==(const Partition&, const Partition&) = default;
};

} // namespace shardlens
