// SPDX-License-Identifier: Apache-2.0
// A program that has been run: when every task starts and ends, why devices wait, and how their
// memory goes up and down.
#pragma once

#include "core/schedule/program.h"

#include <array>
#include <string_view>
#include <vector>

namespace shardlens::schedule {

struct Timeline {
    /// A time in which a ready task was kept back because too many micro-batches were in flight.
    struct Held {
        std::uint32_t queue = 0;
        double begin = 0, end = 0;
    };

    std::vector<double> start, end; ///< by task
    /// By task: how many have started before it. Where a queue goes by rule this is its order,
    /// since tasks that take no time start at the same moment as others. Empty when all queues are
    /// lists.
    std::vector<std::uint32_t> sequence;
    std::vector<Held> held; ///< by queue in the order of time
    double makespan = 0;    ///< end of the last task
};

/// The tasks of a queue in the order in which they have run.
std::vector<TaskId> runOrder(const Timeline& timeline, const Queue& queue);

/// Runs the program: each queue takes its next task, or its best ready one, as soon as it is free
/// and what the task waits for has ended.
/// @throws RuleError when it cannot go on: orders that contradict each other (naming the cycle) or
/// a
///         limit too small for what the rule admits
Timeline simulate(const Program& program);

/// Why a device computes nothing (reference: bubble accounting). Every idle moment has one cause.
enum class Cause : std::uint8_t {
    Fill,            ///< before its first task
    Drain,           ///< after its last one
    Dependency,      ///< what the next task waits for has not ended
    Communication,   ///< it has ended, and travels
    Imbalance,       ///< dependency, as far as this device's passes are shorter than the longest
    MemoryWait,      ///< a task was ready and the limit of micro-batches in flight kept it back
    Synchronization, ///< a barrier, an all-reduce, an update
};
constexpr std::size_t kCauses = 7;
std::string_view causeText(Cause cause); ///< "fill", "exposed communication" …

struct Idle {
    double begin = 0, end = 0;
    std::uint16_t device = 0;
    Cause cause = Cause::Fill;
};

struct DeviceUse {
    double busy = 0;                    ///< its compute stream
    double first = 0, last = 0;         ///< from its first task to the end of its last one
    std::array<double, kCauses> idle{}; ///< by cause; busy + their sum = makespan
    double peakMemory = 0;
    std::uint32_t peakInFlight = 0; ///< forwards begun whose backward has not ended

    double spanBubble() const { return last - first - busy; }
};

struct Account {
    std::vector<DeviceUse> devices;
    std::vector<Idle> idle; ///< by device in the order of time, without gaps between busy times

    double work = 0;       ///< busy time of the busiest device
    double bubble = 0;     ///< makespan − work
    double spanBubble = 0; ///< largest idle time of a device between its first and last task
    double peakMemory = 0;
};

Account account(const Program& program, const Timeline& timeline);

struct MemoryPoint {
    double time = 0, memory = 0; ///< from this time on
};
/// The steps of a device's memory in the order of time, the first at 0.
std::vector<MemoryPoint> memoryCurve(const Program& program, const Timeline& timeline,
                                     std::uint32_t device);

} // namespace shardlens::schedule
