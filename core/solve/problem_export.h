// SPDX-License-Identifier: Apache-2.0
// Writes a choice problem, unfolded, in the formats of general solvers: weighted constraint
// satisfaction (toulbar2) and a mixed integer program (CBC, HiGHS, Gurobi, …). Variables are
// numbered as by expand().
#pragma once

#include "core/solve/interval_problem.h"

#include <iosfwd>

namespace shardlens::solve {

/// The .wcsp format of toulbar2. All costs must be integers; the limit is not written, since the
/// format has no sums. Negative costs are shifted.
/// @return what to add to a cost of the written problem to get one of ours
/// @throws Error when a cost is not an integer or costs are too large for 64 bits
double writeWcsp(std::ostream& out, const Problem& problem);

/// CPLEX LP format, in the formulation of Alpa (Zheng et al. 2022, section 4.2): a binary s_i_c for
/// choice c of node i, a continuous e_k_a_b for the pair of choices of edge k, tied by row and
/// column sums. Forbidden choices and pairs have no variable. A finite limit is one more row for
/// each largest set of nodes that are alive together.
void writeLp(std::ostream& out, const Problem& problem);

/// The same of problems with usage over time.
double writeWcsp(std::ostream& out, const IntervalProblem& problem);
void writeLp(std::ostream& out, const IntervalProblem& problem);

} // namespace shardlens::solve
