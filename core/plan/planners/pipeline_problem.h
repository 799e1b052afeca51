// SPDX-License-Identifier: Apache-2.0
// The choice of pipeline stages as a problem of its own: a chain of units is cut into stages, each
// stage takes one of the candidates that are offered for its stretch, and devices are few. It knows
// nothing of models or schedules; those are in the candidates. A step takes
//     T = max over stages k of (sum of (fill_i - s_i max(g_k - g_i, 0)) + g_k) + max of once_i
// with g_i = gate_i - once_i, s_i = spare for the stages behind k and spareAhead for those before
// it: with t the seconds of a micro-batch and m of them, 1F1B has fill = t, gate = (m - 1) t + what
// comes once a step, spare = 1 / (m - 1) and spareAhead = 0; other schedules have other shares
// (schedule_model.h). Fewer than 1 / spare stages should be quicker than k, so that T grows with
// it.
//
// Exact. The largest gate is enumerated, as Alpa enumerates its t_max, and the largest once, but in
// brackets of which the one with the least bound (pipeline_paths.h) is looked into first. It is
// halved until it is narrow, and then the device limit is met exactly by labels (stages behind,
// units left, devices used), the most promising first (resource-constrained shortest paths, Irnich
// and Desaulniers 2005; A*, Hart, Nilsson and Raphael 1968). What is left when the best bound is no
// better than the best pipeline is dropped.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <stop_token>
#include <vector>

namespace shardlens {

/// Seconds of what cannot be.
inline constexpr double kNoPipeline = std::numeric_limits<double>::infinity();

/// Kinds of devices that a cluster may have.
inline constexpr std::size_t kDevicePools = 2;
using DeviceCounts = std::array<int, kDevicePools>;

struct StageCandidate {
    double fill = 0, gate = 0; ///< seconds
    int devices = 1;
    std::uint8_t pool = 0;                            ///< which kind of device
    int mostBehind = std::numeric_limits<int>::max(); ///< stages that may follow it
    std::uint32_t id = 0;                             ///< the caller's
    double once = 0; ///< of gate, at most: what all stages begin together at the end of the step

    double ownGate() const { return gate - once; }
    /// With what is saved where a stage of another gate is waited for.
    double fillBelow(double other, double spare) const {
        return fill - spare * std::max(other - ownGate(), 0.0);
    }
};

enum class Gates : std::uint8_t { Compared, Equal };
/// Without those that another one beats in everything. @param gates may be taken as equal
std::vector<StageCandidate> undominated(std::vector<StageCandidate> candidates,
                                        Gates gates = Gates::Compared);

/// Stretches that stages may take, by the unit after their last.
struct StageCells {
    struct Cell {
        std::int32_t first = 0, list = 0;
    };
    std::vector<std::size_t> begin; ///< units + 2 entries
    std::vector<Cell> cells;

    std::span<const Cell> before(int unit) const {
        const auto u = static_cast<std::size_t>(unit);
        return std::span(cells).subspan(begin[u], begin[u + 1] - begin[u]);
    }
};

class PipelineProblem {
public:
    PipelineProblem(int units, DeviceCounts devices);

    int units() const { return m_units; }
    const DeviceCounts& devices() const { return m_devices; }
    int allDevices() const;

    /// Adds a list of candidates that stretches may share. @return its number
    int addList(std::vector<StageCandidate> candidates);
    int lists() const { return static_cast<int>(m_listBegin.size()) - 1; }
    std::span<const StageCandidate> list(int number) const;
    /// Sets how many stages may follow each candidate, by the caller's function of it; those with
    /// less than 0 cannot be taken.
    template <typename F>
    void limitBehind(F&& mostBehind) {
        for (StageCandidate& c : m_candidates) c.mostBehind = mostBehind(c);
    }

    void use(int first, int last, int list);
    const StageCells& cells() const;
    /// Leaves only the given ones.
    void setCells(StageCells cells);
    std::span<const StageCandidate> candidates(int first, int last) const;

    int mostStages = std::numeric_limits<int>::max();
    int exactStages = 0;              ///< 0 = any number
    double spare = 0, spareAhead = 0; ///< see above; none, and none

private:
    struct Use {
        int first, last, list;
    };
    int m_units;
    DeviceCounts m_devices;
    std::vector<StageCandidate> m_candidates; ///< list after list
    std::vector<std::size_t> m_listBegin{0};
    std::vector<Use> m_uses; ///< that are not in m_cells yet
    mutable StageCells m_cells;
    mutable std::size_t m_taken = 0; ///< of m_uses
};

struct PipelineStage {
    int first = 0, last = 0; ///< units, both included
    StageCandidate candidate;
};

struct PipelineSolution {
    double seconds = std::numeric_limits<double>::infinity();
    double bound = 0;
    std::vector<PipelineStage> stages; ///< empty: nothing better than the incumbent
    std::size_t paths = 0, labels = 0; ///< work
};

struct PipelineSearchOptions {
    double incumbent = std::numeric_limits<double>::infinity(); ///< only better ones are looked for
    double tolerance = 0;               ///< brackets within this share of the best are not searched
    double resolution = 0;              ///< a bracket narrower than this share is not halved
    std::size_t mostLabels = 2'000'000; ///< of one bracket; beyond it a bound stands
    std::stop_token stop{};
};

/// Seconds of given stages.
double pipelineSeconds(const std::vector<PipelineStage>& stages, double spare = 0,
                       double spareAhead = 0);

/// Drops the cells that no pipeline below a limit has, however many stages may follow a candidate.
/// @return no pipeline takes less
double prunePipeline(PipelineProblem& problem, double below);

/// @throws Cancelled
PipelineSolution solvePipeline(const PipelineProblem& problem,
                               const PipelineSearchOptions& options = {});

} // namespace shardlens
