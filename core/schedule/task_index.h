// SPDX-License-Identifier: Apache-2.0
// Finds the task of a stage, micro-batch, slice and round that does a certain part: dense tables,
// since a complete schedule fills them.
#pragma once

#include "core/schedule/orders.h"

#include <array>

namespace shardlens::schedule {

/// What can be looked up; F and Fng are both the forward of a stage, B and I both its gradient.
enum class Part : std::uint8_t { Forward, Gradient, Weight, Recompute, Embed, EmbedGrad };
constexpr std::size_t kParts = 6;
std::optional<Part> partOf(Pass pass);

class TaskIndex {
public:
    /// @throws RuleError when there are more stages, micro-batches and slices than tasks
    explicit TaskIndex(const Orders& orders);

    /// Passes of all devices (Embed, EmbedGrad) are looked up by device instead of stage. Passes
    /// that are no Part are left out.
    /// @throws RuleError when stage, micro-batch or slice is not there, or the task already is
    void add(const Task& task, TaskId id);
    /// kNoTask when there is none.
    TaskId find(Part part, std::uint32_t stage, std::uint32_t microBatch, std::uint32_t slice,
                std::uint32_t round = 0) const;
    TaskId find(Part part, const Task& task) const {
        return find(part, task.stage, task.microBatch, task.slice, task.round);
    }

private:
    std::size_t place(std::uint32_t stage, std::uint32_t microBatch, std::uint32_t slice) const {
        return (std::size_t{stage} * m_microBatches + microBatch) * m_slices + slice;
    }

    std::uint32_t m_rows, m_microBatches, m_slices;
    std::array<std::vector<std::vector<TaskId>>, kParts> m_tables; ///< by part and round
};

} // namespace shardlens::schedule
