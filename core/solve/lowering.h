// SPDX-License-Identifier: Apache-2.0
// From a folded problem to variables and tables. Plain nodes are variables. Of a run, only the
// copies that something outside singles out are unrolled ("full"); the stretches between are
// segments: each is one table, a power of the block's transfer matrix, over the carried nodes
// before and at its end. Short runs, and all runs if asked for, are unrolled throughout.
#pragma once

#include "core/solve/transfer.h"

namespace shardlens::solve {

/// How far runs are unfolded.
enum class Unfold : std::uint8_t {
    Powers,    ///< a segment is one table
    Chains,    ///< each copy of a segment is a table of its own; its carried nodes are variables
    Everything ///< all copies are full
};

/// A node of which one copy must be a variable.
struct Spot {
    NodeId node = 0;
    std::size_t copy = 0;
};

struct Lowered {
    struct Variable {
        NodeId node = 0;
        std::size_t copy = 0;
    };
    enum class Kind : std::uint8_t { Unary, Pair, Diagonal, Segment };
    struct Factor {
        Kind kind = Kind::Unary;
        std::size_t index = 0; ///< node, edge, edge, segment
        Scope scope;           ///< of a segment: shared, before, after; may repeat variables
    };
    /// Copies first … first+count-1 of a run, all hidden but for the carried nodes of the last.
    struct Segment {
        std::size_t run = 0, block = 0, first = 0, count = 0;
        Scope shared, before, after;
    };
    std::vector<Variable> variables;
    std::vector<Factor> factors;
    std::vector<Block> blocks; ///< distinct ones
    std::vector<Segment> segments;

    std::vector<std::uint32_t> dims(const Choices& choices) const;
    /// The variable of a copy of a node, if it has one.
    std::optional<Var> variable(NodeId node, std::size_t copy) const;

    std::vector<std::vector<std::pair<std::size_t, Var>>> byNode; ///< (copy, variable), ascending
};

/// The tables of nodes and edges under some weights. All copies of one have the same table, by
/// which equal work on them is told.
class PlainTables {
public:
    PlainTables(const Problem& problem, Choices& choices, const Weights& weights)
        : m_problem(problem), m_choices(choices), m_weights(weights),
          m_unary(problem.nodes.size()) {}

    /// @param factor  of any kind but Segment
    Values of(const Lowered::Factor& factor);

private:
    const Problem& m_problem;
    Choices& m_choices;
    const Weights& m_weights;
    std::vector<Values> m_unary;
};

/// @param spots  copies that become variables in any case
Lowered lower(const Problem& problem, const Choices& choices, std::span<const Spot> spots,
              Unfold unfold);

} // namespace shardlens::solve
