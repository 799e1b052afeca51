// SPDX-License-Identifier: Apache-2.0
// See pipeline_paths.h. How many stages follow is a coordinate of the paths only where some
// candidate, or the number of stages, is limited by it.
#include "core/plan/planners/pipeline_paths.h"

#include <algorithm>
#include <utility>

namespace shardlens {

PipelinePaths::PipelinePaths(const PipelineProblem& problem, int mostStages)
    : m_problem(problem), m_units(problem.units()), m_devices(problem.allDevices()),
      m_most(mostStages) {
    m_counted = problem.exactStages > 0 || m_most < std::min(m_units, m_devices);
    for (int list = 0; list < problem.lists(); ++list)
        m_counted =
            m_counted || std::ranges::any_of(problem.list(list), [&](const StageCandidate& c) {
                return c.mostBehind < m_most - 1;
            });
}

// --- prices -------------------------------------------------------------------------------------

void PipelinePaths::price(const GateBracket& bracket, double device) {
    const double floor = bracket.least(), whole = floor / m_devices;
    const double share = device < whole ? device / whole : 1;
    const double extra = std::max(device - whole, 0.0);
    m_device = device;
    m_offset = (1 - share) * floor - extra * m_devices;
    m_steps.clear();
    m_stepsBegin.assign(1, 0);
    const auto entries = static_cast<std::size_t>(m_problem.lists()) * Kinds;
    m_least.assign(entries, kNoPipeline);
    m_leastDevices.assign(entries, 0);
    for (int list = 0; list < m_problem.lists(); ++list)
        for (const Kind kind : {StaysQuick, GetsSlow, StaysSlow}) {
            if (kind == StaysSlow || atEnd() == Quick) addSteps(bracket, list, kind, share, extra);
            m_stepsBegin.push_back(m_steps.size());
        }
}

void PipelinePaths::addSteps(const GateBracket& bracket, int list, Kind kind, double share,
                             double extra) {
    const std::size_t entry = at(list, kind), from = m_stepsBegin.back();
    const double spare = kind == StaysSlow ? m_problem.spareAhead : m_problem.spare;
    for (const StageCandidate& c : m_problem.list(list)) {
        if (!bracket.holds(c)) continue;
        if (kind != StaysSlow && (kind == GetsSlow) != (c.ownGate() >= bracket.low)) continue;
        const double each = share * bracket.seconds(c) / m_devices + extra;
        // of stages with few devices more is saved than their share in the gates makes good
        const double few = std::max(m_problem.spare - c.devices / double(m_devices), 0.0);
        const double fill = c.fillBelow(bracket.low, spare) -
                            few * (bracket.high - std::max(c.ownGate(), bracket.low));
        addStep(from, {fill + c.devices * each, c.mostBehind, c.devices});
    }
    if (m_steps.size() == from) return;
    m_least[entry] = m_steps[from].cost;
    m_leastDevices[entry] = m_steps[from].devices;
}

/// Keeps those that are cheapest for some number of stages behind; without a count just one.
void PipelinePaths::addStep(std::size_t from, Step step) {
    if (!m_counted) step.mostBehind = m_most;
    const auto begin = m_steps.begin() + static_cast<std::ptrdiff_t>(from);
    auto place = begin;
    for (; place != m_steps.end() && place->cost <= step.cost; ++place)
        if (place->mostBehind >= step.mostBehind) return;
    const auto beaten = std::find_if(place, m_steps.end(),
                                     [&](const Step& s) { return s.mostBehind > step.mostBehind; });
    m_steps.insert(m_steps.erase(place, beaten), step);
}

double PipelinePaths::stepLeast(std::size_t entry, int behind) const {
    for (const Step& step : steps(entry))
        if (step.mostBehind >= behind) return step.cost;
    return kNoPipeline;
}

double PipelinePaths::least(Behind kind, std::int32_t list, int first, int behind) const {
    if (kind == Slow)
        return stepLeast(at(list, StaysSlow), behind) + ahead(Slow, behind + 1, first);
    return std::min(stepLeast(at(list, StaysQuick), behind) + ahead(Quick, behind + 1, first),
                    stepLeast(at(list, GetsSlow), behind) + ahead(Slow, behind + 1, first));
}

void PipelinePaths::setLeastAt(int behind) {
    m_leastAt.resize(m_least.size());
    const bool all = atEnd() == Quick;
    for (std::size_t entry = all ? 0 : StaysSlow; entry < m_leastAt.size();
         entry += all ? 1 : Kinds)
        m_leastAt[entry] = stepLeast(entry, behind);
}

// --- paths --------------------------------------------------------------------------------------

template <typename Through>
void PipelinePaths::filter(SharedCells& cells, double target, Through&& through) {
    const std::size_t all = cells->cells.size();
    m_keep.assign(all, 0);
    std::size_t count = 0;
    for (std::size_t unit = 0; unit + 1 < cells->begin.size(); ++unit)
        for (std::size_t i = cells->begin[unit]; i < cells->begin[unit + 1]; ++i) {
            const double least = through(i, unit);
            m_keep[i] = least < target;
            count += least < target;
            if (!(least < target)) drop(least);
        }
    if (count == all) return;
    auto kept = std::make_shared<StageCells>();
    kept->cells.reserve(count);
    for (std::size_t unit = 0; unit + 1 < cells->begin.size(); ++unit) {
        kept->begin.push_back(kept->cells.size());
        for (std::size_t i = cells->begin[unit]; i < cells->begin[unit + 1]; ++i)
            if (m_keep[i]) kept->cells.push_back(cells->cells[i]);
    }
    kept->begin.push_back(kept->cells.size());
    cells = std::move(kept);
}

double PipelinePaths::bound(SharedCells& cells, double target) {
    const double any = uncounted(cells, target);
    return m_counted && any < target ? std::max(any, counted(cells, target)) : any;
}

/// From the beginning of the chain on: m_to.
void PipelinePaths::pathsTo(const StageCells& cells) {
    const auto units = static_cast<std::size_t>(m_units);
    for (const Behind kind : {Quick, Slow}) {
        m_to[kind].assign(units + 1, kNoPipeline);
        m_devicesTo[kind].assign(units + 1, 0);
    }
    m_to[Slow][0] = m_offset;
    const auto reach = [&](Behind kind, std::size_t unit, Behind before, std::size_t first,
                           std::size_t entry) {
        const double cost = m_least[entry] + m_to[before][first];
        if (cost >= m_to[kind][unit]) return;
        m_to[kind][unit] = cost;
        m_devicesTo[kind][unit] = m_leastDevices[entry] + m_devicesTo[before][first];
    };
    for (std::size_t unit = 1; unit <= units; ++unit)
        for (const auto& cell : cells.before(static_cast<int>(unit))) {
            const auto first = static_cast<std::size_t>(cell.first);
            reach(Slow, unit, Slow, first, at(cell.list, StaysSlow));
            if (atEnd() == Slow) continue;
            reach(Quick, unit, Quick, first, at(cell.list, StaysQuick));
            reach(Quick, unit, Slow, first, at(cell.list, GetsSlow));
        }
}

/// And from its end: m_from, where something below the target is possible.
void PipelinePaths::pathsFrom(const StageCells& cells, double target) {
    const auto units = static_cast<std::size_t>(m_units);
    for (auto& from : m_from) from.assign(units + 1, kNoPipeline);
    m_from[atEnd()][units] = 0;
    for (std::size_t unit = units; unit > 0; --unit) {
        const double quick = m_from[Quick][unit], slow = m_from[Slow][unit];
        if (quick + m_to[Quick][unit] >= target && slow + m_to[Slow][unit] >= target) continue;
        for (const auto& cell : cells.before(static_cast<int>(unit))) {
            const auto first = static_cast<std::size_t>(cell.first);
            double& from = m_from[Slow][first];
            from = std::min(from, slow + m_least[at(cell.list, StaysSlow)]);
            if (atEnd() == Slow) continue;
            from = std::min(from, quick + m_least[at(cell.list, GetsSlow)]);
            m_from[Quick][first] =
                std::min(m_from[Quick][first], quick + m_least[at(cell.list, StaysQuick)]);
        }
    }
}

double PipelinePaths::uncounted(SharedCells& cells, double target) {
    ++m_paths;
    pathsTo(*cells);
    pathsFrom(*cells, target);
    filter(cells, target, [&](std::size_t i, std::size_t unit) {
        const auto& cell = cells->cells[i];
        const auto first = static_cast<std::size_t>(cell.first);
        const double slow = m_from[Slow][unit] + m_least[at(cell.list, StaysSlow)];
        if (atEnd() == Slow) return slow + m_to[Slow][first];
        const double quick = m_from[Quick][unit];
        return std::min(quick + m_least[at(cell.list, StaysQuick)] + m_to[Quick][first],
                        std::min(slow, quick + m_least[at(cell.list, GetsSlow)]) +
                            m_to[Slow][first]);
    });
    return m_to[atEnd()].back();
}

/// From the end of the chain on: m_behind. @return the most stages below target
int PipelinePaths::pathsBehind(const StageCells& cells, double target) {
    for (auto& behind : m_behind) behind.assign(at(m_most + 1, 0), kNoPipeline);
    m_behind[atEnd()][at(0, m_units)] = 0;
    bool any = true;
    int behind = 0;
    const auto reach = [&](Behind kind, int first, double cost) {
        double& next = m_behind[kind][at(behind + 1, first)];
        if (cost >= next) return;
        const double all = cost + m_to[kind][static_cast<std::size_t>(first)];
        if (all >= target) {
            drop(all);
            return;
        }
        next = cost;
        any = true;
    };
    for (; behind < m_most && any; ++behind) {
        any = false;
        setLeastAt(behind);
        for (int unit = m_units; unit > 0; --unit) {
            const double here = m_behind[Quick][at(behind, unit)],
                         slow = m_behind[Slow][at(behind, unit)];
            if (here == kNoPipeline && slow == kNoPipeline) continue;
            for (const auto& cell : cells.before(unit)) {
                reach(Slow, cell.first, slow + m_leastAt[at(cell.list, StaysSlow)]);
                if (here == kNoPipeline) continue;
                reach(Quick, cell.first, here + m_leastAt[at(cell.list, StaysQuick)]);
                reach(Slow, cell.first, here + m_leastAt[at(cell.list, GetsSlow)]);
            }
        }
    }
    return any ? behind : behind - 1;
}

/// And from its beginning: m_ahead.
double PipelinePaths::counted(SharedCells& cells, double target) {
    ++m_paths;
    const int most = pathsBehind(*cells, target);
    for (auto& ahead : m_ahead) ahead.assign(at(m_most + 1, 0), kNoPipeline);
    double least = kNoPipeline;
    for (int behind = 0; behind <= most; ++behind) {
        if (m_problem.exactStages > 0 && behind != m_problem.exactStages) continue;
        m_ahead[Slow][at(behind, 0)] = m_offset;
        least = std::min(least, m_behind[Slow][at(behind, 0)] + m_offset);
    }
    least = std::min(least, m_dropped);
    std::vector<double> through(cells->cells.size(), kNoPipeline);
    for (int behind = most - 1; behind >= 0; --behind) {
        setLeastAt(behind);
        for (int unit = 1; unit <= m_units; ++unit) setAhead(*cells, behind, unit, through);
    }
    filter(cells, target, [&](std::size_t i, std::size_t) { return through[i]; });
    return least;
}

void PipelinePaths::setAhead(const StageCells& cells, int behind, int unit,
                             std::vector<double>& through) {
    const double here = m_behind[Quick][at(behind, unit)], slow = m_behind[Slow][at(behind, unit)];
    if (here == kNoPipeline && slow == kNoPipeline) return;
    double quickAhead = kNoPipeline, slowAhead = kNoPipeline;
    for (std::size_t i = cells.begin[static_cast<std::size_t>(unit)];
         i < cells.begin[static_cast<std::size_t>(unit) + 1]; ++i) {
        const auto& cell = cells.cells[i];
        const std::size_t before = at(behind + 1, cell.first);
        const double stays = m_leastAt[at(cell.list, StaysSlow)] + m_ahead[Slow][before];
        slowAhead = std::min(slowAhead, stays);
        through[i] = std::min(through[i], slow + stays);
        if (here == kNoPipeline) continue;
        const double quick = std::min(m_leastAt[at(cell.list, StaysQuick)] + m_ahead[Quick][before],
                                      m_leastAt[at(cell.list, GetsSlow)] + m_ahead[Slow][before]);
        quickAhead = std::min(quickAhead, quick);
        through[i] = std::min(through[i], here + quick);
    }
    m_ahead[Slow][at(behind, unit)] = slowAhead;
    m_ahead[Quick][at(behind, unit)] = quickAhead;
}

} // namespace shardlens
