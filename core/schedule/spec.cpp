// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/spec.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace shardlens::schedule {
namespace {

constexpr std::uint32_t kMostChunks = 128, kMostRounds = 200;
constexpr std::uint32_t kMostSlices = 1u << 12;
constexpr std::uint64_t kMostTasks = std::uint64_t{1} << 27; // 128 Mi

void range(std::uint32_t value, std::uint32_t most, const char* what) {
    if (value >= 1 && value <= most) return;
    throw PlanError(fmt::format("{} {} are out of range", value, what), "schedule",
                    fmt::format("choose 1 to {}", most));
}

void atLeastZero(std::span<const double> values, const char* what, bool mayBeUnlimited = false) {
    const auto bad = [&](double value) {
        return !(value >= 0) || (std::isinf(value) && !mayBeUnlimited);
    };
    const auto found = std::ranges::find_if(values, bad);
    if (found == values.end()) return;
    throw PlanError(fmt::format("{} of {} has no meaning", what, *found), "schedule",
                    "give a number that is 0 or more");
}

void checkTimes(const ScheduleSpec& spec) {
    for (const StageTimes& times : spec.times) {
        const double all[] = {times.forward,   times.input,  times.weight,
                              times.recompute, times.update, times.allReduce};
        atLeastZero(all, "a time");
    }
    const double others[] = {spec.embedTime, spec.embedSync, spec.auxTime};
    atLeastZero(others, "a time");
    atLeastZero(spec.transfer, "a transfer time");
}

void checkShares(const ScheduleSpec& spec) {
    const double shares[] = {spec.freedByInput, spec.keptShare};
    for (const double share : shares) {
        if (share >= 0 && share <= 1) continue;
        throw PlanError(fmt::format("a share of memory of {} has no meaning", share), "schedule",
                        "give a number from 0 to 1");
    }
    if (!(spec.jointFactor > 0 && spec.jointFactor <= 1)) {
        throw PlanError(fmt::format("a joint factor of {} has no meaning", spec.jointFactor),
                        "schedule", "give a number above 0 and up to 1");
    }
    atLeastZero(spec.slices, "a slice");
    if (spec.slices.empty()) return;
    const double sum = std::accumulate(spec.slices.begin(), spec.slices.end(), 0.0);
    if (std::abs(sum - 1) <= 1e-9) return;
    throw PlanError(fmt::format("the slices make {} of a micro-batch", sum), "schedule",
                    "let their shares sum to 1");
}

} // namespace

void checkSpec(const ScheduleSpec& spec) {
    range(spec.devices, kMostDevices, "devices");
    range(spec.microBatches, 1u << 24, "micro-batches");
    range(spec.chunks, kMostChunks, "chunks");
    range(std::max(1u, spec.rounds), kMostRounds, "rounds");
    const auto slices = static_cast<std::uint32_t>(std::max<std::size_t>(1, spec.slices.size()));
    range(slices, kMostSlices, "slices");
    const std::uint64_t passes = std::uint64_t{3} * std::max(3u, spec.rounds) * slices;
    if (passes * spec.devices * spec.chunks > kMostTasks / spec.microBatches) {
        throw PlanError(
            fmt::format("{} devices, {} micro-batches and {} chunks make too many tasks",
                        spec.devices, spec.microBatches, spec.chunks),
            "schedule", fmt::format("stay below {} tasks", kMostTasks));
    }
    checkTimes(spec);
    checkShares(spec);
    atLeastZero(spec.activation, "activation memory");
    atLeastZero(spec.staticMemory, "static memory");
    atLeastZero(spec.capacity, "a capacity", true);
    const double limit[] = {spec.limit};
    atLeastZero(limit, "a limit");
    for (const bool missing : {spec.times.empty(), spec.transfer.empty(), spec.activation.empty(),
                               spec.staticMemory.empty(), spec.capacity.empty()}) {
        if (!missing) continue;
        throw PlanError("a list of times, transfers or memory is empty", "schedule",
                        "give one entry for all, or one for each");
    }
}

double entry(const std::vector<double>& list, std::size_t i) {
    return list.size() == 1 ? list.front() : list.at(i);
}

} // namespace shardlens::schedule
