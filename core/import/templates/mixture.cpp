// SPDX-License-Identifier: Apache-2.0
// Mixture-of-experts models (transformers: modeling_mixtral, _qwen2_moe, _qwen3_moe). The experts'
// weights, one tensor an expert in the file, are one tensor with a leading expert dimension here,
// as every framework trains them: experts [E,f,h] on rows [E,b,c,h].
#include "core/import/templates/mixture.h"

#include "core/import/templates/templates.h"

#include <fmt/format.h>

namespace shardlens::hf {

Mixture readMixture(const Context& context) {
    const Config& config = context.config;
    Mixture shape;
    shape.experts = config.size("num_experts");
    shape.perToken = config.size("num_experts_per_tok");
    shape.capacityFactor = config.number("capacity_factor", 1.0);
    if (shape.perToken > shape.experts)
        config.fail(fmt::format("\"num_experts_per_tok\" is {}, but there are {} experts",
                                shape.perToken, shape.experts));
    if (!(shape.capacityFactor > 0 && shape.capacityFactor <= 1e6))
        config.fail("\"capacity_factor\" must be a positive number");
    return shape;
}

namespace {

struct Scores {
    TensorId choice;  ///< what the experts are chosen by
    TensorId weights; ///< what their results are weighted with
};

Scores route(const Context& context, const Mixture& shape, const std::string& module, TensorId x) {
    Builder& build = context.build;
    const TensorId logits = build.wideLinear(module + ".gate", x, shape.experts, false);
    if (!shape.sigmoidScores) {
        const TensorId scores = build.softmax(module + ".gate.softmax", logits);
        return {scores, scores};
    }
    const TensorId scores = build.unary(module + ".gate.sigmoid", "sigmoid", logits);
    const TensorId bias =
        build.parameter(module + ".gate.e_score_correction_bias", {shape.experts});
    return {build.add(module + ".gate.corrected", scores, bias), scores};
}

TensorId sharedExpert(const Context& context, const Mixture& shape, const std::string& module,
                      TensorId x) {
    Builder& build = context.build;
    const std::string path = module + "." + shape.sharedName;
    const TensorId result = gatedMlp(context, path, x, shape.sharedWidth, false);
    if (!shape.sharedGate) return result;
    const TensorId gate = build.wideLinear(path + "_gate", x, 1, false);
    const TensorId open = build.unary(path + "_gate.sigmoid", "sigmoid", gate);
    return build.multiply(path + "_gate.mul", result, open);
}

} // namespace

TensorId mixture(const Context& context, const Mixture& shape, const std::string& module,
                 TensorId x) {
    Builder& build = context.build;
    const std::int64_t hidden = build.shapeOf(x).back();
    const std::string experts = module + ".experts";
    const auto product = [&](const std::string& name, const char* equation, TensorId rows,
                             Shape weight) {
        const std::string path = experts + "." + name;
        return build.einsum(path, equation, rows,
                            build.weight(path + ".weight", std::move(weight)));
    };
    const Shape widening{shape.experts, shape.width, hidden};
    const Scores scores = route(context, shape, module, x);
    const TensorId rows = build.dispatch(module + ".dispatch", x, scores.choice, shape.perToken,
                                         shape.capacityFactor);
    const TensorId gate = product(shape.names.gate, "ebch,efh->ebcf", rows, widening);
    const TensorId active = build.unary(experts + ".act_fn", activationOf(context, "silu"), gate);
    const TensorId up = product(shape.names.up, "ebch,efh->ebcf", rows, widening);
    const TensorId inner = build.multiply(experts + ".mul", active, up);
    const TensorId down =
        product(shape.names.down, "ebcf,ehf->ebch", inner, {shape.experts, hidden, shape.width});
    const TensorId routed = build.combine(module + ".combine", down, scores.weights);
    if (shape.sharedWidth == 0) return routed;
    return build.add(module + ".shared_add", routed, sharedExpert(context, shape, module, x));
}

void buildMixture(Context& context) {
    const Config& config = context.config;
    const std::string& type = context.modelType;
    const DecoderDims dims = readDecoderDims(context, true);
    Mixture shape = readMixture(context);
    AttentionTraits traits;
    std::string block = ".mlp";
    if (type == "mixtral") {
        shape.width = config.size("intermediate_size");
        shape.names = {"w1", "w3", "w2"};
        block = ".block_sparse_moe";
    } else {
        shape.width = config.size("moe_intermediate_size");
        traits.outputBias = config.flag("attention_bias", false);
        traits.qkvBias = type == "qwen2_moe" || traits.outputBias;
        traits.headNorms = type == "qwen3_moe";
    }
    if (type == "qwen2_moe") {
        shape.sharedWidth = config.size("shared_expert_intermediate_size");
        shape.sharedGate = true;
    }
    const std::set<std::int64_t> dense = config.integers("mlp_only_layers");
    const std::int64_t step = config.size("decoder_sparse_step", 1);
    const auto isDense = [&](std::int64_t layer) {
        return type != "mixtral" && (dense.contains(layer) || (layer + 1) % step != 0);
    };
    buildDecoder(
        context, dims,
        [&](std::int64_t, const std::string& path, TensorId x) {
            return groupedAttention(context, dims, traits, path + ".self_attn", x);
        },
        [&](std::int64_t layer, const std::string& path, TensorId x) {
            if (isDense(layer))
                return gatedMlp(context, path + ".mlp", x, config.size("intermediate_size"), false);
            return mixture(context, shape, path + block, x);
        },
        false);
}

} // namespace shardlens::hf
