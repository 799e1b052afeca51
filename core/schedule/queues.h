// SPDX-License-Identifier: Apache-2.0
// The first step from orders to a program: every task in its queue. Transfers between devices,
// all-reduces, barriers are added here; what they wait for comes later (dependencies.h).
#pragma once

#include "core/schedule/placement.h"
#include "core/schedule/program.h"

namespace shardlens::schedule {

/// What a barrier is for; kept in Task::chunk.
namespace barrier {
constexpr std::uint8_t kReduce = 0, kFlush = 1, kEmbed = 2, kEmbedGrad = 3;
}

/// Seconds from the stage to the next one, or back.
double transferTime(const ScheduleSpec& spec, std::uint32_t boundary);

/// Whether the result of the task has to travel to another device; `boundary` says where then.
struct Travel {
    bool travels = false;
    std::uint32_t boundary = 0;
};
Travel travelOf(const Task& task, const Orders& orders, const Placement& placement);

/// Fills tasks and queues of the program.
void layOut(const ScheduleSpec& spec, const Orders& orders, const Placement& placement,
            Program& program);

/// Number of the update that a micro-batch's gradients go into.
std::uint32_t updateOf(const Orders& orders, std::uint32_t microBatch);

} // namespace shardlens::schedule
