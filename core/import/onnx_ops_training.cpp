// SPDX-License-Identifier: Apache-2.0
// Ops of graphs that hold their own backward pass (ONNX Runtime training: com.microsoft, and
// org.pytorch.aten for what it hands to PyTorch).
#include "core/import/onnx_translation.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens::onnx {

namespace {

using Ints = Translation::Ints;
using Specs = std::vector<std::optional<TensorSpec>>;

Attributes functionOf(std::string_view function) {
    return {{"function", std::string(function)}};
}

/// A gradient that is elementwise in the gradient of the result and what the forward op kept.
void elementwiseGradient(Translation& t, std::string_view function) {
    t.input(0);
    t.result(OpKind::Elementwise, functionOf(function), t.inputs());
}

/// Like operand 1 (Y or X): softmax gradients reduce over the axis inside.
void softmaxGradient(Translation& t, std::string_view) {
    t.opaque({t.spec(1)});
}

/// dY, X, scale, … -> dX, dScale, dBias.
void layerNormGradient(Translation& t, std::string_view) {
    Specs specs{t.spec(1), t.spec(2), t.spec(2)};
    specs.resize(std::min(t.outputCount(), specs.size()));
    t.opaque(std::move(specs));
}

/// The shape is operand `i`'s known value.
void shapedBy(Translation& t, std::size_t i, DType dtype) {
    const KnownInts* shape = t.ints(i);
    if (shape == nullptr) return t.opaque();
    t.opaque({TensorSpec{dtype, *shape}});
}

void sliceGradient(Translation& t, std::string_view) {
    shapedBy(t, 1, t.dtype(0));
}

void gatherGradient(Translation& t, std::string_view) {
    shapedBy(t, 0, t.dtype(2));
}

void lossGradient(Translation& t, std::string_view) {
    t.opaque({TensorSpec{t.dtype(0), t.shape(1)}});
}

/// Concat with the operands' lengths as a second result.
void concatTraining(Translation& t, std::string_view) {
    t.input(0);
    const std::int64_t axis = t.axis(t.integer("axis", 1), t.rank(0));
    KnownInts lengths;
    for (std::size_t i = 0; i < t.inputCount(); ++i)
        lengths.push_back(t.shape(i).at(static_cast<std::size_t>(t.axis(axis, t.rank(i)))));
    if (t.inputCount() == 1)
        t.alias(t.input(0));
    else
        t.result(OpKind::Concat, {{"axis", axis}}, t.inputs());
    if (!t.wants(1)) return;
    const Shape shape{static_cast<std::int64_t>(lengths.size())};
    const TensorId tensor =
        t.resultAs(OpKind::Constant, {}, {}, {TensorSpec{DType::I64, shape}}, 1);
    t.builder().known().setInts(tensor, std::move(lengths));
}

/// Axes over which each of two broadcast operands' gradients are summed.
void broadcastArguments(Translation& t, std::string_view) {
    const KnownInts *a = t.ints(0), *b = t.ints(1);
    if (a == nullptr || b == nullptr) return t.opaque();
    const std::size_t rank = std::max(a->size(), b->size());
    const auto size = [rank](const KnownInts& shape, std::size_t d) {
        const std::size_t lead = rank - shape.size();
        return d < lead ? std::int64_t{1} : shape[d - lead];
    };
    KnownInts axes[2];
    for (std::size_t d = rank; d-- > 0;) {
        const std::int64_t x = size(*a, d), y = size(*b, d);
        t.require(x == y || x == 1 || y == 1, "the shapes do not broadcast");
        const bool leadA = d < rank - a->size(), leadB = d < rank - b->size();
        if (leadA || (x == 1 && y != 1)) axes[0].push_back(static_cast<std::int64_t>(d));
        if (leadB || (y == 1 && x != 1)) axes[1].push_back(static_cast<std::int64_t>(d));
    }
    for (std::size_t port = 0; port < 2; ++port) {
        if (!t.wants(port)) continue;
        const Shape shape{static_cast<std::int64_t>(axes[port].size())};
        const TensorId tensor =
            t.resultAs(OpKind::Constant, {}, {}, {TensorSpec{DType::I64, shape}}, port);
        t.builder().known().setInts(tensor, axes[port]);
    }
}

/// Hands results to the framework and takes their gradients back, one for each that has one.
void yield(Translation& t, std::string_view) {
    const Ints without = t.integers("non_differentiable_outputs").value_or(Ints{});
    Specs specs;
    for (std::size_t i = 0; i < t.inputCount(); ++i)
        if (std::ranges::find(without, static_cast<std::int64_t>(i)) == without.end())
            specs.emplace_back(t.spec(i));
    specs.resize(std::min(t.outputCount(), specs.size()));
    t.opaque(std::move(specs));
}

void accumulate(Translation& t, std::string_view) {
    if (t.wants(0)) t.opaqueOutput(0, TensorSpec{DType::Bool, {1}});
    t.result(OpKind::Elementwise, functionOf("add"), {t.input(0), t.input(1)}, DType::Unknown, 1);
}

/// A PyTorch op by name; only the embedding is known here.
void aten(Translation& t, std::string_view) {
    const std::string_view name = t.text("operator");
    if (name == "embedding") {
        t.result(OpKind::Gather, {{"axis", std::int64_t{0}}}, {t.input(0), t.input(1)});
        return;
    }
    if (name == "embedding_backward" || name == "embedding_dense_backward") {
        const auto rows = t.scalar(2);
        if (rows && t.rank(0) > 0)
            return t.opaque({TensorSpec{t.dtype(0), {*rows, t.shape(0).back()}}});
    }
    t.opaque();
}

} // namespace

std::vector<Rule> trainingRules() {
    return {
        {"ReluGrad", elementwiseGradient, "relugrad"},
        {"TanhGrad", elementwiseGradient, "tanhgrad"},
        {"SigmoidGrad", elementwiseGradient, "sigmoidgrad"},
        {"QuickGeluGrad", elementwiseGradient, "gelugrad"},
        {"GeluGrad", elementwiseGradient, "gelugrad"},
        {"FastGeluGrad", elementwiseGradient, "gelugrad"},
        {"BiasGeluGrad_dX", elementwiseGradient, "gelugrad"},
        {"BiasFastGeluGrad_dX", elementwiseGradient, "gelugrad"},
        {"SoftmaxGrad", softmaxGradient},
        {"SoftmaxGrad_13", softmaxGradient},
        {"LogSoftmaxGrad", softmaxGradient},
        {"LogSoftmaxGrad_13", softmaxGradient},
        {"LayerNormalizationGrad", layerNormGradient},
        {"SimplifiedLayerNormalizationGrad", layerNormGradient},
        {"SliceGrad", sliceGradient},
        {"GatherGrad", gatherGradient},
        {"SoftmaxCrossEntropyLossGrad", lossGradient},
        {"SoftmaxCrossEntropyLossInternalGrad", lossGradient},
        {"ConcatTraining", concatTraining},
        {"BroadcastGradientArgs", broadcastArguments},
        {"YieldOp", yield},
        {"InPlaceAccumulatorV2", accumulate},
        {"org.pytorch.aten::ATen", aten},
    };
}

} // namespace shardlens::onnx
