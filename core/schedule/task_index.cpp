// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/task_index.h"

#include "core/schedule/rule_error.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens::schedule {

std::optional<Part> partOf(Pass pass) {
    switch (pass) {
    case Pass::Forward:
    case Pass::ForwardNoGrad:
        return Part::Forward;
    case Pass::Backward:
    case Pass::InputGrad:
        return Part::Gradient;
    case Pass::WeightGrad:
        return Part::Weight;
    case Pass::Recompute:
        return Part::Recompute;
    case Pass::Embed:
        return Part::Embed;
    case Pass::EmbedGrad:
        return Part::EmbedGrad;
    default:
        return std::nullopt;
    }
}

TaskIndex::TaskIndex(const Orders& orders)
    : m_rows(std::max(orders.stages, orders.devices)), m_microBatches(orders.microBatches),
      m_slices(orders.slices) {
    std::size_t tasks = 0;
    for (const auto& list : orders.lists) tasks += list.size();
    const double needed = double(orders.stages) * orders.microBatches * orders.slices;
    if (needed > double(tasks)) {
        throw RuleError(
            BrokenRule::Complete,
            fmt::format("{} stages x {} micro-batches x {} slices need more than the {} "
                        "tasks there are",
                        orders.stages, orders.microBatches, orders.slices, tasks),
            "schedule", "let every micro-batch pass every stage");
    }
}

void TaskIndex::add(const Task& task, TaskId id) {
    const auto part = partOf(task.pass);
    if (!part) return;
    const bool everywhere = *part == Part::Embed || *part == Part::EmbedGrad;
    const std::uint32_t row = everywhere ? task.device : task.stage;
    if (row >= m_rows || task.microBatch >= m_microBatches || task.slice >= m_slices) {
        throw RuleError(
            BrokenRule::Complete, fmt::format("{} is outside of the schedule", taskName(task)),
            fmt::format("device {}", task.device), "count stages, micro-batches and slices from 0");
    }
    auto& rounds = m_tables[static_cast<std::size_t>(*part)];
    if (rounds.size() <= task.round) rounds.resize(task.round + std::size_t{1});
    auto& table = rounds[task.round];
    if (table.empty()) {
        table.assign(std::size_t{m_rows} * m_microBatches * m_slices, kNoTask);
    }
    TaskId& entry = table[place(row, task.microBatch, task.slice)];
    if (entry != kNoTask) {
        throw RuleError(BrokenRule::Complete, fmt::format("{} is there twice", taskName(task)),
                        fmt::format("device {}", task.device),
                        "let every micro-batch pass every stage once");
    }
    entry = id;
}

TaskId TaskIndex::find(Part part, std::uint32_t stage, std::uint32_t microBatch,
                       std::uint32_t slice, std::uint32_t round) const {
    const auto& rounds = m_tables[static_cast<std::size_t>(part)];
    if (round >= rounds.size() || rounds[round].empty()) return kNoTask;
    return rounds[round][place(stage, microBatch, slice)];
}

} // namespace shardlens::schedule
