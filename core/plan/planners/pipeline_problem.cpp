// SPDX-License-Identifier: Apache-2.0
// See pipeline_problem.h; pipeline_search.cpp solves it.
#include "core/plan/planners/pipeline_problem.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace shardlens {

namespace {

bool beats(const StageCandidate& a, const StageCandidate& b, Gates gates) {
    return a.pool == b.pool && a.devices <= b.devices && a.fill <= b.fill &&
           (gates == Gates::Equal ||
            (a.gate <= b.gate && a.ownGate() <= b.ownGate() && a.once <= b.once)) &&
           a.mostBehind >= b.mostBehind;
}

} // namespace

std::vector<StageCandidate> undominated(std::vector<StageCandidate> candidates, Gates gates) {
    std::ranges::sort(candidates, {}, [&](const StageCandidate& c) {
        return std::tuple(c.pool, c.devices, gates == Gates::Equal ? 0 : c.gate, c.fill,
                          -c.mostBehind);
    });
    std::vector<StageCandidate> kept;
    for (const StageCandidate& c : candidates)
        if (std::ranges::none_of(kept, [&](const StageCandidate& k) { return beats(k, c, gates); }))
            kept.push_back(c);
    return kept;
}

PipelineProblem::PipelineProblem(int units, DeviceCounts devices)
    : m_units(units), m_devices(devices) {
    if (units < 1 || allDevices() < 1)
        throw PlanError(
            fmt::format("{} units on {} devices make no pipeline", units, allDevices()));
}

int PipelineProblem::allDevices() const {
    return std::accumulate(m_devices.begin(), m_devices.end(), 0);
}

int PipelineProblem::addList(std::vector<StageCandidate> candidates) {
    std::ranges::copy_if(candidates, std::back_inserter(m_candidates),
                         [&](const StageCandidate& c) {
                             return std::isfinite(c.gate + c.fill) && c.mostBehind >= 0 &&
                                    c.devices <= m_devices[c.pool];
                         });
    m_listBegin.push_back(m_candidates.size());
    return lists() - 1;
}

std::span<const StageCandidate> PipelineProblem::list(int number) const {
    const auto n = static_cast<std::size_t>(number);
    return std::span(m_candidates).subspan(m_listBegin[n], m_listBegin[n + 1] - m_listBegin[n]);
}

void PipelineProblem::use(int first, int last, int list) {
    m_uses.push_back({first, last, list});
}

const StageCells& PipelineProblem::cells() const {
    if (m_taken == m_uses.size() && !m_cells.begin.empty()) return m_cells;
    m_taken = m_uses.size();
    m_cells.begin.assign(static_cast<std::size_t>(m_units) + 2, 0);
    for (const Use& use : m_uses) ++m_cells.begin[static_cast<std::size_t>(use.last) + 1];
    std::exclusive_scan(m_cells.begin.begin(), m_cells.begin.end(), m_cells.begin.begin(),
                        std::size_t{0});
    m_cells.cells.resize(m_uses.size());
    std::vector<std::size_t> next = m_cells.begin;
    for (const Use& use : m_uses)
        m_cells.cells[next[static_cast<std::size_t>(use.last) + 1]++] = {use.first, use.list};
    return m_cells;
}

void PipelineProblem::setCells(StageCells cells) {
    m_uses.clear();
    m_taken = 0;
    m_cells = std::move(cells);
}

std::span<const StageCandidate> PipelineProblem::candidates(int first, int last) const {
    const auto here = cells().before(last + 1);
    const auto at = std::ranges::find(here, first, &StageCells::Cell::first);
    return at == here.end() ? std::span<const StageCandidate>{} : list(at->list);
}

double pipelineSeconds(const std::vector<PipelineStage>& stages, double spare, double spareAhead) {
    double once = 0, seconds = -kNoPipeline;
    for (const PipelineStage& stage : stages) once = std::max(once, stage.candidate.once);
    for (std::size_t k = 0; k < stages.size(); ++k) {
        const double gate = stages[k].candidate.ownGate();
        double sum = gate + once;
        for (std::size_t i = 0; i < stages.size(); ++i)
            sum += stages[i].candidate.fillBelow(gate, i > k ? spare : spareAhead);
        seconds = std::max(seconds, sum);
    }
    return seconds;
}

} // namespace shardlens
