// SPDX-License-Identifier: Apache-2.0
// Who computes what, in which order: the part of a schedule that is its own. Everything else
// (dependencies, durations, memory, transfers) follows from it and the spec. A generator makes one,
// a CSV file is one, an edit changes one.
#pragma once

#include "core/schedule/spec.h"
#include "core/schedule/task.h"

#include <optional>
#include <vector>

namespace shardlens::schedule {

/// A device that is free takes the best of its ready tasks instead of the next of a list.
struct Rule {
    /// Best first; what is not named comes last. Among equals the older micro-batch, then the later
    /// stage, goes first.
    std::vector<Pass> priority;
    /// By device: forwards that have started and whose backward (W where it is split) has not
    /// ended. Empty = no limit.
    std::vector<double> limit;
    /// Micro-batches that have begun their first no-gradient pass and not ended their backward.
    double window = kUnlimited;
};

struct Orders {
    std::uint32_t devices = 0, stages = 0, microBatches = 0, slices = 1;
    std::uint32_t updates = 1;            ///< one after each microBatches / updates of them
    std::vector<std::vector<Task>> lists; ///< by device: its compute stream, in order unless `rule`
    std::optional<Rule> rule;
    /// No gradient crosses from stage to stage (local updates). Passes of round 1 are then copies
    /// of the next stage's, on the device of the stage before it.
    bool cutGradients = false;

    bool flushes = true; ///< updates wait for the gradients of all devices, if the spec says so too

    bool isCopy(const Task& task) const { return cutGradients && task.round > 0; }
};

} // namespace shardlens::schedule
