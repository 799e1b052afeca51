// SPDX-License-Identifier: Apache-2.0
// Rows of the catalogue that are bound by memory traffic: elementwise, softmax, norms, reductions,
// rotary embedding, dropout, cross-entropy.
#include "core/model/catalogue_rows.h"

#include <algorithm>
#include <array>

namespace shardlens::catalogue {
namespace {

bool contains(const std::vector<std::int64_t>& values, std::size_t value) {
    return std::ranges::find(values, static_cast<std::int64_t>(value)) != values.end();
}

bool isOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, name) != names.end();
}

// --- elementwise --------------------------------------------------------------------------------

std::vector<TensorSpec> elementwiseShape(const OpView& view) {
    require(!view.inputs.empty(), view, "an elementwise op needs an operand");
    Shape shape;
    for (std::size_t i = 0; i < view.inputs.size(); ++i)
        if (view.hasInput(i)) shape = broadcastShapes(view, shape, view.inputs[i].shape);
    const std::string function = view.op.attributes.text("function");
    DType dtype = view.inputs[function == "where" && view.inputs.size() > 1 ? 1 : 0].dtype;
    if (isOneOf(function, {"equal", "less", "greater", "lessorequal", "greaterorequal", "not",
                           "and", "or", "xor", "isnan", "isinf"}))
        dtype = DType::Bool;
    if (const std::string to = view.op.attributes.text("to"); !to.empty()) {
        const auto named = dtypeFromName(to);
        if (!named) fail(view, fmt::format("element type '{}' is not known", to));
        dtype = *named;
    }
    return {{dtype, shape}};
}

FactorRule elementwiseRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape& result = view.outputs[0].shape;
    for (std::size_t d = 0; d < result.size(); ++d) {
        if (result[d] == 1) continue;
        const int f = rule.addFactor(dimName(d, result.size()), result[d]);
        for (auto& dims : rule.results) dims[d] = {f};
        for (std::size_t i = 0; i < view.inputs.size(); ++i) {
            const Shape& shape = view.inputs[i].shape;
            const std::size_t lead = result.size() - shape.size();
            if (d >= lead && shape[d - lead] == result[d]) rule.operands[i][d - lead] = {f};
        }
    }
    return rule;
}

SavedTensors elementwiseSaved(const OpView& view) {
    const std::string function = view.op.attributes.text("function");
    if (isOneOf(function,
                {"add", "sub", "neg", "cast", "identity", "sum", "mean", "not", "equal", "less",
                 "greater", "sign", "floor", "ceil", "round", "quantize", "dequantize"}))
        return saveNothing(view);
    if (isOneOf(function, {"relu", "sigmoid", "tanh", "exp", "sqrt"})) return saveResult(view);
    return saveOperands(view);
}

double elementwiseFlops(const OpView& view, const FactorRule&) {
    const bool transcendental =
        isOneOf(view.op.attributes.text("function"), {"gelu", "silu", "tanh", "sigmoid", "exp",
                                                      "log", "erf", "pow", "softplus", "mish"});
    return elementsOf(view.outputs[0].shape) * (transcendental ? 8 : 1);
}

std::vector<TensorSpec> dropoutShape(const OpView& view) {
    std::vector<TensorSpec> results{{view.inputs.at(0).dtype, shapeOf(view, 0)}};
    if (view.op.outputs.size() > 1 || view.op.attributes.integer("mask", 0))
        results.push_back({DType::Bool, results[0].shape});
    return results;
}

SavedTensors dropoutSaved(const OpView& view) {
    SavedTensors saved = saveNothing(view);
    saved.extraBytes = elementsOf(view.outputs[0].shape); // a mask byte an element
    return saved;
}

std::vector<TensorSpec> sameShape(const OpView& view) {
    return {{view.inputs.at(0).dtype, shapeOf(view, 0)}};
}

// --- softmax and norms: statistics over some dims ---------------------------------------------

/// Rule of an op that reduces fp32 numbers over the given dims, inside. A row is what is left of
/// the operand without them.
FactorRule statisticsRule(const OpView& view, const std::vector<std::int64_t>& axes) {
    FactorRule rule = emptyRule(view);
    const Shape& shape = view.inputs[0].shape;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] == 1) continue;
        const bool inside = contains(axes, d);
        const int f = rule.addFactor(dimName(d, shape.size()), shape[d],
                                     inside ? FactorKind::Internal : FactorKind::Parallel);
        rule.factors[static_cast<std::size_t>(f)].exchanges = inside;
        rule.operands[0][d] = {f};
        for (auto& dims : rule.results)
            if (dims.size() == shape.size()) dims[d] = {f};
    }
    return rule;
}

