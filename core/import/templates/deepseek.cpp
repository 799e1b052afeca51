// SPDX-License-Identifier: Apache-2.0
// DeepSeek-V2 and -V3: multi-head latent attention (queries and keys/values come out of low-rank
// latents, a separate rotary part of the key is shared by all heads), dense first layers, then
// mixtures with shared experts. DeepSeek-V3 Technical Report, arXiv:2412.19437, sections 2.1.1,
// 2.1.2; transformers: modeling_deepseek_v3. The multi-token-prediction module is not built.
#include "core/import/templates/mixture.h"
#include "core/import/templates/templates.h"

namespace shardlens::hf {

namespace {

struct Latent {
    std::int64_t queryRank = 0; ///< 0: queries are projected directly
    std::int64_t keyValueRank = 0;
    std::int64_t plain = 0, rotary = 0; ///< widths of the two parts of a query or key head
    std::int64_t value = 0;
    bool bias = false;
};

Latent readLatent(const Config& config) {
    Latent latent;
    latent.queryRank = config.count("q_lora_rank", 0);
    latent.keyValueRank = config.size("kv_lora_rank");
    latent.plain = config.size("qk_nope_head_dim");
    latent.rotary = config.size("qk_rope_head_dim");
    latent.value = config.size("v_head_dim");
    latent.bias = config.flag("attention_bias", false);
    return latent;
}

TensorId latentQuery(const Context& context, const DecoderDims& dims, const Latent& latent,
                     const std::string& module, TensorId x) {
    Builder& build = context.build;
    const std::int64_t width = latent.plain + latent.rotary;
    TensorId flat = kNoTensor;
    if (latent.queryRank > 0) {
        const TensorId down = build.linear(module + ".q_a_proj", x, latent.queryRank, latent.bias);
        const TensorId normed = build.rmsNorm(module + ".q_a_layernorm", down);
        flat = build.linear(module + ".q_b_proj", normed, dims.heads * width, false);
    } else {
        flat = build.linear(module + ".q_proj", x, dims.heads * width, false);
    }
    const TensorId heads = build.splitHeads(module + ".q_heads", flat, width);
    const auto parts = build.split(module + ".q_split", heads, 3, {latent.plain, latent.rotary});
    const TensorId rotated = build.rotary(module + ".q_rotary", parts[1]);
    return build.concat(module + ".q_cat", {parts[0], rotated}, 3);
}

TensorId latentAttention(const Context& context, const DecoderDims& dims, const Latent& latent,
                         const std::string& module, TensorId x) {
    Builder& build = context.build;
    const std::int64_t b = context.batch, s = context.sequence;
    const TensorId q = latentQuery(context, dims, latent, module, x);

    const TensorId compressed = build.linear(module + ".kv_a_proj_with_mqa", x,
                                             latent.keyValueRank + latent.rotary, latent.bias);
    const auto latents =
        build.split(module + ".kv_a_split", compressed, 2, {latent.keyValueRank, latent.rotary});
    const TensorId normed = build.rmsNorm(module + ".kv_a_layernorm", latents[0]);
    const TensorId flat = build.linear(module + ".kv_b_proj", normed,
                                       dims.heads * (latent.plain + latent.value), false);
    const TensorId heads =
        build.splitHeads(module + ".kv_heads", flat, latent.plain + latent.value);
    const auto parts = build.split(module + ".kv_split", heads, 3, {latent.plain, latent.value});

    const TensorId shared =
        build.reshape(module + ".k_rotary_head", latents[1], {b, s, 1, latent.rotary});
    const TensorId rotated = build.rotary(module + ".k_rotary", shared);
    const TensorId spread =
        build.expand(module + ".k_expand", rotated, {b, s, dims.heads, latent.rotary});
    const TensorId k = build.concat(module + ".k_cat", {parts[0], spread}, 3);
    const TensorId merged = build.attention(module + ".attention", q, k, parts[1], true);
    return build.linear(module + ".o_proj", merged, dims.hidden, latent.bias);
}

Mixture readDeepSeekMixture(const Context& context) {
    const Config& config = context.config;
    Mixture shape = readMixture(context);
    shape.width = config.size("moe_intermediate_size");
    shape.sharedWidth = config.count("n_shared_experts", 0) * shape.width;
    shape.sharedName = "shared_experts";
    shape.sigmoidScores = context.modelType == "deepseek_v3";
    return shape;
}

} // namespace

void buildDeepSeek(Context& context) {
    const Config& config = context.config;
    const DecoderDims dims = readDecoderDims(context, false);
    const Latent latent = readLatent(config);
    const std::int64_t denseLayers = config.count("first_k_dense_replace", 0);
    const std::int64_t step = config.size("moe_layer_freq", 1);
    const std::int64_t denseWidth = config.size("intermediate_size");
    const Mixture shape = readDeepSeekMixture(context);
    if (config.count("num_nextn_predict_layers", 0) > 0)
        context.warn("The multi-token-prediction module (num_nextn_predict_layers) is left out: "
                     "the graph is the main model.");
    buildDecoder(
        context, dims,
        [&](std::int64_t, const std::string& path, TensorId x) {
            return latentAttention(context, dims, latent, path + ".self_attn", x);
        },
        [&](std::int64_t layer, const std::string& path, TensorId x) {
            if (layer < denseLayers || layer % step != 0)
                return gatedMlp(context, path + ".mlp", x, denseWidth, false);
            return mixture(context, shape, path + ".mlp", x);
        },
        false);
}

} // namespace shardlens::hf
