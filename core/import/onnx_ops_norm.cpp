// SPDX-License-Identifier: Apache-2.0
// Softmax, normalisations, losses.
#include "core/import/element_functions.h"
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

/// The catalogue's own epsilon is not written down.
Attributes withEpsilon(const Translation& t, Attributes attributes, double fallback = 1e-5) {
    const double epsilon = t.number("epsilon", fallback);
    if (static_cast<float>(epsilon) != 1e-5F) attributes.set("epsilon", epsilon);
    return attributes;
}

/// Scale and bias, as far as they are there.
std::vector<TensorId> normOperands(const Translation& t, TensorId x, std::size_t scale,
                                   std::size_t bias) {
    std::vector<TensorId> operands{x};
    if (t.has(scale)) operands.push_back(t.input(scale));
    if (t.has(scale) && t.has(bias)) operands.push_back(t.input(bias));
    return operands;
}

/// The mean of a norm that does not take one off, and its reciprocal deviation.
void statistics(Translation& t, TensorId x, const Ints& axes) {
    Shape shape = t.specOf(x).shape;
    for (const std::int64_t axis : axes) shape[static_cast<std::size_t>(axis)] = 1;
    if (t.wants(1))
        t.result(OpKind::Reduce,
                 {{"function", std::string("mean")}, {"axes", axes}, {"keepdims", std::int64_t{1}}},
                 {x}, DType::F32, 1);
    t.opaqueOutput(2, TensorSpec{DType::F32, shape});
}

void layerNorm(Translation& t, std::string_view mode) {
    const std::int64_t rank = t.rank(0);
    const Ints axes = range(t.axis(t.integer("axis", -1), rank), rank);
    const TensorId x = t.input(0);
    Attributes attributes = withEpsilon(t, normOf(mode, axes));
    if (t.wants(1) || t.wants(2)) attributes.set("statistics", std::int64_t{1});
    t.result(OpKind::Norm, std::move(attributes), normOperands(t, x, 1, 2));
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
    Attributes attributes = withEpsilon(t, normOf(mode, axes), 1e-12);
    if (layer && (t.wants(1) || t.wants(2))) attributes.set("statistics", std::int64_t{1});
    t.result(OpKind::Norm, std::move(attributes), normOperands(t, sum, 2, layer ? 3 : 99));
    statistics(t, sum, axes);
}

void batchNorm(Translation& t, std::string_view) {
    t.require(t.rank(0) >= 1, "the operand needs a batch dimension");
    if (t.opset() < 9 && t.integer("spatial", 1) == 0) return t.opaque({t.spec(0)});
    std::vector<TensorId> operands;
    for (std::size_t i = 0; i < std::min<std::size_t>(t.inputCount(), 5); ++i)
        operands.push_back(t.inputOrNone(i));
    Attributes attributes = withEpsilon(t, {{"mode", std::string("batch")}});
    const bool training =
        t.opset() >= 14 ? t.integer("training_mode", 0) != 0 : t.wants(1) && t.wants(2);
    if (training) {
        attributes.set("training", std::int64_t{1});
        attributes.set("momentum", t.number("momentum", 0.9));
        if (t.wants(1) && t.has(3) && t.has(4)) attributes.set("statistics", std::int64_t{1});
    }
    t.result(OpKind::Norm, std::move(attributes), std::move(operands));
    for (std::size_t port = 1; port < t.outputCount(); ++port)
        t.opaqueOutput(port, t.has(3) ? std::optional(t.spec(3)) : std::nullopt);
}

void instanceNorm(Translation& t, std::string_view) {
    t.require(t.rank(0) >= 2, "the operand needs channels");
    t.result(OpKind::Norm, withEpsilon(t, {{"mode", std::string("instance")}}),
             normOperands(t, t.input(0), 1, 2));
}

/// Scale and bias per group (opset 18) have no place in the common form: then opaque.
void groupNorm(Translation& t, std::string_view) {
    t.require(t.rank(0) >= 2, "the operand needs channels");
    const std::int64_t groups = t.integer("num_groups", t.integer("groups", 1));
    if (t.integer("channels_last", 0) != 0 || (t.has(1) && t.shape(1) != Shape{t.shape(0)[1]}))
        return t.opaque({t.spec(0)});
    t.result(OpKind::Norm, withEpsilon(t, {{"mode", std::string("group")}, {"groups", groups}}),
             normOperands(t, t.input(0), 1, 2));
}

void lpNorm(Translation& t, std::string_view) {
    Attributes attributes = normOf("lp", {t.axis(t.integer("axis", -1), t.rank(0))});
    if (t.integer("p", 2) != 2) attributes.set("p", t.integer("p", 2));
    t.result(OpKind::Norm, std::move(attributes), {t.input(0)});
}

