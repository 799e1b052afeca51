// SPDX-License-Identifier: Apache-2.0
// See pipeline_problem.h. How many stages follow is a dimension of the paths only where some
// candidate, or the number of stages, is limited by it.
#include "core/plan/planners/pipeline_problem.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shardlens {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

bool beats(const StageCandidate& a, const StageCandidate& b) {
    return a.pool == b.pool && a.devices <= b.devices && a.fill <= b.fill && a.gate <= b.gate &&
           a.mostBehind >= b.mostBehind;
}

class Search {
public:
    Search(const PipelineProblem& problem, const PipelineSearchOptions& options)
        : m_problem(problem), m_options(options), m_units(problem.units()),
          m_devices(problem.allDevices()) {
        m_most = std::min({m_units, problem.mostStages, m_devices});
        if (problem.exactStages > 0) m_most = problem.exactStages;
        flatten();
        m_best.seconds = options.incumbent;
    }

    PipelineSolution run() {
        m_best.bound = kInf;
        if (!m_gates.empty() && m_most >= 1) {
            m_leastFill = m_counted ? uncountedPath(kInf, 0) : path(kInf, 0);
            if (std::isfinite(m_leastFill)) bracket(0, m_gates.size() - 1);
        }
        m_best.bound = std::min(m_best.bound, m_best.seconds);
        return std::move(m_best);
    }

private:
    /// A candidate at the place where its stretch ends.
    struct Arc {
        int first = 0, devices = 0, mostBehind = 0;
        double fill = 0, gate = 0;
        const StageCandidate* candidate = nullptr;
    };
    /// What a path needs of it.
    struct Step {
        int first, mostBehind;
        double cost;
    };
    struct Label {
        DeviceCounts used{};
        double fill = 0;
        int behind = 0; ///< stages that are placed, at the end of the chain
        int unit = 0;   ///< the first of them begins here
        std::int32_t before = -1;
        Arc arc{};
    };

    void flatten() {
        m_arcs.resize(static_cast<std::size_t>(m_units) + 1);
        bool counted =
            m_problem.exactStages > 0 || m_problem.mostStages < std::min(m_units, m_devices);
        for (int last = 0; last < m_units; ++last)
            for (int first = last; first >= 0; --first)
                for (const StageCandidate& c : m_problem.candidates(first, last)) {
                    if (!std::isfinite(c.gate + c.fill) || c.mostBehind < 0 ||
                        c.devices > m_problem.devices()[c.pool])
                        continue;
                    counted |= c.mostBehind < m_most - 1;
                    m_arcs[static_cast<std::size_t>(last) + 1].push_back(
                        {first, c.devices, c.mostBehind, c.fill, c.gate, &c});
                    m_gates.push_back(c.gate);
                }
        m_counted = counted;
        std::ranges::sort(m_gates);
        m_gates.erase(std::unique(m_gates.begin(), m_gates.end()), m_gates.end());
    }

    // --- bound ----------------------------------------------------------------------------------

    std::size_t at(int behind, int unit) const {
        return static_cast<std::size_t>(m_counted ? behind : 0) *
                   (static_cast<std::size_t>(m_units) + 1) +
               static_cast<std::size_t>(unit);
    }

    /// Fills m_ahead: least sum of fill + multiplier * devices over the stages of units 0 … unit-1,
    /// with `behind` stages after them. @return that of the whole chain
    double path(double limit, double multiplier) {
        if (m_options.stop.stop_requested()) throw Cancelled();
        ++m_best.paths;
        const std::size_t layers = m_counted ? static_cast<std::size_t>(m_most) + 1 : 1;
        findSteps(limit, multiplier);
        m_ahead.assign(layers * (static_cast<std::size_t>(m_units) + 1), kInf);
        if (!m_counted) {
            m_ahead[0] = 0;
            for (int unit = 1; unit <= m_units; ++unit) relax(0, unit);
            return m_ahead[at(0, m_units)];
        }
        for (int behind = m_most; behind >= 0; --behind) {
            if (m_problem.exactStages == 0 || behind == m_most) m_ahead[at(behind, 0)] = 0;
            if (behind == m_most) continue;
            for (int unit = 1; unit <= m_units - behind; ++unit) relax(behind, unit);
        }
        return m_ahead[at(0, m_units)];
    }

    /// The same bound, however many stages follow.
    double uncountedPath(double limit, double multiplier) {
        ++m_best.paths;
        std::vector<double> ahead(static_cast<std::size_t>(m_units) + 1, kInf);
        ahead[0] = 0;
        for (int unit = 1; unit <= m_units; ++unit)
            for (const Arc& arc : m_arcs[static_cast<std::size_t>(unit)])
                if (arc.gate <= limit)
                    ahead[static_cast<std::size_t>(unit)] =
                        std::min(ahead[static_cast<std::size_t>(unit)],
                                 arc.fill + multiplier * arc.devices +
                                     ahead[static_cast<std::size_t>(arc.first)]);
        return ahead.back();
    }

