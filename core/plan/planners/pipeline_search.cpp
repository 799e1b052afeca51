// SPDX-License-Identifier: Apache-2.0
// Solves the choice of stages: see pipeline_problem.h for the method.
#include "core/error.h"
#include "core/plan/planners/pipeline_labels.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace shardlens {

namespace {

/// The problem's own, which outlive the search.
SharedCells unowned(const StageCells& cells) {
    return {std::shared_ptr<void>{}, &cells};
}

int mostStages(const PipelineProblem& problem) {
    if (problem.exactStages > 0) return problem.exactStages;
    return std::min({problem.units(), problem.mostStages, problem.allDevices()});
}

struct Tuned {
    double bound = -kNoPipeline;
    double device = 0; ///< seconds that one is priced with
};

/// Prices devices so that the path of the bound uses about as many as there are.
/// @param device to begin with; 0 = unknown
Tuned tune(PipelinePaths& paths, SharedCells& cells, const GateBracket& bracket, double device,
           double target) {
    constexpr int kTrials = 8;
    const int devices = paths.devices();
    Tuned best;
    double least = 0, most = kNoPipeline;
    if (device == 0)
        device = std::max(bracket.least(), (bracket.high + bracket.onceHigh) / 64) / devices;
    for (int trial = 0; trial < kTrials && device > 0 && best.bound < target; ++trial) {
        paths.price(bracket, device);
        const double bound = paths.uncounted(cells, target);
        if (bound > best.bound) best = {bound, device};
        const int used = paths.devicesOnPath();
        if (used == devices) break;
        (used > devices ? least : most) = device;
        device = most == kNoPipeline ? 2 * device : (least + most) / 2;
    }
    return best;
}

/// What the gates of candidates are, without what comes once, and what comes once; ascending.
struct GateValues {
    std::vector<double> gates, onces;
    explicit GateValues(const PipelineProblem& problem) {
        for (int list = 0; list < problem.lists(); ++list)
            for (const StageCandidate& c : problem.list(list)) {
                if (c.mostBehind < 0) continue;
                gates.push_back(c.ownGate());
                onces.push_back(c.once);
            }
        for (auto* values : {&gates, &onces}) {
            std::ranges::sort(*values);
            values->erase(std::unique(values->begin(), values->end()), values->end());
        }
    }
};

/// Numbers of values, both ends included.
struct Range {
    std::size_t low = 0, high = 0;

    double width(const std::vector<double>& values) const { return values[high] - values[low]; }
    /// Halves the range of values rather than their number.
    std::pair<Range, Range> halves(const std::vector<double>& values) const {
        const double middle = (values[low] + values[high]) / 2;
        const auto begin = values.begin();
        const auto found =
            std::upper_bound(begin + std::ptrdiff_t(low), begin + std::ptrdiff_t(high), middle);
        const std::size_t last =
            std::clamp(static_cast<std::size_t>(found - begin), low + 1, high) - 1;
        return {{low, last}, {last + 1, high}};
    }
};

class Search {
public:
    Search(const PipelineProblem& problem, const PipelineSearchOptions& options)
        : m_problem(problem), m_options(options), m_paths(problem, mostStages(problem)),
          m_values(problem) {
        m_best.seconds = options.incumbent;
    }

    PipelineSolution run() {
        double bound = kNoPipeline;
        if (!m_values.gates.empty()) {
            push({0,
                  0,
                  {0, m_values.gates.size() - 1},
                  {0, m_values.onces.size() - 1},
                  unowned(m_problem.cells())});
            bound = takeBrackets();
        }
        m_best.bound = std::min({bound, m_paths.dropped(), m_best.seconds});
        m_best.paths = m_paths.paths();
        return std::move(m_best);
    }

private:
    /// Pipelines whose largest gate and largest once are in ranges of m_values.
    struct Bracket {
        double bound = 0;
        double device = 0; ///< seconds that one is priced with
        Range gates, onces;
        SharedCells cells; ///< that may be part of something better
        bool operator>(const Bracket& other) const { return bound > other.bound; }
    };

    double target() const { return m_best.seconds * (1 - m_options.tolerance); }

    GateBracket valuesOf(const Bracket& b) const {
        return {m_values.gates[b.gates.low], m_values.gates[b.gates.high],
                m_values.onces[b.onces.low], m_values.onces[b.onces.high]};
    }

    /// @return what the brackets that are left take at least
    double takeBrackets() {
        while (!m_open.empty()) {
            if (m_options.stop.stop_requested()) throw Cancelled();
            if (m_open.front().bound >= target()) return m_open.front().bound;
            std::ranges::pop_heap(m_open, std::greater<>{});
            Bracket bracket = std::move(m_open.back());
            m_open.pop_back();
            split(std::move(bracket));
        }
        return kNoPipeline;
    }

    /// Halves the wider range, or looks into a bracket whose ranges are narrow.
    void split(Bracket bracket) {
        const double gates = bracket.gates.width(m_values.gates),
                     onces = bracket.onces.width(m_values.onces);
        if (gates + onces <= m_options.resolution * std::max(valuesOf(bracket).least(), 0.0)) {
            look(bracket);
            return;
        }
        Bracket other = bracket;
        if (gates >= onces)
            std::tie(bracket.gates, other.gates) = bracket.gates.halves(m_values.gates);
        else
            std::tie(bracket.onces, other.onces) = bracket.onces.halves(m_values.onces);
        push(std::move(bracket));
        push(std::move(other));
    }

    /// Bounds a bracket and keeps it if it can hold something better.
    void push(Bracket bracket) {
        const GateBracket values = valuesOf(bracket);
        const Tuned tuned = tune(m_paths, bracket.cells, values, bracket.device, target());
        bracket.bound = std::max(bracket.bound, tuned.bound);
        bracket.device = tuned.device;
        if (bracket.bound < target()) {
            m_paths.price(values, bracket.device);
            bracket.bound = std::max(bracket.bound, m_paths.bound(bracket.cells, target()));
        }
        if (bracket.bound >= target()) {
            m_paths.drop(bracket.bound);
            return;
        }
        m_open.push_back(std::move(bracket));
        std::ranges::push_heap(m_open, std::greater<>{});
    }

    void look(Bracket& bracket) {
        const GateBracket values = valuesOf(bracket);
        m_paths.price(values, bracket.device);
        m_paths.bound(bracket.cells, target());
        PipelineLabels labels(m_problem, m_paths, *bracket.cells, values);
        labels.run(m_best, m_options);
        m_best.labels += labels.count();
    }

    const PipelineProblem& m_problem;
    const PipelineSearchOptions& m_options;
    PipelinePaths m_paths;
    GateValues m_values;
    std::vector<Bracket> m_open; ///< a heap, the least bound first
    PipelineSolution m_best;
};

} // namespace

double prunePipeline(PipelineProblem& problem, double below) {
    const GateValues values(problem);
    if (values.gates.empty()) return below;
    PipelinePaths paths(problem, mostStages(problem));
    SharedCells cells = unowned(problem.cells());
    const GateBracket all{values.gates.front(), values.gates.back(), values.onces.front(),
                          values.onces.back()};
    const double bound = tune(paths, cells, all, 0, below).bound;
    if (cells.get() != &problem.cells()) problem.setCells(*cells);
    return std::min(bound, below);
}

PipelineSolution solvePipeline(const PipelineProblem& problem,
                               const PipelineSearchOptions& options) {
    return Search(problem, options).run();
}

} // namespace shardlens
