// SPDX-License-Identifier: Apache-2.0
// The best price of the limit on usage. Usage gets a price, the priced problem is solved without
// the limit, and price * limit is taken off again: a lower bound for any price at least 0. The
// price is found on the lower hull of (usage, cost) of the assignments met, whose two points next
// to the limit bracket it (Everett 1963; Handler and Zang 1980).
#pragma once

#include "core/solve/weighted_solver.h"

namespace shardlens::solve {

/// An assignment with its cost and usage.
struct Point {
    Assignment assignment;
    double cost = kInfinite, usage = 0;

    bool known() const { return cost < kInfinite; }
};

class PriceSearch {
public:
    /// @param best  the cheapest point within the limit; read to know when to stop, and improved
    PriceSearch(const Problem& problem, const Options& options, WeightedSolver& solver,
                const Scale& scale, Point& best, Monitor& monitor);

    /// @param over   a point over the limit that is optimal without it; or unknown
    /// @param price  to begin with, if positive
    /// @return false if no assignment keeps the limit
    bool run(Point over, double price);

    double bound() const { return m_bound; } ///< of the cost of any assignment within the limit
    double price() const { return m_price; } ///< that gave the bound
    const Point& over() const { return m_over; }
    const Point& under() const { return m_under; }
    int pricesTried() const { return m_tried; }

private:
    bool closed() const;
    bool findUnder();
    bool findOver();
    bool tryPrice(double price);
    void offer(Point next);
    void raiseBound(double priced, double price);
    Point pointOf(const Assignment& assignment) const;

    const Problem& m_problem;
    const Options& m_options;
    WeightedSolver& m_solver;
    const Scale& m_scale;
    Point& m_best;
    Monitor& m_monitor;
    Point m_over, m_under; ///< the ends of the bracket
    double m_bound = -kInfinite, m_price = 0;
    int m_tried = 0;
};

/// True when a bound proves a cost optimal up to the gap that was asked for.
bool closes(double bound, double cost, const Options& options);

} // namespace shardlens::solve
