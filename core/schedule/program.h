// SPDX-License-Identifier: Apache-2.0
// A schedule made ready to run: all its tasks with their durations, what each waits for, what each
// takes and frees of memory, and the queues they stand in. Flat arrays throughout, so that a
// million tasks cost tens of megabytes; durations and lags may be changed and the program run
// again.
#pragma once

#include "core/schedule/orders.h"

#include <span>
#include <vector>

namespace shardlens::schedule {

struct Dependency {
    TaskId task = 0;       ///< that must have ended
    std::uint32_t lag = 0; ///< which of Program::lags must have passed since; 0 = none
};

/// Tasks that run one after the other: a stream of a device, or a link that several share.
struct Queue {
    static constexpr std::uint16_t kLink = 0xffff;

    std::uint16_t device = 0; ///< kLink: it belongs to several
    Stream stream = Stream::Compute;
    bool listed = true;        ///< in the order of their ids; otherwise by rule
    TaskId begin = 0, end = 0; ///< its tasks are neighbours
};

/// Tokens that tasks take when they start and give back when they end; only rules look at them.
namespace token {
constexpr std::uint8_t kTakesDevice = 1, kTakesWindow = 2, kGivesDevice = 4, kGivesWindow = 8;
}

/// Arrays by task unless said otherwise.
struct Program {
    std::uint32_t devices = 0, stages = 0, microBatches = 0, slices = 1;

    std::vector<Task> tasks; ///< queue after queue
    std::vector<double> duration;
    std::vector<double> allocated, freed; ///< memory taken at its start, given back at its end
    std::vector<Queue> queues;            ///< compute of device 0, 1 …; then the others
    std::vector<double> lags = {0};       ///< seconds
    std::vector<double> staticMemory, capacity; ///< by device

    // What a task waits for: dependencies[firstDependency[i] … firstDependency[i + 1]), and the
    // other way round.
    std::vector<std::uint32_t> firstDependency, firstFollower;
    std::vector<Dependency> dependencies, followers;

    // Only where a queue goes by rule.
    std::vector<std::uint32_t> rank; ///< smaller goes first
    std::vector<std::uint8_t> tokens;
    std::vector<double> deviceLimit, chunkLimit; ///< by device: in flight, and of one chunk
    std::uint32_t chunks = 1;                    ///< on a device
    double window = kUnlimited;

    std::span<const Dependency> dependenciesOf(TaskId id) const {
        return std::span(dependencies)
            .subspan(firstDependency[id], firstDependency[id + 1] - firstDependency[id]);
    }
    std::span<const Dependency> followersOf(TaskId id) const {
        return std::span(followers).subspan(firstFollower[id],
                                            firstFollower[id + 1] - firstFollower[id]);
    }
};

/// Adds dependencies, durations, memory, transfers, all-reduces and updates to the orders.
/// @throws RuleError when a task is there twice, is missing, or stands on a device that is not
/// there
Program compile(const ScheduleSpec& spec, const Orders& orders);

} // namespace shardlens::schedule
