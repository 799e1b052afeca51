// SPDX-License-Identifier: Apache-2.0
// What the generators share: they say which pass of which micro-batch comes next, the rest is here.
#pragma once

#include "core/schedule/orders.h"

#include <functional>
#include <string>

namespace shardlens::schedule {

/// Writes the lists of orders. A device's chunk 0, 1, … is the stage that `stageOf` says.
class ListWriter {
public:
    using StageOf = std::function<std::uint32_t(std::uint32_t device, std::uint32_t chunk)>;

    /// @param stages of the whole model
    ListWriter(const ScheduleSpec& spec, std::uint32_t stages, StageOf stageOf);

    void add(std::uint32_t device, Pass pass, std::uint32_t microBatch, std::uint32_t chunk = 0);
    /// Runs with the one added before.
    void join(std::uint32_t device, Pass pass, std::uint32_t microBatch, std::uint32_t chunk = 0);
    void add(const Task& task) { m_orders.lists[task.device].push_back(task); }

    Orders& orders() { return m_orders; }
    /// With recomputation and updates, as the spec has them.
    Orders finish();

private:
    Task taskOf(std::uint32_t device, Pass pass, std::uint32_t microBatch,
                std::uint32_t chunk) const;
    void addRecomputation();
    void addUpdates();

    const ScheduleSpec& m_spec;
    StageOf m_stageOf;
    Orders m_orders;
};

// Placements of stages.
/// Chunk c of device d is stage c·p + d.
ListWriter::StageOf loops(std::uint32_t devices);
/// Chunk 0 goes down the devices, chunk 1 back up.
ListWriter::StageOf inV(std::uint32_t devices);
/// Chunk 0 is a pipeline down the devices, chunk 1 one of the same stages up.
ListWriter::StageOf bothWays(std::uint32_t devices);

/// @throws PlanError "<problem>", with the schedule as its place
void demand(bool holds, const ScheduleSpec& spec, const char* problem, const char* hint);

/// One chunk on each device, and no slices, for the schedules that know nothing else.
void demandPlain(const ScheduleSpec& spec);

Orders makeGPipe(const ScheduleSpec& spec);
Orders make1F1B(const ScheduleSpec& spec);
Orders makeInterleaved(const ScheduleSpec& spec);
Orders makeInference(const ScheduleSpec& spec);
Orders makeTeraPipe(const ScheduleSpec& spec);
Orders makeZbH1(const ScheduleSpec& spec);
Orders makeZbH2(const ScheduleSpec& spec);
Orders makeZbV(const ScheduleSpec& spec);
Orders makeVHalf(const ScheduleSpec& spec);
Orders makeVMin(const ScheduleSpec& spec);
Orders makeDualPipe(const ScheduleSpec& spec);
Orders makeDualPipeV(const ScheduleSpec& spec);
Orders makeChimera(const ScheduleSpec& spec);
Orders make2BW(const ScheduleSpec& spec);
Orders makeInterlaced(const ScheduleSpec& spec);
Orders make3F1B(const ScheduleSpec& spec);
Orders makeLocal(const ScheduleSpec& spec);

} // namespace shardlens::schedule
