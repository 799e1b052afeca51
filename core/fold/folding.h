// SPDX-License-Identifier: Apache-2.0
// Repeated substructure of a graph. A run is a stretch of `count` blocks of `period` ops each that
// are proven equal: an ordered bijection maps op i of a block to op i of the next, with equal
// kinds, attributes, shapes and dtypes, and with every operand coming from the same place (inside
// the block, from the block before, or from one tensor shared by all blocks). Names never matter.
#pragma once

#include "core/model/graph.h"

#include <cstdint>
#include <stop_token>
#include <vector>

namespace shardlens {

/// A run of equal blocks: positions first .. first + period*count - 1 of Folding::order. With a
/// count of 1 it repeats nothing: a section of the page (sections.h).
struct FoldRun {
    std::size_t first = 0;
    std::size_t period = 0;
    std::size_t count = 0;
    std::uint64_t hash = 0; ///< structural hash of one block (kinds, attributes, shapes, wiring)
    /// The blocks are equal inside, but each also reads its own, equal ops outside the run, or is
    /// read from there: a forward layer and its backward layer. They are no power of one block.
    bool linked = false;

    std::size_t end() const { return first + period * count; }
    std::size_t position(std::size_t instance, std::size_t local) const {
        return first + instance * period + local;
    }
};

using ClassId = std::uint32_t;

/// Equal ops at one place of a run's block, or a single op outside every run.
struct OpClass {
    OpId representative = kNoOp; ///< the member in the first instance
    int run = -1;                ///< index into Folding::runs, -1 outside
    std::size_t local = 0;       ///< place inside the block
    std::size_t multiplicity = 1;
};

struct Folding {
    std::vector<OpId> order;               ///< a topological order of all ops, blocks contiguous
    std::vector<std::size_t> position;     ///< inverse of order
    std::vector<FoldRun> runs;             ///< ascending, disjoint
    std::vector<OpClass> classes;          ///< in order of first appearance
    std::vector<ClassId> classOf;          ///< by OpId
    std::vector<std::uint32_t> instanceOf; ///< by OpId; which repeat of its run, 0 outside

    OpId member(ClassId id, std::size_t instance) const;
};

/// Finds the runs. Deterministic; independent of names. O(ops * small constant).
/// @throws Cancelled
Folding fold(const Graph& graph, std::stop_token stop = {});

/// Classes, `classOf` and `instanceOf` anew, from the order and the runs.
void assignClasses(Folding& folding);

/// A folding without runs: every op its own class (for tests and for "unfolded").
Folding trivialFolding(const Graph& graph);

} // namespace shardlens
