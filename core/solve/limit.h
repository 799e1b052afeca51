// SPDX-License-Identifier: Apache-2.0
// The limit on usage, by Lagrangian relaxation: usage gets a price, the priced problem is solved
// without the limit, and price * limit is taken off again: a lower bound for any price at least 0.
// The best price is found on the lower hull of (usage, cost) of the assignments met (Everett 1963;
// Handler and Zang 1980); the assignments on both sides of the limit are then mixed and improved.
#pragma once

#include "core/solve/moves.h"
#include "core/solve/weighted_solver.h"

namespace shardlens::solve {

/// @param free  the answer without the limit, whose assignment goes over it; or none
/// @param solution  cost, bound, assignment, usage, price and the part of statistics about prices
///        are written; the best so far when Cancelled is thrown
void solveWithLimit(const Problem& problem, const Options& options, WeightedSolver& solver,
                    const WideSolver::Answer& free, Solution& solution, Monitor& monitor);

} // namespace shardlens::solve
