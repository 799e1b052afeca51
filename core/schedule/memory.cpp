// SPDX-License-Identifier: Apache-2.0
// Memory over time: taken when a task starts, given back when one ends; what ends in a moment gives
// back before what starts in it takes.
#include "core/schedule/timeline.h"

#include <algorithm>

namespace shardlens::schedule {
namespace {

struct Change {
    double time, memory;
};

} // namespace

std::vector<MemoryPoint> memoryCurve(const Program& program, const Timeline& timeline,
                                     std::uint32_t device) {
    constexpr double kSameTime = 1e-12;
    const Queue& queue = program.queues[device];
    std::vector<Change> taken, given;
    for (const TaskId id : runOrder(timeline, queue)) {
        if (program.allocated[id] > 0) taken.push_back({timeline.start[id], program.allocated[id]});
        if (program.freed[id] > 0) given.push_back({timeline.end[id], program.freed[id]});
    }
    std::vector<MemoryPoint> curve{{0, program.staticMemory[device]}};
    curve.reserve(taken.size() + given.size() + 1);
    const auto step = [&](double time, double change) {
        const double memory = curve.back().memory + change;
        if (time > curve.back().time) {
            curve.push_back({time, memory});
        } else {
            curve.back().memory = memory;
        }
    };
    std::size_t next = 0;
    for (const Change& take : taken) {
        const double until = take.time + kSameTime * std::max(1.0, take.time);
        for (; next < given.size() && given[next].time <= until; ++next) {
            step(given[next].time, -given[next].memory);
        }
        step(take.time, take.memory);
    }
    for (; next < given.size(); ++next) step(given[next].time, -given[next].memory);
    return curve;
}

} // namespace shardlens::schedule
