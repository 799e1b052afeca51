// SPDX-License-Identifier: Apache-2.0
// The order in which the nodes of a graph can be read. Files should list them so; not all do.
#pragma once

#include "core/import/onnx_model.h"

#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

namespace shardlens::onnx {

/// "node 12 'name' (MatMul)".
std::string describe(const Node& node, std::size_t index);

/// Names a graph reads without defining them: what it takes from the graphs around it.
std::unordered_set<std::string_view> freeNames(const GraphData& graph);

/// Indices of `nodes` in an order in which each comes after what it reads; file order where that
/// allows.
/// @param isDefined  names that exist before: inputs, initializers, outer values
/// @param isTaken    names that no node may define again: inputs and initializers of this graph
/// @throws InputError for a name that is defined twice or never, and for a cycle
std::vector<std::size_t> executionOrder(const std::vector<Node>& nodes,
                                        const std::function<bool(std::string_view)>& isDefined,
                                        const std::function<bool(std::string_view)>& isTaken,
                                        const std::string& where);

} // namespace shardlens::onnx
