// SPDX-License-Identifier: Apache-2.0
// Solves the choice of stages: see pipeline_problem.h for the method.
#include "core/error.h"
#include "core/plan/planners/pipeline_labels.h"

#include <queue>

#include <algorithm>

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
Tuned tune(PipelinePaths& paths, SharedCells& cells, double low, double high, double device,
           double target) {
    constexpr int kTrials = 8;
    const int devices = paths.devices();
    Tuned best;
    double least = 0, most = kNoPipeline;
    if (device == 0) device = std::max(low, high / 64) / devices;
    for (int trial = 0; trial < kTrials && device > 0 && best.bound < target; ++trial) {
        paths.price(low, high, device);
        const double bound = paths.uncounted(cells, target);
        if (bound > best.bound) best = {bound, device};
        const int used = paths.devicesOnPath();
        if (used == devices) break;
        (used > devices ? least : most) = device;
        device = most == kNoPipeline ? 2 * device : (least + most) / 2;
    }
    return best;
}

class Search {
public:
    Search(const PipelineProblem& problem, const PipelineSearchOptions& options)
        : m_problem(problem), m_options(options), m_paths(problem, mostStages(problem)) {
        for (int list = 0; list < problem.lists(); ++list)
            for (const StageCandidate& c : problem.list(list))
                if (c.mostBehind >= 0) m_gates.push_back(c.gate);
        std::ranges::sort(m_gates);
        m_gates.erase(std::unique(m_gates.begin(), m_gates.end()), m_gates.end());
        m_best.seconds = options.incumbent;
    }

    PipelineSolution run() {
        double bound = kNoPipeline;
        if (!m_gates.empty()) {
            push({0, 0, 0, m_gates.size() - 1, unowned(m_problem.cells())});
            bound = takeBrackets();
        }
        m_best.bound = std::min({bound, m_paths.dropped(), m_best.seconds});
        m_best.paths = m_paths.paths();
        return std::move(m_best);
    }

private:
    /// Pipelines whose largest gate is one of m_gates, from `low` to `high`.
    struct Bracket {
        double bound = 0;
        double device = 0; ///< seconds that one is priced with
        std::size_t low = 0, high = 0;
        SharedCells cells; ///< that may be part of something better
        bool operator>(const Bracket& other) const { return bound > other.bound; }
    };

    double target() const { return m_best.seconds * (1 - m_options.tolerance); }

    /// @return what the brackets that are left take at least
    double takeBrackets() {
        while (!m_open.empty()) {
            if (m_options.stop.stop_requested()) throw Cancelled();
            if (m_open.front().bound >= target()) return m_open.front().bound;
            std::ranges::pop_heap(m_open, std::greater<>{});
            Bracket bracket = std::move(m_open.back());
            m_open.pop_back();
            if (m_gates[bracket.high] <= m_gates[bracket.low] * (1 + m_options.resolution)) {
                look(bracket);
                continue;
            }
            const std::size_t middle = split(bracket.low, bracket.high);
            push({bracket.bound, bracket.device, bracket.low, middle, bracket.cells});
            push({bracket.bound, bracket.device, middle + 1, bracket.high,
                  std::move(bracket.cells)});
        }
        return kNoPipeline;
    }

    /// Bounds a bracket and keeps it if it can hold something better.
    void push(Bracket bracket) {
        const Tuned tuned = tune(m_paths, bracket.cells, m_gates[bracket.low],
                                 m_gates[bracket.high], bracket.device, target());
        bracket.bound = std::max(bracket.bound, tuned.bound);
        bracket.device = tuned.device;
        if (bracket.bound < target()) {
            m_paths.price(m_gates[bracket.low], m_gates[bracket.high], bracket.device);
            bracket.bound = std::max(bracket.bound, m_paths.bound(bracket.cells, target()));
        }
        if (bracket.bound >= target()) {
            m_paths.drop(bracket.bound);
            return;
        }
        m_open.push_back(std::move(bracket));
        std::ranges::push_heap(m_open, std::greater<>{});
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

    void look(Bracket& bracket) {
        const double low = m_gates[bracket.low], high = m_gates[bracket.high];
        m_paths.price(low, high, bracket.device);
        m_paths.bound(bracket.cells, target());
        PipelineLabels labels(m_problem, m_paths, *bracket.cells, low, high);
        labels.run(m_best, m_options);
        m_best.labels += labels.count();
    }

    const PipelineProblem& m_problem;
    const PipelineSearchOptions& m_options;
    PipelinePaths m_paths;
    std::vector<double> m_gates;
    std::vector<Bracket> m_open; ///< a heap, the least bound first
    PipelineSolution m_best;
};

} // namespace

double prunePipeline(PipelineProblem& problem, double below) {
    PipelinePaths paths(problem, mostStages(problem));
    SharedCells cells = unowned(problem.cells());
    double most = 0;
    for (int list = 0; list < problem.lists(); ++list)
        for (const StageCandidate& c : problem.list(list)) most = std::max(most, c.gate);
    const double bound = tune(paths, cells, 0, most, 0, below).bound;
    if (cells.get() != &problem.cells()) problem.setCells(*cells);
    return std::min(bound, below);
}

PipelineSolution solvePipeline(const PipelineProblem& problem,
                               const PipelineSearchOptions& options) {
    return Search(problem, options).run();
}

} // namespace shardlens
