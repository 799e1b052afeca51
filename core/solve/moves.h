// SPDX-License-Identifier: Apache-2.0
// An assignment that can be changed one copy of one node at a time, with cost and usage kept up to
// date, and a first use of it: mixing a cheap assignment into a frugal one along the runs while a
// limit holds.
#pragma once

#include "core/solve/problem.h"

namespace shardlens::solve {

class Monitor;

class Moves {
public:
    Moves(const Problem& problem, Assignment start);

    const Assignment& assignment() const { return m_assignment; }
    /// Up to rounding where costs are not integers.
    double cost() const { return m_forbidden > 0 ? kInfinite : m_cost; }
    double usage() const { return m_usage; }

    struct Change {
        double cost = 0, usage = 0;
        int forbidden = 0; ///< change in the number of forbidden choices and pairs

        /// Takes one cost out and another in.
        void swap(double before, double after) {
            before == kInfinite ? void(--forbidden) : void(cost -= before);
            after == kInfinite ? void(++forbidden) : void(cost += after);
        }
        Change& operator+=(const Change& other) {
            cost += other.cost;
            usage += other.usage;
            forbidden += other.forbidden;
            return *this;
        }
    };
    Change change(NodeId node, std::size_t copy, std::uint16_t choice) const;
    void set(NodeId node, std::size_t copy, std::uint16_t choice);

private:
    struct Link {
        std::size_t edge;
        bool atU;
    };
    const Problem& m_problem;
    Assignment m_assignment;
    std::vector<std::vector<Link>> m_links; ///< by node
    double m_cost = 0, m_usage = 0;
    long m_forbidden = 0;
};

/// The best mixture found of a feasible assignment and a cheaper one over the limit: copies of runs
/// up to a cut from one, the rest from the other. Never worse than `frugal`.
Assignment mix(const Problem& problem, const Assignment& frugal, const Assignment& cheap,
               Monitor& monitor);

} // namespace shardlens::solve
