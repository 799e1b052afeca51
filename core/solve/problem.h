// SPDX-License-Identifier: Apache-2.0
// The choice problem: nodes with finite choices and a unary cost, pairs with a cost matrix, one
// additive resource with a limit, and repeats. It knows nothing of models. It is the pairwise form
// of Alpa's ILP and of XLA's auto-sharding, so their problems load into it too.
//
// Repeats are part of the problem, not of the solver: a run stands for `count` copies of its body
// nodes, and an edge says which copies it joins. expand() writes the unfolded problem out.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace shardlens::solve {

using NodeId = std::uint32_t;
inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Row-major cost matrix; shared by all edges that are equal. kInfinite forbids a pair.
struct Matrix {
    std::uint32_t rows = 0, cols = 0;
    std::vector<double> values;
    double at(std::size_t r, std::size_t c) const { return values[r * cols + c]; }
};
using MatrixPtr = std::shared_ptr<const Matrix>;

struct Node {
    std::vector<double> cost;  ///< one entry a choice; kInfinite forbids it; at least one choice
    std::vector<double> usage; ///< resource used by each choice; empty = none
    int run = -1;              ///< the run it belongs to, -1 for a plain node
};

/// Which copies of an end node an edge touches. A plain node has one copy: use Each.
enum class At : std::uint8_t {
    Each,  ///< every copy (of the same index at the other end, or a plain node)
    First, ///< the first copy of the run
    Last,  ///< the last copy of the run
};

/// A pair cost: matrix rows are choices of `u`, columns choices of `v`.
///   plain-plain, or Each-Each inside one run: copy i with copy i;
///   carry: copy i of u with copy i+1 of v, same run;
///   plain u and v in a run, Each: u with every copy of v (a tensor shared across blocks);
///   First/Last: that copy only (entry, exit, or Last-First between two runs);
///   First/Last with Each: that one copy with every copy of the other end (an encoder's output);
///   Each-Each between two runs of equal count: copy i with copy i (such runs are unrolled).
/// A self edge (u is v, same copy) is read as its diagonal.
struct Edge {
    NodeId u = 0, v = 0;
    MatrixPtr cost;
    At atU = At::Each, atV = At::Each;
    bool carry = false;
};

struct Run {
    std::vector<NodeId> body; ///< its nodes, in order; contiguous ids are not required
    std::size_t count = 1;    ///< copies, at least 1
};

struct Problem {
    std::vector<Node> nodes;
    std::vector<Edge> edges;
    std::vector<Run> runs;
    double limit = kInfinite; ///< sum of usage over all copies stays at or below this

    std::size_t copies(NodeId node) const {
        const int run = nodes[node].run;
        return run < 0 ? 1 : runs[static_cast<std::size_t>(run)].count;
    }
};

/// The most copies of a run and the most choices of a node that validate() lets through.
inline constexpr std::size_t kMostCopies = 1'000'000, kMostChoices = 65'535;

/// choice[node][copy]
struct Assignment {
    std::vector<std::vector<std::uint16_t>> choice;
    friend bool operator==(const Assignment&, const Assignment&) = default;
};

struct Evaluation {
    double cost = 0;
    double usage = 0;
};
/// Cost and usage of an assignment, summed over the unfolded problem; needs no solver.
Evaluation evaluate(const Problem& problem, const Assignment& assignment);

/// The same problem with every copy its own node and no runs.
struct Expanded {
    Problem problem;
    std::vector<std::vector<NodeId>> node; ///< [folded node][copy] -> node of problem
};
Expanded expand(const Problem& problem);

/// @throws Error (our caller's bug or a hostile file): sizes that do not match, bad ids, NaN, minus
///         infinity, usage that is not finite
void validate(const Problem& problem);

} // namespace shardlens::solve
