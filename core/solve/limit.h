// SPDX-License-Identifier: Apache-2.0
// Solving under the limit on usage: the best price gives a bound and assignments on both sides of
// the limit; these are mixed and improved; what gap is left is closed by branch and bound on the
// unfolded problem where that is small enough. There, choices are fixed by their priced
// min-marginals: one whose bound is no better than the best assignment can go.
#pragma once

#include "core/solve/price_search.h"

namespace shardlens::solve {

/// @param solver    of the problem
/// @param over      the optimum without the limit, which does not keep it
/// @param solution  written as far as it is known, also when Cancelled is thrown
void solveWithLimit(const Problem& problem, const Options& options, WeightedSolver& solver,
                    Point over, Solution& solution, Monitor& monitor);

} // namespace shardlens::solve
