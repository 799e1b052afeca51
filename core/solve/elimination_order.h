// SPDX-License-Identifier: Apache-2.0
// Orders of elimination for min-sum problems. Greedy: the next variable is the one whose
// elimination makes the smallest table (weighted min-size) or the lightest new edges (weighted
// min-fill); the order with less work wins. Kjaerulff 1990, "Triangulation of graphs"; the weights
// are logarithms of the numbers of choices.
#pragma once

#include "core/solve/table.h"

namespace shardlens::solve {

struct EliminationOrder {
    std::vector<Var> order;
    double work = 0;         ///< sum over the steps of the joint size (additions)
    double largestTable = 0; ///< entries of the largest result of a step
    double entries = 0;      ///< of all results
    int width = 0;           ///< largest number of variables in a result
    bool complete = true;    ///< false: stopped at a step over a limit
};

struct OrderLimits {
    double table = 1e18;                  ///< entries of a result
    std::size_t degree = ~std::size_t{0}; ///< neighbours at elimination
};

/// @param kept  variables that stay (the order does not have them)
EliminationOrder eliminationOrder(Dims dims, std::span<const Scope> scopes,
                                  std::span<const Var> kept, const OrderLimits& limits,
                                  Monitor& monitor);

} // namespace shardlens::solve
