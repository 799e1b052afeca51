// SPDX-License-Identifier: Apache-2.0
// What each task waits for: one rule for each pass, the same for all schedules. Order within a list
// is no dependency; it is the engine's business.
#pragma once

#include "core/schedule/queues.h"
#include "core/schedule/task_index.h"

namespace shardlens::schedule {

/// Fills dependencies, followers and lags of a program whose tasks and queues are there.
void addDependencies(const ScheduleSpec& spec, const Orders& orders, const Placement& placement,
                     const TaskIndex& index, Program& program);

} // namespace shardlens::schedule
