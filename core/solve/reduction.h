// SPDX-License-Identifier: Apache-2.0
// Exact reductions of a core problem: some optimum of the whole is found from any optimum of the
// core that is left. Forbidden pairs are propagated (arc consistency), matrices that are sums of a
// row and a column cost become unary costs, nodes that another one determines are merged into it
// with their usage, choices that another one beats in cost and in usage at every moment go, nodes
// with at most two neighbours are eliminated if their usage does not matter (or if their best
// choice is also their most frugal one). Times at which the limit cannot bind, or binds only if it
// binds at a neighbouring time too, are dropped, which frees nodes from their usage; so all this
// repeats until nothing changes.
#pragma once

#include "core/solve/core_problem.h"
#include "core/solve/monitor.h"

#include <optional>

namespace shardlens::solve {

struct ReductionStatistics {
    std::size_t nodes = 0, pairs = 0, moments = 0; ///< left
    std::size_t merged = 0;                        ///< determined by another node
    std::size_t eliminated = 0;                    ///< with at most two neighbours
    std::size_t separable = 0;                     ///< matrices turned into unary costs
    std::size_t forbidden = 0; ///< choices that no assignment within the limit can make
    std::size_t dominated = 0; ///< choices that another one beats
    int rounds = 0;
};

class Reduction {
public:
    /// @throws Cancelled
    Reduction(CoreProblem problem, Monitor& monitor);

    /// Where it showed that nothing is feasible, if it did: a node without a choice that fits the
    /// others, or a moment at which the least usages exceed the room.
    struct Conflict {
        std::optional<Var> node;
        std::optional<std::uint32_t> moment;
        double excess = 0; ///< by which they do
    };
    const std::optional<Conflict>& conflict() const { return m_conflict; }
    const CoreProblem& core() const { return m_core; }
    const ReductionStatistics& statistics() const { return m_statistics; }

    /// The choices of the whole problem from those of the core: same cost, same usage or less.
    CoreChoices restore(std::span<const std::uint16_t> core) const;
    /// The choices of the core that a whole assignment makes, where it makes choices that are left;
    /// the first choice elsewhere. For warm starts.
    CoreChoices project(std::span<const std::uint16_t> whole) const;
    /// Values by moment of the whole problem, at the moments that are left.
    std::vector<double> project(const std::vector<double>& byMoment) const;

private:
    /// How to choose for a node that is gone, from at most two others.
    struct Rule {
        Var node = 0, a = 0, b = 0;
        std::vector<Choice> idsA{},
            idsB{};                   ///< choices these had left; empty: does not depend on it
        std::vector<Choice> choice{}; ///< rows of a
    };
    class Worker;

    std::optional<Conflict> m_conflict;
    CoreProblem m_core;
    ReductionStatistics m_statistics;
    std::size_t m_nodes = 0;
    std::vector<Var> m_node;                ///< by core node
    std::vector<std::uint32_t> m_moments;   ///< those left
    std::vector<std::vector<Choice>> m_ids; ///< by core node: its choices left
    std::vector<Rule> m_rules;              ///< in the order they were made
};

} // namespace shardlens::solve
