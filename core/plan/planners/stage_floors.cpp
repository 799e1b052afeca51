// SPDX-License-Identifier: Apache-2.0
// See stage_floors.h.
#include "core/plan/planners/stage_floors.h"

#include <algorithm>
#include <set>

namespace shardlens {

namespace {

/// Whole parameters over all devices of the mesh; what several units read is counted in the first.
void addParameters(const StagedModel& model, double devices, std::vector<UnitFloor>& floors) {
    std::vector<bool> done(floors.size(), false);
    std::set<OpId> counted;
    for (const StageUnit& unit : model.units.units) {
        if (done[unit.kind]) continue;
        done[unit.kind] = true;
        for (const OpId id : unit.ops) {
            const Op& op = model.graph->op(id);
            if (op.kind != OpKind::Parameter || !counted.insert(id).second) continue;
            floors[unit.kind].parameters +=
                bytesOf(model.graph->tensor(op.outputs[0]).spec) / devices;
        }
    }
}

} // namespace

std::vector<UnitFloor> unitFloors(const std::shared_ptr<const StagedModel>& model,
                                  const std::shared_ptr<MeshPrices>& prices) {
    const StageUnits& units = model->units;
    std::vector<UnitFloor> floors(units.kinds);
    const auto fill = [&](double UnitFloor::* figure, const StageWeights& weights) {
        StageTable table(model, prices, weights);
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
    addParameters(*model, prices->pricing.mesh().devices(), floors);
    return floors;
}

double boundOf(const UnitFloor& floor, double step, const ScheduleModel& schedule,
               double microBatches, double share) {
    double fill = floor.seconds / schedule.chunks;
    if (schedule.kind == ScheduleKind::ZeroBubbleH1) fill = floor.lessWeights;
    return (microBatches * floor.seconds + step) * share + fill * (1 - share);
}

} // namespace shardlens
