// SPDX-License-Identifier: Apache-2.0
// Branch and bound for the gap that the price of the limit leaves. Best bound first, on the
// unfolded problem; each node of the tree is a set of choices struck out, bounded by its own best
// price.
#pragma once

#include "core/solve/price_search.h"

#include <queue>

namespace shardlens::solve {

class Branching {
public:
    /// @param best  the cheapest point of the folded problem within the limit; improved
    Branching(const Problem& folded, const Options& options, const Scale& scale, Point& best,
              Monitor& monitor);

    /// Runs until the gap is closed or the effort allowed is spent. Does nothing on problems whose
    /// unfolded form is too large to be solved again and again.
    /// @param bound, price  of the whole problem
    void run(double bound, double price);

    double bound() const; ///< of the whole problem; also after Cancelled
    int nodes() const { return m_nodes; }
    int pricesTried() const { return m_prices; }

private:
    struct Open {
        double bound = -kInfinite, price = 0;
        std::vector<std::vector<char>> gone; ///< [unfolded node][choice] struck out
    };
    struct ByBound {
        bool operator()(const Open& a, const Open& b) const { return a.bound > b.bound; }
    };

    void process(Open node);
    Problem restricted(const Open& node) const;
    void strikeOut(Open& node, const Problem& problem, WeightedSolver& solver,
                   const PriceSearch& search);
    void branch(Open node, const Problem& problem, const PriceSearch& search);
    Point unfold(const Point& point) const;
    Point fold(const Point& point) const;
    void leave(double bound) { m_left = std::min(m_left, bound); }

    const Problem& m_folded;
    const Options& m_options;
    const Scale& m_scale;
    Point& m_best;
    Monitor& m_monitor;
    Expanded m_unfolded;
    Point m_bestUnfolded;
    std::priority_queue<Open, std::vector<Open>, ByBound> m_open;
    double m_left = kInfinite;    ///< least bound of nodes that were closed or given up
    double m_current = kInfinite; ///< bound of the node at work
    double m_effort = 0;
    int m_nodes = 0, m_prices = 0;
};

} // namespace shardlens::solve
