// SPDX-License-Identifier: Apache-2.0
// Frameworks merge dimensions before a kernel and split them after it: [s, b, h] becomes [s*b, h]
// for a matrix product, [b, heads, s, d] becomes [b*heads, s, d] for a batched one. In the merged
// tensor only the major dimension can be cut in whole blocks, so that heads could not be split over
// devices although nothing in the computation forbids it. This pass carries the merges past the ops
// that work just as well on the dimensions apart, until the split undoes them.
#pragma once

#include "core/model/graph.h"

namespace shardlens {

/// The same graph (names, results, outputs) with merging reshapes moved behind transposes,
/// elementwise ops, dropouts, softmaxes, norms, reductions, matrix products, look-ups, splits and
/// slices wherever these need no merged dimension. Every op computes what it did, element by
/// element, in the same row-major order.
Graph withMergedDimsApart(const Graph& graph);

} // namespace shardlens
