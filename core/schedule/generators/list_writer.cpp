// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/generators/generators.h"
#include "core/schedule/rule_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace shardlens::schedule {

ListWriter::ListWriter(const ScheduleSpec& spec, std::uint32_t stages, StageOf stageOf)
    : m_spec(spec), m_stageOf(std::move(stageOf)) {
    m_orders.devices = spec.devices;
    m_orders.stages = stages;
    m_orders.microBatches = spec.microBatches;
    m_orders.slices = static_cast<std::uint32_t>(std::max<std::size_t>(1, spec.slices.size()));
    m_orders.lists.resize(spec.devices);
}

Task ListWriter::taskOf(std::uint32_t device, Pass pass, std::uint32_t microBatch,
                        std::uint32_t chunk) const {
    Task task;
    task.microBatch = microBatch;
    task.stage = static_cast<std::uint16_t>(m_stageOf(device, chunk));
    task.device = static_cast<std::uint16_t>(device);
    task.chunk = static_cast<std::uint8_t>(chunk);
    task.pass = pass;
    return task;
}

void ListWriter::add(std::uint32_t device, Pass pass, std::uint32_t microBatch,
                     std::uint32_t chunk) {
    m_orders.lists[device].push_back(taskOf(device, pass, microBatch, chunk));
}

void ListWriter::join(std::uint32_t device, Pass pass, std::uint32_t microBatch,
                      std::uint32_t chunk) {
    add(device, pass, microBatch, chunk);
    m_orders.lists[device].back().joined = true;
}

Orders ListWriter::finish() {
    const auto any = [&](auto time) { return std::ranges::any_of(m_spec.times, time); };
    if (any([](const StageTimes& t) { return t.recompute > 0; })) addRecomputation();
    if (any([](const StageTimes& t) { return t.update > 0; })) addUpdates();
    return std::move(m_orders);
}

/// Before every backward, or before the two that it is joined with.
void ListWriter::addRecomputation() {
    for (auto& list : m_orders.lists) {
        std::vector<Task> out;
        out.reserve(list.size() + list.size() / 2);
        for (const Task& task : list) {
            if (isGradient(task.pass)) {
                Task again = task;
                again.pass = Pass::Recompute;
                again.joined = false;
                out.insert(task.joined ? out.end() - 1 : out.end(), again);
            }
            out.push_back(task);
        }
        list = std::move(out);
    }
}

/// After the last gradient of each update.
void ListWriter::addUpdates() {
    const std::uint32_t each = std::max(1u, m_orders.microBatches / m_orders.updates);
    for (auto& list : m_orders.lists) {
        std::map<std::uint32_t, std::size_t> last; // by update
        for (std::size_t i = 0; i < list.size(); ++i) {
            const bool weights = list[i].pass == Pass::Backward ||
                                 list[i].pass == Pass::WeightGrad ||
                                 list[i].pass == Pass::EmbedGrad;
            if (weights) last[list[i].microBatch / each] = i;
        }
        for (auto it = last.rbegin(); it != last.rend(); ++it) {
            std::size_t after = it->second + 1;
            if (after < list.size() && list[after].joined) ++after;
            Task update = list[it->second];
            update.microBatch = it->first;
            update.pass = Pass::Update;
            update.joined = false;
            list.insert(list.begin() + static_cast<std::ptrdiff_t>(after), update);
        }
    }
}

ListWriter::StageOf loops(std::uint32_t devices) {
    return
        [devices](std::uint32_t device, std::uint32_t chunk) { return chunk * devices + device; };
}
ListWriter::StageOf inV(std::uint32_t devices) {
    return [devices](std::uint32_t device, std::uint32_t chunk) {
        return chunk == 0 ? device : 2 * devices - 1 - device;
    };
}
ListWriter::StageOf bothWays(std::uint32_t devices) {
    return [devices](std::uint32_t device, std::uint32_t chunk) {
        return chunk == 0 ? device : devices - 1 - device;
    };
}

void demand(bool holds, const ScheduleSpec& spec, const char* problem, const char* hint) {
    if (!holds)
        throw RuleError(BrokenRule::Sizes, problem, fmt::format("schedule {}", spec.name), hint);
}

void demandPlain(const ScheduleSpec& spec) {
    demand(spec.chunks == 1, spec, "there is more than one chunk on a device",
           "choose the interleaved schedule, or v = 1");
    demand(spec.slices.empty(), spec, "micro-batches are cut into slices",
           "choose the schedule terapipe, or no slices");
}

} // namespace shardlens::schedule
