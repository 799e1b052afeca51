// SPDX-License-Identifier: Apache-2.0
// What BERT and ViT share: multi-head attention over the whole sequence, and the sizes of a layer.
#pragma once

#include "core/import/templates/context.h"

namespace shardlens::hf {

struct EncoderDims {
    std::int64_t hidden = 0, layers = 0, width = 0, inner = 0; ///< width of a head
    std::string activation;
    double dropout = 0;
};

EncoderDims readEncoderDims(const Context& context);

/// Separate query, key and value products under `module`; x[b,s,h] -> merged heads [b,s,h].
TensorId selfAttention(Builder& build, const EncoderDims& dims, const std::string& module,
                       TensorId x, bool bias);

} // namespace shardlens::hf
