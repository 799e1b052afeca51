// SPDX-License-Identifier: Apache-2.0
// What a schedule is made from: how many devices, micro-batches and chunks, how long each pass of
// each stage takes, what travels, what is kept in memory. It knows nothing of models: times are
// seconds or any other unit, memory is bytes or multiples of one micro-batch's activations.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace shardlens::schedule {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
/// Devices of a schedule, made or read.
constexpr std::uint32_t kMostDevices = 1u << 14;

/// Durations of one micro-batch in one stage.
struct StageTimes {
    double forward = 1;
    double input = 1;     ///< gradient of the stage's input
    double weight = 1;    ///< gradient of its weights
    double recompute = 0; ///< forward again before the backward; 0 = everything was kept
    double update = 0;    ///< optimizer step, once a round of micro-batches
    double allReduce = 0; ///< of gradients between replicas, once a round of micro-batches

    double backward() const { return input + weight; }
};

/// How activations and gradients get from stage to stage.
enum class Transfers : std::uint8_t {
    Lag,      ///< as a delay that nothing else notices: links of any width
    Stream,   ///< as tasks of the sender's communication stream, or of a shared link
    Blocking, ///< as tasks of the sender's compute stream: nothing overlaps
};

struct ScheduleSpec {
    std::string name = "1f1b";      ///< of a generator in catalogue.h
    std::uint32_t devices = 4;      ///< p
    std::uint32_t microBatches = 8; ///< m, in a round between two updates; both directions together
    std::uint32_t chunks = 1;       ///< v stages on a device; schedules in a V always have 2
    std::uint32_t rounds = 0;       ///< updates shown (2BW), no-gradient rounds (3F1B); 0 = 3 and 2

    /// By stage in the order of the model; or one entry, the times of a device's whole share, which
    /// its stages share equally.
    std::vector<StageTimes> times = {StageTimes{}};
    /// Time of a joint forward and backward as a part of the sum of both: 1 = no gain, DualPipe
    /// aims below.
    double jointFactor = 1;
    /// Shares of a micro-batch's time and memory that its slices take (TeraPipe); empty = one
    /// slice.
    std::vector<double> slices;

    /// Seconds from stage s to s+1, and the same back: one entry for all or one for each s. Stages
    /// on one device pass without.
    std::vector<double> transfer = {0};
    Transfers transfers = Transfers::Lag;
    /// By boundary s: which link it shares with others; empty = every device sends on its own.
    /// Only with Transfers::Stream.
    std::vector<std::uint32_t> links;

    /// What one micro-batch keeps between forward and backward: by stage, or one entry, the sum
    /// over a device's whole share.
    std::vector<double> activation = {1};
    double freedByInput =
        0;                ///< share of it that the input gradient frees; weight gradient: the rest
    double keptShare = 1; ///< share of it that forward keeps where it is recomputed
    std::vector<double> staticMemory = {0};      ///< by device, or one entry for all
    std::vector<double> capacity = {kUnlimited}; ///< of memory, by device, or one entry for all

    /// Most micro-batches in flight on a device, for the schedules that take one (ZB-H2, ZB-V); in
    /// units of its whole share. 0 = the schedule's own.
    double limit = 0;
    bool flush = true; ///< updates wait until every device has all its gradients

    std::uint32_t embeddings = 1; ///< interlaced: 1, or 2 (of encoder and decoder)
    double embedTime = 0; ///< interlaced: forward of the shared layer on one device; backward twice
    double embedSync = 0; ///< interlaced: communication of each micro-batch in the shared layer
    double auxTime = 0;   ///< local: the auxiliary head of a block
    bool overlapping = false; ///< local: gradients of a block come from the next one's loss
};

/// Sizes are checked by checkSpec(), which every generator starts with.
/// @throws PlanError when sizes contradict each other or a number is out of range
void checkSpec(const ScheduleSpec& spec);

/// The entry of a list that has one for all, or one for each.
double entry(const std::vector<double>& list, std::size_t i);

} // namespace shardlens::schedule
