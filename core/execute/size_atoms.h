// SPDX-License-Identifier: Apache-2.0
// Which sizes of a graph are the same size: every dimension of every tensor as a product of atoms,
// where equal atoms must stay equal when sizes change. A union-find whose members can be split: a
// width of 4096 becomes 32 x 128 once a reshape shows that it is heads times head size.
#pragma once

#include "core/model/catalogue.h"

#include <vector>

namespace shardlens {

class SizeAtoms {
public:
    using Var = std::size_t;

    explicit SizeAtoms(const Graph& graph);

    /// The size of a dimension if every atom's size were `sizeOf(its present size)`; frozen atoms
    /// keep theirs.
    template <typename SizeOf>
    std::int64_t dimension(TensorId tensor, std::size_t dim, SizeOf sizeOf) const {
        return product(m_dims[tensor][dim], sizeOf);
    }
    /// Likewise of a factor of an op's rule.
    template <typename SizeOf>
    std::int64_t factor(OpId op, std::size_t factor, SizeOf sizeOf) const {
        return product(m_factors[op][factor], sizeOf);
    }

private:
    struct Node {
        Var parent;
        std::int64_t size;
        std::vector<Var> parts; ///< major first; of a root that was split
        bool frozen = false;
    };

    Var make(std::int64_t size);
    Var find(Var v) const;
    std::vector<Var> atoms(Var v) const;
    void freeze(Var v);
    void unite(std::vector<Var> a, std::vector<Var> b);
    void addOp(const Graph& graph, OpId id);
    void tie(const std::vector<Var>& dims, const std::vector<DimFactors>& rule, OpId id);

    template <typename SizeOf>
    std::int64_t product(Var v, SizeOf sizeOf) const {
        std::int64_t size = 1;
        for (const Var atom : atoms(v))
            size *= m_nodes[atom].frozen ? m_nodes[atom].size : sizeOf(m_nodes[atom].size);
        return size;
    }

    std::vector<Node> m_nodes;
    std::vector<std::vector<Var>> m_dims;    ///< [tensor][dim]
    std::vector<std::vector<Var>> m_factors; ///< [op][factor]
};

} // namespace shardlens
