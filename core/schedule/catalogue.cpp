// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/catalogue.h"

#include "core/error.h"
#include "core/schedule/generators/generators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace shardlens::schedule {

std::span<const Generator> generators() {
    using enum Exactness;
    static constexpr std::array kAll = {
        Generator{"gpipe", "GPipe", "all forwards, then all backwards", "Huang et al. 2019", 1,
                  Synchronous, makeGPipe},
        Generator{"1f1b", "1F1B", "p-1-k forwards on stage k, then one forward, one backward",
                  "Narayanan et al. 2021", 1, Synchronous, make1F1B},
        Generator{"interleaved", "interleaved 1F1B", "1F1B over v chunks on each device",
                  "Narayanan et al. 2021", 1, Synchronous, makeInterleaved},
        Generator{"2bw", "PipeDream-2BW",
                  "1F1B without a flush, on the weights of one update before",
                  "Narayanan et al. 2021", 2, Stale, make2BW},
        Generator{"terapipe", "TeraPipe", "slices of sequences: all forwards, then all backwards",
                  "Li et al. 2021", 1, Synchronous, makeTeraPipe},
        Generator{"inference", "inference pipe", "forwards only", "", 1, Synchronous,
                  makeInference},
    };
    return kAll;
}

const Generator& generator(std::string_view name) {
    const auto all = generators();
    const auto found = std::ranges::find(all, name, &Generator::name);
    if (found != all.end()) return *found;
    const auto names = std::accumulate(
        all.begin(), all.end(), std::string(), [](std::string text, const Generator& g) {
            return std::move(text) + (text.empty() ? "" : ", ") + std::string(g.name);
        });
    throw PlanError(fmt::format("there is no schedule \"{}\"", name), "", "choose one of " + names);
}

Orders makeOrders(const ScheduleSpec& spec) {
    checkSpec(spec);
    return generator(spec.name).make(spec);
}

Schedule makeSchedule(const ScheduleSpec& spec) {
    return makeSchedule(spec, makeOrders(spec));
}

Schedule makeSchedule(const ScheduleSpec& spec, Orders orders) {
    Schedule out;
    out.orders = std::move(orders);
    out.program = compile(spec, out.orders);
    out.timeline = simulate(out.program);
    out.account = account(out.program, out.timeline);
    return out;
}

} // namespace shardlens::schedule
