// SPDX-License-Identifier: Apache-2.0
// Vision Transformer (transformers: modeling_vit): patches by a strided convolution, a class token,
// learned positions, pre-norm layers, a classifier on the class token.
#include "core/import/templates/encoder.h"
#include "core/import/templates/templates.h"

#include <fmt/format.h>

namespace shardlens::hf {

namespace {

/// pixels -> [b, patches + 1, h]
TensorId embedPatches(Context& context, const EncoderDims& dims, const std::string& path) {
    Builder& build = context.build;
    const Config& config = context.config;
    const std::int64_t image = config.size("image_size", 224);
    const std::int64_t patch = config.size("patch_size", 16);
    const std::int64_t channels = config.size("num_channels", 3);
    config.requireDivides("image_size", image, "patch_size", patch);
    const std::int64_t side = image / patch;
    if (side > 32'768) config.fail("\"image_size\" over \"patch_size\" gives too many patches");
    const std::int64_t b = context.batch, h = dims.hidden, n = side * side;

    const TensorId pixels = build.pixels("pixels", {b, channels, image, image});
    const std::string projection = path + ".patch_embeddings.projection";
    const TensorId weight = build.weight(projection + ".weight", {h, channels, patch, patch});
    const TensorId bias = build.parameter(projection + ".bias", {h});
    const TensorId grid = build.convolution(projection, pixels, weight, bias, patch);
    const TensorId flat = build.reshape(path + ".flatten", grid, {b, h, n});
    const TensorId patches = build.transpose(path + ".transpose", flat, {0, 2, 1});
    const TensorId token = build.parameter(path + ".cls_token", {1, 1, h});
    const TensorId tokens = build.expand(path + ".cls_tokens", token, {b, 1, h});
    const TensorId sequence = build.concat(path + ".cat", {tokens, patches}, 1);
    const TensorId places = build.parameter(path + ".position_embeddings", {1, n + 1, h});
    const TensorId sum = build.add(path + ".position_add", sequence, places);
    return build.dropout(path + ".dropout", sum, dims.dropout);
}

TensorId vitLayer(Builder& build, const EncoderDims& dims, const std::string& path, TensorId x,
                  bool qkvBias) {
    const TensorId normed = build.layerNorm(path + ".layernorm_before", x);
    const TensorId merged =
        selfAttention(build, dims, path + ".attention.attention", normed, qkvBias);
    const TensorId attended =
        build.linear(path + ".attention.output.dense", merged, dims.hidden, true);
    x = build.add(path + ".attention_residual", x,
                  build.dropout(path + ".attention.output.dropout", attended, dims.dropout));
    const TensorId again = build.layerNorm(path + ".layernorm_after", x);
    const TensorId wide = build.linear(path + ".intermediate.dense", again, dims.inner, true);
    const TensorId active =
        build.unary(path + ".intermediate.intermediate_act_fn", dims.activation, wide);
    const TensorId out = build.linear(path + ".output.dense", active, dims.hidden, true);
    return build.add(path + ".mlp_residual", x,
                     build.dropout(path + ".output.dropout", out, dims.dropout));
}

} // namespace

void buildViT(Context& context) {
    requireHead(context, {"ForImageClassification", "Model"});
    Builder& build = context.build;
    const EncoderDims dims = readEncoderDims(context);
    const bool qkvBias = context.config.flag("qkv_bias", true);
    const std::string root = isBareModel(context) ? "" : "vit.";
    TensorId x = embedPatches(context, dims, root + "embeddings");
    for (std::int64_t layer = 0; layer < dims.layers; ++layer) {
        build.checkStop();
        x = vitLayer(build, dims, fmt::format("{}encoder.layer.{}", root, layer), x, qkvBias);
    }
    x = build.layerNorm(root + "layernorm", x);
    const TensorId first = build.row(root + "class_token", x, 0);
    if (isBareModel(context)) {
        finishBare(context, x);
        const TensorId dense = build.linear("pooler.dense", first, dims.hidden, true);
        context.graph.markOutput(build.unary("pooler.activation", "tanh", dense));
        return;
    }
    finishWithLogits(context, build.wideLinear("classifier", first, labelCount(context), true));
}

} // namespace shardlens::hf