double rowCount(const OpView& view, const std::vector<std::int64_t>& axes) {
    double rows = 1;
    const Shape& shape = view.inputs[0].shape;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (!contains(axes, d)) rows *= static_cast<double>(shape[d]);
    return rows;
}

FactorRule softmaxRule(const OpView& view) {
    const std::vector<std::int64_t> axes = view.op.attributes.integers("axes");
    FactorRule rule = statisticsRule(view, axes);
    if (view.op.attributes.text("function", "softmax") == "hardmax") { // needs the winner's index
        for (Factor& factor : rule.factors)
            if (factor.kind == FactorKind::Internal) {
                factor.kind = FactorKind::Replicate;
                factor.exchanges = false;
            }
        return rule;
    }
    const double rows = rowCount(view, axes);
    rule.forwardStatistics = {{ReduceOp::Max, rows}, {ReduceOp::Sum, rows}};
    rule.backwardStatistics = {{ReduceOp::Sum, rows}};
    return rule;
}

std::vector<std::int64_t> normAxes(const OpView& view) {
    const std::string mode = view.op.attributes.text("mode", "layer");
    if (mode == "batch" || mode == "group" || mode == "instance") return {};
    return view.op.attributes.integers("axes");
}

/// Statistics are results of their own where the op is asked for them (see OpKind::Norm).
std::vector<TensorSpec> normShape(const OpView& view) {
    const std::vector<std::int64_t> axes = normAxes(view);
    for (const std::int64_t axis : axes) axisOf(view, axis, shapeOf(view, 0).size());
    std::vector<TensorSpec> results = sameShape(view);
    if (view.op.attributes.integer("statistics", 0) == 0) return results;
    const std::string mode = view.op.attributes.text("mode", "layer");
    if (mode == "batch") {
        for (const std::size_t running : {std::size_t{3}, std::size_t{4}})
            results.push_back({view.inputs.at(running).dtype, shapeOf(view, running)});
        return results;
    }
    TensorSpec rows{results[0].dtype == DType::F64 ? DType::F64 : DType::F32, results[0].shape};
    for (std::size_t d = 0; d < rows.shape.size(); ++d)
        if (contains(axes, d)) rows.shape[d] = 1;
    results.resize(mode == "rms" ? 2 : 3, rows);
    return results;
}

/// Scale, bias and running statistics of one number a channel share its factor.
void addChannelOperands(FactorRule& rule, const OpView& view) {
    const Shape& shape = view.inputs[0].shape;
    for (std::size_t i = 1; i < view.inputs.size(); ++i)
        if (view.hasInput(i) && view.inputs[i].shape.size() == 1 && shape.size() > 1)
            rule.operands[i][0] = rule.operands[0][1];
    for (std::size_t r = 1; r < rule.results.size(); ++r)
        if (shape.size() > 1) rule.results[r][0] = rule.operands[0][1];
}

/// Batch norm in training takes its statistics over the batch and space of each channel, on all
/// devices (as synchronised batch norm does); in inference it has them as operands.
FactorRule batchNormRule(const OpView& view) {
    const Shape& shape = view.inputs[0].shape;
    std::vector<std::int64_t> axes;
    if (view.op.attributes.integer("training", 0))
        for (std::size_t d = 0; d < shape.size(); ++d)
            if (d != 1) axes.push_back(static_cast<std::int64_t>(d));
    FactorRule rule = statisticsRule(view, axes);
    addChannelOperands(rule, view);
    if (axes.empty()) return rule;
    rule.forwardStatistics = rule.backwardStatistics = {{ReduceOp::Sum, 2 * rowCount(view, axes)}};
    return rule;
}

FactorRule normRule(const OpView& view) {
    const std::string mode = view.op.attributes.text("mode", "layer");
    const Shape& shape = view.inputs[0].shape;
    if (mode == "batch") return batchNormRule(view);
    const std::vector<std::int64_t> axes = normAxes(view);
    FactorRule rule = statisticsRule(view, axes);
    if (mode == "group" || mode == "instance") {
        // Statistics of a sample's group or channel: neither channels of a group nor space are cut.
        for (std::size_t d = mode == "group" ? 1 : 2; d < shape.size(); ++d)
            for (const int f : rule.operands[0][d])
                rule.factors[static_cast<std::size_t>(f)].kind = FactorKind::Replicate;
        addChannelOperands(rule, view);
        return rule;
    }
    for (std::size_t r = 1; r < rule.results.size(); ++r)
        for (const std::int64_t axis : axes)
            rule.results[r][static_cast<std::size_t>(axis)].clear();
    const double numbers = mode == "layer" ? 2 : 1;
    rule.forwardStatistics =
        rule.backwardStatistics = {{ReduceOp::Sum, numbers * rowCount(view, axes)}};
    for (std::size_t i = 1; i < view.inputs.size(); ++i) { // scale and bias, aligned to the right
        const Shape& small = view.inputs[i].shape;
        for (std::size_t d = 0; d < small.size() && d < shape.size(); ++d)
            if (small[small.size() - 1 - d] == shape[shape.size() - 1 - d])
                rule.operands[i][small.size() - 1 - d] = rule.operands[0][shape.size() - 1 - d];
    }
    return rule;
}

