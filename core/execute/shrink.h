// SPDX-License-Identifier: Apache-2.0
// Makes a model small enough to be run by reference kernels, keeping its structure: of equal blocks
// a few remain, and sizes go down to small numbers that the mesh divides just as it divides the
// real ones. Which sizes belong together (a width that is heads times head size, a batch that meets
// a sequence) follows from the factor rules.
#pragma once

#include "core/fold/folding.h"

namespace shardlens {

struct ShrinkOptions {
    std::size_t blocks = 2;    ///< instances that remain of each run
    std::int64_t divisor = 1;  ///< product of the mesh's axes
    std::int64_t smallest = 4; ///< sizes do not go below it, except those that already are
};

/// Ops that no kernel can run stay as they are. Where a size cannot be told apart from its
/// neighbours (sizes inside slices, windows, padded images) it keeps its value.
Graph shrink(const Graph& graph, const Folding& folding, const ShrinkOptions& options);

/// Of each run the first `blocks` instances; what the rest of the graph reads from the others it
/// then reads from the last that remains.
Graph withFewerBlocks(const Graph& graph, const Folding& folding, std::size_t blocks);

/// The smallest size that the divisors of `divisor` divide exactly where they divide `size`, not
/// below `smallest` and not above `size`.
std::int64_t shrunkSize(std::int64_t size, std::int64_t divisor, std::int64_t smallest);

} // namespace shardlens
