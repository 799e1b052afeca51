// SPDX-License-Identifier: Apache-2.0
// For problems too wide for elimination: a graph of unary and pair tables, a certified lower bound
// by sequential tree-reweighted message passing (Kolmogorov 2006, "Convergent tree-reweighted
// message passing for energy minimization"), and good assignments by re-optimising random forests
// exactly while the rest is held fixed.
#pragma once

#include "core/solve/monitor.h"
#include "core/solve/table.h"

#include <map>

namespace shardlens::solve {

class PairGraph {
public:
    explicit PairGraph(std::vector<std::uint32_t> dims);

    void addUnary(Var v, const double* costs);
    /// @param costs rows of u, columns of v; several for one pair add up
    void addPair(Var u, Var v, const Values& costs);

    std::size_t variables() const { return m_dims.size(); }

    /// One forward and one backward pass; messages are kept between calls, also when costs change.
    /// @return a lower bound of the optimum up to rounding; infinite: nothing is feasible
    double improveBound(Monitor& monitor);
    /// After improveBound(): no assignment with that value of the variable costs less than this, up
    /// to rounding. The messages into v, summed, are the min-marginals of the trees through v when
    /// the backward pass comes to it: above the bound of the forward pass by their excess.
    double boundWith(Var v, std::uint32_t value) const {
        return m_forwardBound + m_excess[v][value];
    }
    /// Rounds the messages to an assignment, variable by variable.
    std::vector<std::uint32_t> round() const;

    /// Cost of an assignment; infinite if it has a forbidden value or pair.
    double cost(const std::vector<std::uint32_t>& value) const;
    /// Re-optimises random induced forests until `patience` of them in a row bring nothing. When
    /// stopped, `value` is the best so far.
    void improve(std::vector<std::uint32_t>& value, int patience, Monitor& monitor);

    /// Takes the messages of a graph of the same shape with other costs.
    void startFrom(PairGraph& other);
    /// No sum of finite costs is larger in magnitude.
    double magnitude() const;

private:
    struct Link { ///< a pair as one of its ends sees it
        Var to = 0;
        std::size_t pair = 0;
        bool first = false; ///< this end is the pair's u
    };
    struct Pair {
        Var u = 0, v = 0;
        Values costs, transposed;     ///< [u][v], [v][u]; shared by pairs that have equal ones
        std::vector<double> toU, toV; ///< messages
    };
    /// Rows by this end's value, columns by the other's.
    const double* rowsFrom(const Link& link) const {
        const Pair& pair = m_pairs[link.pair];
        return (link.first ? pair.costs : pair.transposed).get();
    }
    std::vector<double>& messageTo(const Link& link) { ///< to the other end
        return link.first ? m_pairs[link.pair].toV : m_pairs[link.pair].toU;
    }
    const std::vector<double>& messageFrom(const Link& link) const { ///< from the other end
        return link.first ? m_pairs[link.pair].toU : m_pairs[link.pair].toV;
    }
    Values transposed(const Values& costs, std::size_t rows, std::size_t cols);
    double pass(bool forward, Monitor& monitor);
    double visit(Var v, bool forward);
    void minimise(double* out, std::size_t width, const double* base, std::size_t count,
                  const double* rows) const;
    bool improveForest(std::vector<std::uint32_t>& value, double forbidden, Monitor& monitor);
    void growForest(std::vector<Var>& order, std::vector<char>& inside);
    std::uint64_t random();

    std::vector<std::uint32_t> m_dims;
    std::vector<std::vector<double>> m_unary;
    std::vector<std::vector<Link>> m_links;
    std::vector<Pair> m_pairs;
    struct Turned {
        Values straight, turned;
    };
    std::map<std::pair<const double*, std::size_t>, Turned> m_turned; ///< by table and its rows
    double m_forwardBound = 0;
    std::vector<std::vector<double>> m_excess; ///< [variable][value], of the last backward pass
    std::uint64_t m_seed = 0x9E3779B97F4A7C15ull;
};

} // namespace shardlens::solve
