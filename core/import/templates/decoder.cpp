// SPDX-License-Identifier: Apache-2.0
// Llama and its relatives (transformers: modeling_llama, _mistral, _qwen2, _qwen3, _phi3, _gemma).
// Phi-3 stores q, k, v in one tensor and gate, up in another. A matrix product with concatenated
// weights is the concatenation of the products, so they are built as separate products with the
// same number of parameters in all: only so can heads be sharded without moving data.
#include "core/import/templates/decoder.h"

#include "core/import/templates/templates.h"

#include <fmt/format.h>

#include <cmath>

namespace shardlens::hf {

DecoderDims readDecoderDims(const Context& context, bool grouped) {
    const Config& config = context.config;
    DecoderDims dims;
    dims.hidden = config.size("hidden_size");
    dims.layers = config.layers("num_hidden_layers");
    dims.vocabulary = config.size("vocab_size");
    dims.heads = config.size("num_attention_heads");
    dims.kvHeads = config.size("num_key_value_heads", dims.heads);
    if (!grouped) return dims;
    config.requireDivides("num_attention_heads", dims.heads, "num_key_value_heads", dims.kvHeads);
    dims.headWidth = headWidth(context, dims.hidden, dims.heads);
    return dims;
}

TensorId rotateHeads(const Context& context, const std::string& name, TensorId x,
                     std::int64_t width) {
    Builder& build = context.build;
    const std::int64_t whole = build.shapeOf(x).back();
    if (width >= whole) return build.rotary(name, x);
    if (width <= 0) return x;
    const auto parts = build.split(name + ".split", x, 3, {width, whole - width});
    return build.concat(name + ".cat", {build.rotary(name, parts[0]), parts[1]}, 3);
}

TensorId groupedAttention(const Context& context, const DecoderDims& dims,
                          const AttentionTraits& traits, const std::string& module, TensorId x) {
    Builder& build = context.build;
    const auto rotated = static_cast<std::int64_t>(
        std::floor(traits.rotaryShare * static_cast<double>(dims.headWidth)));
    const auto heads = [&](const char* letter, std::int64_t count) {
        const std::string path = traits.projection.empty()
                                     ? fmt::format("{}.{}_proj", module, letter)
                                     : fmt::format("{}.{}.{}", module, traits.projection, letter);
        const TensorId flat = build.linear(path, x, count * dims.headWidth, traits.qkvBias);
        return build.splitHeads(path + ".heads", flat, dims.headWidth);
    };
    TensorId q = heads("q", dims.heads);
    if (traits.headNorms) q = build.rmsNorm(module + ".q_norm", q);
    q = rotateHeads(context, module + ".q_rotary", q, rotated);
    TensorId k = heads("k", dims.kvHeads);
    if (traits.headNorms) k = build.rmsNorm(module + ".k_norm", k);
    k = rotateHeads(context, module + ".k_rotary", k, rotated);
    const TensorId v = heads("v", dims.kvHeads);
    const TensorId merged = build.attention(module + ".attention", q, k, v, true);
    return build.linear(module + ".o_proj", merged, dims.hidden, traits.outputBias);
}

TensorId gatedMlp(const Context& context, const std::string& module, TensorId x, std::int64_t width,
                  bool bias, const GatedNames& names) {
    Builder& build = context.build;
    const std::int64_t hidden = build.shapeOf(x).back();
    const TensorId gate = build.linear(module + "." + names.gate, x, width, bias);
    const TensorId active = build.unary(module + ".act_fn", activationOf(context, "silu"), gate);
    const TensorId up = build.linear(module + "." + names.up, x, width, bias);
    const TensorId product = build.multiply(module + ".mul", active, up);
    return build.linear(module + "." + names.down, product, hidden, bias);
}

namespace {

void warnOfSlidingWindow(Context& context) {
    const Config& config = context.config;
    const bool byDefault = context.modelType == "mistral" || context.modelType == "mixtral" ||
                           context.modelType == "phi3";
    if (!config.has("sliding_window") || !config.flag("use_sliding_window", byDefault)) return;
    const std::int64_t window = config.size("sliding_window");
    if (window < context.sequence)
        context.warn(fmt::format("The sliding attention window of {} is not modelled: attention "
                                 "is priced over the whole sequence.",
                                 window));
}

} // namespace

void buildDecoder(Context& context, const DecoderDims& dims, const LayerPart& attention,
                  const LayerPart& mlp, bool tiedByDefault) {
    requireHead(context, {"ForCausalLM", "Model"});
    warnOfSlidingWindow(context);
    Builder& build = context.build;
    const std::string root = isBareModel(context) ? "" : "model.";
    const bool tied = context.config.flag("tie_word_embeddings", tiedByDefault);

    const TensorId tokens = build.integers("tokens", {context.batch, context.sequence});
    const TensorId table =
        build.parameter(root + "embed_tokens.weight", {dims.vocabulary, dims.hidden});
    TensorId x = build.embedding(root + "embed_tokens", tokens, table);
    for (std::int64_t layer = 0; layer < dims.layers; ++layer) {
        build.checkStop();
        const std::string path = fmt::format("{}layers.{}", root, layer);
        const TensorId normed = build.rmsNorm(path + ".input_layernorm", x);
        x = build.add(path + ".attention_residual", x, attention(layer, path, normed));
        const TensorId again = build.rmsNorm(path + ".post_attention_layernorm", x);
        x = build.add(path + ".mlp_residual", x, mlp(layer, path, again));
    }
    x = build.rmsNorm(root + "norm", x);
    if (isBareModel(context)) return finishBare(context, x);
    const TensorId head =
        tied ? table : build.parameter("lm_head.weight", {dims.vocabulary, dims.hidden});
    finishLanguageModel(context, "lm_head", x, head);
}

void buildLlama(Context& context) {
    const Config& config = context.config;
    const std::string& type = context.modelType;
    const DecoderDims dims = readDecoderDims(context, true);
    const std::int64_t width = config.size("intermediate_size");
    const bool bias = config.flag("attention_bias", false);

    AttentionTraits traits;
    traits.qkvBias = type == "qwen2" || bias;
    traits.outputBias = bias;
    traits.headNorms = type == "qwen3";
    traits.rotaryShare = config.number("partial_rotary_factor", 1.0);
    GatedNames names;
    if (type == "phi3") {
        traits.projection = "qkv_proj";
        names = {"gate_up_proj.gate", "gate_up_proj.up", "down_proj"};
        context.graph.facts["fused weights"] =
            "qkv_proj and gate_up_proj are shown as their parts, with the same parameters";
    }
    const bool mlpBias = config.flag("mlp_bias", false);
    buildDecoder(
        context, dims,
        [&](std::int64_t, const std::string& path, TensorId x) {
            return groupedAttention(context, dims, traits, path + ".self_attn", x);
        },
        [&](std::int64_t, const std::string& path, TensorId x) {
            return gatedMlp(context, path + ".mlp", x, width, mlpBias, names);
        },
        type == "gemma");
}

} // namespace shardlens::hf
