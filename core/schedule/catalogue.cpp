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
        Generator{"zb-h1", "ZB-H1",
                  "1F1B with the backward split; stage k defers k weight gradients",
                  "Qi et al. 2024", 1, Synchronous, makeZbH1},
        Generator{"zb-h2", "ZB-H2", "input gradient, else forward within the limit, else weights",
                  "Qi et al. 2024", 1, Synchronous, makeZbH2},
        Generator{"zb-v", "ZB-V", "two stages in a V on each device, weights where it would wait",
                  "Qi et al. 2024", 1, Synchronous, makeZbV},
        Generator{"v-half", "V-Half", "a V whose pattern keeps about half of 1F1B's activations",
                  "Qi et al. 2024", 1, Synchronous, makeVHalf},
        Generator{"v-min", "V-Min", "a V whose pattern keeps about a third of 1F1B's activations",
                  "Qi et al. 2024", 1, Synchronous, makeVMin},
        Generator{"dualpipe", "DualPipe",
                  "a pipeline in each direction, forward and backward joint", "DeepSeek-AI 2024", 2,
                  Synchronous, makeDualPipe},
        Generator{"dualpipev", "DualPipeV",
                  "DualPipe cut in half: two stages in a V on each device", "DeepSeek-AI 2025", 1,
                  Synchronous, makeDualPipeV},
        Generator{"chimera", "Chimera", "a 1F1B pipeline in each direction", "Li and Hoefler 2021",
                  2, Synchronous, makeChimera},
        Generator{"interlaced", "interlaced", "1F1B, with embeddings that all devices share",
                  "Lin et al. 2024", 1, Synchronous, makeInterlaced},
        Generator{"3f1b", "3F1B", "rounds without gradient, then one forward, one backward",
                  "Lin et al. 2024", 1, Synchronous, make3F1B},
        Generator{"local", "local updates", "blocks with losses of their own", "Laskin et al. 2020",
                  1, Local, makeLocal},
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

Orders asLists(const Orders& orders, const Program& program, const Timeline& timeline) {
    Orders out = orders;
    out.rule.reset();
    for (std::uint32_t d = 0; d < program.devices; ++d) {
        out.lists[d].clear();
        for (const TaskId id : runOrder(timeline, program.queues[d])) {
            if (!isSend(program.tasks[id].pass)) out.lists[d].push_back(program.tasks[id]);
        }
    }
    return out;
}

} // namespace shardlens::schedule
