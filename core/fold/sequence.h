// SPDX-License-Identifier: Apache-2.0
// A graph as a string: its computing ops in some topological order, each with a signature. Private
// to core/fold.
#pragma once

#include "core/model/graph.h"

#include <cstdint>
#include <vector>

namespace shardlens::fold_detail {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value);
std::uint64_t mix(std::uint64_t hash, const TensorSpec& spec);

inline bool isSource(const Op& op) {
    return op.inputs.empty();
}

/// What an op is by itself: no names, no wiring.
std::uint64_t ownSignature(const Graph& graph, OpId id);

/// The computing ops in order, and where each is.
struct Sequence {
    const Graph* graph = nullptr;
    std::vector<OpId> ops;
    std::vector<std::size_t> position;    ///< by OpId; kNowhere for sources
    std::vector<std::uint64_t> signature; ///< by OpId
    static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
};

Sequence makeSequence(const Graph& graph, const std::vector<OpId>& order);

} // namespace shardlens::fold_detail
