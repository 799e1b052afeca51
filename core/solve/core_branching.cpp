// SPDX-License-Identifier: Apache-2.0
// The node to split at is found by trying some ("strong branching", Applegate et al. 1995): the one
// whose weaker child has the best bound after a few passes.
#include "core/solve/core_branching.h"

#include "core/solve/monitor.h"
#include "core/solve/problem.h"
#include "core/solve/window_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shardlens::solve {
namespace {

constexpr std::size_t kPasses = 120;          ///< of the bound on one open problem
constexpr std::size_t kTrials = 6;            ///< nodes tried for a split
constexpr std::size_t kTrialPasses = 12;      ///< of the bound on a trial
constexpr std::size_t kMostOpen = 20'000'000; ///< entries, above which the deepest come first

std::size_t entriesOf(const CoreProblem& problem) {
    std::size_t sum = 0;
    for (const auto& pair : problem.pairs) sum += pair.cost.size();
    for (const auto& node : problem.nodes) sum += node.cost.size() * (1 + node.parts.size());
    return sum;
}

/// The problem with one choice only of a node, or with all but that one.
CoreProblem child(const CoreProblem& problem, Var v, std::size_t choice, bool only,
                  Monitor& monitor) {
    CoreProblem out = copyOf(problem, monitor);
    auto& cost = out.nodes[v].cost;
    for (std::size_t c = 0; c < cost.size(); ++c) {
        if ((c == choice) != only) cost[c] = kInfinite;
    }
    return out;
}

} // namespace

CoreBranching::CoreBranching(const CoreProblem& problem, double bound,
                             const std::vector<double>& prices, std::uint64_t seed,
                             Monitor& monitor)
    : m_whole(problem, monitor), m_incumbent(kInfinite), m_current(kInfinite), m_seed(seed) {
    push({std::make_shared<const CoreProblem>(copyOf(problem, monitor)), entriesOf(problem),
          nullptr, prices, bound, 0});
}

double CoreBranching::bound() const {
    const double open =
        m_open.empty() ? kInfinite : std::ranges::min_element(m_open, {}, &Open::bound)->bound;
    return std::min(m_current, open);
}

void CoreBranching::push(Open open) {
    m_entries += open.entries;
    m_open.push_back(std::move(open));
}

CoreBranching::Open CoreBranching::pop() {
    const auto next = m_entries > kMostOpen ? std::ranges::max_element(m_open, {}, &Open::depth)
                                            : std::ranges::min_element(m_open, {}, &Open::bound);
    Open open = std::move(*next);
    if (next + 1 != m_open.end()) *next = std::move(m_open.back());
    m_open.pop_back();
    m_entries -= open.entries;
    return open;
}

void CoreBranching::run(double work, double incumbent, double improvement, Monitor& monitor) {
    m_incumbent = std::min(m_incumbent, incumbent);
    m_improvement = improvement;
    m_work = work;
    while (!m_open.empty() && m_work > 0) {
        Open open = pop();
        m_current = open.bound;
        if (open.bound <= cutoff()) process(std::move(open), monitor);
        m_current = kInfinite;
    }
}

/// Improves the bound of a problem.
/// @return false if nothing better is in it
bool CoreBranching::bounded(PriceBound& bound, const CoreGraph& graph, std::size_t passes,
                            Monitor& monitor) {
    double before = -kInfinite;
    for (std::size_t i = 0; i < passes; ++i) {
        const double now = bound.pass(monitor);
        if (now > cutoff() || now == kInfinite) return false;
        m_work -= bound.work() + double(graph.moments());
        if (i % 30 == 29) {
            const double left = std::min(cutoff(), 2 * std::abs(bound.bound())) - bound.bound();
            if (bound.bound() - before < 0.02 * left) break;
            before = bound.bound();
        }
        const double target =
            std::min(m_incumbent, bound.bound() + 0.25 * std::abs(bound.bound()) + 1);
        bound.movePrices(target);
    }
    return true;
}

void CoreBranching::process(Open open, Monitor& monitor) {
    // Cancelled leaves the problem open.
    const Open again = open;
    try {
        ++m_branches;
        CoreProblem problem = copyOf(*open.problem, monitor);
        open.problem.reset();
        for (;;) {
            auto chain =
                std::make_shared<Chain>(Chain{Reduction(std::move(problem), monitor), open.outer});
            if (chain->reduction.conflict()) return;
            const CoreProblem& core = chain->reduction.core();
            m_work -= double(entriesOf(core)) + 1000;
            if (core.nodes.empty()) return offer({}, chain);
            const CoreGraph graph(core, monitor);
            PriceBound bound(graph);
            open.prices = chain->reduction.project(open.prices);
            bound.makeExact(core, kExactWork * bound.work(), monitor);
            bound.setPrices(open.prices);
            if (!bounded(bound, graph, kPasses, monitor)) return;
            m_current = std::max(m_current, bound.bound());
            lookForAnswer(core, chain, bound, monitor);
            bound.restoreBest();
            std::size_t struck = 0;
            problem = bound.tighten(core, cutoff(), struck, monitor);
            open.prices = bound.bestPrices();
            if (20 * struck >= graph.labels()) {
                open.outer = chain;
                continue;
            }
            return split(core, chain, bound, open.depth, monitor);
        }
    } catch (...) {
        push(again);
        throw;
    }
}

