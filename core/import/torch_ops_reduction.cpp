// SPDX-License-Identifier: Apache-2.0
// Reductions, norms, softmaxes, losses and pools of PyTorch. What returns statistics beside its
// result computes them by ops of their own, and only where something reads them.
#include "core/import/element_functions.h"
#include "core/import/torch_translation.h"

#include <algorithm>
#include <numeric>

namespace shardlens::torch {

namespace {

using Ints = Translation::Ints;

TensorId elementwise(Translation& t, std::string_view function, std::vector<TensorId> operands) {
    return t.step(OpKind::Elementwise, functionOf(function), std::move(operands));
}

Attributes reduction(std::string_view function, Ints axes, bool keep) {
    return {{"function", std::string(function)},
            {"axes", std::move(axes)},
            {"keepdims", std::int64_t{keep ? 1 : 0}}};
}

TensorId reduced(Translation& t, std::string_view function, TensorId x, Ints axes, bool keep) {
    return t.step(OpKind::Reduce, reduction(function, std::move(axes), keep), {x});
}

/// Axes given by the user, or all; ascending and each once.
Ints axesOf(const Translation& t, TensorId x, std::size_t i, std::string_view name) {
    Ints axes = t.ints(i, name);
    if (axes.empty()) {
        axes.resize(t.shape(x).size());
        std::iota(axes.begin(), axes.end(), std::int64_t{0});
        return axes;
    }
    for (std::int64_t& axis : axes) axis = t.axis(axis, t.rank(x));
    std::ranges::sort(axes);
    t.require(std::ranges::adjacent_find(axes) == axes.end(), "it names a dimension twice");
    return axes;
}

DType summed(DType dtype) {
    return isFloat(dtype) || dtype == DType::C64 || dtype == DType::C128 ? dtype : DType::I64;
}

void reduceTo(Translation& t, std::string_view function, TensorId x, Ints axes, bool keep,
              DType dtype) {
    if (t.rank(x) == 0) return t.alias(x);
    t.result(OpKind::Reduce, reduction(function, std::move(axes), keep), {x}, dtype);
}

void reduce(Translation& t, std::string_view function) {
    const TensorId x = t.tensor(0, "self");
    DType dtype = t.typeOf(x);
    if (function == "sum" || function == "prod") dtype = summed(dtype);
    if (const auto stated = t.dtype(t.overload() == "default" ? 1 : 3, "dtype")) dtype = *stated;
    const bool dims = t.argument(1, "dim").kind != Value::Kind::Text;
    reduceTo(t, function, x, dims ? axesOf(t, x, 1, "dim") : axesOf(t, x, 99, "dim"),
             t.boolean(2, "keepdim", false), dtype);
}

void reduceTruth(Translation& t, std::string_view function) {
    const TensorId x = t.tensor(0, "self");
    reduceTo(t, function, x, axesOf(t, x, 1, "dim|dims"), t.boolean(2, "keepdim", false),
             DType::Bool);
}

/// max and min: over all, along a dimension with the places, or of two tensors.
void extreme(Translation& t, std::string_view function) {
    const TensorId x = t.tensor(0, "self");
    if (const TensorId other = t.optionalTensor(1, "other"); other != kNoTensor)
        return t.result(OpKind::Elementwise, functionOf(function), {x, other});
    const bool keep = t.boolean(2, "keepdim", false);
    if (!t.has(1, "dim"))
        return reduceTo(t, function, x, axesOf(t, x, 1, "dim"), false, t.typeOf(x));
    t.require(t.rank(x) > 0, "its operand has no dimension");
    const Ints axes = axesOf(t, x, 1, "dim");
    t.result(OpKind::Reduce, reduction(function, axes, keep), {x});
    if (!t.wants(1)) return;
    Attributes place = functionOf(function == "max" ? "argmax" : "argmin");
    place.set("axis", axes[0]);
    place.set("keepdims", std::int64_t{keep ? 1 : 0});
    t.result(OpKind::ArgReduce, std::move(place), {x}, DType::I64, 1);
}

void place(Translation& t, std::string_view function) {
    const TensorId x = t.tensor(0, "self");
    t.require(t.has(1, "dim") && t.rank(x) > 0, "it looks over all elements");
    Attributes attributes = functionOf(function);
    attributes.set("axis", t.axis(t.integer(1, "dim", 0), t.rank(x)));
    attributes.set("keepdims", std::int64_t{t.boolean(2, "keepdim", false) ? 1 : 0});
    t.result(OpKind::ArgReduce, std::move(attributes), {x});
}

void vectorNorm(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    const double order = t.number(1, "ord|p", 2);
    t.require(order == 1 || order == 2, "it is neither the first nor the second norm");
    reduceTo(t, order == 2 ? "l2" : "l1", x, axesOf(t, x, 2, "dim"), t.boolean(3, "keepdim", false),
             t.typeOf(x));
}

// --- mean and variance --------------------------------------------------------------------------

struct Moments {
    TensorId mean, variance; ///< with the reduced dimensions as 1
};

Moments momentsOf(Translation& t, TensorId x, const Ints& axes, double correction) {
    const TensorId mean = reduced(t, "mean", x, axes, true);
    const TensorId difference = elementwise(t, "sub", {x, mean});
    TensorId variance =
        reduced(t, "mean", elementwise(t, "mul", {difference, difference}), axes, true);
    if (correction != 0) {
        double count = 1;
        for (const std::int64_t axis : axes)
            count *= static_cast<double>(t.shape(x)[static_cast<std::size_t>(axis)]);
        t.require(count > correction, "it has too few elements for its correction");
        variance = elementwise(t, "mul",
                               {variance, t.constant(count / (count - correction), t.typeOf(x))});
    }
    return {mean, variance};
}

Shape without(const Shape& shape, const Ints& axes) {
    Shape result;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (std::ranges::find(axes, static_cast<std::int64_t>(d)) == axes.end())
            result.push_back(shape[d]);
    return result;
}

double correctionOf(const Translation& t) {
    if (t.has(99, "correction")) return t.number(99, "correction", 1);
    if (t.argument(2, "unbiased").kind == Value::Kind::Boolean)
        return t.boolean(2, "unbiased", true) ? 1 : 0;
    return t.number(2, "correction", 1);
}

void variance(Translation& t, std::string_view what) {
    const TensorId x = t.tensor(0, "self");
    t.require(t.rank(x) > 0, "its operand has no dimension");
    const Ints axes = axesOf(t, x, 1, "dim");
    const bool keep = t.boolean(3, "keepdim", false);
    Moments moments = momentsOf(t, x, axes, correctionOf(t));
    if (what == "std") moments.variance = elementwise(t, "sqrt", {moments.variance});
    const Shape rest = without(t.shape(x), axes);
    const auto give = [&](TensorId tensor, std::size_t port) {
        t.alias(keep ? tensor : t.reshaped(tensor, rest), port);
    };
    give(moments.variance, 0);
    if (what == "both") give(moments.mean, 1);
}

// --- norms --------------------------------------------------------------------------------------

/// The last dimensions, as many as the normalised shape has.
Ints lastAxes(const Translation& t, TensorId x, std::size_t count) {
    const std::size_t rank = t.shape(x).size();
    t.require(count > 0 && count <= rank, "it normalises dimensions that are not there");
    Ints axes(count);
    std::iota(axes.begin(), axes.end(), static_cast<std::int64_t>(rank - count));
    return axes;
}

/// The mean and 1 / sqrt(variance + epsilon), where something reads them.
void statistics(Translation& t, TensorId x, const Ints& axes, double epsilon) {
    if (!t.wants(1) && !t.wants(2)) return;
    const Moments moments = momentsOf(t, x, axes, 0);
    const auto shaped = [&](TensorId tensor, std::size_t port) {
        const auto spec = t.declared(port);
        t.alias(spec && elementsOf(spec->shape) == elementsOf(t.shape(tensor))
                    ? t.reshaped(tensor, spec->shape)
                    : tensor,
                port);
    };
    if (t.wants(1)) shaped(moments.mean, 1);
    if (!t.wants(2)) return;
    const TensorId shifted =
        elementwise(t, "add", {moments.variance, t.constant(epsilon, t.typeOf(x))});
    shaped(elementwise(t, "rsqrt", {shifted}), 2);
}

void norm(Translation& t, std::string_view mode, TensorId x, std::size_t dims,
          const std::vector<TensorId>& scales, double epsilon) {
    std::vector<TensorId> operands{x};
    for (const TensorId scale : scales)
        if (scale != kNoTensor || operands.size() == 1) operands.push_back(scale);
    while (operands.back() == kNoTensor) operands.pop_back();
    const Ints axes = lastAxes(t, x, dims);
    t.result(OpKind::Norm, {{"mode", std::string(mode)}, {"axes", axes}, {"epsilon", epsilon}},
             std::move(operands));
    if (mode == "layer") statistics(t, x, axes, epsilon);
    if (mode == "rms") t.require(!t.wants(1), "its statistics are read again");
}

void layerNorm(Translation& t, std::string_view) {
    norm(t, "layer", t.tensor(0, "input"), t.ints(1, "normalized_shape").size(),
         {t.optionalTensor(2, "weight"), t.optionalTensor(3, "bias")}, t.number(4, "eps", 1e-5));
}

void rmsNorm(Translation& t, std::string_view) {
    norm(t, "rms", t.tensor(0, "input"), t.ints(1, "normalized_shape").size(),
         {t.optionalTensor(2, "weight")}, t.number(3, "eps", 1e-6));
}

/// NVIDIA Apex's fused layer norm has the shape after the weights.
void apexLayerNorm(Translation& t, std::string_view) {
    norm(t, "layer", t.tensor(0, "input"), t.ints(3, "normalized_shape").size(),
         {t.tensor(1, "weight"), t.optionalTensor(2, "bias")}, t.number(4, "eps", 1e-5));
}

void apexRmsNorm(Translation& t, std::string_view) {
    norm(t, "rms", t.tensor(0, "input"), t.ints(2, "normalized_shape").size(),
         {t.tensor(1, "weight")}, t.number(3, "eps", 1e-5));
}

void channelNorm(Translation& t, Attributes attributes) {
    std::vector<TensorId> operands{t.tensor(0, "input")};
    t.require(t.rank(operands[0]) >= 2, "its operand has no channels");
    for (const auto& [i, name] : {std::pair{1U, "weight"}, std::pair{2U, "bias"}})
        if (const TensorId x = t.optionalTensor(i, name); x != kNoTensor) operands.push_back(x);
    for (std::size_t port = 1; port < 5; ++port)
        t.require(!t.wants(port), "its statistics are read again");
    t.result(OpKind::Norm, std::move(attributes), std::move(operands));
}

void batchNorm(Translation& t, std::string_view) {
    channelNorm(t, {{"mode", std::string("batch")}});
}

void groupNorm(Translation& t, std::string_view) {
    channelNorm(t, {{"mode", std::string("group")}, {"groups", t.integer(6, "group", 1)}});
}

// --- softmax and losses -------------------------------------------------------------------------

void softmax(Translation& t, std::string_view function) {
    const TensorId x = t.tensor(0, "self");
    t.require(t.rank(x) > 0, "its operand has no dimension");
    const DType dtype = t.dtype(2, "dtype").value_or(t.typeOf(x));
    t.result(OpKind::Softmax,
             {{"axes", Ints{t.axis(t.integer(1, "dim", -1), t.rank(x))}},
              {"function", std::string(function)}},
             {x}, dtype);
}

/// softmax: y (g - sum(g y)); log softmax: g - exp(y) sum(g).
void softmaxGradient(Translation& t, std::string_view function) {
    const TensorId g = t.tensor(0, "grad_output"), y = t.tensor(1, "output");
    t.require(t.rank(g) > 0, "its operand has no dimension");
    const Ints axes{t.axis(t.integer(2, "dim", -1), t.rank(g))};
    if (function == "logsoftmax") {
        const TensorId spread =
            elementwise(t, "mul", {elementwise(t, "exp", {y}), reduced(t, "sum", g, axes, true)});
        return t.result(OpKind::Elementwise, functionOf("sub"), {g, spread});
    }
    const TensorId sum = reduced(t, "sum", elementwise(t, "mul", {g, y}), axes, true);
    t.result(OpKind::Elementwise, functionOf("mul"), {y, elementwise(t, "sub", {g, sum})});
}

/// dx, dweight, dbias of layer norm from the kept mean and 1 / sqrt(variance).
void layerNormGradient(Translation& t, std::string_view) {
    const TensorId g = t.tensor(0, "grad_out"), x = t.tensor(1, "input");
    const TensorId mean = t.tensor(3, "mean"), scale = t.tensor(4, "rstd");
    const TensorId weight = t.optionalTensor(5, "weight");
    t.require(t.rank(mean) == t.rank(x) && t.rank(scale) == t.rank(x), "its statistics are flat");
    const Ints axes = lastAxes(t, x, t.ints(2, "normalized_shape").size());
    Ints rows(t.shape(x).size() - axes.size());
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
    const TensorId normal = elementwise(t, "mul", {elementwise(t, "sub", {x, mean}), scale});
    const TensorId inner = weight == kNoTensor ? g : elementwise(t, "mul", {g, weight});
    const TensorId along = reduced(t, "mean", elementwise(t, "mul", {inner, normal}), axes, true);
    const TensorId centred = elementwise(t, "sub", {inner, reduced(t, "mean", inner, axes, true)});
    const TensorId rest = elementwise(t, "sub", {centred, elementwise(t, "mul", {normal, along})});
    t.result(OpKind::Elementwise, functionOf("mul"), {rest, scale});
    if (t.wants(1))
        t.result(OpKind::Reduce, reduction("sum", rows, false),
                 {elementwise(t, "mul", {g, normal})}, DType::Unknown, 1);
    if (t.wants(2)) t.result(OpKind::Reduce, reduction("sum", rows, false), {g}, DType::Unknown, 2);
}

/// Mean cross-entropy of logits [rows, classes]; entries with an ignored label are not told apart.
void crossEntropy(Translation& t, std::string_view) {
    const TensorId logits = t.tensor(0, "self"), labels = t.tensor(1, "target");
    t.require(t.rank(logits) == 2 && t.rank(labels) == 1 && !isFloat(t.typeOf(labels)),
              "its operands are no rows of logits and labels");
    t.require(!t.has(2, "weight") && t.integer(3, "reduction", 1) == 1 &&
                  t.number(5, "label_smoothing", 0) == 0,
              "it is weighted, smoothed, or no mean");
    t.result(OpKind::CrossEntropy, {}, {logits, labels});
}

/// -mean (or sum) of each row's entry at its label, over the labels that are not ignored.
void negativeLogLikelihood(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self"), labels = t.tensor(1, "target");
    const std::int64_t mode = t.integer(3, "reduction", 1);
    t.require(t.rank(x) == 2 && t.rank(labels) == 1 && !t.has(2, "weight") && mode != 0,
              "it is weighted, or gives one number a row");
    const std::int64_t rows = t.shape(x)[0];
    const TensorId counted = t.step(
        OpKind::Elementwise, functionOf("notequal"),
        {labels, t.constant(t.number(4, "ignore_index", -100), t.typeOf(labels))}, DType::Bool);
    // An ignored label names no class: it must not be looked up.
    const TensorId safe =
        t.step(OpKind::Elementwise, functionOf("where"),
               {counted, labels, t.constant(0, t.typeOf(labels))}, t.typeOf(labels));
    const TensorId picked = t.step(OpKind::GatherElements, {{"axis", std::int64_t{1}}},
                                   {x, t.reshaped(safe, {rows, 1})});
    const TensorId weights = t.step(
        OpKind::Elementwise,
        {{"function", std::string("cast")}, {"to", std::string(nameOf(t.typeOf(x)))}}, {counted});
    const TensorId kept = elementwise(t, "mul", {t.reshaped(picked, {rows}), weights});
    const TensorId loss = elementwise(t, "neg", {reduced(t, "sum", kept, {0}, false)});
    if (mode != 1 && !t.wants(1)) return t.alias(loss);
    const TensorId count = reduced(t, "sum", weights, {0}, false);
    t.alias(mode == 1 ? elementwise(t, "div", {loss, count}) : loss);
    if (t.wants(1)) t.alias(count, 1);
}

// --- pools, orders ------------------------------------------------------------------------------

Ints spread(const Translation& t, Ints values, std::size_t dims) {
    if (values.size() == 1) values.resize(dims, values[0]);
    t.require(values.size() == dims, "a setting has not one number a spatial dimension");
    return values;
}

void pool(Translation& t, std::string_view mode) {
    const TensorId x = t.tensor(0, "self");
    t.require(t.rank(x) >= 3, "its operand has no spatial dimension");
    const auto dims = static_cast<std::size_t>(t.rank(x) - 2);
    const bool max = mode == "max";
    const Ints kernel = spread(t, t.ints(1, "kernel_size"), dims);
    Ints strides = t.ints(2, "stride");
    strides = strides.empty() ? kernel : spread(t, strides, dims);
    Ints pads = t.ints(3, "padding");
    pads = spread(t, pads.empty() ? Ints{0} : pads, dims);
    Ints dilations = max ? t.ints(4, "dilation") : Ints{};
    dilations = spread(t, dilations.empty() ? Ints{1} : dilations, dims);
    Ints both = pads;
    both.insert(both.end(), pads.begin(), pads.end());
    t.require(!t.wants(1), "its places are read");
    t.result(OpKind::Pool,
             {{"mode", std::string(mode)},
              {"kernel", kernel},
              {"strides", strides},
              {"pads", both},
              {"dilations", dilations},
              {"ceil_mode", std::int64_t{t.boolean(max ? 5 : 4, "ceil_mode", false) ? 1 : 0}}},
             {x});
}

void globalPool(Translation& t, std::string_view mode) {
    const Ints size = t.ints(1, "output_size");
    t.require(std::ranges::all_of(size, [](auto n) { return n == 1; }),
              "it pools to more than one place");
    t.require(t.rank(t.tensor(0, "self")) >= 3, "its operand has no spatial dimension");
    t.result(OpKind::GlobalPool, {{"mode", std::string(mode)}}, {t.tensor(0, "self")});
}

void topK(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    t.require(t.rank(x) > 0 && t.boolean(3, "largest", true), "it takes the smallest");
    const std::int64_t axis = t.axis(t.integer(2, "dim", -1), t.rank(x));
    const std::int64_t k = t.integer(1, "k", 1);
    t.require(k >= 0 && k <= t.shape(x)[static_cast<std::size_t>(axis)], "k is out of range");
    t.result(OpKind::TopK, {{"axis", axis}, {"k", k}}, {x});
}

void cumulative(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    t.require(t.rank(x) > 0, "its operand has no dimension");
    const DType dtype = t.dtype(2, "dtype").value_or(summed(t.typeOf(x)));
    t.result(OpKind::CumSum, {{"axis", t.axis(t.integer(1, "dim", 0), t.rank(x))}}, {x}, dtype);
}

} // namespace

std::vector<Rule> reductionRules() {
    return {
        {"sum", reduce, "sum"},
        {"mean", reduce, "mean"},
        {"prod", reduce, "prod"},
        {"amax", reduce, "max"},
        {"amin", reduce, "min"},
        {"logsumexp", reduce, "logsumexp"},
        {"any", reduceTruth, "max"},
        {"all", reduceTruth, "min"},
        {"max", extreme, "max", true},
        {"min", extreme, "min", true},
        {"argmax", place, "argmax"},
        {"argmin", place, "argmin"},
        {"linalg_vector_norm", vectorNorm},
        {"norm", vectorNorm},
        {"var", variance, "variance"},
        {"std", variance, "std"},
        {"var_mean", variance, "both", true},
        {"native_layer_norm", layerNorm, {}, true},
        {"layer_norm", layerNorm},
        {"native_layer_norm_backward", layerNormGradient, {}, true},
        {"rms_norm", rmsNorm},
        {"_fused_rms_norm", rmsNorm, {}, true},
        {"fused_layer_norm_affine_fwd", apexLayerNorm, {}, true},
        {"fused_rms_norm_affine_fwd", apexRmsNorm, {}, true},
        {"native_batch_norm", batchNorm, {}, true},
        {"_native_batch_norm_legit", batchNorm, {}, true},
        {"_native_batch_norm_legit_functional", batchNorm, {}, true},
        {"_native_batch_norm_legit_no_training", batchNorm, {}, true},
        {"cudnn_batch_norm", batchNorm, {}, true},
        {"batch_norm", batchNorm},
        {"native_group_norm", groupNorm, {}, true},
        {"softmax", softmax, "softmax"},
        {"_softmax", softmax, "softmax"},
        {"_safe_softmax", softmax, "softmax"},
        {"log_softmax", softmax, "logsoftmax"},
        {"_log_softmax", softmax, "logsoftmax"},
        {"_softmax_backward_data", softmaxGradient, "softmax"},
        {"_log_softmax_backward_data", softmaxGradient, "logsoftmax"},
        {"cross_entropy_loss", crossEntropy},
        {"nll_loss_forward", negativeLogLikelihood, {}, true},
        {"nll_loss", negativeLogLikelihood},
        {"max_pool2d", pool, "max"},
        {"max_pool2d_with_indices", pool, "max", true},
        {"avg_pool2d", pool, "average"},
        {"adaptive_avg_pool2d", globalPool, "average"},
        {"_adaptive_avg_pool2d", globalPool, "average"},
        {"topk", topK, {}, true},
        {"cumsum", cumulative},
    };
}

} // namespace shardlens::torch
