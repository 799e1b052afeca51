// SPDX-License-Identifier: Apache-2.0
// BERT with the head its architecture names (transformers: modeling_bert). Padding masks are left
// out: they cost nothing that matters beside the attention itself.
#include "core/import/templates/encoder.h"
#include "core/import/templates/templates.h"

#include <fmt/format.h>

namespace shardlens::hf {

EncoderDims readEncoderDims(const Context& context) {
    const Config& config = context.config;
    EncoderDims dims;
    dims.hidden = config.size("hidden_size");
    dims.layers = config.layers("num_hidden_layers");
    const std::int64_t heads = config.size("num_attention_heads");
    config.requireDivides("hidden_size", dims.hidden, "num_attention_heads", heads);
    dims.width = dims.hidden / heads;
    dims.inner = config.size("intermediate_size");
    dims.activation = activationOf(context, "gelu");
    dims.dropout = dropoutOf(context, "hidden_dropout_prob", context.modelType == "bert" ? 0.1 : 0);
    return dims;
}

TensorId selfAttention(Builder& build, const EncoderDims& dims, const std::string& module,
                       TensorId x, bool bias) {
    const auto heads = [&](const char* part) {
        const std::string path = fmt::format("{}.{}", module, part);
        return build.splitHeads(path + ".heads", build.linear(path, x, dims.hidden, bias),
                                dims.width);
    };
    const TensorId q = heads("query"), k = heads("key"), v = heads("value");
    return build.attention(module + ".attention", q, k, v, false);
}

namespace {

struct Bert {
    EncoderDims dims;
    std::int64_t vocabulary = 0;
    std::string root;
    TensorId wordTable = kNoTensor;
};

TensorId embed(Context& context, Bert& model) {
    Builder& build = context.build;
    const Config& config = context.config;
    const std::string path = model.root + "embeddings";
    const std::int64_t h = model.dims.hidden;
    const std::int64_t positions = config.size("max_position_embeddings");
    const std::int64_t types = config.size("type_vocab_size", 2);
    limitSequence(context, positions);
    const Shape shape{context.batch, context.sequence};

    const TensorId tokens = build.integers("tokens", shape);
    model.wordTable = build.parameter(path + ".word_embeddings.weight", {model.vocabulary, h});
    const TensorId words = build.embedding(path + ".word_embeddings", tokens, model.wordTable);
    const TensorId segments = build.integers("token_types", shape);
    const TensorId typeTable = build.parameter(path + ".token_type_embeddings.weight", {types, h});
    const TensorId kinds = build.embedding(path + ".token_type_embeddings", segments, typeTable);
    const TensorId both = build.add(path + ".type_add", words, kinds);
    const TensorId ids = build.constant("positions", {context.sequence});
    const TensorId places = build.parameter(path + ".position_embeddings.weight", {positions, h});
    const TensorId where = build.embedding(path + ".position_embeddings", ids, places);
    const TensorId sum = build.add(path + ".position_add", both, where);
    return build.dropout(path + ".dropout", build.layerNorm(path + ".LayerNorm", sum),
                         model.dims.dropout);
}

/// A dense product, dropout, residual and norm: the end of both halves of a layer.
TensorId output(Builder& build, const EncoderDims& dims, const std::string& path, TensorId x,
                TensorId residual) {
    const TensorId dense = build.linear(path + ".dense", x, dims.hidden, true);
    const TensorId dropped = build.dropout(path + ".dropout", dense, dims.dropout);
    return build.layerNorm(path + ".LayerNorm", build.add(path + ".residual", dropped, residual));
}

TensorId bertLayer(Builder& build, const EncoderDims& dims, const std::string& path, TensorId x) {
    const TensorId merged = selfAttention(build, dims, path + ".attention.self", x, true);
    x = output(build, dims, path + ".attention.output", merged, x);
    const TensorId wide = build.linear(path + ".intermediate.dense", x, dims.inner, true);
    const TensorId active =
        build.unary(path + ".intermediate.intermediate_act_fn", dims.activation, wide);
    return output(build, dims, path + ".output", active, x);
}

TensorId pool(Builder& build, const Bert& model, TensorId x) {
    const TensorId first = build.row(model.root + "pooler.first", x, 0);
    const TensorId dense =
        build.linear(model.root + "pooler.dense", first, model.dims.hidden, true);
    return build.unary(model.root + "pooler.activation", "tanh", dense);
}

TensorId maskedLogits(const Context& context, const Bert& model, TensorId x) {
    Builder& build = context.build;
    const std::string path = "cls.predictions";
    const TensorId dense = build.linear(path + ".transform.dense", x, model.dims.hidden, true);
    const TensorId active =
        build.unary(path + ".transform.transform_act_fn", model.dims.activation, dense);
    const TensorId normed = build.layerNorm(path + ".transform.LayerNorm", active);
    const TensorId weight =
        context.config.flag("tie_word_embeddings", true)
            ? model.wordTable
            : build.parameter(path + ".decoder.weight", {model.vocabulary, model.dims.hidden});
    const TensorId bias = build.parameter(path + ".bias", {model.vocabulary});
    return build.project(path + ".decoder", normed, weight, bias);
}

void finishQuestionAnswering(Context& context, TensorId x) {
    Builder& build = context.build;
    const TensorId both = build.wideLinear("qa_outputs", x, 2, true);
    const auto parts = build.split("qa_outputs.split", both, 2, {1, 1});
    const Shape flat{context.batch, context.sequence};
    const TensorId start = build.reshape("start_logits", parts[0], flat);
    const TensorId end = build.reshape("end_logits", parts[1], flat);
    if (!context.training) {
        context.graph.markOutput(start);
        context.graph.markOutput(end);
        return;
    }
    const TensorId first = build.integers("start_positions", {context.batch});
    const TensorId startLoss = build.crossEntropy("start_loss", start, first);
    const TensorId last = build.integers("end_positions", {context.batch});
    const TensorId endLoss = build.crossEntropy("end_loss", end, last);
    context.graph.markOutput(build.add("loss", startLoss, endLoss));
}

void finishPreTraining(Context& context, const Bert& model, TensorId x) {
    Builder& build = context.build;
    const TensorId logits = maskedLogits(context, model, x);
    const TensorId pooled = pool(build, model, x);
    const TensorId next = build.wideLinear("cls.seq_relationship", pooled, 2, true);
    if (!context.training) {
        context.graph.markOutput(logits);
        context.graph.markOutput(next);
        return;
    }
    const TensorId labels = build.integers("labels", {context.batch, context.sequence});
    const TensorId masked = build.crossEntropy("masked_lm_loss", logits, labels);
    const TensorId follows = build.integers("next_sentence_label", {context.batch});
    const TensorId nextLoss = build.crossEntropy("next_sentence_loss", next, follows);
    context.graph.markOutput(build.add("loss", masked, nextLoss));
}

void finishBert(Context& context, const Bert& model, TensorId x) {
    Builder& build = context.build;
    if (context.head == "ForMaskedLM")
        return finishWithLogits(context, maskedLogits(context, model, x));
    if (context.head == "ForPreTraining") return finishPreTraining(context, model, x);
    if (context.head == "ForQuestionAnswering") return finishQuestionAnswering(context, x);
    if (context.head == "Model") {
        finishBare(context, x);
        context.graph.markOutput(pool(build, model, x));
        return;
    }
    if (context.head == "ForSequenceClassification") x = pool(build, model, x);
    x = build.dropout("dropout", x, model.dims.dropout);
    finishWithLogits(context, build.wideLinear("classifier", x, labelCount(context), true));
}

} // namespace

void buildBert(Context& context) {
    requireHead(context, {"ForMaskedLM", "ForPreTraining", "ForQuestionAnswering",
                          "ForSequenceClassification", "ForTokenClassification", "Model"});
    Builder& build = context.build;
    Bert model;
    model.dims = readEncoderDims(context);
    model.vocabulary = context.config.size("vocab_size");
    model.root = isBareModel(context) ? "" : "bert.";
    TensorId x = embed(context, model);
    for (std::int64_t layer = 0; layer < model.dims.layers; ++layer) {
        build.checkStop();
        x = bertLayer(build, model.dims, fmt::format("{}encoder.layer.{}", model.root, layer), x);
    }
    finishBert(context, model, x);
}

} // namespace shardlens::hf
