// SPDX-License-Identifier: Apache-2.0
// The mixture-of-experts half of a layer: router, dispatch, grouped expert products, combine, and
// the experts every token passes through.
#pragma once

#include "core/import/templates/decoder.h"

namespace shardlens::hf {

struct Mixture {
    std::int64_t experts = 0, perToken = 0, width = 0;
    std::int64_t sharedWidth = 0; ///< of the shared expert; 0 = none
    bool sharedGate = false;      ///< the shared expert is scaled by a sigmoid gate (Qwen2-MoE)
    bool sigmoidScores = false;   ///< scores are sigmoids, with a correction bias (DeepSeek-V3)
    double capacityFactor = 1.0;
    std::string sharedName = "shared_expert";
    GatedNames names{};
};

/// Reads "num_experts", "num_experts_per_tok" and "capacity_factor", and checks them.
Mixture readMixture(const Context& context);

/// x[b,s,h] -> [b,s,h]
TensorId mixture(const Context& context, const Mixture& shape, const std::string& module,
                 TensorId x);

} // namespace shardlens::hf
