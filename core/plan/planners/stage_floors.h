// SPDX-License-Identifier: Apache-2.0
// What a unit takes at least, whatever stage it is in: the least entry of its transfer matrix. Sums
// of these bound combinations before anything is built of them, and candidates before they are
// offered: fill + gate * devices / all devices of pipeline_problem.h, unit by unit.
#pragma once

#include "core/plan/planners/schedule_model.h"
#include "core/plan/stage_table.h"

namespace shardlens {

struct UnitFloor {
    double seconds = 0;     ///< of a micro-batch
    double lessWeights = 0; ///< the same with weight gradients taken off twice (ZB-H1's fill)
    double update = 0;      ///< once a step: optimizer and collectives inside the mesh, one replica
    double parameters = 0;  ///< bytes a device
};

/// By kind of unit, for the mesh and micro-batch of the prices.
std::vector<UnitFloor> unitFloors(const std::shared_ptr<const StagedModel>& model,
                                  const std::shared_ptr<MeshPrices>& prices);

/// Least of fill + gate * share of a unit. @param step at least, seconds; share of all devices
double boundOf(const UnitFloor& floor, double step, const ScheduleModel& schedule,
               double microBatches, double share);

} // namespace shardlens