void meanVarianceNorm(Translation& t, std::string_view) {
    const Ints axes = t.axes(t.integers("axes").value_or(Ints{0, 2, 3}), t.rank(0));
    Attributes attributes = normOf("layer", axes);
    attributes.set("epsilon", 0.0);
    t.result(OpKind::Norm, std::move(attributes), {t.input(0)});
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

/// A loss whose labels are ignored or weighted: each row's loss by itself, times its weight, and
/// for the mean over the sum of the weights.
class WeightedLoss {
public:
    WeightedLoss(Translation& t, bool fromLogits)
        : m_t(t), m_dtype(t.dtype(0)), m_fromLogits(fromLogits) {}

    void translate() {
        const std::string_view reduction = m_t.text("reduction", "mean");
        const TensorId weights = rowWeights();
        if (reduction == "none" && weights == kNoTensor) {
            m_t.result(OpKind::CrossEntropy, lossAttributes(), lossOperands(), m_dtype);
            return;
        }
        TensorId loss = m_t.step(OpKind::CrossEntropy, lossAttributes(), lossOperands(), m_dtype);
        if (weights != kNoTensor && reduction == "none")
            return (void)m_t.result(OpKind::Elementwise, functionOf("mul"), {loss, weights});
        if (weights != kNoTensor)
            loss = m_t.step(OpKind::Elementwise, functionOf("mul"), {loss, weights});
        if (reduction == "sum" || weights == kNoTensor)
            return (void)m_t.result(OpKind::Reduce, total(reduction), {loss});
        const TensorId sum = m_t.step(OpKind::Reduce, total("sum"), {loss}),
                       count = m_t.step(OpKind::Reduce, total("sum"), {weights});
        m_t.result(OpKind::Elementwise, functionOf("div"), {sum, count});
    }

private:
    Attributes lossAttributes() const {
        Attributes attributes{{"reduction", std::string("none")}};
        if (!m_fromLogits) attributes.set("log_probabilities", std::int64_t{1});
        return attributes;
    }
    std::vector<TensorId> lossOperands() { return {classesLast(m_t, 0), m_t.input(1)}; }

    Attributes total(std::string_view function) const {
        return {{"function", std::string(function)},
                {"axes", range(0, m_t.rank(1))},
                {"keepdims", std::int64_t{0}}};
    }

    /// 0 for a label that is ignored, else its class's weight. kNoTensor where all are 1.
    TensorId rowWeights() {
        const bool ignores = m_t.hasAttribute("ignore_index");
        if (!ignores && !m_t.has(2)) return kNoTensor;
        TensorId labels = m_t.input(1), ignored = kNoTensor;
        if (ignores) {
            const double index = static_cast<double>(m_t.integer("ignore_index", 0));
            const DType type = m_t.dtype(1);
            ignored = m_t.step(OpKind::Elementwise, functionOf("equal"),
                               {labels, m_t.number(index, type)});
            labels = m_t.step(OpKind::Elementwise, functionOf("where"),
                              {ignored, m_t.number(0, type), labels});
        }
        TensorId weights = m_t.has(2) ? m_t.step(OpKind::Gather, {{"axis", std::int64_t{0}}},
                                                 {m_t.input(2), labels})
                                      : m_t.number(1, m_dtype);
        if (!ignores) return weights;
        return m_t.step(OpKind::Elementwise, functionOf("where"),
                        {ignored, m_t.number(0, m_dtype), weights});
    }

    Translation& m_t;
    DType m_dtype;
    bool m_fromLogits;
};

void crossEntropy(Translation& t, std::string_view) {
    t.require(t.rank(0) >= 2, "the scores need a dimension of classes");
    if (t.wants(1))
        t.result(OpKind::Softmax, {{"axes", Ints{1}}, {"function", std::string("logsoftmax")}},
                 {t.input(0)}, DType::Unknown, 1);
    // ONNX Runtime's own form counts every label.
    const bool plain =
        t.node().domain == "com.microsoft" || (!t.has(2) && !t.hasAttribute("ignore_index"));
    if (plain && t.text("reduction", "mean") == "mean")
        t.result(OpKind::CrossEntropy, {}, {classesLast(t, 0), t.input(1)}, t.dtype(0));
    else
        WeightedLoss(t, true).translate();
}

void likelihoodLoss(Translation& t, std::string_view) {
    t.require(t.rank(0) >= 2, "the scores need a dimension of classes");
    WeightedLoss(t, false).translate();
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
