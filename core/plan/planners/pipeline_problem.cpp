// SPDX-License-Identifier: Apache-2.0
// See pipeline_problem.h; pipeline_search.cpp solves it.
#include "core/plan/planners/pipeline_problem.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shardlens {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

bool beats(const StageCandidate& a, const StageCandidate& b, Gates gates) {
    return a.pool == b.pool && a.devices <= b.devices && a.fill <= b.fill &&
           (gates == Gates::Equal || a.gate <= b.gate) && a.mostBehind >= b.mostBehind;
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
    std::erase_if(candidates, [&](const StageCandidate& c) {
        return !std::isfinite(c.gate + c.fill) || c.mostBehind < 0 || c.devices > m_devices[c.pool];
    });
    m_lists.push_back(std::move(candidates));
    return static_cast<int>(m_lists.size() - 1);
}

void PipelineProblem::use(int first, int last, int list) {
    m_listOf[cell(first, last)] = list;
}

const std::vector<StageCandidate>& PipelineProblem::candidates(int first, int last) const {
    return list(listOf(first, last));
}

double pipelineSeconds(const std::vector<PipelineStage>& stages) {
    double fill = 0, gate = -kInf;
    for (const PipelineStage& stage : stages) {
        fill += stage.candidate.fill;
        gate = std::max(gate, stage.candidate.gate);
    }
    return fill + gate;
}

} // namespace shardlens
