// SPDX-License-Identifier: Apache-2.0
// Levels of reduction around rounds of work. In a round each thread does one task, bound or search,
// of a set amount of work, and nothing is shared before all are done: so threads do not change what
// is computed, only when.
#include "core/solve/interval_solver.h"

#include "core/error.h"
#include "core/solve/core_problem.h"
#include "core/solve/level.h"
#include "core/solve/monitor.h"
#include "core/solve/reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace shardlens::solve {
namespace {

/// True if all finite costs are integers, so that a better answer is better by 1 at least.
bool hasIntegerCosts(const IntervalProblem& problem, Monitor& monitor) {
    double sum = 0;
    const auto most = [&](const std::vector<double>& costs) {
        monitor.tick(2 * costs.size());
        double out = 0;
        for (const double cost : costs) {
            if (cost == kInfinite) continue;
            if (cost != std::floor(cost)) return kInfinite;
            out = std::max(out, std::abs(cost));
        }
        return out;
    };
    for (const auto& node : problem.nodes) sum += most(node.cost);
    std::unordered_map<const Matrix*, double> mostOf;
    for (const auto& pair : problem.pairs) {
        const auto [known, fresh] = mostOf.try_emplace(pair.cost.get(), 0.0);
        if (fresh) known->second = most(pair.cost->values);
        sum += known->second;
    }
    return sum < 0x1p53;
}

class IntervalSolver {
public:
    IntervalSolver(const IntervalProblem& problem, const IntervalOptions& options)
        : m_problem(problem), m_options(options),
          m_clock{options.stop, options.deadlineSeconds, options.progress}, m_monitor(m_clock),
          m_crew(options.threads) {}

    IntervalSolution run() {
        count();
        tryStart();
        try {
            solve();
        } catch (const Cancelled&) {}
        finish();
        return std::move(m_out);
    }

private:
    void count() {
        auto& s = m_out.statistics;
        s.nodes = m_problem.nodes.size();
        s.pairs = m_problem.pairs.size();
        for (const auto& node : m_problem.nodes) s.choices += node.cost.size();
    }

    void tryStart() {
        if (m_options.start.size() != m_problem.nodes.size()) return;
        for (std::size_t i = 0; i < m_options.start.size(); ++i) {
            if (m_options.start[i] >= m_problem.nodes[i].cost.size()) return;
        }
        offer(m_options.start);
    }

    void solve() {
        m_integer = hasIntegerCosts(m_problem, m_monitor);
        TimedCore timed = makeCore(m_problem, m_monitor);
        m_levels.push_back(std::make_unique<Reduction>(std::move(timed.problem), m_monitor));
        describeReduction(*m_levels.back());
        if (m_options.reduced) m_options.reduced(m_out.statistics);
        if (const auto& conflict = m_levels.back()->conflict()) {
            m_out.status = Status::Infeasible;
            m_out.bound = kInfinite;
            m_out.explanation = explain(*conflict, timed.begin);
            return;
        }
        std::vector<double> prices(m_levels.back()->core().room.size(), 0.0);
        for (;;) {
            const Reduction& reduction = *m_levels.back();
            m_out.statistics.lastNodes = reduction.core().nodes.size();
            if (reduction.core().nodes.empty()) {
                offer(restore({}));
                return prove("all nodes eliminated");
            }
            auto next = runLevel(reduction, prices);
            if (!next) return;
            m_levels.push_back(std::make_unique<Reduction>(std::move(*next), m_monitor));
            if (m_levels.back()->conflict()) {
                m_levels.pop_back();
                return prove("nothing better is left");
            }
            prices = m_levels.back()->project(prices);
        }
    }

    /// @return the problem without what cannot be better, once that is worth a new level; nothing
    ///         when done
    std::optional<CoreProblem> runLevel(const Reduction& reduction, std::vector<double>& prices) {
        Level level(reduction.core(), prices,
                    {m_options.threads, m_options.seed + m_round, m_integer}, m_crew, m_monitor);
        if (!m_out.choices.empty()) level.offer(project(m_out.choices), m_monitor);
        ++m_out.statistics.levels;
        const std::size_t branchesBefore = m_out.statistics.branches;
        const auto note = [&] {
            m_out.statistics.bytes = std::max(m_out.statistics.bytes, level.bytes());
            m_out.statistics.branches = branchesBefore + level.branches();
            m_out.statistics.passes += level.takePasses();
            m_out.statistics.windows += level.takeWindows();
        };
        for (;;) {
            try {
                level.round(incumbentCore(), m_monitor);
            } catch (const Cancelled&) {
                take(level);
                note();
                throw;
            }
            ++m_round;
            take(level);
            note();
            if (m_out.bound == kInfinite) return {}; // nothing feasible, or nothing better
            if (done()) return {};
            if (m_out.cost < kInfinite && level.worthTightening(m_out.cost)) {
                std::size_t struck = 0;
                auto next = level.tighten(cutoff(), struck, m_monitor);
                if (struck >= level.worthStriking()) {
                    prices = level.prices();
                    return next;
                }
            }
            if (level.idle() && m_options.deadlineSeconds == kInfinite) return {};
        }
    }

    double incumbentCore() const { return m_out.cost; }

    /// Above every cost that a better answer could have.
    double cutoff() const { return m_out.cost - (m_integer ? 1.0 : 0.0) + margin(); }
    /// More than rounding can move a sum.
    double margin() const { return 1e-10 * std::max(1.0, std::abs(m_out.cost)); }

    void take(Level& level) {
        for (const CoreChoices& found : level.takeFound()) offer(restore(found));
        raise(level.bound());
        m_monitor.report("prices and windows", m_out.cost, m_out.bound);
    }

