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

namespace shardlens::solve {
namespace {

constexpr double kRoundWork = 6e8;          ///< table entries visited by the bound in a round
constexpr std::size_t kCycleWork = 500'000; ///< at each price of a cycle
constexpr int kCycles = 8;                  ///< of a search in a round
constexpr std::size_t kNarrow = 2000;       ///< nodes, to look for a good order of elimination
constexpr std::size_t kLongRise = 12;       ///< rounds after which a small problem is branched on
constexpr double kNewPrices = 0.02;       ///< rise of the bound, of the gap, that outdates a search
constexpr int kRunPatience = 4;           ///< cycles of a run that has found nothing
constexpr double kFirstEffort = 1.0 / 16; ///< of the first round, doubled until they are full
constexpr int kRestart = 8;               ///< rounds without a better answer before a run ends

constexpr double kNearest = 1.0 / 16, kNearer = 4; ///< focus goes 1, 1/4, 1/16, 1, …

} // namespace

Level::Level(const CoreProblem& problem, const std::vector<double>& prices, Setup setup, Crew& crew,
             Monitor& monitor)
    : m_problem(problem), m_setup(setup), m_crew(crew), m_graph(problem, monitor), m_bound(m_graph),
      m_searchers(std::max(1u, setup.threads)), m_best(kInfinite), m_gapAtTightening(kInfinite) {
    m_bound.setPrices(prices);
    enter(std::make_unique<SearchField>(problem, m_bound, monitor), false);
}

bool Level::withinRoom(const CoreChoices& choices) const {
    return std::ranges::equal(m_graph.usageOf(choices), m_graph.room(), std::less_equal<>{});
}

void Level::offer(const CoreChoices& choices, Monitor& monitor) {
    const double cost = m_graph.costOf(choices);
    if (cost == kInfinite || !withinRoom(choices)) return;
    m_best = cost;
    m_bestChoices = choices;
    enter(std::make_unique<SearchField>(m_problem, m_bound, monitor), true);
}

/// Share of a full round: the first ones are short, so that there is an answer soon.
double Level::effort() const {
    return m_round < 4 ? kFirstEffort * double(1 << m_round) : 1.0;
}

void Level::resetSearchers() {
    m_windowsEnded = windows();
    for (Searcher& s : m_searchers) {
        s = {};
        s.seed = nextSeed();
    }
}

/// All searches begin anew in a field: from messages, or the best answer if it is left there.
void Level::enter(std::unique_ptr<SearchField> field, bool fromBest) {
    resetSearchers();
    m_field = std::move(field);
    m_stale = 0;
    if (!fromBest || m_best == kInfinite) return;
    const CoreChoices start = m_field->project(m_bestChoices);
    const CoreChoices whole = m_field->restore(start);
    const double cost = m_graph.costOf(whole);
    if (cost == kInfinite || !withinRoom(whole)) return;
    ++m_fields;
    for (std::size_t i = 0; i < m_searchers.size(); ++i) {
        if ((m_fields + i) % 2 != 0) continue; // half of them begin anew
        Searcher& s = m_searchers[i];
        s.search = std::make_unique<WindowSearch>(m_field->graph(), s.seed);
        s.search->start(start);
        s.best = s.cost = cost;
        s.bestChoices = start;
    }
}

/// Searches decode new prices next, if these still move: one that began under poor prices stays
/// near where they led it. One that has found nothing yet may go on a while.
void Level::beginAnew() {
    if (m_pace != Pace::Fast || m_focus < 1) return;
    const bool found = std::ranges::any_of(m_searchers, [](const Searcher& s) {
        return s.best < kInfinite || s.cycles > kRunPatience;
    });
    if (found) resetSearchers();
}

/// Takes the part of the problem near the bound as the field, or all of it in turn.
void Level::refocus(double incumbent, Monitor& monitor) {
    const double known = std::min(incumbent, m_best);
    m_focus = m_focus <= kNearest ? 1 : m_focus / kNearer;
    while (known < kInfinite && m_focus < 1) {
        std::size_t struck = 0;
        CoreProblem less = tighten(bound() + m_focus * (known - bound()), struck, monitor);
        auto field = SearchField::focused(std::move(less), m_bound.bestPrices(), monitor);
        if (field && field->graph().nodes() > 0) {
            return enter(std::move(field), true);
        }
        m_focus *= kNearer;
    }
    m_focus = 1;
    enter(std::make_unique<SearchField>(m_problem, m_bound, monitor), true);
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
        m_branching.emplace(m_problem, m_bound.bound(), m_bound.bestPrices(), m_setup.seed,
                            monitor);
    }
    if (m_stale > kRestart) refocus(incumbent, monitor);
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
        m_crew.run(tasks);
    } catch (const Cancelled&) {
        stopped = std::current_exception();
    }
    for (const Monitor& copy : monitors) monitor.absorb(copy);
    for (Searcher& searcher : m_searchers) keep(std::exchange(searcher.found, {}));
    if (m_bound.exact()) offerFavoured();
    if (m_branching) {
        for (CoreChoices& found : m_branching->takeFound()) keep(std::move(found));
    }
    if (stopped) std::rethrow_exception(stopped);
    ++m_round;
    if (bounding) {
        const double rise = bound() - boundBefore;
        if (rise > kNewPrices * (std::min(incumbent, m_best) - bound())) beginAnew();
        m_field->follow(m_bound);
        setPace(rise, std::min(incumbent, m_best), monitor);
    }
    if (searching) m_stale = m_best < bestBefore ? 0 : m_stale + 1;
    const bool better = m_best < bestBefore || bound() > boundBefore + 1e-6 * std::abs(bound());
    m_idleRounds = better ? 0 : m_idleRounds + 1;
}

