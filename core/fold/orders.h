// SPDX-License-Identifier: Apache-2.0
// Orders in which repeats show. Private to core/fold.
#pragma once

#include "core/fold/folding.h"

namespace shardlens::fold_detail {

/// The computing ops that several blocks of one run read, and what only these read: masks and
/// tables that a file computes where its first layer needs them.
std::vector<bool> sharedByBlocks(const Graph& graph, const Folding& folding);

/// The order with the chosen ops moved up to right behind their last operand.
std::vector<OpId> hoisted(const Graph& graph, const std::vector<OpId>& order,
                          const std::vector<bool>& chosen);

/// Every op of the stream as soon as its operands are there, following what was computed last, and
/// what it reads besides right before it. So a weight's gradient stands in its layer, where a
/// depth-first order from the outputs puts it with its optimizer.
std::vector<OpId> eagerOrder(const Graph& graph);

} // namespace shardlens::fold_detail
