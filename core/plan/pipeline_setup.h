// SPDX-License-Identifier: Apache-2.0
// What is asked of the planners of whole jobs: who plans, which schedules it may choose from, and
// what is pinned. A part of PlanRequest, so that turning pipelines on, moving a stage boundary and
// opening a point of a sweep are steps like any other: undone, kept in sessions, written as JSON.
// What is not pinned is the planner's to choose.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardlens {

enum class Recompute : std::uint8_t { None, Selective, Full };

/// Pins that hold for every stage.
struct StagePins {
    std::optional<int> tensor;          ///< devices that share a micro-batch
    std::optional<int> data;            ///< replicas of them
    std::optional<int> zero;            ///< ZeRO stage, 0 … 3
    std::optional<Recompute> recompute; ///< nothing, memory-bound ops, or whole units
    std::optional<int> inside;          ///< choices inside the mesh: 0 quickest … 2 leanest
    // Only of equal stages (planner megatron).
    std::optional<int> context, expert; ///< degrees of context and expert parallelism
    std::optional<bool> sequenceParallel;
    friend bool operator==(const StagePins&, const StagePins&) = default;
};

struct PipelineSetup {
    std::string planner = "optimum";    ///< or "alpa", "megatron"
    std::vector<std::string> schedules; ///< as core/schedule names them; empty = the planner's own
    std::optional<int> chunks;          ///< of a device's layers, where interleaved
    bool blockingTransfers = false;     ///< a device computes nothing while it sends to a stage
    int insideAxes = 1; ///< most axes of the mesh inside a stage (planner optimum): 1 or 2
    std::optional<int> microBatches;
    std::optional<int> stages;
    std::vector<int> cuts; ///< units that a stage must begin with, ascending
    StagePins pins;
    friend bool operator==(const PipelineSetup&, const PipelineSetup&) = default;
};

} // namespace shardlens
