// SPDX-License-Identifier: Apache-2.0
// Which degrees Megatron-LM accepts together, by its documentation and its argument checks
// (megatron/training/arguments.py, megatron/core/model_parallel_config.py; reference formats.md,
// row "Megatron-LM args"): a rule a line, each with the sentence that refuses.
#pragma once

#include "core/plan/stage_transfer.h"

#include <string_view>

namespace shardlens {

/// What the rules need to know of a model; 0 where it has none.
struct MegatronModel {
    std::int64_t layers = 0, heads = 0, keyHeads = 0, sequence = 0, experts = 0;
};
MegatronModel megatronModel(const StagedModel& model);

struct MegatronDegrees {
    int devices = 1;
    int tensor = 1, context = 1, pipeline = 1;
    int expert = 1, expertTensor = 1;
    int chunks = 1; ///< virtual stages a device
    bool sequenceParallel = false;
    std::int64_t samples = 1; ///< micro-batch of one data-parallel rank
    std::int64_t batch = 1;

    int data() const { return devices / (tensor * context * pipeline); }
};

/// The first rule that is broken, as a sentence; empty if none is.
std::string_view brokenRule(const MegatronDegrees& degrees, const MegatronModel& model);

} // namespace shardlens
