// SPDX-License-Identifier: Apache-2.0
// Solves interval problems: exact reductions, a certified bound from prices on usage over time, a
// search that re-optimises windows under these prices, and again reductions with all that cannot
// be part of a better answer struck out, until bound and answer meet or time is up. Anytime: the
// first answer comes within a few rounds. Without a deadline the outcome is determined by problem,
// seed and number of threads.
#pragma once

#include "core/solve/interval_problem.h"
#include "core/solve/solver.h"

namespace shardlens::solve {

struct IntervalStatistics;

struct IntervalOptions {
    std::stop_token stop{};
    double deadlineSeconds = kInfinite;
    std::function<void(const Progress&)> progress{}; ///< from the calling thread, rate-limited
    /// Called once, from the calling thread, when the first reductions are done.
    std::function<void(const IntervalStatistics&)> reduced{};
    unsigned threads = 1;
    std::uint64_t seed = 1;
    double relativeGap = 0; ///< stop at this gap
    ChoiceList start{};     ///< an answer to begin with; ignored unless it fits the problem
};

struct IntervalStatistics {
    std::size_t nodes = 0, choices = 0, pairs = 0;                          ///< given
    std::size_t coreNodes = 0, coreChoices = 0, corePairs = 0, moments = 0; ///< after reduction
    std::size_t lastNodes = 0; ///< left in the end, with what cannot be better struck out
    std::size_t merged = 0, eliminated = 0, separable = 0, forbidden = 0, dominated = 0;
    int levels = 0;              ///< reductions
    std::size_t passes = 0;      ///< of the bound
    std::size_t windows = 0;     ///< re-optimised
    std::size_t branches = 0;    ///< problems of the branch and bound
    std::size_t bytes = 0;       ///< held at most by problem and solver, an estimate
    std::size_t largestStep = 0; ///< most elementary steps between two looks at the stop token
    double seconds = 0;
    std::string method; ///< how it was proven, for people
};

struct IntervalSolution {
    Status status = Status::Cancelled;
    ChoiceList choices; ///< empty if none
    double cost = kInfinite;
    double bound = -kInfinite;
    double peak = 0; ///< of usage
    double firstFeasibleSeconds = kInfinite;
    std::vector<Progress> trajectory; ///< each better answer, and marked rises of the bound
    std::string explanation;          ///< of Infeasible: when, and which nodes
    IntervalStatistics statistics;

    double gap() const; ///< (cost - bound) / |cost|, 0 when they meet, infinity without a solution
};

/// Never throws Cancelled: when stopped or past the deadline it returns the best so far.
/// @throws Error as of validate()
IntervalSolution solve(const IntervalProblem& problem, const IntervalOptions& options = {});

} // namespace shardlens::solve
