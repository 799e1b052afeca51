// SPDX-License-Identifier: Apache-2.0
// The unit a timeline is made of: one pass of one micro-batch (or slice of it) through one stage,
// on one stream of one device. It is 16 bytes, because a long run has millions of them; durations,
// dependencies and memory are kept beside it (program.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardlens::schedule {

using TaskId = std::uint32_t;
constexpr TaskId kNoTask = ~TaskId{0};

/// What a task computes or moves.
enum class Pass : std::uint8_t {
    Forward,       ///< F
    ForwardNoGrad, ///< Fng: forward of which nothing is kept
    Backward,      ///< B: input and weight gradient in one go
    InputGrad,     ///< I: gradient of the stage's input, which the stage before waits for
    WeightGrad,    ///< W: gradient of the weights, which nobody waits for before the update
    Recompute,     ///< R: the forward again, for what was not kept
    Embed,         ///< E: forward of a layer that all devices share, all at once
    EmbedGrad,     ///< EB: its backward
    Send,          ///< SEND_F: activations to the device of the next stage
    SendGrad,      ///< SEND_B: gradients to the device of the stage before
    AllReduce,     ///< A: gradients between replicas
    Update,        ///< U: optimizer step
    Barrier,       ///< takes no time and no stream; what follows waits for all that comes before
};
constexpr std::size_t kPasses = 13;

std::string_view passText(Pass pass); ///< "F", "I", "SEND_B" …

/// Whether the pass brings gradients towards the first stage: B or I.
constexpr bool isGradient(Pass pass) {
    return pass == Pass::Backward || pass == Pass::InputGrad;
}
constexpr bool isSend(Pass pass) {
    return pass == Pass::Send || pass == Pass::SendGrad;
}

/// Tasks of one stream of a device run one after the other; streams run side by side.
enum class Stream : std::uint8_t { Compute, Communication, None };

struct Task {
    std::uint32_t microBatch = 0;
    std::uint16_t stage = 0; ///< position in the model, from 0
    std::uint16_t device = 0;
    std::uint16_t slice = 0; ///< of the sequence
    std::uint8_t chunk = 0;  ///< which of its device's stages: 0 the first or the down pipeline
    Pass pass = Pass::Forward;
    Stream stream = Stream::Compute;
    std::uint8_t round = 0; ///< of several passes through the whole pipeline (3F1B)
    bool joined = false;    ///< starts and ends with the task before it in its list, as F&B do

    friend bool operator==(const Task&, const Task&) = default;
};
static_assert(sizeof(Task) <= 16);

/// Stage, pass, micro-batch as PyTorch writes them: "2F0"; slice and round follow where there are
/// several: "2F0.3", "2Fng0r1".
std::string taskName(const Task& task);

} // namespace shardlens::schedule
