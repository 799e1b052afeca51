// SPDX-License-Identifier: Apache-2.0
// GPT-2 and GPT-NeoX (transformers: modeling_gpt2, modeling_gpt_neox). Queries, keys and values
// come from one fused product whose columns are grouped by head, [H,(q k v),d]: the layout of
// GPT-NeoX's own weights and of Megatron-LM, in which cutting the columns cuts heads. GPT-2's file
// orders the same columns [(q k v),H,d]; permuting them once gives this layout.
#include "core/import/templates/decoder.h"
#include "core/import/templates/templates.h"

#include <fmt/format.h>

#include <cmath>

namespace shardlens::hf {

namespace {

/// fused[b,s,3*h] -> q, k, v, each [b,s,H,d]
std::vector<TensorId> splitFused(Builder& build, const std::string& name, TensorId fused,
                                 std::int64_t width) {
    const TensorId heads = build.splitHeads(name + ".heads", fused, 3 * width);
    return build.split(name + ".split", heads, 3, {width, width, width});
}

struct Gpt2 {
    std::int64_t hidden = 0, layers = 0, vocabulary = 0, positions = 0, width = 0, inner = 0;
    std::string activation;
    double dropout = 0;
};

Gpt2 readGpt2(const Context& context) {
    const Config& config = context.config;
    const DecoderDims dims = readDecoderDims(context, false);
    Gpt2 model;
    model.hidden = dims.hidden;
    model.layers = dims.layers;
    model.vocabulary = dims.vocabulary;
    model.positions = config.size("max_position_embeddings");
    model.width = headWidth(context, dims.hidden, dims.heads);
    if (model.width * dims.heads != dims.hidden)
        config.fail("\"head_dim\" times the number of heads must be the hidden size");
    model.inner = config.size("intermediate_size", 4 * dims.hidden);
    model.activation = activationOf(context, "gelu_new");
    model.dropout = dropoutOf(context, "hidden_dropout_prob", 0.1);
    return model;
}

TensorId gpt2Layer(Builder& build, const Gpt2& model, const std::string& path, TensorId x) {
    const TensorId normed = build.layerNorm(path + ".ln_1", x);
    const TensorId fused = build.conv1d(path + ".attn.c_attn", normed, 3 * model.hidden);
    const auto heads = splitFused(build, path + ".attn.c_attn", fused, model.width);
    const TensorId merged =
        build.attention(path + ".attn.attention", heads[0], heads[1], heads[2], true);
    const TensorId projected = build.conv1d(path + ".attn.c_proj", merged, model.hidden);
    x = build.add(path + ".attention_residual", x,
                  build.dropout(path + ".attn.resid_dropout", projected, model.dropout));
    const TensorId again = build.layerNorm(path + ".ln_2", x);
    const TensorId wide = build.conv1d(path + ".mlp.c_fc", again, model.inner);
    const TensorId active = build.unary(path + ".mlp.act", model.activation, wide);
    const TensorId narrow = build.conv1d(path + ".mlp.c_proj", active, model.hidden);
    return build.add(path + ".mlp_residual", x,
                     build.dropout(path + ".mlp.dropout", narrow, model.dropout));
}

} // namespace

void buildGpt2(Context& context) {
    requireHead(context, {"LMHeadModel", "ForCausalLM", "Model"});
    const Gpt2 model = readGpt2(context);
    limitSequence(context, model.positions);
    Builder& build = context.build;
    const std::string root = isBareModel(context) ? "" : "transformer.";

    const TensorId tokens = build.integers("tokens", {context.batch, context.sequence});
    const TensorId table = build.parameter(root + "wte.weight", {model.vocabulary, model.hidden});
    const TensorId words = build.embedding(root + "wte", tokens, table);
    const TensorId positions = build.constant("positions", {context.sequence});
    const TensorId places = build.parameter(root + "wpe.weight", {model.positions, model.hidden});
    const TensorId where = build.embedding(root + "wpe", positions, places);
    TensorId x = build.add(root + "embedding_add", words, where);
    x = build.dropout(root + "drop", x, dropoutOf(context, "embedding_dropout", 0.1));
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
        build.checkStop();
        x = gpt2Layer(build, model, fmt::format("{}h.{}", root, layer), x);
    }
    x = build.layerNorm(root + "ln_f", x);
    if (isBareModel(context)) return finishBare(context, x);
    const bool tied = context.config.flag("tie_word_embeddings", true);
    const TensorId head =
        tied ? table : build.parameter("lm_head.weight", {model.vocabulary, model.hidden});
    finishLanguageModel(context, "lm_head", x, head);
}

