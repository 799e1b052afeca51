// SPDX-License-Identifier: Apache-2.0
// Which copies an edge of a folded problem joins: the one place where At and carry are read.
// Everything that unfolds (evaluation, expansion, lowering, local moves) goes through here.
#pragma once

#include "core/solve/problem.h"

namespace shardlens::solve {

/// One end of an edge: all copies of the node, or a single one.
struct EdgeEnd {
    std::size_t count = 1; ///< copies of the node
    bool single = true;    ///< touches one copy only
    std::size_t copy = 0;  ///< that copy, when single
};

inline EdgeEnd edgeEnd(const Problem& problem, NodeId node, At at) {
    const std::size_t count = problem.copies(node);
    return {count, count == 1 || at != At::Each, at == At::Last ? count - 1 : 0};
}

/// Calls f(copyOfU, copyOfV) for each pair of copies that the edge joins, in ascending order.
template <class F>
void forEachInstance(const Problem& problem, const Edge& edge, F&& f) {
    const EdgeEnd u = edgeEnd(problem, edge.u, edge.atU);
    const EdgeEnd v = edgeEnd(problem, edge.v, edge.atV);
    if (edge.carry) {
        for (std::size_t i = 0; i + 1 < u.count; ++i) f(i, i + 1);
    } else if (u.single && v.single) {
        f(u.copy, v.copy);
    } else {
        const std::size_t count = u.single ? v.count : u.count;
        for (std::size_t i = 0; i < count; ++i) f(u.single ? u.copy : i, v.single ? v.copy : i);
    }
}

/// Calls f(copyOfOther) for each copy at the other end that the edge joins to `copy` of this end.
/// @param atU  `copy` is of edge.u; otherwise of edge.v
template <class F>
void forEachPartner(const Problem& problem, const Edge& edge, bool atU, std::size_t copy, F&& f) {
    const EdgeEnd here = edgeEnd(problem, atU ? edge.u : edge.v, atU ? edge.atU : edge.atV);
    const EdgeEnd there = edgeEnd(problem, atU ? edge.v : edge.u, atU ? edge.atV : edge.atU);
    if (edge.carry) {
        if (atU && copy + 1 < here.count) f(copy + 1);
        if (!atU && copy > 0) f(copy - 1);
    } else if (here.single && here.copy != copy) {
        return;
    } else if (there.single) {
        f(there.copy);
    } else if (here.single) {
        for (std::size_t i = 0; i < there.count; ++i) f(i);
    } else {
        f(copy);
    }
}

} // namespace shardlens::solve
