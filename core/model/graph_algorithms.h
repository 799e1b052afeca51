// SPDX-License-Identifier: Apache-2.0
// Graph algorithms, run on Boost.Graph over a view of the model graph. Boost stays inside the .cpp.
#pragma once

#include "core/model/graph.h"

namespace shardlens {

/// Topological order that keeps the ids' order where it can (smallest id first).
std::vector<OpId> topologicalOrder(const Graph& graph);

/// Topological order that depends on structure only, not on ids or names: depth-first post-order
/// from the outputs, operands in port order; sources (ops without operands) come right before their
/// first reader. Ops from which no output is reachable follow at the end, by id.
std::vector<OpId> structuralOrder(const Graph& graph);

/// Ops from which an output is reachable.
std::vector<bool> reachesOutput(const Graph& graph);

/// Tensors that have a gradient in training: floating point, dependent on a Parameter, and on a way
/// of such tensors to an output.
std::vector<bool> needsGradient(const Graph& graph);

} // namespace shardlens
