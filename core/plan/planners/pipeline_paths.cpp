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
    const auto lists = static_cast<std::size_t>(m_problem.lists());
    m_steps.clear();
    m_stepsBegin.assign(1, 0);
    m_least.assign(lists, kNoPipeline);
    m_leastDevices.assign(lists, 0);
    for (std::size_t list = 0; list < lists; ++list) {
        for (const StageCandidate& c : m_problem.list(static_cast<int>(list))) {
            if (!bracket.holds(c)) continue;
            const double each = share * bracket.seconds(c) / m_devices + extra;
            addStep(m_stepsBegin.back(), {c.fill + c.devices * each, c.mostBehind, c.devices});
        }
        if (m_steps.size() > m_stepsBegin.back()) {
            m_least[list] = m_steps[m_stepsBegin.back()].cost;
            m_leastDevices[list] = m_steps[m_stepsBegin.back()].devices;
        }
        m_stepsBegin.push_back(m_steps.size());
    }
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

double PipelinePaths::least(std::int32_t list, int behind) const {
    for (const Step& step : steps(static_cast<std::size_t>(list)))
        if (step.mostBehind >= behind) return step.cost;
    return kNoPipeline;
}

void PipelinePaths::setLeastAt(int behind) {
    m_leastAt.resize(m_least.size());
    for (std::size_t list = 0; list < m_leastAt.size(); ++list)
        m_leastAt[list] = least(static_cast<std::int32_t>(list), behind);
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

double PipelinePaths::uncounted(SharedCells& cells, double target) {
    ++m_paths;
    const auto units = static_cast<std::size_t>(m_units);
    m_to.assign(units + 1, kNoPipeline);
    m_from.assign(units + 1, kNoPipeline);
    m_devicesTo.assign(units + 1, 0);
    m_to[0] = m_offset;
    m_from[units] = 0;
    for (int unit = 1; unit <= m_units; ++unit) {
        double& least = m_to[static_cast<std::size_t>(unit)];
        for (const auto& cell : cells->before(unit)) {
            const auto list = static_cast<std::size_t>(cell.list);
            const auto first = static_cast<std::size_t>(cell.first);
            if (m_least[list] + m_to[first] >= least) continue;
            least = m_least[list] + m_to[first];
            m_devicesTo[static_cast<std::size_t>(unit)] = m_leastDevices[list] + m_devicesTo[first];
        }
    }
    for (int unit = m_units; unit > 0; --unit) {
        const double here = m_from[static_cast<std::size_t>(unit)];
        if (here + m_to[static_cast<std::size_t>(unit)] >= target) continue;
        for (const auto& cell : cells->before(unit)) {
            double& from = m_from[static_cast<std::size_t>(cell.first)];
            from = std::min(from, here + m_least[static_cast<std::size_t>(cell.list)]);
        }
    }
    filter(cells, target, [&](std::size_t i, std::size_t unit) {
        const auto& cell = cells->cells[i];
        return m_from[unit] + m_least[static_cast<std::size_t>(cell.list)] +
               m_to[static_cast<std::size_t>(cell.first)];
    });
    return m_to[units];
}

/// From the end of the chain on: m_behind. @return the most stages below target
int PipelinePaths::pathsBehind(const StageCells& cells, double target) {
    m_behind.assign(at(m_most + 1, 0), kNoPipeline);
    m_behind[at(0, m_units)] = 0;
    bool any = true;
    int behind = 0;
    for (; behind < m_most && any; ++behind) {
        any = false;
        setLeastAt(behind);
        double* next = m_behind.data() + at(behind + 1, 0);
        for (int unit = m_units; unit > 0; --unit) {
            const double here = m_behind[at(behind, unit)];
            if (here == kNoPipeline) continue;
            for (const auto& cell : cells.before(unit)) {
                const double cost = here + m_leastAt[static_cast<std::size_t>(cell.list)];
                if (cost >= next[cell.first]) continue;
                const double all = cost + m_to[static_cast<std::size_t>(cell.first)];
                if (all >= target) {
                    drop(all);
                    continue;
                }
                next[cell.first] = cost;
                any = true;
            }
        }
    }
    return any ? behind : behind - 1;
}

/// And from its beginning: m_ahead.
double PipelinePaths::counted(SharedCells& cells, double target) {
    ++m_paths;
    const int most = pathsBehind(*cells, target);
    m_ahead.assign(at(m_most + 1, 0), kNoPipeline);
    double least = kNoPipeline;
    for (int behind = 0; behind <= most; ++behind) {
        if (m_problem.exactStages > 0 && behind != m_problem.exactStages) continue;
        m_ahead[at(behind, 0)] = m_offset;
        least = std::min(least, m_behind[at(behind, 0)] + m_offset);
    }
    least = std::min(least, m_dropped);
    std::vector<double> through(cells->cells.size(), kNoPipeline);
    for (int behind = most - 1; behind >= 0; --behind) {
        setLeastAt(behind);
        const double* rest = m_ahead.data() + at(behind + 1, 0);
        for (int unit = 1; unit <= m_units; ++unit) {
            const double from = m_behind[at(behind, unit)];
            if (from == kNoPipeline) continue;
            double ahead = kNoPipeline;
            for (std::size_t i = cells->begin[static_cast<std::size_t>(unit)];
                 i < cells->begin[static_cast<std::size_t>(unit) + 1]; ++i) {
                const auto& cell = cells->cells[i];
                const double cost =
                    m_leastAt[static_cast<std::size_t>(cell.list)] + rest[cell.first];
                ahead = std::min(ahead, cost);
                through[i] = std::min(through[i], cost + from);
            }
            m_ahead[at(behind, unit)] = ahead;
        }
    }
    filter(cells, target, [&](std::size_t i, std::size_t) { return through[i]; });
    return least;
}

} // namespace shardlens