    void raise(double bound) {
        if (bound == kInfinite) {
            if (m_out.choices.empty()) {
                m_out.status = Status::Infeasible;
                m_out.bound = kInfinite;
                m_out.explanation = "no choices fit each other";
            } else {
                prove("nothing better is left");
            }
            return;
        }
        if (std::abs(bound) < kInfinite) bound -= 1e-10 * std::max(1.0, std::abs(bound));
        if (m_integer) bound = std::ceil(bound);
        bound = std::min(bound, m_out.cost);
        if (bound <= m_out.bound) return;
        const bool marked = m_out.trajectory.empty() ||
                            bound - m_out.trajectory.back().bound > 1e-3 * std::abs(bound);
        m_out.bound = bound;
        if (marked) record("bound");
    }

    void offer(const ChoiceList& choices) {
        const IntervalEvaluation value = evaluate(m_problem, choices);
        if (value.peak > m_problem.limit || !(value.cost < m_out.cost)) return;
        if (m_out.choices.empty()) m_out.firstFeasibleSeconds = m_monitor.seconds();
        m_out.choices = choices;
        m_out.cost = value.cost;
        m_out.peak = value.peak;
        record("answer");
    }

    void record(std::string stage) {
        m_out.trajectory.push_back(
            {m_out.cost, m_out.bound, m_monitor.seconds(), std::move(stage)});
    }

    bool done() const {
        return m_out.cost < kInfinite &&
               (m_out.bound >= m_out.cost || m_out.gap() <= m_options.relativeGap);
    }

    void prove(std::string method) {
        if (m_out.choices.empty()) return;
        m_out.bound = m_out.cost;
        m_out.statistics.method = std::move(method);
    }

    ChoiceList restore(CoreChoices core) const {
        for (auto level = m_levels.rbegin(); level != m_levels.rend(); ++level) {
            core = (*level)->restore(core);
        }
        return core;
    }
    CoreChoices project(const ChoiceList& choices) const {
        CoreChoices out = choices;
        for (const auto& level : m_levels) out = level->project(out);
        return out;
    }

    void describeReduction(const Reduction& reduction) {
        auto& s = m_out.statistics;
        const ReductionStatistics& r = reduction.statistics();
        s.coreNodes = r.nodes;
        s.corePairs = r.pairs;
        s.moments = r.moments;
        for (const auto& node : reduction.core().nodes) s.coreChoices += node.cost.size();
        s.merged = r.merged;
        s.eliminated = r.eliminated;
        s.separable = r.separable;
        s.forbidden = r.forbidden;
        s.dominated = r.dominated;
    }

    std::string explain(const Reduction::Conflict& conflict, const std::vector<Time>& begin) const;

    void finish() {
        m_out.statistics.seconds = m_monitor.seconds();
        m_out.statistics.largestStep = m_monitor.largestStep();
        if (m_out.status == Status::Infeasible) return;
        if (m_out.choices.empty()) {
            m_out.status = Status::Cancelled;
            return;
        }
        m_out.status = m_out.bound >= m_out.cost ? Status::Optimal : Status::Feasible;
        if (m_out.statistics.method.empty()) {
            m_out.statistics.method =
                m_out.status == Status::Optimal ? "the bound meets the answer" : "bound by prices";
        }
    }

    const IntervalProblem& m_problem;
    const IntervalOptions& m_options;
    Options m_clock;
    Monitor m_monitor;
    Crew m_crew;
    bool m_integer = false;
    IntervalSolution m_out;
    std::vector<std::unique_ptr<Reduction>> m_levels;
    std::uint64_t m_round = 0;
};

std::string IntervalSolver::explain(const Reduction::Conflict& conflict,
                                    const std::vector<Time>& begin) const {
    if (!conflict.moment) {
        return fmt::format("node {} has no choice that fits those of the others", *conflict.node);
    }
    const Time time = begin[*conflict.moment];
    std::vector<std::pair<double, NodeId>> users;
    for (NodeId i = 0; i < m_problem.nodes.size(); ++i) {
        const auto& node = m_problem.nodes[i];
        if (node.usage.empty() || node.alive.begin > time || node.alive.end <= time) continue;
        double least = kInfinite;
        for (std::size_t c = 0; c < node.cost.size(); ++c) {
            if (node.cost[c] < kInfinite) least = std::min(least, node.usage[c]);
        }
        if (least > 0) users.emplace_back(-least, i);
    }
    std::ranges::sort(users);
    constexpr std::size_t kNamed = 8;
    std::vector<NodeId> named;
    for (const auto& user : users) {
        if (named.size() < kNamed) named.push_back(user.second);
    }
    const auto until = *conflict.moment + 1 < begin.size()
                           ? fmt::format(" to {}", begin[*conflict.moment + 1])
                           : std::string();
    return fmt::format("from time {}{} the nodes alive need at least {} where the limit is {}: "
                       "node{} {}{}",
                       time, until, m_problem.limit + conflict.excess, m_problem.limit,
                       named.size() == 1 ? "" : "s", fmt::join(named, ", "),
                       users.size() > kNamed ? fmt::format(" and {} more", users.size() - kNamed)
                                             : std::string());
}

} // namespace

double IntervalSolution::gap() const {
    if (cost == bound) return 0;
    return cost == kInfinite ? kInfinite : (cost - bound) / std::abs(cost);
}

IntervalSolution solve(const IntervalProblem& problem, const IntervalOptions& options) {
    validate(problem);
    return IntervalSolver(problem, options).run();
}

} // namespace shardlens::solve
