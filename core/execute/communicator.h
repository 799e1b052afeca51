// SPDX-License-Identifier: Apache-2.0
// How one rank of a mesh talks to the ranks beside it along an axis. Collectives have their usual
// meaning; every rank of the group calls the same one in the same order. Sums are formed in the
// order of coordinates on every rank, so that all ranks hold the same bits afterwards.
#pragma once

#include "core/cluster/cluster.h"
#include "core/execute/array.h"
#include "core/model/factor_rule.h"

#include <functional>

namespace shardlens {

class Communicator {
public:
    virtual ~Communicator() = default;

    virtual const Mesh& mesh() const = 0;
    virtual std::span<const int> coordinates() const = 0; ///< of this rank, by axis
    int coordinate(std::size_t axis) const { return coordinates()[axis]; }

    virtual void allReduce(std::size_t axis, Array& array, ReduceOp reduce) = 0;
    /// The group's arrays joined along a dimension.
    virtual Array allGather(std::size_t axis, const Array& array, std::size_t dim) = 0;
    /// The group's sum, of which each rank keeps its part of a dimension.
    virtual Array reduceScatter(std::size_t axis, const Array& array, std::size_t dim) = 0;
    /// Each rank cuts `split` into parts, one for each of the group, and joins what it gets along
    /// `join`.
    virtual Array allToAll(std::size_t axis, const Array& array, std::size_t split,
                           std::size_t join) = 0;
};

/// Runs the program once a device of the mesh, each on a thread of its own, and returns when all
/// have ended.
/// @throws whatever the first rank to fail has thrown; the others are woken and end
void runInProcess(const Mesh& mesh, const std::function<void(int rank, Communicator&)>& program);

} // namespace shardlens
