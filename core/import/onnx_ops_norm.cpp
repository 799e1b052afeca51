// SPDX-License-Identifier: Apache-2.0
// Softmax, normalisations, losses.
#include "core/import/onnx_translation.h"

#include <algorithm>
#include <numeric>

namespace shardlens::onnx {

namespace {

using Ints = Translation::Ints;

Ints range(std::int64_t first, std::int64_t last) {
    Ints values(static_cast<std::size_t>(std::max<std::int64_t>(last - first, 0)));
    std::iota(values.begin(), values.end(), first);
    return values;
}

/// Before opset 13 all dims from `axis` (default 1) on are normalised together, since then one.
void softmax(Translation& t, std::string_view function) {
    const std::int64_t rank = t.rank(0);
    if (rank == 0) return t.alias(t.input(0));
    Ints axes;
    if (t.opset() < 13 && t.node().domain.empty()) {
        const std::int64_t first = t.integer("axis", 1);
        axes = range(first == rank ? rank : t.axis(first, rank), rank);
    } else {
        axes = {t.axis(t.integer("axis", -1), rank)};
    }
    t.result(OpKind::Softmax, {{"axes", axes}, {"function", std::string(function)}}, {t.input(0)});
}

Attributes normOf(std::string_view mode, Ints axes) {
    return {{"mode", std::string(mode)}, {"axes", std::move(axes)}};
}

/// Scale and bias, as far as they are there.
std::vector<TensorId> normOperands(const Translation& t, TensorId x, std::size_t scale,
                                   std::size_t bias) {
    std::vector<TensorId> operands{x};
    if (t.has(scale)) operands.push_back(t.input(scale));
    if (t.has(scale) && t.has(bias)) operands.push_back(t.input(bias));
    return operands;
}

/// Mean and reciprocal deviation, kept by graphs that hold their own backward pass.
void statistics(Translation& t, std::size_t port, TensorId x, const Ints& axes, bool hasMean) {
    Shape shape = t.specOf(x).shape;
    for (const std::int64_t axis : axes) shape[static_cast<std::size_t>(axis)] = 1;
    if (hasMean && t.wants(port))
        t.result(OpKind::Reduce,
                 {{"function", std::string("mean")}, {"axes", axes}, {"keepdims", std::int64_t{1}}},
                 {x}, DType::F32, port);
    t.opaqueOutput(hasMean ? port + 1 : port, TensorSpec{DType::F32, shape});
}

void layerNorm(Translation& t, std::string_view mode) {
    const std::int64_t rank = t.rank(0);
    const Ints axes = range(t.axis(t.integer("axis", -1), rank), rank);
    const TensorId x = t.input(0);
    t.result(OpKind::Norm, normOf(mode, axes), normOperands(t, x, 1, 2));
    statistics(t, 1, x, axes, mode == "layer");
}

/// com.microsoft: a residual (and bias) added first; output 3 is that sum.
void skipNorm(Translation& t, std::string_view mode) {
    const bool layer = mode == "layer";
    const std::size_t bias = layer ? 4 : 3;
    const Ints axes{t.axis(-1, t.rank(0))};
    std::vector<TensorId> addends{t.input(0), t.input(1)};
    if (t.has(bias)) addends.push_back(t.input(bias));
    const Attributes add{{"function", std::string(addends.size() == 2 ? "add" : "sum")}};
    const TensorId sum = t.wants(3) ? t.result(OpKind::Elementwise, add, addends, DType::Unknown, 3)
                                    : t.step(OpKind::Elementwise, add, addends);
    t.result(OpKind::Norm, normOf(mode, axes), normOperands(t, sum, 2, layer ? 3 : 99));
    statistics(t, 1, sum, axes, true);
}

void batchNorm(Translation& t, std::string_view) {
    t.require(t.rank(0) >= 1, "the operand needs a batch dimension");
    if (t.opset() < 9 && t.integer("spatial", 1) == 0) return t.opaque({t.spec(0)});
    std::vector<TensorId> operands;
    for (std::size_t i = 0; i < std::min<std::size_t>(t.inputCount(), 5); ++i)
        operands.push_back(t.inputOrNone(i));
    t.result(OpKind::Norm, {{"mode", std::string("batch")}}, std::move(operands));
    for (std::size_t port = 1; port < t.outputCount(); ++port)
        t.opaqueOutput(port, t.has(3) ? std::optional(t.spec(3)) : std::nullopt);
}

void instanceNorm(Translation& t, std::string_view) {
    t.require(t.rank(0) >= 2, "the operand needs channels");
    t.result(OpKind::Norm, {{"mode", std::string("instance")}}, normOperands(t, t.input(0), 1, 2));
}

/// Scale and bias per group (opset 18) have no place in the common form: then opaque.
void groupNorm(Translation& t, std::string_view) {
    t.require(t.rank(0) >= 2, "the operand needs channels");
    const std::int64_t groups = t.integer("num_groups", t.integer("groups", 1));
    if (t.integer("channels_last", 0) != 0 || (t.has(1) && t.shape(1) != Shape{t.shape(0)[1]}))
        return t.opaque({t.spec(0)});
    t.result(OpKind::Norm, {{"mode", std::string("group")}, {"groups", groups}},
             normOperands(t, t.input(0), 1, 2));
}

void lpNorm(Translation& t, std::string_view) {
    t.result(OpKind::Norm, normOf("lp", {t.axis(t.integer("axis", -1), t.rank(0))}), {t.input(0)});
}

void meanVarianceNorm(Translation& t, std::string_view) {
    const Ints axes = t.axes(t.integers("axes").value_or(Ints{0, 2, 3}), t.rank(0));
    t.result(OpKind::Norm, normOf("layer", axes), {t.input(0)});
}

/// Logits with the classes last: ONNX has them at dimension 1.
TensorId classesLast(Translation& t, std::size_t i) {
    const std::int64_t rank = t.rank(i);
    if (rank <= 2) return t.input(i);
    Ints perm{0};
    for (std::int64_t d = 2; d < rank; ++d) perm.push_back(d);
    perm.push_back(1);
    return t.transposed(t.input(i), perm);
}

void crossEntropy(Translation& t, std::string_view) {
    t.require(t.rank(0) >= 2, "the scores need a dimension of classes");
    if (t.wants(1))
        t.result(OpKind::Softmax, {{"axes", Ints{1}}, {"function", std::string("logsoftmax")}},
                 {t.input(0)}, DType::Unknown, 1);
    if (t.text("reduction", "mean") == "none")
        return t.opaqueOutput(0, TensorSpec{t.dtype(0), t.shape(1)});
    t.result(OpKind::CrossEntropy, {}, {classesLast(t, 0), t.input(1)}, t.dtype(0));
}

void likelihoodLoss(Translation& t, std::string_view) {
    const bool each = t.text("reduction", "mean") == "none";
    t.opaque({TensorSpec{t.dtype(0), each ? t.shape(1) : Shape{}}});
}

} // namespace

std::vector<Rule> normRules() {
    return {
        {"Softmax", softmax, "softmax"},
        {"LogSoftmax", softmax, "logsoftmax"},
        {"Hardmax", softmax, "hardmax"},
        {"LayerNormalization", layerNorm, "layer"},
        {"RMSNormalization", layerNorm, "rms"},
        {"SimplifiedLayerNormalization", layerNorm, "rms"},
        {"SkipLayerNormalization", skipNorm, "layer"},
        {"SkipSimplifiedLayerNormalization", skipNorm, "rms"},
        {"BatchNormalization", batchNorm},
        {"InstanceNormalization", instanceNorm},
        {"GroupNormalization", groupNorm},
        {"GroupNorm", groupNorm},
        {"LpNormalization", lpNorm},
        {"MeanVarianceNormalization", meanVarianceNorm},
        {"SoftmaxCrossEntropyLoss", crossEntropy},
        {"SoftmaxCrossEntropyLossInternal", crossEntropy},
        {"NegativeLogLikelihoodLoss", likelihoodLoss},
    };
}

} // namespace shardlens::onnx
