// SPDX-License-Identifier: Apache-2.0
// The canonical graph that is folded and planned: what remains after removing identities, ops whose
// results are all known integers (shape arithmetic), and ops that no output needs.
#pragma once

#include "core/model/graph.h"

namespace shardlens {

/// Keeps names, warnings, bindings and facts. Parameters nobody reads are kept out too.
Graph canonicalise(const Graph& graph);

} // namespace shardlens
