// SPDX-License-Identifier: Apache-2.0
// Lays the program of one device (local shapes, collectives among its ops) beside the same model
// whole. Ops are told by what they are and where their operands come from, never by name: both
// graphs were written by the same code, so that they differ by collectives, by slices, and by a
// few ops that only a part needs (masks around a look-up in a part of a table).
#pragma once

#include "core/model/graph.h"

#include <string>
#include <vector>

namespace shardlens {

struct TwinAlignment {
    std::vector<OpId> partner;   ///< by op of the whole graph: the local op, or kNoOp
    std::vector<OpId> partnerOf; ///< by op of the local graph: the whole op, or kNoOp
    std::vector<TensorId> image; ///< by tensor of the local graph: of the whole one, or kNoTensor
    std::vector<OpId> localOnly; ///< neither matched nor a collective or slice
    std::vector<std::string> problems; ///< one sentence each
};

/// The whole graph in the form that is planned: collectives that change no shape (of a program of
/// one device) are identities, and it is canonical.
/// @throws InputError if it holds collectives that change shapes: then it is no whole model
Graph wholeForm(const Graph& whole);

/// @param whole,local        canonical
/// @param wholeSource,localSource the graphs as they were read: their inputs and parameters
///        correspond to each other in order
TwinAlignment alignTwins(const Graph& whole, const Graph& local, const Graph& wholeSource,
                         const Graph& localSource);

} // namespace shardlens
