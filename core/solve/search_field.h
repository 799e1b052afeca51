// SPDX-License-Identifier: Apache-2.0
// Where windows are searched: a core problem, or what is left of it when choices far from the bound
// are struck out. In any answer the excess costs of its choices over the bound add up to its gap at
// most; so nearly all choices of a good answer have little excess, and a field of those alone is
// small and holds good answers, though perhaps not the best.
#pragma once

#include "core/solve/price_bound.h"
#include "core/solve/reduction.h"

#include <memory>

namespace shardlens::solve {

class SearchField {
public:
    /// The whole problem. Prices and messages as of bound; see follow().
    SearchField(const CoreProblem& problem, const PriceBound& bound, Monitor& monitor);
    /// What is left of it.
    /// @return nothing if nothing feasible is left
    static std::unique_ptr<SearchField> focused(CoreProblem less, const std::vector<double>& prices,
                                                Monitor& monitor);

    const CoreGraph& graph() const { return m_graph; } ///< with a large cost for what is forbidden
    const std::vector<double>& prices() const { return m_prices; }
    const std::vector<double>& priced() const { return m_priced; }
    const std::vector<double>& messages() const { return m_messages; }
    /// Takes over new prices and, of the whole problem, messages.
    void follow(const PriceBound& bound);

    /// From choices here to choices of the whole problem and, where they are left, back.
    CoreChoices restore(const CoreChoices& choices) const;
    CoreChoices project(const CoreChoices& choices) const;

private:
    SearchField(std::optional<Reduction> reduction, const CoreProblem& problem, Monitor& monitor);

    std::optional<Reduction> m_reduction;
    CoreGraph m_graph;
    std::vector<double> m_prices, m_priced, m_messages;
};

} // namespace shardlens::solve
