// SPDX-License-Identifier: Apache-2.0
// Exact min-sum elimination of a core problem whose graph is narrow enough, for unary costs that
// change: the exact value of the dual at given prices, a true minimiser and min-marginals.
#pragma once

#include "core/solve/bucket_tree.h"
#include "core/solve/core_problem.h"

#include <optional>

namespace shardlens::solve {

class CoreElimination {
public:
    /// @return nothing if a solve would visit more table entries than that
    static std::optional<CoreElimination> make(const CoreProblem& problem, double mostWork,
                                               Monitor& monitor);

    double work() const { return m_work; } ///< table entries visited by one solve

    /// Least cost, without the problem's constant; infinite: nothing is feasible.
    /// @param unary  by label, nodes one after the other
    double solve(const std::vector<double>& unary, Monitor& monitor);
    /// After solve(), if finite: a minimiser.
    CoreChoices decode() const;
    /// After solve(): by label, the least cost with that choice.
    std::vector<double> marginals(Monitor& monitor);

private:
    CoreElimination(const CoreProblem& problem, const EliminationOrder& order, Monitor& monitor);

    std::vector<std::uint32_t> m_dims;
    BucketTree m_tree;
    double m_work = 0;
};

} // namespace shardlens::solve
