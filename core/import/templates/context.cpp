// SPDX-License-Identifier: Apache-2.0
// Parts shared by the templates.
#include "core/import/templates/context.h"

#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace shardlens::hf {

void requireHead(const Context& context, std::initializer_list<std::string_view> known) {
    if (std::ranges::find(known, context.head) != known.end()) return;
    context.config.fail(fmt::format("the head {} of model type {} is not known",
                                    shardlens::inQuotes(context.head), context.modelType),
                        fmt::format("known heads are {}", fmt::join(known, ", ")));
}

bool isBareModel(const Context& context) {
    return context.head == "Model";
}

std::string activationOf(const Context& context, std::string_view fallback) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kFunctions{{
        {"gelu", "gelu"},
        {"gelu_new", "gelu"},
        {"gelu_fast", "gelu"},
        {"gelu_python", "gelu"},
        {"gelu_pytorch_tanh", "gelu"},
        {"quick_gelu", "gelu"},
        {"relu", "relu"},
        {"silu", "silu"},
        {"swish", "silu"},
        {"tanh", "tanh"},
        {"sigmoid", "sigmoid"},
        {"mish", "mish"},
        {"relu2", "relu2"},
        {"elu", "elu"},
    }};
    const std::string name = context.config.text("hidden_act", std::string(fallback));
    const auto found =
        std::ranges::find(kFunctions, name, &decltype(kFunctions)::value_type::first);
    if (found != kFunctions.end()) return std::string(found->second);
    std::vector<std::string_view> known;
    for (const auto& entry : kFunctions) known.push_back(entry.first);
    context.config.fail(fmt::format("the activation {} is not known", shardlens::inQuotes(name)),
                        fmt::format("known ones are {}", fmt::join(known, ", ")));
}

double dropoutOf(const Context& context, std::string_view key, double fallback) {
    const double ratio = context.config.number(key, fallback);
    if (!(ratio >= 0 && ratio < 1))
        context.config.fail(fmt::format("\"{}\" must be a probability below 1", key));
    return context.training ? ratio : 0;
}

std::int64_t headWidth(const Context& context, std::int64_t hidden, std::int64_t heads) {
    if (context.config.has("head_dim")) return context.config.size("head_dim");
    context.config.requireDivides("hidden_size", hidden, "num_attention_heads", heads);
    return hidden / heads;
}

void limitSequence(Context& context, std::int64_t positions) {
    if (context.sequence <= positions) return;
    context.warn(fmt::format("The model has {} learned positions: a sequence of {} is used "
                             "instead of {}.",
                             positions, positions, context.sequence));
    context.sequence = positions;
}

std::int64_t labelCount(const Context& context) {
    const auto named = static_cast<std::int64_t>(context.config.entries("id2label"));
    return named > 0 ? named : context.config.size("num_labels", 2);
}

void finishWithLogits(Context& context, TensorId logits) {
    if (!context.training) {
        context.graph.markOutput(logits);
        return;
    }
    Shape shape = context.build.shapeOf(logits);
    shape.pop_back();
    const TensorId labels = context.build.integers("labels", std::move(shape));
    context.graph.markOutput(context.build.crossEntropy("loss", logits, labels));
}

void finishLanguageModel(Context& context, const std::string& name, TensorId x, TensorId weight,
                         TensorId bias) {
    finishWithLogits(context, context.build.project(name, x, weight, bias));
}

void finishBare(Context& context, TensorId x) {
    if (context.training)
        context.warn("The architecture is a bare model without a head: the graph ends in its "
                     "hidden states and has no loss.");
    context.graph.markOutput(x);
}

} // namespace shardlens::hf
