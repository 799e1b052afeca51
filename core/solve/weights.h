// SPDX-License-Identifier: Apache-2.0
// What a solve minimises: the problem's own costs, its costs with usage at a price, or its usage
// alone. Also the grid on which sums are exact: costs are multiples of a power of two, prices are
// rounded down to one, so that bounds hold to the last bit whatever the order of summation.
#pragma once

#include "core/solve/problem.h"
#include "core/solve/table.h"

#include <map>

namespace shardlens::solve {

struct Weights {
    std::vector<std::vector<double>> unary; ///< [node][choice]
    bool edgesForbidOnly = false;           ///< edges cost nothing where they allow a pair
    double rounding = 0; ///< most by which a sum may be off; 0 = sums are exact in any order
};

/// How large and how fine the numbers of a problem are.
struct Scale {
    double grid = 0;  ///< power of two that divides all finite costs; 0: their sums are not exact
    double cost = 0;  ///< no sum of finite costs of the unfolded problem is larger in magnitude
    double usage = 0; ///< the same for usage
};
Scale scaleOf(const Problem& problem);

Weights costWeights(const Problem& problem);
/// Cost plus price * usage, the latter rounded down (never up) to a grid that keeps sums exact; not
/// rounded where the costs have no grid.
/// @param price  at least 0, per unit of usage
Weights pricedWeights(const Problem& problem, double price, const Scale& scale);
Weights usageWeights(const Problem& problem);

/// The choices of each node that are not forbidden, and tables over them. All copies of a node have
/// the same; a table is made once for all edges that share a matrix.
class Choices {
public:
    explicit Choices(const Problem& problem);

    /// True if some node has no choice left: nothing is feasible.
    bool none() const { return m_none; }
    const std::vector<std::uint16_t>& of(NodeId node) const { return m_sets[m_set[node]]; }
    std::uint32_t count(NodeId node) const { return static_cast<std::uint32_t>(of(node).size()); }
    /// Equal for nodes with equal choices left.
    std::size_t setOf(NodeId node) const { return m_set[node]; }

    Values unary(NodeId node, const Weights& weights) const;
    /// @param u, v nodes at the rows and columns; forbidOnly as of Weights
    Values pair(const MatrixPtr& matrix, NodeId u, NodeId v, bool forbidOnly);
    Values diagonal(const Matrix& matrix, NodeId node, bool forbidOnly) const;

private:
    bool m_none = false;
    std::vector<std::vector<std::uint16_t>> m_sets; ///< distinct
    std::vector<std::size_t> m_set;                 ///< by node
    struct Key {
        const Matrix* matrix;
        std::size_t rows, cols;
        bool forbidOnly;
        friend auto operator<=>(const Key&, const Key&) = default;
    };
    std::map<Key, Values> m_pairs;
};

} // namespace shardlens::solve
