// SPDX-License-Identifier: Apache-2.0
// What a unit takes at least, whatever stage it is in: the least entry of its transfer matrix. Sums
// of these bound combinations before anything is built of them, and candidates before they are
// offered: fill + gate * devices / all devices of pipeline_problem.h, unit by unit.
#pragma once

#include "core/plan/planners/stage_pricer.h"

namespace shardlens {

struct UnitFloor {
    double seconds = 0;     ///< of a micro-batch
    double lessWeights = 0; ///< the same with weight gradients taken off twice (ZB-H1's fill)
    double update = 0;      ///< once a step: optimizer and collectives inside the mesh, one replica
    double parameters = 0;  ///< bytes a device
};

class StageFloors {
public:
    explicit StageFloors(StagePricer& pricer) : m_pricer(pricer) {}

    /// By kind of unit, for a replica. @param key its variant does not matter
    const std::vector<UnitFloor>& of(const ReplicaKey& key);

private:
    void addParameters(const ReplicaKey& key, std::vector<UnitFloor>& floors) const;

    StagePricer& m_pricer;
    std::map<std::tuple<std::uint8_t, std::vector<int>, std::int64_t>, std::vector<UnitFloor>>
        m_known;
};

/// Least of fill + gate * share of a unit. @param step at least, seconds; share of all devices
double boundOf(const UnitFloor& floor, double step, const ScheduleModel& schedule,
               double microBatches, double share);

} // namespace shardlens
