// SPDX-License-Identifier: Apache-2.0
// Exact, certified solving of the choice problem: min-sum elimination inside a block, (min,+)
// powers along a run, boundary variables for what is shared, a Lagrangian for the limit. Every
// answer carries cost, lower bound and gap; it is optimal only when they meet.
//
// Exactness: when all costs are integers (the caller scales them to a quantum) and sums stay below
// 2^53, results are exact in double arithmetic and independent of the order of elimination.
#pragma once

#include "core/error.h"
#include "core/solve/problem.h"

#include <functional>
#include <stop_token>

namespace shardlens::solve {

enum class Status : std::uint8_t {
    Optimal,    ///< cost == bound
    Feasible,   ///< a valid assignment with a gap
    Infeasible, ///< proven: no assignment has finite cost within the limit
    Cancelled,  ///< stopped before any assignment was found
};

struct Progress {
    double incumbent = kInfinite;
    double bound = -kInfinite;
    double seconds = 0;
    std::string stage; ///< "elimination", "memory prices", …
};

struct Options {
    std::stop_token stop{};
    double deadlineSeconds = kInfinite;
    std::function<void(const Progress&)>
        progress{};                         ///< called from the solving thread, rate-limited
    std::size_t maxTableEntries = 1u << 26; ///< larger elimination tables are not built
    double relativeGap = 1e-4;              ///< with a binding limit, stop at this gap
};

struct Statistics {
    std::size_t variables = 0; ///< after unrolling the ends of runs
    std::size_t eliminated = 0;
    std::size_t largestTable = 0; ///< entries
    int width = 0;                ///< largest number of variables joined in one table, less one
    int pricesTried = 0;          ///< Lagrange multipliers
    double seconds = 0;
    std::string method; ///< how it was proven, for people
};

struct Solution {
    Status status = Status::Cancelled;
    Assignment assignment; ///< empty if none
    double cost = kInfinite;
    double bound = -kInfinite;
    double usage = 0;
    double price =
        0; ///< the Lagrange multiplier of the limit that gave the bound; 0 if it is slack
    Statistics statistics;

    double gap() const; ///< (cost - bound) / |cost|, 0 when they meet, infinity without a solution
};

/// Never throws Cancelled: when stopped or past the deadline it returns the best so far.
/// @throws Error as of validate()
Solution solve(const Problem& problem, const Options& options = {});

/// Min-marginals: for each choice of a node the least cost of a whole assignment that makes it
/// (kInfinite if none), everything else re-optimised. The limit is honoured through `price` per
/// unit of usage (0 = ignored): costs are then of cost + price * usage, less nothing (priced usage
/// is rounded down to the grid on which sums are exact, far below any cost).
struct Marginal {
    std::vector<double> cost;  ///< by choice, of the priced problem
    std::vector<double> usage; ///< by choice: usage of an assignment that attains it
};

/// The problem is too wide to be eliminated: a table would exceed Options::maxTableEntries.
class TooWide : public Error {
public:
    using Error::Error;
};

/// One node (copy `copy` of it). Exact.
/// @throws Error when the node or copy does not exist; TooWide; Cancelled when stopped
Marginal minMarginal(const Problem& problem, NodeId node, std::size_t copy, double price = 0,
                     const Options& options = {});

/// All nodes at once by one backward and one forward sweep over the elimination: costs only, usage
/// left empty. `copyOfRun[r]` picks the copy for the nodes of run r (0 where it is too short).
/// Throws as minMarginal().
std::vector<Marginal> minMarginals(const Problem& problem,
                                   const std::vector<std::size_t>& copyOfRun, double price = 0,
                                   const Options& options = {});

} // namespace shardlens::solve