/// Searches begin anew when prices have come closer to where they will stay.
void Level::setPace(double rise, double incumbent, Monitor& monitor) {
    if (m_round <= 4) return; // these rounds were short
    const double room = std::min(incumbent - bound(), 0.3 * std::abs(bound()));
    m_slow = rise > 0.01 * room ? 0 : m_slow + 1;
    m_flat = rise > 0.001 * room ? 0 : m_flat + 1;
    const Pace before = m_pace;
    if (m_pace == Pace::Fast && m_slow >= 2) m_pace = Pace::Slow;
    if (m_pace != Pace::Flat && m_flat >= 5) m_pace = Pace::Flat;
    if (m_pace == before) return;
    m_focus = 1;
    enter(std::make_unique<SearchField>(m_problem, m_bound, monitor), false);
}

void Level::improveBound(double incumbent, Monitor& monitor) {
    const auto passes =
        static_cast<std::size_t>(std::clamp(effort() * kRoundWork / m_bound.work(), 1.0, 300.0));
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
    if (!s.search) {
        s.search = std::make_unique<WindowSearch>(m_field->graph(), s.seed);
        s.search->decode(m_field->priced(), m_field->messages(), monitor);
    }
    const auto size = m_field->graph().labels() + m_field->graph().messages();
    const auto most = static_cast<std::size_t>(effort() * double(kCycleWork));
    for (int i = 0; i < kCycles; ++i) {
        ++s.cycles;
        try {
            s.search->cycle(m_field->prices(), std::min(most, 50 * size), monitor);
        } catch (const Cancelled&) {
            look(s);
            throw;
        }
        look(s);
    }
}

/// After a cycle or a part of one: notes what is better, goes back from what is much worse.
void Level::look(Searcher& s) const {
    CoreChoices whole = m_field->restore(s.search->choices());
    s.cost = withinRoom(whole) ? m_graph.costOf(whole) : kInfinite;
    if (s.cost < s.best) {
        s.best = s.cost;
        s.bestChoices = s.search->choices();
        s.found = std::move(whole);
    } else if (!s.bestChoices.empty() && s.cost > s.best + 0.01 * std::abs(s.best)) {
        s.search->start(s.bestChoices);
    }
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

std::size_t Level::windows() const {
    std::size_t sum = m_windowsEnded;
    for (const Searcher& s : m_searchers) sum += s.search ? s.search->windows() : 0;
    return sum;
}

std::size_t Level::takeWindows() {
    const std::size_t sum = windows();
    return sum - std::exchange(m_windowsBefore, sum);
}

std::size_t Level::bytes() const {
    std::size_t problem = 0;
    for (const auto& pair : m_problem.pairs) problem += pair.cost.size() * sizeof(double);
    return problem + m_graph.bytes() + m_field->graph().bytes() +
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
