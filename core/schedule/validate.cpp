// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/validate.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens::schedule {
namespace {

/// The task of the device that takes memory at this time.
std::string takerAt(const Program& program, const Timeline& timeline, std::uint32_t device,
                    double time) {
    const Queue& queue = program.queues[device];
    for (TaskId id = queue.begin; id < queue.end; ++id) {
        if (timeline.start[id] == time && program.allocated[id] > 0) {
            return taskName(program.tasks[id]);
        }
    }
    return "its parameters";
}

} // namespace

void checkMemory(const Program& program, const Timeline& timeline) {
    constexpr double kRounding = 1e-9;
    for (std::uint32_t d = 0; d < program.devices; ++d) {
        const double capacity = program.capacity[d];
        const auto curve = memoryCurve(program, timeline, d);
        if (program.staticMemory[d] > capacity) {
            throw RuleError(
                BrokenRule::Memory,
                fmt::format("what is always there takes {}, more than the capacity of {}",
                            program.staticMemory[d], capacity),
                fmt::format("device {}", d), "shard more, or choose more devices");
        }
        const double slack = kRounding * std::max(1.0, program.staticMemory[d]);
        for (const MemoryPoint& point : curve) {
            if (point.memory < program.staticMemory[d] - slack) {
                throw RuleError(BrokenRule::Memory,
                                fmt::format("memory falls below nothing at {}", point.time),
                                fmt::format("device {}", d), "free no more than was taken");
            }
            if (point.memory <= capacity + kRounding * std::max(1.0, capacity)) continue;
            throw RuleError(
                BrokenRule::Memory,
                fmt::format("memory reaches {} at {} with {}, more than its capacity of "
                            "{}",
                            point.memory, point.time, takerAt(program, timeline, d, point.time),
                            capacity),
                fmt::format("device {}", d),
                "choose a schedule with fewer micro-batches in flight, recompute, or "
                "shard more");
        }
    }
}

std::optional<Violation> findViolation(const ScheduleSpec& spec, const Orders& orders) {
    try {
        const Program program = compile(spec, orders);
        checkMemory(program, simulate(program));
    } catch (const RuleError& error) {
        return Violation{error.rule(), error.problem(), error.where(), error.hint()};
    }
    return std::nullopt;
}

} // namespace shardlens::schedule
