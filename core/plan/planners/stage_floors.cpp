// SPDX-License-Identifier: Apache-2.0
// See stage_floors.h.
#include "core/plan/planners/stage_floors.h"

#include <algorithm>
#include <set>

namespace shardlens {

const std::vector<UnitFloor>& StageFloors::of(const ReplicaKey& key) {
    std::vector<int> sizes;
    for (const AxisSize& axis : key.axes) sizes.push_back(axis.size);
    const auto [at, isNew] = m_known.try_emplace({key.pool, sizes, key.samples});
    if (!isNew) return at->second;
    const StageUnits& units = m_pricer.model(key.samples)->units;
    std::vector<UnitFloor>& floors = at->second;
    floors.resize(units.kinds);
    const auto fill = [&](double UnitFloor::* figure, const StageWeights& weights) {
        StageTable table = m_pricer.table(key, weights);
        std::vector<bool> done(units.kinds, false);
        for (std::size_t u = 0; u < units.units.size(); ++u) {
            const std::size_t kind = units.units[u].kind;
            if (!done[kind]) floors[kind].*figure = std::max(table.floor(u), 0.0);
            done[kind] = true;
        }
    };
    fill(&UnitFloor::seconds, {.sync = 0, .memory = 0});
    fill(&UnitFloor::lessWeights, {.sync = 0, .memory = 0, .weightGrad = -1});
    fill(&UnitFloor::update, {.time = 0, .sync = 1, .memory = 0});
    addParameters(key, floors);
    return floors;
}

/// Whole parameters over all devices of the mesh; what several units read is counted in the first.
void StageFloors::addParameters(const ReplicaKey& key, std::vector<UnitFloor>& floors) const {
    const auto model = m_pricer.model(key.samples);
    double devices = 1;
    for (const AxisSize& axis : key.axes) devices *= axis.size;
    std::vector<bool> done(floors.size(), false);
    std::set<OpId> counted;
    for (const StageUnit& unit : model->units.units) {
        if (done[unit.kind]) continue;
        done[unit.kind] = true;
        for (const OpId id : unit.ops) {
            const Op& op = model->graph->op(id);
            if (op.kind != OpKind::Parameter || !counted.insert(id).second) continue;
            floors[unit.kind].parameters +=
                bytesOf(model->graph->tensor(op.outputs[0]).spec) / devices;
        }
    }
}

double boundOf(const UnitFloor& floor, double step, const ScheduleModel& schedule,
               double microBatches, double share) {
    double fill = floor.seconds / schedule.chunks;
    if (schedule.kind == ScheduleKind::ZeroBubbleH1) fill = floor.lessWeights;
    return (microBatches * floor.seconds + step) * share + fill * (1 - share);
}

} // namespace shardlens
