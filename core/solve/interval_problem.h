// SPDX-License-Identifier: Apache-2.0
// The choice problem with a resource in use over time: each node is alive over an interval, each of
// its choices uses a quantity while it is, and at every time the sum stays within the limit. This
// is the problem of the ASPLOS/EuroSys 2025 contest on intra-operator parallelism. A type of its
// own, without repeats: copies of a block differ in when they are alive, so that a run of them is
// no power of a matrix. The folded Problem keeps its one limit over everything; unfold() turns it
// into this form.
#pragma once

#include "core/solve/problem.h"

#include <span>

namespace shardlens::solve {

using Time = std::int64_t;

struct Interval {
    Time begin = 0, end = 0; ///< [begin, end); nothing if end is not after begin
    bool empty() const { return end <= begin; }
    friend bool operator==(const Interval&, const Interval&) = default;
};

struct IntervalProblem {
    struct Node {
        Interval alive;
        std::vector<double> cost;  ///< by choice, at least one; kInfinite forbids it
        std::vector<double> usage; ///< by choice, at least 0, finite; empty = none
    };
    /// Rows are choices of u, columns of v. Several may join one pair: they add up. One that joins
    /// a node to itself is read as its diagonal.
    struct Pair {
        NodeId u = 0, v = 0;
        MatrixPtr cost;
    };
    std::string name;
    std::vector<Node> nodes;
    std::vector<Pair> pairs;
    double limit = kInfinite; ///< of the usage at every time
};

using Choice = std::uint16_t;
/// A choice for each node.
using ChoiceList = std::vector<Choice>;

struct IntervalEvaluation {
    double cost = 0; ///< kInfinite if something chosen is forbidden
    double peak = 0; ///< most usage at any time
    Time peakTime = 0;
};
/// Shares nothing with the solver, so that it can judge it.
/// @throws Error when the choices are for another problem
IntervalEvaluation evaluate(const IntervalProblem& problem, std::span<const Choice> choices);

/// @throws Error: sizes that do not match, bad ids, NaN, minus infinity, usage that is negative or
///         not finite
void validate(const IntervalProblem& problem);

/// A folded problem unfolded, copies numbered as by expand(). With a limit every node is alive at
/// the one time there is. Negative usages are raised, and the limit with them.
IntervalProblem unfold(const Problem& problem);

} // namespace shardlens::solve
