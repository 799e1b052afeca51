// SPDX-License-Identifier: Apache-2.0
// Bound and search on one core problem, in rounds. In each round a thread either improves the bound
// or searches; how they share the work depends on how much the bound still rises.
#pragma once

#include "core/solve/core_branching.h"
#include "core/solve/crew.h"
#include "core/solve/search_field.h"
#include "core/solve/window_search.h"

#include <utility>

namespace shardlens::solve {

class Level {
public:
    struct Setup {
        unsigned threads = 1;
        std::uint64_t seed = 1;
        bool integer = false; ///< all costs are
    };
    /// @param crew  of as many threads
    /// @throws Cancelled
    Level(const CoreProblem& problem, const std::vector<double>& prices, Setup setup, Crew& crew,
          Monitor& monitor);

    /// An assignment to search from.
    void offer(const CoreChoices& choices, Monitor& monitor);

    /// @param incumbent  cost of the best answer known
    /// @throws Cancelled; what was found by then stays
    void round(double incumbent, Monitor& monitor);

    double bound() const {
        const double prices = m_bound.bound();
        return m_branching ? std::max(prices, m_branching->bound()) : prices;
    }
    const std::vector<double>& prices() const { return m_bound.bestPrices(); }
    /// Answers within the limit, each better than those before.
    std::vector<CoreChoices> takeFound() { return std::exchange(m_found, {}); }
    std::size_t takePasses() { return std::exchange(m_passes, 0); }
    std::size_t takeWindows();
    std::size_t branches() const { return m_branching ? m_branching->branches() : 0; }
    std::size_t bytes() const;

    /// True when the gap has shrunk enough since the last time.
    bool worthTightening(double incumbent);
    CoreProblem tighten(double cutoff, std::size_t& struck, Monitor& monitor);
    std::size_t worthStriking() const;

    /// True when neither bound nor answer has improved for long.
    bool idle() const { return m_idleRounds > kIdle; }

private:
    struct Searcher {
        std::uint64_t seed = 0;
        std::unique_ptr<WindowSearch> search; ///< in the field; none before its first run
        double cost = std::numeric_limits<double>::infinity(); ///< of the state, within the limit
        double best = cost;                                    ///< of this run
        CoreChoices bestChoices;                               ///< in the field
        CoreChoices found; ///< better ones of the problem since they were last kept
        int cycles = 0;    ///< in this run
    };
    static constexpr int kIdle = 60;
    static constexpr std::size_t kSmall = 200'000; ///< entries, to branch

    void improveBound(double incumbent, Monitor& monitor);
    void branch(double incumbent, Monitor& monitor);
    std::size_t windows() const;
    std::uint64_t nextSeed() { return m_setup.seed * 1'000'003 + ++m_runs; }
    bool small() const { return m_graph.entries() + m_graph.labels() < kSmall; }
    void refocus(double incumbent, Monitor& monitor);
    double effort() const;
    void resetSearchers();
    void beginAnew();
    void enter(std::unique_ptr<SearchField> field, bool fromBest);
    void search(Searcher& searcher, Monitor& monitor);
    bool withinRoom(const CoreChoices& choices) const;
    void look(Searcher& searcher) const;
    void offerFavoured();
    void keep(CoreChoices choices);
    void setPace(double rise, double incumbent, Monitor& monitor);

    const CoreProblem& m_problem;
    Setup m_setup;
    Crew& m_crew;
    CoreGraph m_graph;
    PriceBound m_bound;
    std::unique_ptr<SearchField> m_field;
    double m_focus = 1; ///< share of the gap that a choice's excess may have in the field
    int m_stale = 0;    ///< rounds of search without a better answer
    std::uint64_t m_runs = 0, m_fields = 0;
    std::optional<CoreBranching> m_branching;
    std::vector<Searcher> m_searchers;
    std::vector<CoreChoices> m_found;
    double m_best;
    CoreChoices m_bestChoices;
    std::size_t m_passes = 0, m_windowsBefore = 0, m_windowsEnded = 0;
    std::size_t m_round = 0;
    enum class Pace : std::uint8_t { Fast, Slow, Flat } m_pace = Pace::Fast; ///< of the bound
    int m_slow = 0, m_flat = 0, m_idleRounds = 0;
    double m_gapAtTightening;
};

} // namespace shardlens::solve
