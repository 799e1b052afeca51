// SPDX-License-Identifier: Apache-2.0
// A graph as a JSON snapshot: compact, versioned and deterministic, so that a session can be opened
// without the file the model came from and equal graphs give equal bytes. Tensor ids are implied:
// results count up in the order of the ops.
#pragma once

#include "core/model/graph.h"

#include <string>
#include <string_view>

namespace shardlens {

/// Writes a graph. Text that is not UTF-8 has its bad bytes replaced by U+FFFD.
std::string graphToJson(const Graph& graph);

/// Reads what graphToJson wrote.
/// @throws InputError saying what is damaged and at which byte or op
Graph graphFromJson(std::string_view json);

} // namespace shardlens