    void relax(int behind, int unit) {
        double least = kInf;
        const double* rest = m_ahead.data() + at(behind + 1, 0);
        for (const Step& step : m_steps[static_cast<std::size_t>(unit)])
            if (step.mostBehind >= behind) least = std::min(least, step.cost + rest[step.first]);
        m_ahead[at(behind, unit)] = least;
    }

    /// Of each stretch the arcs that are cheapest for some number of stages behind.
    void findSteps(double limit, double multiplier) {
        m_steps.resize(m_arcs.size());
        for (std::size_t unit = 0; unit < m_arcs.size(); ++unit) {
            std::vector<Step>& steps = m_steps[unit];
            steps.clear();
            for (const Arc& arc : m_arcs[unit]) { // by stretch
                if (arc.gate > limit) continue;
                const Step step{arc.first, arc.mostBehind, arc.fill + multiplier * arc.devices};
                const auto same = [&](const Step& s) { return s.first == step.first; };
                auto begin = steps.end();
                while (begin != steps.begin() && same(*std::prev(begin))) --begin;
                const auto beaten = [](const Step& s, const Step& by) {
                    return by.cost <= s.cost && by.mostBehind >= s.mostBehind;
                };
                if (std::any_of(begin, steps.end(), [&](const Step& s) { return beaten(step, s); }))
                    continue;
                steps.erase(std::remove_if(begin, steps.end(),
                                           [&](const Step& s) { return beaten(s, step); }),
                            steps.end());
                steps.push_back(step);
            }
        }
    }

    // --- brackets -------------------------------------------------------------------------------

    double target() const { return m_best.seconds * (1 - m_options.tolerance); }

    void bracket(std::size_t low, std::size_t high) {
        const double g = m_gates[low];
        double bound = m_leastFill + g;
        if (m_counted && bound < target()) // a quick one first
            bound = std::max(bound, uncountedPath(m_gates[high], g / m_devices));
        if (bound < target()) bound = std::max(bound, path(m_gates[high], g / m_devices));
        if (!std::isfinite(bound)) return;
        if (bound >= target()) {
            m_best.bound = std::min(m_best.bound, bound);
            return;
        }
        if (low < high && m_gates[high] > g * (1 + m_options.resolution)) {
            const std::size_t middle = split(low, high);
            bracket(low, middle);
            bracket(middle + 1, high);
            return;
        }
        m_best.bound = std::min(m_best.bound, std::max(bound, searchLabels(m_gates[high], g)));
    }

    /// Halves the range of values rather than their number.
    std::size_t split(std::size_t low, std::size_t high) const {
        const double middle = (m_gates[low] + m_gates[high]) / 2;
        const auto begin = m_gates.begin();
        const auto found =
            std::upper_bound(begin + std::ptrdiff_t(low), begin + std::ptrdiff_t(high), middle);
        const auto at = static_cast<std::size_t>(found - begin);
        return std::clamp(at, low + 1, high) - 1;
    }

    // --- labels ---------------------------------------------------------------------------------

    /// The best stages with gates up to `limit`, m_ahead being those of that limit.
    /// @return a bound on all of them whose largest gate is at least `least`
    double searchLabels(double limit, double least) {
        const double multiplier = least / m_devices;
        std::vector<Label> labels{{{}, 0, 0, m_units, -1, {}}};
        std::vector<std::vector<std::int32_t>> front(
            (static_cast<std::size_t>(m_units) + 1) *
            (m_counted ? static_cast<std::size_t>(m_most) + 1 : 1));
        front[at(0, m_units)] = {0};
        double leastFill = kInf;
        const int layers = m_counted ? m_most : 0;
        for (int behind = 0; behind <= layers; ++behind)
            for (int unit = m_units; unit > 0; --unit) {
                const auto here = front[at(behind, unit)];
                for (const std::int32_t index : here)
                    extend(labels, front, index, limit, multiplier);
                if (labels.size() > m_options.mostLabels) return least;
            }
        for (std::size_t i = 0; i < labels.size(); ++i) {
            if (labels[i].unit != 0) continue;
            if (m_problem.exactStages > 0 && labels[i].behind != m_problem.exactStages) continue;
            leastFill = std::min(leastFill, labels[i].fill);
            finish(labels, static_cast<std::int32_t>(i));
        }
        m_best.labels += labels.size();
        return std::min(leastFill + least, m_best.seconds);
    }

