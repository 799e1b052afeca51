// SPDX-License-Identifier: Apache-2.0
// A model as a chain of units: the smallest pieces that a pipeline stage may begin or end with. A
// block of a run is a unit; what lies outside of runs is cut where a single activation crosses.
// Equal units have equal kinds, so that whatever is computed of a unit is computed once a kind.
#pragma once

#include "core/fold/folding.h"
#include "core/model/graph.h"

#include <optional>
#include <string>
#include <vector>

namespace shardlens {

struct StageUnit {
    std::vector<OpId> ops; ///< in order; sources it reads (parameters, inputs) come first
    /// What it reads of the unit before (one result of an op), and what else it reads of others.
    std::vector<TensorId> enters, passes;
    std::size_t kind = 0;
    int run = -1;     ///< of the folding; -1 outside
    std::string name; ///< of its first op that is no source
};

/// A parameter that several units read (tied embeddings): each has a copy of its own.
struct TiedParameter {
    OpId op = kNoOp;
    std::vector<std::size_t> units; ///< ascending
};

struct StageUnits {
    std::vector<StageUnit> units;
    std::size_t kinds = 0;
    /// Whole bytes that cross the cut before each unit, forward; of it what has a gradient, which
    /// crosses back. Nothing crosses before unit 0.
    std::vector<double> crossingBytes, gradientBytes;
    std::vector<TiedParameter> tied;
};

/// @throws PlanError for graphs that hold their own backward pass
StageUnits cutIntoUnits(const Graph& graph, const Folding& folding);

/// Of a block of a run, counted from 0, if the model has no other run: none for other units.
std::optional<int> layerNumber(const StageUnits& units, int unit);
/// "layer 41", or the op that a unit begins with which has no such number.
std::string unitName(const StageUnits& units, int unit);

} // namespace shardlens
