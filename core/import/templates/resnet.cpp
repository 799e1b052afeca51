// SPDX-License-Identifier: Apache-2.0
// Residual networks (He et al. 2016; transformers: modeling_resnet): a strided convolution and a
// pool, stages of bottleneck or basic layers whose channels grow while the picture shrinks, a
// classifier on the mean of the picture.
#include "core/import/templates/templates.h"

#include <fmt/format.h>

#include <numeric>

namespace shardlens::hf {

namespace {

constexpr std::int64_t kReduction = 4; ///< of channels inside a bottleneck

struct ResidualDims {
    std::vector<std::int64_t> channels, depths; ///< by stage
    std::string activation;
    bool bottleneck = true;
    bool strideInFirst = false; ///< a bottleneck's stride is in its first convolution
};

ResidualDims readDims(const Context& context) {
    const Config& config = context.config;
    ResidualDims dims;
    dims.channels = config.sizes("hidden_sizes", {256, 512, 1024, 2048});
    dims.depths = config.sizes("depths", {3, 4, 6, 3});
    dims.activation = activationOf(context, "relu");
    const std::string type = config.text("layer_type", "bottleneck");
    if (type != "bottleneck" && type != "basic")
        config.fail("\"layer_type\" must be \"bottleneck\" or \"basic\"");
    dims.bottleneck = type == "bottleneck";
    dims.strideInFirst = config.flag("downsample_in_bottleneck", false);
    if (dims.channels.empty() || dims.channels.size() != dims.depths.size())
        config.fail("\"hidden_sizes\" and \"depths\" must have an entry for each stage");
    for (const std::int64_t depth : dims.depths)
        if (depth > kMostLayers)
            config.fail(fmt::format("a stage of {} layers is more than {}", depth, kMostLayers));
    for (const std::int64_t channels : dims.channels)
        if (dims.bottleneck && channels % kReduction != 0)
            config.fail(fmt::format("{} of \"hidden_sizes\" is not a multiple of {}, by which a "
                                    "bottleneck narrows",
                                    channels, kReduction));
    return dims;
}

/// Convolution without bias, batch norm and, unless it is empty, an activation.
TensorId convLayer(const Context& context, const std::string& path, TensorId x, std::int64_t out,
                   std::int64_t kernel, std::int64_t stride, const std::string& activation) {
    Builder& build = context.build;
    const std::string name = path + ".convolution";
    const TensorId weight =
        build.weight(name + ".weight", {out, build.shapeOf(x)[1], kernel, kernel});
    x = build.convolution(name, x, weight, kNoTensor, stride, kernel / 2);
    x = build.batchNorm(path + ".normalization", x, context.training);
    return activation.empty() ? x : build.unary(path + ".activation", activation, x);
}

TensorId residualLayer(const Context& context, const ResidualDims& dims, const std::string& path,
                       TensorId x, std::int64_t out, std::int64_t stride) {
    const auto conv = [&](int index, TensorId from, std::int64_t channels, std::int64_t kernel,
                          std::int64_t step, bool active) {
        return convLayer(context, fmt::format("{}.layer.{}", path, index), from, channels, kernel,
                         step, active ? dims.activation : std::string());
    };
    TensorId y = x;
    if (dims.bottleneck) {
        const std::int64_t inner = out / kReduction;
        y = conv(0, y, inner, 1, dims.strideInFirst ? stride : 1, true);
        y = conv(1, y, inner, 3, dims.strideInFirst ? 1 : stride, true);
        y = conv(2, y, out, 1, 1, false);
    } else {
        y = conv(0, y, out, 3, stride, true);
        y = conv(1, y, out, 3, 1, false);
    }
    if (stride != 1 || context.build.shapeOf(x)[1] != out)
        x = convLayer(context, path + ".shortcut", x, out, 1, stride, {});
    const TensorId sum = context.build.add(path + ".residual", y, x);
    return context.build.unary(path + ".activation", dims.activation, sum);
}

} // namespace

void buildResNet(Context& context) {
    requireHead(context, {"ForImageClassification", "Model"});
    Builder& build = context.build;
    const Config& config = context.config;
    const ResidualDims dims = readDims(context);
    const std::string root = isBareModel(context) ? "" : "resnet.";
    const std::int64_t image = config.size("image_size", 224);
    TensorId x =
        build.pixels("pixels", {context.batch, config.size("num_channels", 3), image, image});
    x = convLayer(context, root + "embedder.embedder", x, config.size("embedding_size", 64), 7, 2,
                  dims.activation);
    x = build.maxPool(root + "embedder.pooler", x, 3, 2, 1);
    for (std::size_t stage = 0; stage < dims.depths.size(); ++stage) {
        const bool shrinks = stage > 0 || config.flag("downsample_in_first_stage", false);
        for (std::int64_t layer = 0; layer < dims.depths[stage]; ++layer) {
            build.checkStop();
            x = residualLayer(context, dims,
                              fmt::format("{}encoder.stages.{}.layers.{}", root, stage, layer), x,
                              dims.channels[stage], shrinks && layer == 0 ? 2 : 1);
        }
    }
    const std::int64_t layers =
        std::accumulate(dims.depths.begin(), dims.depths.end(), std::int64_t{0});
    context.graph.facts["layers"] = fmt::format("{}", layers);
    x = build.globalAverage(root + "pooler", x);
    if (isBareModel(context)) return finishBare(context, x);
    const TensorId flat = build.reshape("classifier.0", x, {context.batch, dims.channels.back()});
    finishWithLogits(context, build.wideLinear("classifier.1", flat, labelCount(context), true));
}

} // namespace shardlens::hf
