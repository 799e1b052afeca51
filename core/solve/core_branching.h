// SPDX-License-Identifier: Apache-2.0
// Branch and bound on a small core problem, best bound first. Each open problem is bounded by
// prices, loses what cannot be better, is reduced, and if something is left, split at one node: one
// choice of it, or the others. Runs in slices, so that it can alternate with other work.
#pragma once

#include "core/solve/price_bound.h"
#include "core/solve/reduction.h"

#include <memory>
#include <utility>

namespace shardlens::solve {

class CoreBranching {
public:
    /// @param problem  stays where it is; reduced
    /// @param bound, prices  of the problem
    CoreBranching(const CoreProblem& problem, double bound, const std::vector<double>& prices,
                  std::uint64_t seed, Monitor& monitor);

    /// Works until about so many table entries have been visited, or nothing is open.
    /// @param improvement  by how much a better answer is better at least (1: integer costs), less
    ///                     what rounding can do
    /// @throws Cancelled, after which it may go on
    void run(double work, double incumbent, double improvement, Monitor& monitor);

    double
    bound() const; ///< of the problem; infinite: there is no better answer than the incumbent
    std::size_t branches() const { return m_branches; }
    /// Better answers, each better than those before.
    std::vector<CoreChoices> takeFound() { return std::exchange(m_found, {}); }

private:
    struct Chain { ///< the way back to the problem
        Reduction reduction;
        std::shared_ptr<const Chain> outer;
    };
    struct Open {
        std::shared_ptr<const CoreProblem> problem;
        std::size_t entries = 0; ///< of the problem
        std::shared_ptr<const Chain> outer;
        std::vector<double> prices;
        double bound = 0;
        int depth = 0;
    };

    void process(Open open, Monitor& monitor);
    bool bounded(PriceBound& bound, const CoreGraph& graph, std::size_t passes, Monitor& monitor);
    void lookForAnswer(const CoreProblem& problem, const std::shared_ptr<const Chain>& chain,
                       const PriceBound& bound, Monitor& monitor);
    void split(const CoreProblem& problem, const std::shared_ptr<const Chain>& chain,
               const PriceBound& bound, int depth, Monitor& monitor);
    void push(Open open);
    Open pop();
    void offer(CoreChoices choices, const std::shared_ptr<const Chain>& chain);
    double cutoff() const { return m_incumbent - m_improvement; }

    const CoreGraph m_whole;
    std::vector<Open> m_open; ///< a heap by bound
    std::vector<CoreChoices> m_found;
    double m_incumbent, m_improvement = 0, m_work = 0;
    double m_current; ///< bound of the problem at work
    std::size_t m_branches = 0, m_entries = 0;
    std::uint64_t m_seed;
};

} // namespace shardlens::solve
