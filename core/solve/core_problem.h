// SPDX-License-Identifier: Apache-2.0
// The form of an interval problem that reductions, bound and search work on. Time is a row of
// moments, each with the room it has; a node may use something over several stretches of moments,
// since it may stand for many that were merged into it.
#pragma once

#include "core/solve/interval_problem.h"
#include "core/solve/table.h"

namespace shardlens::solve {

class Monitor;

struct CoreProblem {
    /// Usage over the moments first … last-1, by choice, at least 0. Reduced: the least is 0.
    struct Part {
        std::uint32_t first = 0, last = 0;
        std::vector<double> usage;
    };
    struct Node {
        std::vector<double> cost; ///< infinite forbids; reduced: finite
        std::vector<Part> parts;  ///< disjoint, ascending
    };
    struct Pair {
        Var u = 0, v = 0;         ///< reduced: one at most for two nodes, no node with itself
        std::vector<double> cost; ///< rows of u; infinite forbids; of u = v the diagonal counts
    };
    std::vector<Node> nodes;
    std::vector<Pair> pairs;
    std::vector<double> room; ///< by moment: most usage that fits
    double constant = 0;      ///< cost of what is decided

    std::uint32_t choices(Var v) const { return static_cast<std::uint32_t>(nodes[v].cost.size()); }
    std::vector<std::uint32_t> dims() const {
        std::vector<std::uint32_t> out;
        for (const Node& node : nodes) out.push_back(static_cast<std::uint32_t>(node.cost.size()));
        return out;
    }
};

/// A place in CoreProblem::Node::cost for each node.
using CoreChoices = std::vector<std::uint16_t>;

/// An interval problem as it stands. Moments are the stretches between times at which some node
/// begins or ends.
struct TimedCore {
    CoreProblem problem;
    std::vector<Time> begin; ///< by moment
};
/// @throws Cancelled
TimedCore makeCore(const IntervalProblem& problem, Monitor& monitor);

/// A copy that can be stopped on the way, since problems are large.
/// @throws Cancelled
CoreProblem copyOf(const CoreProblem& problem, Monitor& monitor);

} // namespace shardlens::solve
