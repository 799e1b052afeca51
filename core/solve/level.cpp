// SPDX-License-Identifier: Apache-2.0
// Prices and messages for the search are copied between rounds, so that bound and search can run
// side by side.
#include "core/solve/level.h"

#include "core/error.h"
#include "core/solve/monitor.h"
#include "core/solve/problem.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <thread>

namespace shardlens::solve {
namespace {

constexpr double kRoundWork = 6e8;            ///< table entries visited by the bound in a round
constexpr std::size_t kCycleWork = 4'000'000; ///< at each price of a cycle
constexpr std::size_t kNarrow = 2000;         ///< nodes, to look for a good order of elimination
constexpr double kExactWork = 20;             ///< passes that an exact solve may cost
constexpr std::size_t kLongRise = 12;         ///< rounds after which a small problem is branched on
constexpr int kRestart = 12;                  ///< cycles without a better answer before a run ends

/// Above what any sensible assignment costs, yet small enough for exact sums.
double forbiddenCost(const CoreProblem& problem) {
    double most = 1;
    const auto look = [&](const std::vector<double>& costs) {
        for (const double cost : costs) {
            if (cost < kInfinite) most = std::max(most, std::abs(cost));
        }
    };
    for (const auto& node : problem.nodes) look(node.cost);
    for (const auto& pair : problem.pairs) look(pair.cost);
    return 32 * most;
}

/// Runs the tasks side by side; the first exception is thrown when all are done.
void runAll(const std::vector<std::function<void()>>& tasks) {
    std::vector<std::exception_ptr> errors(tasks.size());
    const auto guarded = [&](std::size_t i) {
        try {
            tasks[i]();
        } catch (...) {
            errors[i] = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 1; i < tasks.size(); ++i) threads.emplace_back(guarded, i);
        guarded(0);
    }
    for (const auto& error : errors) {
        if (error) std::rethrow_exception(error);
    }
}

} // namespace

Level::Level(const CoreProblem& problem, const std::vector<double>& prices, Setup setup)
    : m_problem(problem), m_setup(setup), m_graph(problem), m_bound(m_graph),
      m_finite(problem, forbiddenCost(problem)), m_best(kInfinite), m_gapAtTightening(kInfinite) {
    m_bound.setPrices(prices);
    for (unsigned i = 0; i < std::max(1u, setup.threads); ++i) {
        m_searchers.push_back(
            {WindowSearch(m_finite, setup.seed * 1'000'003 + i), 0, kInfinite, {}, 0, 0, false});
    }
}

void Level::offer(CoreChoices choices) {
    WindowSearch probe(m_finite, 0);
    probe.start(choices);
    if (probe.overload() > 0) return;
    m_best = m_graph.costOf(choices);
    if (m_best == kInfinite) return;
    m_bestChoices = std::move(choices);
    for (Searcher& searcher : m_searchers) {
        searcher.search.start(m_bestChoices);
        searcher.running = true;
        searcher.best = searcher.cost = m_best;
        searcher.bestChoices = m_bestChoices;
    }
}

void Level::round(double incumbent, Monitor& monitor) {
    if (m_round == 0 && m_graph.nodes() <= kNarrow) {
        m_bound.makeExact(m_problem, kExactWork * m_bound.work(), monitor);
    }
    const double boundBefore = bound(), bestBefore = m_best;
    // With nothing feasible the bound may rise forever.
    if (m_round >= kLongRise && m_best == kInfinite && small()) m_pace = Pace::Flat;
    const bool branching = m_pace == Pace::Flat && small();
    const bool bounding = m_pace != Pace::Flat || (!branching && m_round % 8 == 0);
    if (branching && !m_branching) {
        m_branching.emplace(m_problem, m_bound.bound(), m_bound.bestPrices(), m_setup.seed);
    }
    const bool searching = m_pace != Pace::Fast || m_round % 6 == 1;
    std::vector<Monitor> monitors(m_searchers.size() + 1, monitor);
    std::vector<std::function<void()>> tasks;
    if (bounding) tasks.emplace_back([&] { improveBound(incumbent, monitors.back()); });
    if (branching) tasks.emplace_back([&] { branch(incumbent, monitors.back()); });
    const std::size_t free =
        m_searchers.size() - ((bounding || branching) && m_setup.threads > 1 ? 1 : 0);
    for (std::size_t i = 0; (searching || m_setup.threads > 1) && m_round > 0 && i < free; ++i) {
        tasks.emplace_back([this, i, &monitors] { search(m_searchers[i], monitors[i]); });
    }
    std::exception_ptr stopped;
    try {
        if (m_setup.threads > 1) {
            runAll(tasks);
        } else {
            for (const auto& task : tasks) task();
        }
    } catch (const Cancelled&) {
        stopped = std::current_exception();
    }
    for (Searcher& searcher : m_searchers) collect(searcher);
    if (m_bound.exact()) offerFavoured();
    if (m_branching) {
        for (CoreChoices& found : m_branching->takeFound()) keep(std::move(found));
    }
    if (stopped) std::rethrow_exception(stopped);
    ++m_round;
    if (bounding) {
        m_searchPrices = m_bound.bestPrices();
        m_searchPriced = m_bound.priced();
        m_searchMessages = m_bound.messages();
        setPace(bound() - boundBefore, std::min(incumbent, m_best));
    }
    const bool better = m_best < bestBefore || bound() > boundBefore + 1e-6 * std::abs(bound());
    m_idleRounds = better ? 0 : m_idleRounds + 1;
}

/// Searches begin anew when prices have come closer to where they will stay.
void Level::setPace(double rise, double incumbent) {
    const double room = std::min(incumbent - bound(), 0.3 * std::abs(bound()));
    m_slow = rise > 0.01 * room ? 0 : m_slow + 1;
    m_flat = rise > 0.001 * room ? 0 : m_flat + 1;
    const Pace before = m_pace;
    if (m_pace == Pace::Fast && m_slow >= 2) m_pace = Pace::Slow;
    if (m_pace != Pace::Flat && m_flat >= 5) m_pace = Pace::Flat;
    if (m_pace == before) return;
    for (Searcher& searcher : m_searchers) searcher.running = false;
}

void Level::improveBound(double incumbent, Monitor& monitor) {
    const auto passes =
        static_cast<std::size_t>(std::clamp(kRoundWork / m_bound.work(), 1.0, 300.0));
    for (std::size_t i = 0; i < passes; ++i) {
        if (m_bound.pass(monitor) == kInfinite) return;
        ++m_passes;
        const double known = std::min(incumbent, m_best);
        const double target = std::min(known, bound() + 0.25 * std::abs(bound()));
        if (bound() >= known) return;
        m_bound.movePrices(target);
    }
}

void Level::search(Searcher& s, Monitor& monitor) {
    if (!s.running) {
        s.search.decode(m_searchPriced, m_searchMessages, monitor);
        s.running = true;
        s.cycles = s.stale = 0;
        s.best = kInfinite;
    }
    const auto size = m_finite.labels() + m_finite.messages();
    s.search.cycle(m_searchPrices, std::min(kCycleWork, 200 * size), monitor);
    ++s.cycles;
    ++s.stale;
}

void Level::branch(double incumbent, Monitor& monitor) {
    const double known = std::min(incumbent, m_best);
    const double rounding = 1e-10 * std::max(1.0, std::abs(known));
    m_branching->run(kRoundWork, known, (m_setup.integer ? 1.0 : 0.0) - rounding, monitor);
}

/// The minimiser under prices may be within the limit itself.
void Level::offerFavoured() {
    const std::vector<double> usage = m_graph.usageOf(m_bound.favoured());
    if (std::ranges::equal(usage, m_graph.room(), std::less_equal<>{})) keep(m_bound.favoured());
}

void Level::keep(CoreChoices choices) {
    if (choices.empty() && m_graph.nodes() > 0) return;
    const double cost = m_graph.costOf(choices);
    if (cost >= m_best) return;
    m_best = cost;
    m_bestChoices = choices;
    m_found.push_back(std::move(choices));
}

/// After a cycle or a part of one: keeps what is better.
void Level::collect(Searcher& s) {
    if (!s.running) return;
    s.cost = s.search.overload() > 0 ? kInfinite : m_graph.costOf(s.search.choices());
    if (s.cost < s.best) {
        s.best = s.cost;
        s.bestChoices = s.search.choices();
        s.stale = 0;
    }
    keep(s.bestChoices);
    if (s.stale > kRestart && m_best < kInfinite) {
        s.stale = 0;
        s.best = m_best;
        s.bestChoices = m_bestChoices;
        s.search.start(m_bestChoices);
    } else if (s.cost > s.best + 0.01 * std::abs(s.best)) {
        s.search.start(s.bestChoices);
    }
}

std::size_t Level::takeWindows() {
    std::size_t sum = 0;
    for (const Searcher& searcher : m_searchers) sum += searcher.search.windows();
    return sum - std::exchange(m_windowsBefore, sum);
}

std::size_t Level::bytes() const {
    std::size_t problem = 0;
    for (const auto& pair : m_problem.pairs) problem += pair.cost.size() * sizeof(double);
    return problem + m_graph.bytes() + m_finite.bytes() +
           8 * (2 * m_graph.messages() + (3 + 3 * m_searchers.size()) * m_graph.labels());
}

bool Level::worthTightening(double incumbent) {
    const double gap = incumbent - m_bound.bound();
    if (!(gap < 0.8 * m_gapAtTightening)) return false;
    if (m_pace == Pace::Fast && gap > 0.02 * std::abs(bound())) return false;
    m_gapAtTightening = gap;
    return true;
}

CoreProblem Level::tighten(double cutoff, std::size_t& struck, Monitor& monitor) {
    m_bound.restoreBest();
    constexpr int kSettle = 10; // passes for the messages to follow the prices
    for (int i = 0; i < kSettle; ++i) m_bound.pass(monitor);
    return m_bound.tighten(m_problem, cutoff, struck, monitor);
}

std::size_t Level::worthStriking() const {
    return small() ? 1 + m_graph.entries() / 100 : m_graph.entries() / 5;
}

} // namespace shardlens::solve
