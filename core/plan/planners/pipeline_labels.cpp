// SPDX-License-Identifier: Apache-2.0
// See pipeline_labels.h.
#include "core/plan/planners/pipeline_labels.h"

#include "core/error.h"

#include <algorithm>
#include <cmath>

namespace shardlens {

namespace {

constexpr double kLevels = 8; // of bounds, in the tolerance

} // namespace

PipelineLabels::PipelineLabels(const PipelineProblem& problem, PipelinePaths& paths,
                               const StageCells& cells, const GateBracket& bracket)
    : m_problem(problem), m_paths(paths), m_cells(cells), m_bracket(bracket) {
    setCandidates();
}

/// In the bracket all gates are equal; below it they tell what is saved.
void PipelineLabels::setCandidates() {
    m_candidates.resize(static_cast<std::size_t>(m_problem.lists()));
    for (const auto& cell : m_cells.cells) {
        auto& candidates = m_candidates[static_cast<std::size_t>(cell.list)];
        if (!candidates.empty()) continue;
        std::vector<StageCandidate> quick;
        for (const StageCandidate& c : m_problem.list(cell.list))
            if (m_bracket.holds(c)) (isSlow(c) ? candidates : quick).push_back(c);
        candidates = undominated(std::move(candidates), Gates::Equal);
        std::ranges::copy(undominated(std::move(quick)), std::back_inserter(candidates));
    }
}

/// Whether its gate is in the bracket, if that makes a difference.
bool PipelineLabels::isSlow(const StageCandidate& candidate) const {
    return m_paths.atEnd() == PipelinePaths::Slow || candidate.ownGate() >= m_bracket.low;
}

double PipelineLabels::fillBehind(PipelinePaths::Behind kind, const StageCandidate& c) const {
    return c.fillBelow(m_bracket.low,
                       kind == PipelinePaths::Slow ? m_problem.spareAhead : m_problem.spare);
}

/// Of the stages that are placed, as if all gates were the least of the bracket: a bound.
double PipelineLabels::costOf(const Label& label) const {
    return label.fill + m_paths.devicePrice() * (label.used[0] + label.used[1]);
}

void PipelineLabels::run(PipelineSolution& best, const PipelineSearchOptions& options) {
    const auto target = [&] { return best.seconds * (1 - options.tolerance); };
    if (std::isfinite(best.seconds)) m_step = best.seconds * options.tolerance / kLevels;
    m_labels.push_back({.unit = m_problem.units(), .kind = m_paths.atEnd()});
    open(0, best);
    while (!m_open.empty()) {
        const Entry entry = m_open.front();
        if (entry.level >= target() || m_labels.size() > options.mostLabels) {
            m_paths.drop(entry.level); // and so do all that are open
            return;
        }
        std::pop_heap(m_open.begin(), m_open.end());
        m_open.pop_back();
        if (m_labels[static_cast<std::size_t>(entry.label)].dominated) continue;
        if (options.stop.stop_requested()) throw Cancelled();
        const std::size_t known = m_labels.size();
        extend(entry.label, target());
        for (std::size_t i = known; i < m_labels.size(); ++i)
            open(static_cast<std::int32_t>(i), best);
    }
}

void PipelineLabels::extend(std::int32_t index, double target) {
    const Label from = m_labels[static_cast<std::size_t>(index)];
    const int behind = from.behind + 1;
    for (const auto& cell : m_cells.before(from.unit)) {
        const double least =
            costOf(from) + m_paths.least(from.kind, cell.list, cell.first, from.behind);
        if (least >= target) {
            m_paths.drop(least);
            continue;
        }
        for (const StageCandidate& c : m_candidates[static_cast<std::size_t>(cell.list)]) {
            if (c.mostBehind < from.behind) continue;
            Label next{from.fill + fillBehind(from.kind, c),
                       from.used,
                       behind,
                       cell.first,
                       index,
                       &c,
                       false,
                       isSlow(c) ? PipelinePaths::Slow : from.kind};
            next.used[c.pool] += c.devices;
            if (next.used[c.pool] > m_problem.devices()[c.pool]) continue;
            const double bound = costOf(next) + m_paths.ahead(next.kind, behind, cell.first);
            if (bound >= target) {
                m_paths.drop(bound);
                continue;
            }
            insert(next);
        }
    }
}

/// A label that covers all units is a pipeline; the others are to be extended.
void PipelineLabels::open(std::int32_t index, PipelineSolution& best) {
    const Label& label = m_labels[static_cast<std::size_t>(index)];
    if (label.unit == 0) {
        m_paths.drop(label.fill + m_bracket.least());
        finish(index, best);
        return;
    }
    const double bound = costOf(label) + m_paths.ahead(label.kind, label.behind, label.unit);
    const double level = m_step > 0 ? std::floor(bound / m_step) * m_step : bound;
    m_open.push_back({level, label.unit, bound, index});
    std::push_heap(m_open.begin(), m_open.end());
}

void PipelineLabels::insert(const Label& label) {
    const auto notWorse = [](const Label& a, const Label& b) {
        return a.fill <= b.fill && a.used[0] <= b.used[0] && a.used[1] <= b.used[1];
    };
    const auto of = [&](std::int32_t i) -> Label& { return m_labels[static_cast<std::size_t>(i)]; };
    const int behind = m_paths.isCounted() && label.unit > 0 ? label.behind : 0;
    const std::int64_t key = (std::int64_t{behind} << 1 | label.kind) << 32 | label.unit;
    std::vector<std::int32_t>& front = m_fronts[key];
    if (std::ranges::any_of(front, [&](std::int32_t i) { return notWorse(of(i), label); })) return;
    std::erase_if(front, [&](std::int32_t i) {
        of(i).dominated = notWorse(label, of(i));
        return of(i).dominated;
    });
    front.push_back(static_cast<std::int32_t>(m_labels.size()));
    m_labels.push_back(label);
}

void PipelineLabels::finish(std::int32_t index, PipelineSolution& best) const {
    std::vector<PipelineStage> stages;
    for (std::int32_t i = index; m_labels[static_cast<std::size_t>(i)].before >= 0;) {
        const Label& label = m_labels[static_cast<std::size_t>(i)];
        const int last = m_labels[static_cast<std::size_t>(label.before)].unit - 1;
        stages.push_back({label.unit, last, *label.candidate});
        i = label.before;
    }
    const double seconds = pipelineSeconds(stages, m_problem.spare, m_problem.spareAhead);
    if (!(seconds < best.seconds)) return;
    best.seconds = seconds;
    best.stages = std::move(stages);
}

} // namespace shardlens