SavedTensors normSaved(const OpView& view) {
    SavedTensors saved = saveNothing(view);
    saved.operands[0] = true;
    return saved;
}

double fiveFlops(const OpView& view, const FactorRule&) {
    return 5 * elementsOf(view.outputs[0].shape);
}

// --- rotary -------------------------------------------------------------------------------------

FactorRule rotaryRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape& shape = view.inputs[0].shape;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] == 1) continue;
        const bool last = d + 1 == shape.size(); // its halves are paired
        const int f = rule.addFactor(dimName(d, shape.size()), shape[d],
                                     last ? FactorKind::Replicate : FactorKind::Parallel);
        rule.operands[0][d] = rule.results[0][d] = {f};
    }
    return rule;
}

// --- reductions ---------------------------------------------------------------------------------

std::vector<std::int64_t> reducedAxes(const OpView& view) {
    const std::size_t rank = shapeOf(view, 0).size();
    if (view.op.kind == OpKind::ArgReduce)
        return {
            static_cast<std::int64_t>(axisOf(view, view.op.attributes.integer("axis", 0), rank))};
    std::vector<std::int64_t> axes = view.op.attributes.integers("axes");
    for (std::int64_t& axis : axes) axis = static_cast<std::int64_t>(axisOf(view, axis, rank));
    std::ranges::sort(axes);
    return axes;
}

std::vector<TensorSpec> reduceShape(const OpView& view) {
    const std::vector<std::int64_t> axes = reducedAxes(view);
    const bool keep = view.op.attributes.integer("keepdims", 1) != 0;
    const Shape& in = shapeOf(view, 0);
    Shape shape;
    for (std::size_t d = 0; d < in.size(); ++d) {
        if (!contains(axes, d))
            shape.push_back(in[d]);
        else if (keep)
            shape.push_back(1);
    }
    const bool index = view.op.kind == OpKind::ArgReduce;
    return {{index ? DType::I64 : view.inputs[0].dtype, shape}};
}

void addReduceStatistics(FactorRule& rule, const OpView& view, std::string_view function) {
    const double numbers = elementsOf(view.outputs[0].shape);
    if (function == "max" || function == "min") {
        extremumStatistics(rule, view);
        if (function == "min") rule.forwardStatistics[0].reduce = ReduceOp::Min;
    } else if (function == "prod") {
        rule.forwardStatistics = {resultStatistic(view, ReduceOp::Prod)};
    } else if (function == "logsumexp") {
        rule.forwardStatistics = {{ReduceOp::Max, numbers}, {ReduceOp::Sum, numbers}};
    } else if (isOneOf(function, {"l2", "logsum"})) {
        rule.forwardStatistics = {{ReduceOp::Sum, numbers}};
    }
}

FactorRule reduceRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const std::vector<std::int64_t> axes = reducedAxes(view);
    const bool keep = view.op.attributes.integer("keepdims", 1) != 0;
    const std::string function = view.op.attributes.text("function", "sum");
    const Shape& in = view.inputs[0].shape;
    std::size_t out = 0;
    for (std::size_t d = 0; d < in.size(); ++d) {
        const bool reduced = contains(axes, d);
        const std::size_t target = out;
        if (!reduced || keep) ++out;
        if (in[d] == 1) continue;
        const int f = rule.addFactor(dimName(d, in.size()), in[d],
                                     reduced ? FactorKind::Reduction : FactorKind::Parallel);
        Factor& factor = rule.factors[static_cast<std::size_t>(f)];
        rule.operands[0][d] = {f};
        if (!reduced) {
            rule.results[0][target] = {f};
        } else if (view.op.kind == OpKind::ArgReduce) {
            factor.kind = FactorKind::Replicate;
        } else if (!isOneOf(function, {"sum", "mean", "l1", "sumsquare"})) {
            // Not a plain partial sum: an outer function follows, or the backward pass needs the
            // reduced value, so that the op reduces it whole.
            factor.kind = FactorKind::Internal;
            factor.exchanges = true;
        }
    }
    if (view.op.kind != OpKind::ArgReduce) addReduceStatistics(rule, view, function);
    return rule;
}

