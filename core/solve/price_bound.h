// SPDX-License-Identifier: Apache-2.0
// A certified lower bound of a core problem. Usage at each moment has a price (Lagrange multiplier,
// at least 0); for any prices, the least cost with usage at these prices, less the price of all
// room, is a bound, and so is any bound of that least cost. That one comes from sequential
// tree-reweighted message passing (Kolmogorov 2006, "Convergent tree-reweighted message passing for
// energy minimization"), or is exact where the graph is narrow enough for elimination. Prices
// follow the usage of the choices that the messages favour, averaged as in the volume algorithm
// (Barahona and Anbil 2000).
#pragma once

#include "core/solve/core_elimination.h"
#include "core/solve/core_graph.h"

namespace shardlens::solve {

/// Work of an exact pass that is worth while, in passes of the approximate kind.
constexpr double kExactWork = 20;

class PriceBound {
public:
    explicit PriceBound(const CoreGraph& graph);

    /// From now on passes are exact, if that takes no more work than so many table entries.
    void makeExact(const CoreProblem& problem, double mostWork, Monitor& monitor);
    bool exact() const { return m_exact.has_value(); }
    double work() const; ///< table entries visited by a pass

    /// One pass forward and one backward under the current prices.
    /// @return a lower bound; infinite: nothing is feasible
    /// @throws Cancelled
    double pass(Monitor& monitor);

    void setPrices(std::vector<double> prices) {
        m_prices = std::move(prices);
        m_bestPrices = m_prices;
        reprice();
    }
    /// Back to the prices of the best bound.
    void restoreBest() {
        m_prices = m_bestPrices;
        reprice();
    }

    /// Moves the prices by the usage that the last pass favoured.
    /// @param target  cost that the bound is believed able to reach
    void movePrices(double target);

    /// The problem without the choices and pairs of choices that, by the last pass, no assignment
    /// cheaper than the cutoff makes: their costs become infinite ("reduced cost fixing").
    /// @param problem  what the graph was made from
    /// @param struck   choices and pairs struck out, added to
    CoreProblem tighten(const CoreProblem& problem, double cutoff, std::size_t& struck,
                        Monitor& monitor);

    double bound() const { return m_best; } ///< the best so far
    const std::vector<double>& prices() const { return m_prices; }
    /// Prices that gave the best bound.
    const std::vector<double>& bestPrices() const { return m_bestPrices; }
    /// Cost and priced usage by label.
    const std::vector<double>& priced() const { return m_priced; }
    const std::vector<double>& messages() const { return m_messages; }
    /// After tighten(): how much each choice costs more than the best of the node, a bound of it.
    std::vector<double> reduced(Var v) const;
    /// The choices that the last pass favoured, each for itself.
    const CoreChoices& favoured() const { return m_favoured; }

private:
    double sweepBoth(Monitor& monitor);
    double sweep(bool forward, Monitor& monitor);
    double visit(Var v, bool forward);
    void reprice();
    std::vector<double> withMessages(Var v) const;
    void reducedPair(const CoreGraph::Link& link, const std::vector<double>& own,
                     std::vector<double>& out) const;

    const CoreGraph& m_graph;
    std::optional<CoreElimination> m_exact;
    std::vector<double> m_marginals; ///< of the last tightening, where exact
    std::vector<double> m_prices, m_bestPrices, m_center, m_priced, m_messages;
    std::vector<double> m_average; ///< usage, over passes
    CoreChoices m_favoured;
    std::vector<double> m_sum, m_base; ///< of a node
    std::vector<std::uint32_t> m_offsets;
    double m_last = 0, m_best;
    double m_step = 0.1;
    int m_idle = 0;
    bool m_started = false;
};

} // namespace shardlens::solve