void CoreBranching::lookForAnswer(const CoreProblem& problem,
                                  const std::shared_ptr<const Chain>& chain,
                                  const PriceBound& bound, Monitor& monitor) {
    double most = 1;
    for (const auto& pair : problem.pairs) {
        for (const double cost : pair.cost) {
            if (cost < kInfinite) most = std::max(most, std::abs(cost));
        }
    }
    const CoreGraph finite(problem, monitor, 32 * most);
    WindowSearch search(finite, m_seed + m_branches);
    if (bound.exact()) {
        search.start(bound.favoured());
        if (search.overload() <= 0) offer(search.choices(), chain);
    }
    search.decode(bound.priced(), bound.messages(), monitor);
    search.cycle(bound.bestPrices(), 20 * (finite.labels() + finite.messages()), monitor);
    m_work -= 20.0 * 9 * double(finite.labels() + finite.messages());
    if (search.overload() <= 0) offer(search.choices(), chain);
}

void CoreBranching::offer(CoreChoices choices, const std::shared_ptr<const Chain>& chain) {
    for (const Chain* level = chain.get(); level; level = level->outer.get()) {
        choices = level->reduction.restore(choices);
    }
    const double cost = m_whole.costOf(choices);
    if (cost >= m_incumbent) return;
    m_incumbent = cost;
    m_found.push_back(std::move(choices));
}

void CoreBranching::split(const CoreProblem& problem, const std::shared_ptr<const Chain>& chain,
                          const PriceBound& bound, int depth, Monitor& monitor) {
    struct Candidate {
        Var node;
        std::size_t choice;
        double second; ///< how much the second best choice costs more
    };
    std::vector<Candidate> candidates;
    for (Var v = 0; v < problem.nodes.size(); ++v) {
        const std::vector<double> costs = bound.reduced(v);
        if (costs.size() < 2) continue;
        const auto best = static_cast<std::size_t>(std::ranges::min_element(costs) - costs.begin());
        double second = kInfinite;
        for (std::size_t c = 0; c < costs.size(); ++c) {
            if (c != best) second = std::min(second, costs[c]);
        }
        candidates.push_back({v, best, second});
    }
    // Half of those tried are the closest calls, half the nodes with most neighbours and usage.
    std::vector<Candidate> trials;
    std::ranges::stable_sort(candidates, {}, &Candidate::second);
    for (std::size_t i = 0; i < std::min(kTrials / 2, candidates.size()); ++i) {
        trials.push_back(candidates[i]);
    }
    std::vector<std::size_t> weight(problem.nodes.size());
    for (const auto& pair : problem.pairs) {
        ++weight[pair.u];
        ++weight[pair.v];
    }
    for (Var v = 0; v < weight.size(); ++v) weight[v] += 2 * problem.nodes[v].parts.size();
    std::ranges::stable_sort(candidates, std::greater<>{},
                             [&](const Candidate& c) { return weight[c.node]; });
    for (std::size_t i = 0; i < std::min(kTrials / 2, candidates.size()); ++i) {
        trials.push_back(candidates[i]);
    }
    const auto boundOf = [&](const CoreProblem& p) {
        const CoreGraph graph(p, monitor);
        PriceBound trial(graph);
        trial.setPrices(bound.bestPrices());
        if (bound.exact()) trial.makeExact(p, 2 * bound.work(), monitor);
        return bounded(trial, graph, kTrialPasses, monitor) ? trial.bound() : kInfinite;
    };
    double bestScore = -kInfinite;
    Open first, second;
    for (const Candidate& trial : trials) {
        const auto open = [&](bool only) {
            auto made = std::make_shared<const CoreProblem>(
                child(problem, trial.node, trial.choice, only, monitor));
            const std::size_t entries = entriesOf(*made);
            return Open{std::move(made), entries, chain, bound.bestPrices(), 0, depth + 1};
        };
        Open with = open(true), without = open(false);
        with.bound = std::max(bound.bound(), boundOf(*with.problem));
        without.bound = std::max(bound.bound(), boundOf(*without.problem));
        const double weaker = std::min(with.bound, without.bound);
        const double stronger = std::min(std::max(with.bound, without.bound), cutoff());
        const double score = weaker == kInfinite ? kInfinite : weaker + 0.1 * stronger;
        if (score <= bestScore) continue;
        bestScore = score;
        first = std::move(with);
        second = std::move(without);
    }
    for (Open* open : {&first, &second}) {
        if (open->bound <= cutoff() && open->bound < kInfinite) push(std::move(*open));
    }
}

} // namespace shardlens::solve