namespace {

struct GptNeoX {
    DecoderDims dims;
    std::int64_t inner = 0, rotated = 0;
    bool parallel = true, bias = true;
    std::string activation;
    double dropout = 0;
};

GptNeoX readGptNeoX(const Context& context) {
    const Config& config = context.config;
    GptNeoX model;
    model.dims = readDecoderDims(context, true);
    if (model.dims.headWidth * model.dims.heads != model.dims.hidden)
        config.fail("\"head_dim\" times the number of heads must be the hidden size");
    model.inner = config.size("intermediate_size");
    const double share = config.number("rotary_pct", config.number("partial_rotary_factor", 0.25));
    if (!(share >= 0 && share <= 1)) config.fail("\"rotary_pct\" must be a share from 0 to 1");
    model.rotated =
        static_cast<std::int64_t>(std::floor(share * static_cast<double>(model.dims.headWidth)));
    model.parallel = config.flag("use_parallel_residual", true);
    model.bias = config.flag("attention_bias", true);
    model.activation = activationOf(context, "gelu");
    model.dropout = dropoutOf(context, "hidden_dropout_prob", 0.0);
    return model;
}

TensorId neoxAttention(const Context& context, const GptNeoX& model, const std::string& path,
                       TensorId x) {
    Builder& build = context.build;
    const std::string fusedPath = path + ".attention.query_key_value";
    const TensorId fused = build.linear(fusedPath, x, 3 * model.dims.hidden, model.bias);
    const auto heads = splitFused(build, fusedPath, fused, model.dims.headWidth);
    const TensorId q = rotateHeads(context, path + ".attention.q_rotary", heads[0], model.rotated);
    const TensorId k = rotateHeads(context, path + ".attention.k_rotary", heads[1], model.rotated);
    const TensorId merged = build.attention(path + ".attention.attention", q, k, heads[2], true);
    const TensorId out =
        build.linear(path + ".attention.dense", merged, model.dims.hidden, model.bias);
    return build.dropout(path + ".post_attention_dropout", out, model.dropout);
}

TensorId neoxMlp(const Context& context, const GptNeoX& model, const std::string& path,
                 TensorId x) {
    Builder& build = context.build;
    const TensorId wide = build.linear(path + ".mlp.dense_h_to_4h", x, model.inner, true);
    const TensorId active = build.unary(path + ".mlp.act", model.activation, wide);
    const TensorId out = build.linear(path + ".mlp.dense_4h_to_h", active, model.dims.hidden, true);
    return build.dropout(path + ".post_mlp_dropout", out, model.dropout);
}

TensorId neoxLayer(const Context& context, const GptNeoX& model, const std::string& path,
                   TensorId x) {
    Builder& build = context.build;
    const TensorId normed = build.layerNorm(path + ".input_layernorm", x);
    const TensorId attended = neoxAttention(context, model, path, normed);
    if (model.parallel) { // x + attention(norm(x)) + mlp(norm'(x))
        const TensorId again = build.layerNorm(path + ".post_attention_layernorm", x);
        const TensorId mlp = neoxMlp(context, model, path, again);
        return build.add(path + ".residual", build.add(path + ".parallel_add", mlp, attended), x);
    }
    x = build.add(path + ".attention_residual", x, attended);
    const TensorId again = build.layerNorm(path + ".post_attention_layernorm", x);
    return build.add(path + ".mlp_residual", x, neoxMlp(context, model, path, again));
}

} // namespace

void buildGptNeoX(Context& context) {
    requireHead(context, {"ForCausalLM", "Model"});
    const GptNeoX model = readGptNeoX(context);
    Builder& build = context.build;
    const std::string root = isBareModel(context) ? "" : "gpt_neox.";
    const Shape tableShape{model.dims.vocabulary, model.dims.hidden};

    const TensorId tokens = build.integers("tokens", {context.batch, context.sequence});
    const TensorId table = build.parameter(root + "embed_in.weight", tableShape);
    TensorId x = build.embedding(root + "embed_in", tokens, table);
    x = build.dropout(root + "emb_dropout", x, model.dropout);
    for (std::int64_t layer = 0; layer < model.dims.layers; ++layer) {
        build.checkStop();
        x = neoxLayer(context, model, fmt::format("{}layers.{}", root, layer), x);
    }
    x = build.layerNorm(root + "final_layer_norm", x);
    if (isBareModel(context)) return finishBare(context, x);
    const bool tied = context.config.flag("tie_word_embeddings", false);
    const TensorId head = tied ? table : build.parameter("embed_out.weight", tableShape);
    finishLanguageModel(context, "embed_out", x, head);
}

} // namespace shardlens::hf
