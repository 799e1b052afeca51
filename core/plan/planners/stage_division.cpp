// SPDX-License-Identifier: Apache-2.0
// See stage_division.h. The number of stages is a dimension of the program only where it matters: a
// stage's memory depends on how many follow it.
#include "core/plan/planners/stage_division.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shardlens {

namespace {

constexpr double kUnreachable = std::numeric_limits<double>::infinity();
constexpr double kMostCounted = 1 << 20; // Alpa clips numbers of successors there

/// All dynamic programs of one problem.
class Division {
public:
    explicit Division(const StageProblem& problem)
        : m_problem(problem), m_layers(problem.layers()), m_devices(problem.devices()) {
        collect();
        m_stages = m_byCount ? std::min(m_layers, m_devices) : 1;
        m_least.resize(static_cast<std::size_t>(m_stages));
        for (int s = 0; s < m_stages; ++s) m_least[static_cast<std::size_t>(s)] = leastSeconds(s);
    }

    const std::vector<double>& candidates() const { return m_candidates; }
    std::size_t programs() const { return m_programs; }

    /// Least sum of stages none of which is longer than tMax; infinite if there is none.
    double run(double tMax) {
        ++m_programs;
        const std::size_t row = static_cast<std::size_t>(m_devices) + 1;
        const std::size_t table = row * (static_cast<std::size_t>(m_layers) + 1);
        m_sums.assign(table * (m_byCount ? static_cast<std::size_t>(m_stages) + 1 : 1),
                      kUnreachable);
        at(0, m_layers)[0] = 0;
        double best = kUnreachable;
        for (int s = 1; s <= m_stages; ++s) {
            for (int first = m_layers - 1; first >= 0; --first) addStages(s, first, tMax);
            best = std::min(best, at(s, 0)[m_devices]);
        }
        return best;
    }

    /// The stages of the last run.
    std::vector<DividedStage> decode(double tMax) const {
        int s = 1;
        for (int other = 1; other <= m_stages; ++other)
            if (at(other, 0)[m_devices] < at(s, 0)[m_devices]) s = other;
        std::vector<DividedStage> stages;
        int first = 0, devices = m_devices;
        while (first < m_layers) {
            stages.push_back(stageAt(s, first, devices, tMax));
            first = stages.back().last + 1;
            devices -= devicesOf(stages.back().submesh);
            if (m_byCount) --s;
        }
        return stages;
    }

private:
    void collect() {
        for (int first = 0; first < m_layers; ++first)
            for (int last = first; last < m_layers; ++last)
                for (int m = 0; m < submeshCount(); ++m)
                    for (const StageOption& option : m_problem.options(first, last, m)) {
                        if (!std::isfinite(option.seconds) || option.mostSuccessors < 0) continue;
                        m_candidates.push_back(option.seconds);
                        m_byCount |= option.mostSuccessors < std::min(m_layers, m_devices) - 1;
                    }
        std::ranges::sort(m_candidates);
        m_candidates.erase(std::unique(m_candidates.begin(), m_candidates.end()),
                           m_candidates.end());
    }

    /// By cell: the quickest option that lets `successors` stages follow.
    std::vector<double> leastSeconds(int successors) const {
        std::vector<double> least;
        for (int first = 0; first < m_layers; ++first)
            for (int last = first; last < m_layers; ++last)
                for (int m = 0; m < submeshCount(); ++m) {
                    const StageOption* option = quickest(first, last, m, successors);
                    least.push_back(option ? option->seconds : kUnreachable);
                }
        return least;
    }

    const StageOption* quickest(int first, int last, int submesh, int successors) const {
        const StageOption* best = nullptr;
        for (const StageOption& option : m_problem.options(first, last, submesh))
            if (option.mostSuccessors >= successors && std::isfinite(option.seconds) &&
                (!best || option.seconds < best->seconds))
                best = &option;
        return best;
    }

    /// Sums of s stages from layer `first` on.
    void addStages(int s, int first, double tMax) {
        double* out = at(s, first);
        const std::vector<double>& least = m_least[static_cast<std::size_t>(s - 1)];
        for (int last = first; last < m_layers; ++last) {
            const double* rest = at(s - 1, last + 1);
            for (int m = 0; m < submeshCount(); ++m) {
                const double seconds = least[cell(first, last, m)];
                if (!(seconds <= tMax)) continue;
                const int n = devicesOf(m);
                for (int d = n; d <= m_devices; ++d)
                    out[d] = std::min(out[d], seconds + rest[d - n]);
            }
        }
    }

    DividedStage stageAt(int s, int first, int devices, double tMax) const {
        const double sum = at(s, first)[devices];
        const std::vector<double>& least = m_least[static_cast<std::size_t>(s - 1)];
        for (int last = first; last < m_layers; ++last)
            for (int m = 0; m < submeshCount(); ++m) {
                const double seconds = least[cell(first, last, m)];
                const int n = devicesOf(m);
                if (seconds <= tMax && n <= devices &&
                    seconds + at(s - 1, last + 1)[devices - n] == sum)
                    return {first, last, m, *quickest(first, last, m, s - 1)};
            }
        throw PlanError("the stages of an optimum could not be read back", "stage division");
    }

