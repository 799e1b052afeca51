// SPDX-License-Identifier: Apache-2.0
// Which arguments of a program are its parameters. Lowered programs take everything as arguments:
// what is a weight shows in names, or in how it is read.
#pragma once

#include "core/model/graph.h"

#include <set>
#include <vector>

namespace shardlens::mlir {

/// Indices of the arguments that are parameters, by the rule that mlir_import.h states.
std::set<std::size_t> parameterArguments(const Graph& graph,
                                         const std::vector<TensorId>& arguments);

} // namespace shardlens::mlir
