// SPDX-License-Identifier: Apache-2.0
// Parts of decoder-only models with rotary positions: grouped-query attention, the gated MLP, and
// the frame of embedding, pre-norm residual layers, final norm and head.
#pragma once

#include "core/import/templates/context.h"

#include <functional>

namespace shardlens::hf {

struct DecoderDims {
    std::int64_t hidden = 0, layers = 0, vocabulary = 0;
    std::int64_t heads = 0, kvHeads = 0, headWidth = 0;
};

/// Reads and checks the sizes all families share. `headWidth` is read where `grouped`.
DecoderDims readDecoderDims(const Context& context, bool grouped);

struct AttentionTraits {
    bool qkvBias = false;
    bool outputBias = false;
    bool headNorms = false;   ///< RMS norms of each query and key head (Qwen3)
    double rotaryShare = 1.0; ///< share of a head's width that is rotated
    std::string projection{}; ///< where q, k and v live: "" = q_proj, "qkv_proj" = qkv_proj.q
};

/// Rotates the first `width` of a head's dims, all of them where the head is no wider.
TensorId rotateHeads(const Context& context, const std::string& name, TensorId x,
                     std::int64_t width);

/// x[b,s,h] -> [b,s,h]
TensorId groupedAttention(const Context& context, const DecoderDims& dims,
                          const AttentionTraits& traits, const std::string& module, TensorId x);

/// down(act(gate(x)) * up(x)); gate and up are named in `names`.
struct GatedNames {
    std::string gate = "gate_proj", up = "up_proj", down = "down_proj";
};
TensorId gatedMlp(const Context& context, const std::string& module, TensorId x, std::int64_t width,
                  bool bias, const GatedNames& names = {});

/// One half of a layer: x[b,s,h] after the norm -> [b,s,h] before the residual add.
/// `layerPath` is "model.layers.3".
using LayerPart =
    std::function<TensorId(std::int64_t layer, const std::string& layerPath, TensorId x)>;

/// Builds the whole graph around the two halves.
void buildDecoder(Context& context, const DecoderDims& dims, const LayerPart& attention,
                  const LayerPart& mlp, bool tiedByDefault);

} // namespace shardlens::hf
