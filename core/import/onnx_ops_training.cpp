// SPDX-License-Identifier: Apache-2.0
// Ops of graphs that hold their own backward pass (ONNX Runtime training: com.microsoft, and
// org.pytorch.aten for what it hands to PyTorch).
#include "core/import/element_functions.h"
#include "core/import/onnx_translation.h"
#include "core/model/gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace shardlens::onnx {

namespace {

using Ints = Translation::Ints;
using Specs = std::vector<std::optional<TensorSpec>>;

/// The node is the gradient of an op of `kind`.
TensorId gradientOf(Translation& t, OpKind kind, Attributes forward, const Ints& roles,
                    const Ints& wanted, std::vector<TensorId> operands,
                    std::vector<TensorSpec> specs) {
    return t.resultAs(OpKind::Gradient,
                      gradient::attributesFor(kind, std::move(forward), roles, wanted),
                      std::move(operands), std::move(specs));
}

/// dY and X, of a function by name; a bias is added to X first.
void elementwiseGradient(Translation& t, std::string_view function) {
    TensorId x = t.input(1);
    if (t.has(2)) x = t.step(OpKind::Elementwise, functionOf("add"), {x, t.input(2)});
    Attributes forward = functionOf(function == "gelutanh" ? "gelu" : function);
    if (function == "gelutanh") forward.set("approximate", std::string("tanh"));
    if (function == "silu") forward.set("alpha", t.number("alpha", 1.702));
    gradientOf(t, OpKind::Elementwise, std::move(forward), {gradient::kResultGradient, 0}, {0},
               {t.input(0), x}, {t.specOf(x)});
}

/// dY and Y: of tanh dY (1 - Y Y), of the sigmoid dY Y (1 - Y).
void gradientFromResult(Translation& t, std::string_view function) {
    const TensorId dy = t.input(0), y = t.input(1);
    const auto product = [&](TensorId a, TensorId b) {
        return t.step(OpKind::Elementwise, functionOf("mul"), {a, b});
    };
    const TensorId square = product(y, y);
    const TensorId slope = t.step(OpKind::Elementwise, functionOf("sub"),
                                  {function == "tanh" ? t.number(1, t.dtype(1)) : y, square});
    t.result(OpKind::Elementwise, functionOf("mul"), {dy, slope});
}

/// dY and Y. The older form normalises all dims from `axis` on.
void softmaxGradient(Translation& t, std::string_view function) {
    const std::int64_t rank = t.rank(1);
    const bool one = t.node().type.ends_with("_13");
    const std::int64_t axis = t.axis(t.integer("axis", one ? -1 : 1), rank);
    Ints axes;
    for (std::int64_t d = axis; d < (one ? axis + 1 : rank); ++d) axes.push_back(d);
    Attributes forward = functionOf(function);
    forward.set("axes", axes);
    gradientOf(t, OpKind::Softmax, std::move(forward),
               {gradient::kResultGradient, gradient::kForwardResult}, {0}, {t.input(0), t.input(1)},
               {t.spec(1)});
}

/// dY, X, scale, then mean and reciprocal deviation (rms: the latter alone) -> dX, dScale, dBias.
void normGradient(Translation& t, std::string_view mode) {
    const bool layer = mode == "layer";
    const std::int64_t rank = t.rank(1);
    Ints axes;
    for (std::int64_t d = t.axis(t.integer("axis", -1), rank); d < rank; ++d) axes.push_back(d);
    Ints roles{gradient::kResultGradient, 0, 1}, wanted{0, 1};
    std::vector<TensorId> operands{t.input(0), t.input(1), t.input(2)};
    for (std::size_t i = 3; i < (layer ? 5 : 4); ++i) {
        operands.push_back(t.input(i));
        const std::size_t kept = layer ? i - 3 : 1;
        roles.push_back(gradient::kRowStatistic + static_cast<std::int64_t>(kept));
    }
    std::vector<TensorSpec> specs{t.spec(1), t.spec(2)};
    if (layer) {
        wanted.push_back(2);
        specs.push_back(t.spec(2));
    }
    gradientOf(t, OpKind::Norm, {{"mode", std::string(mode)}, {"axes", axes}}, roles, wanted,
               std::move(operands), std::move(specs));
}

/// dY, the shape of X, then starts, ends, axes and steps as operands of Slice.
void sliceGradient(Translation& t, std::string_view) {
    const KnownInts* shape = t.ints(1);
    if (shape == nullptr) return t.opaque();
    const TensorSpec spec{t.dtype(0), *shape};
    const KnownInts *starts = t.ints(2), *ends = t.ints(3);
    const bool known = starts != nullptr && ends != nullptr &&
                       (!t.has(4) || t.ints(4) != nullptr) && (!t.has(5) || t.ints(5) != nullptr);
    if (!known) return t.opaque({spec});
    Ints axes, steps(starts->size(), 1);
    for (std::size_t i = 0; i < starts->size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    if (t.has(4)) axes = *t.ints(4);
    if (t.has(5)) steps = *t.ints(5);
    for (std::int64_t& axis : axes) axis = t.axis(axis, static_cast<std::int64_t>(shape->size()));
    gradientOf(t, OpKind::Slice,
               {{"axes", axes}, {"starts", *starts}, {"ends", *ends}, {"steps", steps}},
               {gradient::kResultGradient}, {0}, {t.input(0)}, {spec});
}

/// Rows of a table: those read more than once add up.
void tableGradient(Translation& t, std::int64_t axis, TensorId indices, TensorId dy, Shape table) {
    const TensorSpec spec{t.specOf(dy).dtype, std::move(table)};
    gradientOf(t, OpKind::Gather, {{"axis", axis}}, {1, gradient::kResultGradient}, {0},
               {indices, dy}, {spec});
}

/// The shape of the table, indices, dY.
void gatherGradient(Translation& t, std::string_view) {
    const KnownInts* shape = t.ints(0);
    if (shape == nullptr) return t.opaque();
    const std::int64_t axis =
        t.axis(t.integer("axis", 0), static_cast<std::int64_t>(shape->size()));
    tableGradient(t, axis, t.input(1), t.input(2), *shape);
}

/// The gradient of a loss over classes: dY, log-probabilities [b,C,..], labels [b,..], weights of
/// classes?, ignored label? -> (probability - whether it is the label) * share of the row in dY.
class LossGradient {
public:
    explicit LossGradient(Translation& t) : m_t(t) {}

    void translate() {
        const Shape scores = m_t.shape(1);
        m_t.require(scores.size() >= 2 && m_t.rank(2) + 1 == m_t.rank(1),
                    "scores and labels do not fit");
        const TensorId probability = step("exp", {m_t.input(1)});
        const TensorId label =
            m_t.step(OpKind::OneHot, {{"axis", std::int64_t{1}}, {"depth", scores[1]}},
                     {m_t.input(2), offAndOn()});
        const TensorId difference = step("sub", {probability, label});
        m_t.result(OpKind::Elementwise, functionOf("mul"), {difference, alignedShare()},
                   m_t.dtype(0));
    }

private:
    TensorId step(std::string_view function, std::vector<TensorId> operands) {
        return m_t.step(OpKind::Elementwise, functionOf(function), std::move(operands));
    }

    TensorId offAndOn() {
        return m_t.step(OpKind::Generate,
                        {{"function", std::string("range")},
                         {"shape", Shape{2}},
                         {"to", std::string(nameOf(m_t.dtype(1)))}},
                        {});
    }

    TensorId asScalar(TensorId tensor) {
        return m_t.specOf(tensor).shape.empty() ? tensor : m_t.reshaped(tensor, {});
    }

    /// 0 for rows that are ignored, else the weight of the class; kNoTensor where all are 1.
    TensorId rowWeights() {
        const DType labels = m_t.dtype(2);
        TensorId label = m_t.input(2), ignored = kNoTensor;
        if (m_t.has(4))
            ignored = asScalar(m_t.input(4));
        else if (m_t.hasAttribute("ignore_index"))
            ignored = m_t.number(static_cast<double>(m_t.integer("ignore_index", 0)), labels);
        if (ignored != kNoTensor) {
            ignored = step("equal", {label, ignored});
            label = step("where", {ignored, m_t.number(0, labels), label});
        }
        TensorId weights = kNoTensor;
        if (m_t.has(3))
            weights = m_t.step(OpKind::Gather, {{"axis", std::int64_t{0}}}, {m_t.input(3), label});
        if (ignored == kNoTensor) return weights;
        if (weights == kNoTensor) weights = m_t.number(1, m_t.dtype(1));
        return step("where", {ignored, m_t.number(0, m_t.dtype(1)), weights});
    }

    /// dY times the row's weight, for the mean over their sum.
    TensorId share() {
        const std::string_view reduction = m_t.text("reduction", "mean");
        const TensorId weights = rowWeights();
        TensorId given = reduction == "none" ? m_t.input(0) : asScalar(m_t.input(0));
        if (reduction == "mean" && weights == kNoTensor) {
            Attributes each = functionOf("scale");
            each.set("alpha", 1 / std::max(elementsOf(m_t.shape(2)), 1.0));
            return m_t.step(OpKind::Elementwise, std::move(each), {given});
        }
        if (weights == kNoTensor) return given;
        if (reduction == "mean") {
            Ints axes(m_t.shape(2).size());
            std::iota(axes.begin(), axes.end(), std::int64_t{0});
            const TensorId total = m_t.step(
                OpKind::Reduce,
                {{"function", std::string("sum")}, {"axes", axes}, {"keepdims", std::int64_t{0}}},
                {weights});
            given = step("div", {given, total});
        }
        return step("mul", {given, weights});
    }

    /// With a dimension for the classes, if it is one a row.
    TensorId alignedShare() {
        const TensorId each = share();
        Shape shape = m_t.specOf(each).shape;
        if (shape.empty()) return each;
        shape.insert(shape.begin() + 1, 1);
        return m_t.reshaped(each, std::move(shape));
    }

    Translation& m_t;
};

void lossGradient(Translation& t, std::string_view) {
    LossGradient(t).translate();
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
        const bool padded = t.scalar(3).value_or(-1) >= 0; // a row that is not trained
        if (rows && t.rank(0) > 0 && padded)
            return t.opaque({TensorSpec{t.dtype(0), {*rows, t.shape(0).back()}}});
        if (rows && t.rank(0) > 0)
            return tableGradient(t, 0, t.input(1), t.input(0), {*rows, t.shape(0).back()});
    }
    t.opaque();
}

} // namespace

std::vector<Rule> trainingRules() {
    return {
        {"ReluGrad", elementwiseGradient, "relu"},
        {"TanhGrad", gradientFromResult, "tanh"},
        {"SigmoidGrad", gradientFromResult, "sigmoid"},
        {"QuickGeluGrad", elementwiseGradient, "silu"},
        {"GeluGrad", elementwiseGradient, "gelu"},
        {"FastGeluGrad", elementwiseGradient, "gelutanh"},
        {"BiasGeluGrad_dX", elementwiseGradient, "gelu"},
        {"BiasFastGeluGrad_dX", elementwiseGradient, "gelutanh"},
        {"SoftmaxGrad", softmaxGradient, "softmax"},
        {"SoftmaxGrad_13", softmaxGradient, "softmax"},
        {"LogSoftmaxGrad", softmaxGradient, "logsoftmax"},
        {"LogSoftmaxGrad_13", softmaxGradient, "logsoftmax"},
        {"LayerNormalizationGrad", normGradient, "layer"},
        {"SimplifiedLayerNormalizationGrad", normGradient, "rms"},
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
