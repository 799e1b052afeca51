// SPDX-License-Identifier: Apache-2.0
// One copy of a run as a transfer matrix. A copy sees the choices of the carried nodes of the copy
// before (its entry), chooses its own carried nodes (its exit), and sees the choices of nodes that
// all copies share. T(shared, entry, exit) is the least cost of the copy: its unary and inner
// costs, and the edges from the entry and from the shared nodes, minimised over its other nodes. n
// copies in a row are T to the n-th power in the (min, +) semiring, by repeated squaring; nothing
// ties the copies to each other's choices, and each can be decoded.
//
// Powers settle: from some power on, the next ones differ by a constant alone, the cost of the best
// cycle of layers (the cyclicity theorem of max-plus algebra; Baccelli, Cohen, Olsder, Quadrat
// 1992, "Synchronization and Linearity", theorem 3.109). This is looked for at each squaring, for
// each joint choice of the shared nodes by itself; what has settled is not multiplied again, so
// that a thousand layers cost little more than sixteen.
#pragma once

#include "core/solve/bucket_tree.h"
#include "core/solve/weights.h"

#include <map>
#include <unordered_map>

namespace shardlens::solve {

/// What one copy is made of. Local variables: the body in order, then the entry, then the shared.
struct Block {
    struct Edge {
        Var u = 0, v = 0; ///< at the rows and columns; equal for a self edge
        MatrixPtr cost;
        friend bool operator==(const Edge&, const Edge&) = default;
    };
    std::vector<NodeId> body;
    std::vector<Var> carried; ///< places in the body that the next copy sees
    std::vector<NodeId> shared;
    std::vector<Edge> edges;

    Var entry(std::size_t i) const { return static_cast<Var>(body.size() + i); }
    Var sharedVar(std::size_t i) const {
        return static_cast<Var>(body.size() + carried.size() + i);
    }
};

/// True if the two have the same transfer matrix: equal nodes at equal places, the same matrices.
bool sameBlock(const Problem& problem, const Choices& choices, const Block& a, const Block& b);

class Transfer {
public:
    Transfer(const Choices& choices, Block block, Monitor& monitor);

    const Block& block() const { return m_block; }
    std::size_t states() const { return m_states; }       ///< joint choices of the carried nodes
    std::size_t sharedStates() const { return m_shared; } ///< joint choices of the shared nodes
    const EliminationOrder& order() const { return m_order; }
    /// Entries of T, and the additions of one product, as estimates.
    double entries() const { return m_entries; }
    double productWork() const { return m_entries * m_statesEstimate; }

    /// Makes T for these weights; powers made before are forgotten.
    void compute(Choices& choices, const Weights& weights, Monitor& monitor);
    /// T to the n-th: [shared][entry][exit], n at least 1.
    Values power(std::size_t n, Monitor& monitor);

    /// The exits of copies 1 … n-1 on the best way through n copies.
    std::vector<std::size_t> path(std::size_t shared, std::size_t entry, std::size_t exit,
                                  std::size_t n) const;
    /// The best choices (places in Choices::of) of a copy's body nodes, carried ones included.
    const std::vector<std::uint32_t>& interior(std::size_t shared, std::size_t entry,
                                               std::size_t exit);

private:
    /// A power at one joint choice of the shared nodes: values + constant, [entry][exit].
    struct Slice {
        Values values;
        double constant = 0;
    };
    using Power = std::vector<Slice>; ///< by joint choice of the shared nodes
    struct Product {
        std::vector<std::size_t> bits; ///< exponents of the squares multiplied, ascending
        std::vector<Power> partial;    ///< after each
    };
    /// T to the 2^(exponent+1) is T to the 2^exponent plus the step.
    struct Settled {
        std::size_t exponent = ~std::size_t{0};
        double step = 0;
    };
    const Power& square(std::size_t k, Monitor& monitor);
    Power squared(std::size_t k, Monitor& monitor);
    Power times(const Power& a, std::size_t highest, std::size_t k, Monitor& monitor);
    Slice multiply(const Slice& a, const Slice& b, Monitor& monitor) const;
    /// True if b is a plus a constant; that goes into `step`.
    bool differByConstant(const Slice& a, const Slice& b, double& step) const;
    Values whole(const Power& power) const;
    std::size_t between(const Slice& a, const Slice& b, std::size_t entry, std::size_t exit) const;
    void splitSquare(std::size_t k, std::size_t shared, std::size_t entry, std::size_t exit,
                     std::span<std::size_t> out) const;
    /// Sets the kept local variables from joint states.
    void setKept(std::size_t shared, std::size_t entry, std::size_t exit);

    Block m_block;
    std::vector<std::uint32_t> m_dims;
    EliminationOrder m_order;
    std::size_t m_states = 1, m_shared = 1;
    double m_entries = 1, m_statesEstimate = 1;
    Scope m_kept; ///< shared, entry, exit: the layout of T
    std::optional<BucketTree> m_tree;
    std::vector<Power> m_squares;              ///< T to the 2^k
    std::vector<Settled> m_settled;            ///< by joint choice of the shared nodes
    std::vector<std::uint32_t> m_rowOffset;    ///< of the rows of a slice
    std::map<std::size_t, Product> m_products; ///< by power
    std::unordered_map<std::size_t, std::vector<std::uint32_t>> m_interiors;
    std::vector<std::uint32_t> m_value;
};

} // namespace shardlens::solve