SavedTensors reduceSaved(const OpView& view) {
    const std::string function = view.op.attributes.text("function", "sum");
    return isOneOf(function, {"sum", "mean"}) ? saveNothing(view) : saveOperands(view);
}

double operandElements(const OpView& view, const FactorRule&) {
    return view.inputs.empty() ? 0 : elementsOf(view.inputs[0].shape);
}

// --- TopK, CumSum: one axis must be whole -----------------------------------------------------

std::vector<TensorSpec> topKShape(const OpView& view) {
    Shape shape = shapeOf(view, 0);
    shape[axisOf(view, view.op.attributes.integer("axis", -1), shape.size())] =
        view.op.attributes.integer("k", 1);
    return {{view.inputs[0].dtype, shape}, {DType::I64, shape}};
}

FactorRule wholeAxisRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape& in = view.inputs[0].shape;
    const std::size_t axis = axisOf(view, view.op.attributes.integer("axis", -1), in.size());
    for (std::size_t d = 0; d < in.size(); ++d) {
        if (in[d] == 1) continue;
        const int f = rule.addFactor(dimName(d, in.size()), in[d],
                                     d == axis ? FactorKind::Replicate : FactorKind::Parallel);
        rule.operands[0][d] = {f};
        for (std::size_t r = 0; r < rule.results.size(); ++r)
            if (view.outputs[r].shape[d] == in[d]) rule.results[r][d] = {f};
    }
    return rule;
}

// --- cross-entropy: logits[..,V] labels[..] -> mean loss, or the loss of each label ------------

bool eachByItself(const OpView& view) {
    return view.op.attributes.text("reduction", "mean") == "none";
}

std::vector<TensorSpec> crossEntropyShape(const OpView& view) {
    const Shape &logits = shapeOf(view, 0), &labels = shapeOf(view, 1);
    require(!logits.empty() && Shape(logits.begin(), logits.end() - 1) == labels, view,
            "labels must have the shape of the logits without the classes");
    return {{DType::F32, eachByItself(view) ? labels : Shape{}}};
}

FactorRule crossEntropyRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape& logits = view.inputs[0].shape;
    for (std::size_t d = 0; d + 1 < logits.size(); ++d) {
        if (logits[d] == 1) continue;
        const int f =
            rule.addFactor(dimName(d, std::max<std::size_t>(logits.size(), 3)), logits[d],
                           eachByItself(view) ? FactorKind::Parallel : FactorKind::Reduction);
        rule.operands[0][d] = rule.operands[1][d] = {f};
        if (eachByItself(view)) rule.results[0][d] = {f};
    }
    const int v = rule.addFactor("v", logits.back(), FactorKind::Internal);
    rule.operands[0].back() = {v};
    rule.factors[static_cast<std::size_t>(v)].exchanges = true;
    // Vocabulary-parallel loss (Megatron-LM): the maximum, then the sum of exponentials and the
    // label's logit together. The backward pass needs nothing more.
    const double rows = elementsOf(view.inputs[1].shape);
    if (view.op.attributes.integer("log_probabilities", 0) != 0)
        rule.forwardStatistics = {{ReduceOp::Sum, rows}};
    else
        rule.forwardStatistics = {{ReduceOp::Max, rows}, {ReduceOp::Sum, 2 * rows}};
    return rule;
}

SavedTensors crossEntropySaved(const OpView& view) {
    SavedTensors saved = saveNothing(view);
    saved.operands[0] = saved.operands[1] = true;
    saved.extraBytes = 4.0 * elementsOf(view.inputs[0].shape); // fp32 log-probabilities
    return saved;
}

} // namespace

std::vector<Row> vectorRows() {
    using enum OpKind;
    constexpr auto kVector = ComputeClass::Vector;
    return {
        {Elementwise, elementwiseShape, elementwiseRule, kVector, elementwiseFlops, nullptr,
         elementwiseSaved},
        {Dropout, dropoutShape, elementwiseRule, kVector, nullptr, nullptr, dropoutSaved},
        {Softmax, sameShape, softmaxRule, kVector, fiveFlops, nullptr, saveResult},
        {Norm, normShape, normRule, kVector, fiveFlops, nullptr, normSaved},
        {Rotary, sameShape, rotaryRule, kVector, fiveFlops},
        {Reduce, reduceShape, reduceRule, kVector, operandElements, nullptr, reduceSaved},
        {ArgReduce, reduceShape, reduceRule, kVector, operandElements},
        {TopK, topKShape, wholeAxisRule, kVector, operandElements},
        {CumSum, sameShape, wholeAxisRule, kVector, operandElements},
        {CrossEntropy, crossEntropyShape, crossEntropyRule, kVector, operandElements, nullptr,
         crossEntropySaved},
    };
}

} // namespace shardlens::catalogue
