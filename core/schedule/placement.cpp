// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/placement.h"

#include "core/schedule/rule_error.h"
#include "core/schedule/task_index.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens::schedule {
namespace {

constexpr std::uint16_t kNowhere = 0xffff;
constexpr const char* kOnce = "let every micro-batch pass every stage once";

std::string deviceText(std::uint32_t device) {
    return fmt::format("device {}", device);
}

bool isEverywhere(const Task& task) {
    return task.pass == Pass::Embed || task.pass == Pass::EmbedGrad;
}

/// That each forward has its backward, if there is any: in one, or in two parts.
class Completeness {
public:
    Completeness(const Orders& orders, const TaskIndex& index) : m_orders(orders), m_index(index) {
        for (const auto& list : orders.lists) {
            for (const Task& task : list) m_trains = m_trains || isGradient(task.pass);
        }
    }

    /// @param tasks of one device; the index holds positions in all lists, one after the other
    void check(const std::vector<const Task*>& all) const {
        for (const Task* task : all) {
            if (task->pass == Pass::Forward && m_trains) backwardOf(*task, all);
            const bool second = isGradient(task->pass) || task->pass == Pass::Recompute;
            if (second || task->pass == Pass::WeightGrad) forwardOf(*task);
            if (task->pass == Pass::ForwardNoGrad && !has(Part::Forward, *task, task->round + 1u)) {
                missing(*task, "leads nowhere");
            }
            if (task->pass == Pass::Forward && task->round > 0 && !m_orders.isCopy(*task) &&
                !has(Part::Forward, *task, task->round - 1u)) {
                missing(*task, "misses the round before");
            }
        }
    }

private:
    bool has(Part part, const Task& task, std::uint32_t round) const {
        return m_index.find(part, task.stage, task.microBatch, task.slice, round) != kNoTask;
    }
    [[noreturn]] static void missing(const Task& task, const char* problem) {
        throw RuleError(BrokenRule::Complete, fmt::format("{} {}", taskName(task), problem),
                        deviceText(task.device), kOnce);
    }
    void backwardOf(const Task& task, const std::vector<const Task*>& all) const {
        const TaskId gradient = m_index.find(Part::Gradient, task);
        if (gradient == kNoTask) missing(task, "has no backward");
        const bool whole = all[gradient]->pass == Pass::Backward;
        const bool weights = has(Part::Weight, task, task.round);
        if (whole && weights) missing(task, "has a whole backward and weight gradients too");
        if (!whole && !weights) missing(task, "has no weight gradients");
    }
    void forwardOf(const Task& task) const {
        const TaskId forward = m_index.find(Part::Forward, task);
        if (forward == kNoTask) missing(task, "has no forward");
        if (task.pass == Pass::WeightGrad && !has(Part::Gradient, task, task.round)) {
            missing(task, "has no input gradients");
        }
    }

    const Orders& m_orders;
    const TaskIndex& m_index;
    bool m_trains = false;
};

} // namespace

Placement::Placement(const Orders& orders) : m_microBatches(orders.microBatches) {
    TaskIndex index(orders); // what is there twice or outside is refused
    std::vector<const Task*> all;
    m_device.assign(std::size_t{orders.stages} * orders.microBatches, kNowhere);
    for (std::uint32_t d = 0; d < orders.devices; ++d) {
        for (const Task& task : orders.lists[d]) {
            if (task.device != d) {
                throw RuleError(BrokenRule::Placed,
                                fmt::format("{} belongs to device {}", taskName(task), task.device),
                                deviceText(d), "keep tasks in the lists of their devices");
            }
            index.add(task, static_cast<TaskId>(all.size()));
            all.push_back(&task);
            if (task.pass != Pass::Forward || orders.isCopy(task)) continue;
            auto& device = m_device[std::size_t{task.stage} * m_microBatches + task.microBatch];
            if (device == kNowhere) device = static_cast<std::uint16_t>(d);
        }
    }
    const auto missing = std::ranges::find(m_device, kNowhere);
    if (missing != m_device.end()) {
        const auto at = static_cast<std::size_t>(missing - m_device.begin());
        throw RuleError(BrokenRule::Complete,
                        fmt::format("micro-batch {} does not pass stage {}", at % m_microBatches,
                                    at / m_microBatches),
                        "schedule", kOnce);
    }
    for (const Task* task : all) {
        if (!partOf(task->pass) || isEverywhere(*task) || orders.isCopy(*task)) continue;
        const std::uint32_t device = deviceOf(task->stage, task->microBatch);
        if (device == task->device) continue;
        throw RuleError(
            BrokenRule::Placed,
            fmt::format("{} is not where its forward is, on device {}", taskName(*task), device),
            deviceText(task->device), "keep all passes of a stage on the device of its weights");
    }
    Completeness(orders, index).check(all);
}

} // namespace shardlens::schedule
