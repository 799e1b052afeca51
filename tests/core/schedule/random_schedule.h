// SPDX-License-Identifier: Apache-2.0
// Random schedules that can run: stages anywhere, tasks in any order their dependencies allow.
// Lists are filled by playing the dependencies through, so that no ring can come about.
#pragma once

#include "core/schedule/catalogue.h"

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

namespace shardlens::test {

using schedule::Orders;
using schedule::Pass;
using schedule::ScheduleSpec;
using schedule::Task;

struct RandomSchedule {
    ScheduleSpec spec;
    Orders orders;
};

/// Pass, stage, micro-batch, slice.
using Key = std::tuple<Pass, std::uint32_t, std::uint32_t, std::uint32_t>;
inline Key keyOf(const Task& task) {
    return {task.pass, task.stage, task.microBatch, task.slice};
}

/// What a task needs, by the definition of a pipeline: the stage before, its own forward, the
/// gradient of the stage after; slices in order, their gradients in the opposite one.
inline std::vector<Key> needsOf(const Task& t, std::uint32_t stages, std::uint32_t slices,
                                bool split) {
    const Pass gradient = split ? Pass::InputGrad : Pass::Backward;
    std::vector<Key> needs;
    if (t.pass == Pass::Forward) {
        if (t.stage > 0) needs.push_back({Pass::Forward, t.stage - 1u, t.microBatch, t.slice});
        if (t.slice > 0) needs.push_back({Pass::Forward, t.stage, t.microBatch, t.slice - 1u});
    } else if (t.pass == Pass::WeightGrad) {
        needs.push_back({gradient, t.stage, t.microBatch, t.slice});
    } else {
        needs.push_back({Pass::Forward, t.stage, t.microBatch, t.slice});
        if (t.stage + 1u < stages) needs.push_back({gradient, t.stage + 1u, t.microBatch, t.slice});
        if (t.slice + 1u < slices) needs.push_back({gradient, t.stage, t.microBatch, t.slice + 1u});
    }
    return needs;
}

inline RandomSchedule randomSchedule(std::mt19937& random, bool split) {
    const auto number = [&](std::uint32_t low, std::uint32_t high) {
        return std::uniform_int_distribution<std::uint32_t>(low, high)(random);
    };
    const auto time = [&] { return std::uniform_real_distribution<double>(0, 3)(random); };
    RandomSchedule out;
    Orders& orders = out.orders;
    orders.devices = number(1, 5);
    orders.stages = number(1, 7);
    orders.microBatches = number(1, 6);
    orders.slices = number(1, 3);
    orders.lists.resize(orders.devices);
    std::vector<std::uint16_t> deviceOf;
    for (std::uint32_t s = 0; s < orders.stages; ++s) {
        deviceOf.push_back(static_cast<std::uint16_t>(number(0, orders.devices - 1)));
        if (s == 0) out.spec.times.clear(), out.spec.activation.clear(), out.spec.transfer.clear();
        out.spec.times.push_back({.forward = time(), .input = time(), .weight = time()});
        out.spec.activation.push_back(time());
        if (s + 1 < orders.stages || s == 0) out.spec.transfer.push_back(time());
    }
    for (std::uint32_t i = 0; i < orders.slices; ++i)
        out.spec.slices.push_back(1.0 / orders.slices);

    std::vector<Task> waiting;
    std::map<Key, bool> done;
    std::vector<Pass> passes = {Pass::Forward, split ? Pass::InputGrad : Pass::Backward};
    if (split) passes.push_back(Pass::WeightGrad);
    for (const Pass pass : passes) {
        for (std::uint32_t s = 0; s < orders.stages; ++s) {
            for (std::uint32_t i = 0; i < orders.microBatches * orders.slices; ++i) {
                Task task;
                task.pass = pass;
                task.stage = static_cast<std::uint16_t>(s);
                task.device = deviceOf[s];
                task.microBatch = i / orders.slices;
                task.slice = static_cast<std::uint16_t>(i % orders.slices);
                waiting.push_back(task);
            }
        }
    }
    while (!waiting.empty()) {
        std::ranges::shuffle(waiting, random);
        const auto ready = std::ranges::find_if(waiting, [&](const Task& task) {
            const auto needs = needsOf(task, orders.stages, orders.slices, split);
            return std::ranges::all_of(needs, [&](const Key& key) { return done[key]; });
        });
        done[keyOf(*ready)] = true;
        orders.lists[ready->device].push_back(*ready);
        waiting.erase(ready);
    }
    return out;
}

/// Of any schedule; a quarter of all times is zero.
inline ScheduleSpec randomSpec(std::mt19937& random) {
    const auto number = [&](std::uint32_t low, std::uint32_t high) {
        return std::uniform_int_distribution<std::uint32_t>(low, high)(random);
    };
    const auto time = [&](std::uint32_t zeros = 1, std::uint32_t of = 4) {
        const bool zero = number(0, of - 1) < zeros;
        return zero ? 0.0 : std::uniform_real_distribution<double>(0, 3)(random);
    };
    const auto all = schedule::generators();
    ScheduleSpec spec;
    spec.name = all[number(0, static_cast<std::uint32_t>(all.size() - 1))].name;
    const bool both = spec.name == "dualpipe" || spec.name == "chimera";
    const bool inV = spec.name == "dualpipev" || spec.name == "zb-v" || spec.name[0] == 'v';
    const bool interleaved = spec.name == "interleaved";
    spec.devices = both ? 2 * number(1, 4) : number(1, 9);
    spec.chunks = interleaved ? number(1, 4) : 1;
    spec.microBatches = interleaved ? spec.devices * number(1, 4)
                        : both      ? 2 * number(1, 14)
                                    : number(1, 24);
    spec.rounds = number(0, 3);
    const std::uint32_t stages = spec.devices * (inV ? 2 : spec.chunks);
    spec.times.clear();
    const std::uint32_t entries = number(0, 1) == 0 ? 1 : stages;
    for (std::uint32_t s = 0; s < entries; ++s) {
        spec.times.push_back({time(), time(), time(), time(3), time(2, 3), time(2, 3)});
    }
    spec.transfer = {time(2)};
    spec.transfers = static_cast<schedule::Transfers>(number(0, 2));
    const bool linked = number(0, 3) == 0;
    for (std::uint32_t s = 0; linked && s + 1 < stages; ++s) spec.links.push_back(number(0, 2));
    spec.limit = number(0, 2) == 0 ? 0.5 * number(1, 30) : 0;
    spec.freedByInput = 0.5 * number(0, 2);
    spec.keptShare = 0.5 * number(0, 2);
    spec.flush = number(0, 1) == 0;
    spec.embeddings = number(1, 2);
    spec.embedTime = time();
    spec.embedSync = time();
    spec.auxTime = time();
    spec.overlapping = number(0, 1) == 0;
    spec.jointFactor = number(0, 1) == 0 ? 1 : 0.8;
    const std::uint32_t slices = spec.name == "terapipe" ? number(1, 4) : 1;
    if (slices > 1) spec.slices.assign(slices, 1.0 / slices);
    return spec;
}

} // namespace shardlens::test
