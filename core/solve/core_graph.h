// SPDX-License-Identifier: Apache-2.0
// A core problem laid flat for the inner loops of bound and search: labels of all nodes in one
// array, neighbours in one array, each distinct matrix stored once in either orientation. A label
// is a choice of a node, numbered through.
#pragma once

#include "core/solve/core_problem.h"

#include <cstdint>
#include <span>

namespace shardlens::solve {

class Monitor;

class CoreGraph {
public:
    /// @param forbidden  stands for infinite pair costs
    /// @throws Cancelled
    CoreGraph(const CoreProblem& problem, Monitor& monitor,
              double forbidden = std::numeric_limits<double>::infinity());
    CoreGraph(const CoreGraph&) = delete; // it points into itself
    CoreGraph& operator=(const CoreGraph&) = delete;

    struct Link {
        Var to = 0;
        std::uint32_t pair = 0;
        const double* rows = nullptr;    ///< [own choice][choice of `to`]
        const double* columns = nullptr; ///< [choice of `to`][own choice]
        std::size_t in = 0, out = 0;     ///< places for messages from `to` and to it
    };
    struct Part {
        std::uint32_t first = 0, last = 0; ///< moments
        const double* usage = nullptr;     ///< by choice
    };

    std::size_t nodes() const { return m_first.size() - 1; }
    std::size_t labels() const { return m_first.back(); }
    std::size_t moments() const { return m_room.size(); }
    std::size_t messages() const { return m_messages; }
    std::size_t entries() const { return m_entries; }     ///< of all pairs
    std::size_t first(Var v) const { return m_first[v]; } ///< label
    std::uint32_t choices(Var v) const {
        return static_cast<std::uint32_t>(m_first[v + 1] - m_first[v]);
    }
    const double* cost(Var v) const { return m_cost.data() + m_first[v]; }
    std::span<const Link> links(Var v) const {
        return {m_links.data() + m_firstLink[v], m_links.data() + m_firstLink[v + 1]};
    }
    std::span<const Part> parts(Var v) const {
        return {m_parts.data() + m_firstPart[v], m_parts.data() + m_firstPart[v + 1]};
    }
    const std::vector<double>& room() const { return m_room; }
    double constant() const { return m_constant; }
    std::uint32_t mostChoices() const { return m_mostChoices; }
    std::size_t bytes() const; ///< held

    /// Cost of all choices, kInfinite if one is forbidden; the limit is not looked at.
    double costOf(const CoreChoices& choices) const;
    /// Usage by moment, beyond the least.
    std::vector<double> usageOf(const CoreChoices& choices) const;

private:
    std::vector<std::size_t> m_first, m_firstLink, m_firstPart;
    std::vector<double> m_cost, m_usage, m_matrices, m_room;
    std::vector<Link> m_links;
    std::vector<Part> m_parts;
    std::size_t m_messages = 0, m_entries = 0;
    double m_constant = 0;
    std::uint32_t m_mostChoices = 1;
};

} // namespace shardlens::solve
