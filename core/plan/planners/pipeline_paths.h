// SPDX-License-Identifier: Apache-2.0
// Bounds for the choice of stages (pipeline_problem.h) where the largest gate G, without what comes
// once, and the largest of what comes once O lie in a bracket, and the stretches that can still be
// part of something better. With g_i and o_i those of stage i, or the low ends of the bracket where
// they are below it, and the devices n_i of the stages, which sum to at most D, so that n_i / D are
// weights of at most one in all, for any share s of G + O and any price m of a device
//     T >= sum of f_i + G + O
//       >= sum of (f_i + n_i (s (g_i + o_i) / D + m)) + (1 - s) low - m D,
// where f_i = fill_i - spare (low - gate_i) as long as no stage behind has a gate of the bracket,
// and fill_i - spareAhead (low - gate_i) before the last one that has: a sum over the stages: its
// least value is a shortest path along the chain, with or without the number of stages that follow
// as a second coordinate. The best price is found by bisection (Lagrangian dual, as in Handler and
// Zang 1980). Paths from both ends meet in every stretch, and what the best pipeline with it in
// takes at least is known without looking for it (reduced cost fixing). Brackets inside the bracket
// need only look at what is left.
#pragma once

#include "core/plan/planners/pipeline_problem.h"

#include <algorithm>
#include <array>
#include <memory>

namespace shardlens {

using SharedCells = std::shared_ptr<const StageCells>;

/// Ranges of the largest gate, without what comes once, and of the largest of that; seconds.
struct GateBracket {
    double low = 0, high = 0, onceLow = 0, onceHigh = 0;

    double least() const { return std::max(low, 0.0) + onceLow; }
    bool holds(const StageCandidate& c) const {
        return c.ownGate() <= high && c.once <= onceHigh && c.mostBehind >= 0;
    }
    /// Of the step, at least.
    double seconds(const StageCandidate& c) const {
        return std::max({c.ownGate(), low, 0.0}) + std::max(c.once, onceLow);
    }
};

class PipelinePaths {
public:
    /// @param mostStages that a pipeline may have
    PipelinePaths(const PipelineProblem& problem, int mostStages);

    /// Prices of all lists in a bracket. @param device seconds that one counts for: s low / D + m
    void price(const GateBracket& bracket, double device);
    /// Seconds of a device, as of the last prices.
    double devicePrice() const { return m_device; }
    /// Whether it matters how many stages follow.
    bool isCounted() const { return m_counted; }
    /// The bound. Replaces the cells if there are some that no path below `target` has.
    double bound(SharedCells& cells, double target);
    /// The same without a count, which is quicker.
    double uncounted(SharedCells& cells, double target);
    /// Of the last path without a count.
    int devicesOnPath() const { return m_devicesTo[atEnd()].back(); }

    /// Of the stages behind a unit: whether one of them has a gate of the bracket. It makes no
    /// difference where nothing is spared.
    enum Behind : std::uint8_t { Quick, Slow };
    Behind atEnd() const { return m_problem.spare > 0 ? Quick : Slow; }
    /// Least sum over the stages of units 0 … unit-1 with `behind` stages after them, as of the
    /// last bound().
    double ahead(Behind kind, int behind, int unit) const {
        return m_counted ? m_ahead[kind][at(behind, unit)]
                         : m_to[kind][static_cast<std::size_t>(unit)];
    }
    /// Least of a stage of a list with `behind` stages after it and all that is ahead of it.
    double least(Behind kind, std::int32_t list, int first, int behind) const;
    /// No pipeline that was dropped so far takes less.
    double dropped() const { return m_dropped; }
    void drop(double bound) { m_dropped = std::min(m_dropped, bound); }
    int devices() const { return m_devices; }
    std::size_t paths() const { return m_paths; }

private:
    struct Step {
        double cost = 0;
        int mostBehind = 0, devices = 0;
    };
    std::size_t at(int behind, int unit) const {
        return static_cast<std::size_t>(behind) * (static_cast<std::size_t>(m_units) + 1) +
               static_cast<std::size_t>(unit);
    }
    /// What a stage is, and what it makes of the stages behind: Quick stays so, Quick becomes Slow,
    /// Slow stays so whatever the stage.
    enum Kind : std::uint8_t { StaysQuick, GetsSlow, StaysSlow, Kinds };
    static std::size_t at(std::int32_t list, Kind kind) {
        return static_cast<std::size_t>(list) * Kinds + kind;
    }
    std::span<const Step> steps(std::size_t entry) const {
        return std::span(m_steps).subspan(m_stepsBegin[entry],
                                          m_stepsBegin[entry + 1] - m_stepsBegin[entry]);
    }
    double stepLeast(std::size_t entry, int behind) const;
    void addSteps(const GateBracket& bracket, int list, Kind kind, double share, double extra);
    void addStep(std::size_t from, Step step);
    void pathsTo(const StageCells& cells);
    void pathsFrom(const StageCells& cells, double target);
    double counted(SharedCells& cells, double target);
    int pathsBehind(const StageCells& cells, double target);
    void setLeastAt(int behind);
    void setAhead(const StageCells& cells, int behind, int unit, std::vector<double>& through);
    /// @param through by number of the cell and the unit after it: the best pipeline with it in
    template <typename Through>
    void filter(SharedCells& cells, double target, Through&& through);

    const PipelineProblem& m_problem;
    int m_units, m_devices, m_most;
    bool m_counted;
    double m_device = 0, m_offset = 0; ///< of the prices: each device, once
    std::vector<Step>
        m_steps; ///< of each list and kind: cheapest first, each with more room behind
    std::vector<std::size_t> m_stepsBegin;
    std::vector<double> m_least, m_leastAt; ///< of them: with any number of stages behind; with one
    std::vector<int> m_leastDevices;        ///< of the least one
    using ByKind = std::array<std::vector<double>, 2>;
    ByKind m_to, m_from;                         ///< by unit: up to it, from it on
    std::array<std::vector<int>, 2> m_devicesTo; ///< by unit: up to it
    ByKind m_behind, m_ahead;                    ///< by stages behind and unit
    std::vector<char> m_keep;                    ///< by cell
    double m_dropped = std::numeric_limits<double>::infinity();
    std::size_t m_paths = 0;
};

} // namespace shardlens