    int submeshCount() const { return static_cast<int>(m_problem.submeshDevices().size()); }
    int devicesOf(int submesh) const {
        return m_problem.submeshDevices()[static_cast<std::size_t>(submesh)];
    }
    std::size_t cell(int first, int last, int submesh) const {
        const int before = first * m_layers - first * (first - 1) / 2; // triangular
        return static_cast<std::size_t>((before + last - first) * submeshCount() + submesh);
    }
    /// Sums by devices: of s stages, or of any number where it does not matter.
    double* at(int s, int first) { return m_sums.data() + offset(s, first); }
    const double* at(int s, int first) const { return m_sums.data() + offset(s, first); }
    std::size_t offset(int s, int first) const {
        const std::size_t count = m_byCount ? static_cast<std::size_t>(s) : 0;
        return (count * static_cast<std::size_t>(m_layers + 1) + static_cast<std::size_t>(first)) *
               static_cast<std::size_t>(m_devices + 1);
    }

    const StageProblem& m_problem;
    int m_layers, m_devices, m_stages = 1;
    bool m_byCount = false;
    std::vector<double> m_candidates;
    std::vector<std::vector<double>> m_least; ///< [successors][cell]
    std::vector<double> m_sums;
    std::size_t m_programs = 0;
};

/// The first of the candidates for which there is a division at all.
std::size_t firstFeasible(Division& division) {
    const std::vector<double>& candidates = division.candidates();
    const auto at = std::ranges::partition_point(
        candidates, [&](double tMax) { return !std::isfinite(division.run(tMax)); });
    return static_cast<std::size_t>(at - candidates.begin());
}

} // namespace

int mostSuccessors(double available, double peak, double initial, double intermediate) {
    const double room = available - peak - initial;
    if (room < 0) return -1;
    if (intermediate <= 0) return static_cast<int>(kMostCounted);
    return static_cast<int>(std::clamp(std::floor(room / intermediate) - 1, -1.0, kMostCounted));
}

bool sharesMatch(double workShare, double deviceShare, double tolerance) {
    return workShare / (1 + tolerance) <= deviceShare && deviceShare <= workShare * (1 + tolerance);
}

StageProblem::StageProblem(int layers, int devices, std::vector<int> submeshDevices,
                           double microBatches)
    : m_layers(layers), m_devices(devices), m_submeshDevices(std::move(submeshDevices)),
      m_microBatches(microBatches) {
    if (layers < 1 || devices < 1 || !(microBatches >= 1))
        throw PlanError(fmt::format("{} layers, {} devices and {} micro-batches make no pipeline",
                                    layers, devices, microBatches),
                        "stage division", "each must be at least 1");
    m_options.resize(static_cast<std::size_t>(layers) * static_cast<std::size_t>(layers) *
                     m_submeshDevices.size());
}

std::size_t StageProblem::cell(int first, int last, int submesh) const {
    return (static_cast<std::size_t>(first) * static_cast<std::size_t>(m_layers) +
            static_cast<std::size_t>(last)) *
               m_submeshDevices.size() +
           static_cast<std::size_t>(submesh);
}

void StageProblem::offer(int first, int last, int submesh, const StageOption& option) {
    m_options[cell(first, last, submesh)].push_back(option);
}

const std::vector<StageOption>& StageProblem::options(int first, int last, int submesh) const {
    return m_options[cell(first, last, submesh)];
}

double pipelineSeconds(const std::vector<DividedStage>& stages, double microBatches) {
    double sum = 0, longest = 0;
    for (const DividedStage& stage : stages) {
        sum += stage.option.seconds;
        longest = std::max(longest, stage.option.seconds);
    }
    return sum + (microBatches - 1) * longest;
}

std::optional<StageDivision> divideStages(const StageProblem& problem,
                                          const DivisionOptions& options) {
    Division division(problem);
    const double following = problem.microBatches() - 1;
    const double leastSum = division.run(kUnreachable); // no division has a smaller one
    if (!std::isfinite(leastSum)) return std::nullopt;

    StageDivision best;
    best.seconds = kUnreachable;
    double tried = -kUnreachable, bestMax = kUnreachable;
    for (std::size_t i = firstFeasible(division); i < division.candidates().size(); ++i) {
        const double tMax = division.candidates()[i];
        if (options.earlyStop && leastSum + following * tMax >= best.seconds) break;
        if (tMax - tried < options.spacing) continue;
        tried = tMax;
        const double sum = division.run(tMax);
        if (sum + following * tMax >= best.seconds) continue;
        const double seconds = pipelineSeconds(division.decode(tMax), problem.microBatches());
        if (seconds >= best.seconds) continue;
        best.seconds = seconds;
        bestMax = tMax;
    }
    division.run(bestMax);
    best.stages = division.decode(bestMax);
    for (const DividedStage& stage : best.stages)
        best.longest = std::max(best.longest, stage.option.seconds);
    best.programs = division.programs();
    return best;
}

} // namespace shardlens