    void extend(std::vector<Label>& labels, std::vector<std::vector<std::int32_t>>& front,
                std::int32_t index, double limit, double multiplier) {
        const Label from = labels[static_cast<std::size_t>(index)];
        if (from.behind >= m_most) return;
        for (const Arc& arc : m_arcs[static_cast<std::size_t>(from.unit)]) {
            const StageCandidate& c = *arc.candidate;
            if (c.gate > limit || c.mostBehind < from.behind) continue;
            Label next{from.used, from.fill + c.fill, from.behind + 1, arc.first, index, arc};
            next.used[c.pool] += c.devices;
            if (next.used[c.pool] > m_problem.devices()[c.pool]) continue;
            const int used = next.used[0] + next.used[1];
            const double ahead = m_ahead[at(next.behind, next.unit)];
            if (!(next.fill + multiplier * used + ahead < target())) continue;
            insert(labels, front[at(next.behind, next.unit)], next);
        }
    }

    void insert(std::vector<Label>& labels, std::vector<std::int32_t>& front,
                const Label& label) const {
        const auto notWorse = [](const Label& a, const Label& b) {
            return a.fill <= b.fill && a.used[0] <= b.used[0] && a.used[1] <= b.used[1];
        };
        const auto of = [&](std::int32_t i) -> const Label& {
            return labels[static_cast<std::size_t>(i)];
        };
        if (std::ranges::any_of(front, [&](std::int32_t i) { return notWorse(of(i), label); }))
            return;
        std::erase_if(front, [&](std::int32_t i) { return notWorse(label, of(i)); });
        front.push_back(static_cast<std::int32_t>(labels.size()));
        labels.push_back(label);
    }

    void finish(const std::vector<Label>& labels, std::int32_t index) {
        std::vector<PipelineStage> stages;
        for (std::int32_t i = index; labels[static_cast<std::size_t>(i)].before >= 0;) {
            const Label& label = labels[static_cast<std::size_t>(i)];
            const int last = labels[static_cast<std::size_t>(label.before)].unit - 1;
            stages.push_back({label.arc.first, last, *label.arc.candidate});
            i = label.before;
        }
        const double seconds = pipelineSeconds(stages);
        if (!(seconds < m_best.seconds)) return;
        m_best.seconds = seconds;
        m_best.stages = std::move(stages);
    }

    const PipelineProblem& m_problem;
    const PipelineSearchOptions& m_options;
    int m_units, m_devices, m_most = 0;
    bool m_counted = false;
    std::vector<std::vector<Arc>> m_arcs;   ///< by the unit after their last
    std::vector<std::vector<Step>> m_steps; ///< of the path at hand
    std::vector<double> m_gates;
    std::vector<double> m_ahead;
    double m_leastFill = 0;
    PipelineSolution m_best;
};

} // namespace

std::vector<StageCandidate> undominated(std::vector<StageCandidate> candidates) {
    std::ranges::sort(candidates, {}, [](const StageCandidate& c) {
        return std::tuple(c.pool, c.devices, c.gate, c.fill, -c.mostBehind);
    });
    std::vector<StageCandidate> kept;
    for (const StageCandidate& c : candidates)
        if (std::ranges::none_of(kept, [&](const StageCandidate& k) { return beats(k, c); }))
            kept.push_back(c);
    return kept;
}

PipelineProblem::PipelineProblem(int units, DeviceCounts devices)
    : m_units(units), m_devices(devices) {
    if (units < 1 || allDevices() < 1)
        throw PlanError(
            fmt::format("{} units on {} devices make no pipeline", units, allDevices()));
    const auto n = static_cast<std::size_t>(units);
    m_listOf.assign(n * (n + 1) / 2, 0);
}

int PipelineProblem::allDevices() const {
    return std::accumulate(m_devices.begin(), m_devices.end(), 0);
}

std::size_t PipelineProblem::cell(int first, int last) const {
    const auto f = static_cast<std::size_t>(first), l = static_cast<std::size_t>(last);
    return l * (l + 1) / 2 + f;
}

int PipelineProblem::addList(std::vector<StageCandidate> candidates) {
    m_lists.push_back(std::move(candidates));
    return static_cast<int>(m_lists.size() - 1);
}

void PipelineProblem::use(int first, int last, int list) {
    m_listOf[cell(first, last)] = list;
}

const std::vector<StageCandidate>& PipelineProblem::candidates(int first, int last) const {
    return m_lists[static_cast<std::size_t>(m_listOf[cell(first, last)])];
}

double pipelineSeconds(const std::vector<PipelineStage>& stages) {
    double fill = 0, gate = -kInf;
    for (const PipelineStage& stage : stages) {
        fill += stage.candidate.fill;
        gate = std::max(gate, stage.candidate.gate);
    }
    return fill + gate;
}

PipelineSolution solvePipeline(const PipelineProblem& problem,
                               const PipelineSearchOptions& options) {
    return Search(problem, options).run();
}

} // namespace shardlens
