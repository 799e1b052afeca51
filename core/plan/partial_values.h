// SPDX-License-Identifier: Apache-2.0
// Follows values that are a rank's part of a sum through the program of one device. A
// collective makes them whole; ops that are linear in them hand the part on; anything else that
// reads one computes with a number that is not there.
#pragma once

#include "core/model/graph.h"

#include <string>
#include <vector>

namespace shardlens {

struct PartialFlow {
    /// By tensor: where the partial value arose that it still holds; kNoTensor if it is whole.
    std::vector<TensorId> origin;
    std::vector<std::string> unreduced;   ///< uses of a part as if it were whole
    std::vector<std::string> overReduced; ///< sums of values that every rank has whole
};

/// @param local  one device's program; reductions are its ops of kind Collective
/// @param starts tensors that their op leaves partial
PartialFlow followPartialValues(const Graph& local, const std::vector<TensorId>& starts);

} // namespace shardlens
