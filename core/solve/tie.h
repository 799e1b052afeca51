// SPDX-License-Identifier: Apache-2.0
// Choices tied across instances: all copies of all nodes of a group make the same choice ("one plan
// for all layers"). Tying takes instances together: a group becomes one plain node with the costs
// and usages of all, pairs inside it become costs of its own. What is left is a choice problem
// again, smaller, and its optimum never below the untied one: the difference is the price of the
// tie. Planners that search one layer and repeat it pay that price without seeing it.
#pragma once

#include "core/solve/problem.h"

namespace shardlens::solve {

struct TiedProblem {
    Problem problem;
    std::vector<NodeId> node; ///< by node of the whole problem: which one stands for it

    /// The whole problem's choices from those of the tied one: same cost, same usage.
    Assignment untie(const Problem& whole, const Assignment& tied) const;
};

/// @param groups  disjoint, of nodes with equally many choices
/// @throws Error when a node does not exist or is in two groups, when choices differ in number, or
///         when of a pair carried along a run only one end is tied
TiedProblem tieChoices(const Problem& problem, const std::vector<std::vector<NodeId>>& groups);

} // namespace shardlens::solve
