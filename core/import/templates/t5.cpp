// SPDX-License-Identifier: Apache-2.0
// T5 and its kin (transformers: modeling_t5, modeling_mt5): encoder and decoder, one embedding for
// both, and a relative position bias that the first layer of each stack holds and all its layers
// add to their attention scores.
#include "core/import/templates/templates.h"
#include "core/import/text.h"

#include <fmt/format.h>

namespace shardlens::hf {

namespace {

struct T5 {
    std::int64_t hidden = 0, vocabulary = 0, heads = 0, width = 0, inner = 0, buckets = 0;
    std::int64_t encoderLayers = 0, decoderLayers = 0;
    bool gated = false;
    std::string activation;
    double dropout = 0;
};

/// "relu", "gated-gelu", "gated-silu"
void readFeedForward(const Config& config, T5& model) {
    std::string text = config.text("feed_forward_proj", "relu");
    constexpr std::string_view kGated = "gated-";
    model.gated = text.starts_with(kGated);
    if (model.gated) text.erase(0, kGated.size());
    if (text == "gelu_new") text = "gelu";
    if (text != "relu" && text != "gelu" && text != "silu")
        config.fail(fmt::format("\"feed_forward_proj\" is {}, which is not known",
                                shardlens::inQuotes(config.text("feed_forward_proj"))),
                    "known ones are relu, gelu, silu and gated- before one of these");
    model.activation = text;
}

T5 readT5(const Context& context) {
    const Config& config = context.config;
    T5 model;
    model.hidden = config.size("hidden_size");
    model.vocabulary = config.size("vocab_size");
    model.heads = config.size("num_attention_heads");
    model.width = config.size("d_kv");
    model.inner = config.size("intermediate_size");
    model.buckets = config.size("relative_attention_num_buckets", 32);
    model.encoderLayers = config.layers("num_hidden_layers");
    model.decoderLayers = config.has("num_decoder_layers") ? config.layers("num_decoder_layers")
                                                           : model.encoderLayers;
    model.dropout = dropoutOf(context, "hidden_dropout_prob", 0.1);
    readFeedForward(config, model);
    return model;
}

/// The part of a stack (encoder or decoder) that its layers share.
struct Stack {
    std::string path; ///< "encoder"
    bool decoder = false;
    TensorId bias = kNoTensor;    ///< [H,s,s], made by the first layer
    TensorId encoded = kNoTensor; ///< decoder only: the encoder's result
};

TensorId positionBias(Builder& build, const T5& model, const std::string& stack,
                      const std::string& module, std::int64_t length) {
    const TensorId buckets = build.constant(stack + ".relative_position_buckets", {length, length});
    const std::string path = module + ".relative_attention_bias";
    const TensorId table = build.parameter(path + ".weight", {model.buckets, model.heads});
    const TensorId values = build.embedding(path, buckets, table);
    return build.transpose(path + ".permute", values, {2, 0, 1});
}

TensorId attend(Builder& build, const T5& model, const std::string& module, TensorId x,
                TensorId source, bool causal, TensorId bias) {
    const auto heads = [&](const char* letter, TensorId from) {
        const std::string path = fmt::format("{}.{}", module, letter);
        return build.splitHeads(path + ".heads",
                                build.linear(path, from, model.heads * model.width, false),
                                model.width);
    };
    const TensorId q = heads("q", x), k = heads("k", source), v = heads("v", source);
    const TensorId merged = build.attention(module + ".attention", q, k, v, causal, bias);
    return build.linear(module + ".o", merged, model.hidden, false);
}

TensorId feedForward(Builder& build, const T5& model, const std::string& module, TensorId x) {
    TensorId inner = kNoTensor;
    if (model.gated) {
        const TensorId gate = build.linear(module + ".wi_0", x, model.inner, false);
        const TensorId active = build.unary(module + ".act", model.activation, gate);
        const TensorId up = build.linear(module + ".wi_1", x, model.inner, false);
        inner = build.multiply(module + ".mul", active, up);
    } else {
        const TensorId wide = build.linear(module + ".wi", x, model.inner, false);
        inner = build.unary(module + ".act", model.activation, wide);
    }
    inner = build.dropout(module + ".dropout", inner, model.dropout);
    return build.linear(module + ".wo", inner, model.hidden, false);
}

TensorId residual(Builder& build, const T5& model, const std::string& path, TensorId x,
                  TensorId change) {
    return build.add(path + ".residual", x,
                     build.dropout(path + ".dropout", change, model.dropout));
}

TensorId t5Layer(Builder& build, const T5& model, Stack& stack, std::int64_t layer, TensorId x) {
    const std::string block = fmt::format("{}.block.{}.layer.", stack.path, layer);
    int part = 0;
    std::string path = fmt::format("{}{}", block, part++);
    // All layers share the first one's bias: it comes before the layer, so that layers are alike.
    if (stack.bias == kNoTensor)
        stack.bias =
            positionBias(build, model, stack.path, path + ".SelfAttention", build.shapeOf(x)[1]);
    TensorId normed = build.rmsNorm(path + ".layer_norm", x);
    x = residual(
        build, model, path, x,
        attend(build, model, path + ".SelfAttention", normed, normed, stack.decoder, stack.bias));
    if (stack.decoder) {
        path = fmt::format("{}{}", block, part++);
        normed = build.rmsNorm(path + ".layer_norm", x);
        x = residual(build, model, path, x,
                     attend(build, model, path + ".EncDecAttention", normed, stack.encoded, false,
                            kNoTensor));
    }
    path = fmt::format("{}{}", block, part);
    normed = build.rmsNorm(path + ".layer_norm", x);
    return residual(build, model, path, x,
                    feedForward(build, model, path + ".DenseReluDense", normed));
}

TensorId t5Stack(Builder& build, const T5& model, Stack stack, std::int64_t layers, TensorId x) {
    x = build.dropout(stack.path + ".dropout", x, model.dropout);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        build.checkStop();
        x = t5Layer(build, model, stack, layer, x);
    }
    x = build.rmsNorm(stack.path + ".final_layer_norm", x);
    return build.dropout(stack.path + ".final_dropout", x, model.dropout);
}

} // namespace

void buildT5(Context& context) {
    requireHead(context, {"ForConditionalGeneration", "WithLMHeadModel", "Model", "EncoderModel"});
    Builder& build = context.build;
    const T5 model = readT5(context);
    const auto named = context.bindings.find("target_sequence");
    const std::int64_t target = named == context.bindings.end() ? context.sequence : named->second;

    const TensorId tokens = build.integers("tokens", {context.batch, context.sequence});
    const TensorId table = build.parameter("shared.weight", {model.vocabulary, model.hidden});
    const TensorId words = build.embedding("encoder.embed_tokens", tokens, table);
    const TensorId encoded = t5Stack(build, model, {"encoder"}, model.encoderLayers, words);
    if (context.head == "EncoderModel") return finishBare(context, encoded);

    const TensorId targets = build.integers("decoder_tokens", {context.batch, target});
    const TensorId decoded =
        t5Stack(build, model, {"decoder", true, kNoTensor, encoded}, model.decoderLayers,
                build.embedding("decoder.embed_tokens", targets, table));
    if (isBareModel(context)) return finishBare(context, decoded);
    const bool tied = context.config.flag("tie_word_embeddings", context.modelType == "t5");
    const TensorId head =
        tied ? table : build.parameter("lm_head.weight", {model.vocabulary, model.hidden});
    finishLanguageModel(context, "lm_head", decoded, head);
}

} // namespace shardlens::hf
