// SPDX-License-Identifier: Apache-2.0
// Orders that contradict each other: tasks that wait for one another in a ring.
#pragma once

#include "core/schedule/program.h"

#include <string>

namespace shardlens::schedule {

/// Tasks each of which waits for the next, the last for the first: because of a dependency, or
/// because it comes later in the list of its device. Empty when there is no such ring.
std::vector<TaskId> findCycle(const Program& program);

/// "1F1 waits for 0F1, which comes after 0B0 on device 0, which …"
std::string cycleText(const Program& program, const std::vector<TaskId>& cycle);

/// @throws RuleError always, naming the cycle, or the limit where there is none
[[noreturn]] void throwStuck(const Program& program);

} // namespace shardlens::schedule
