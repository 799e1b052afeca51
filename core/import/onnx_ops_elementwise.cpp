// SPDX-License-Identifier: Apache-2.0
// Elementwise ops: one row each, the function named as the catalogue names it.
#include "core/import/element_functions.h"
#include "core/import/onnx_blocked.h"
#include "core/import/onnx_quantized.h"
#include "core/import/onnx_translation.h"

#include <algorithm>
#include <numeric>

namespace shardlens::onnx {

namespace {

/// Before opset 7 an operand was aligned at `axis` instead of at the right end.
std::vector<TensorId> alignedOperands(Translation& t) {
    std::vector<TensorId> operands = t.inputs();
    if (operands.size() == 2 && t.integer("broadcast", 0) != 0 && t.hasAttribute("axis")) {
        const std::int64_t axis = t.axis(t.integer("axis", 0), t.rank(0));
        Shape shape = t.shape(1);
        while (axis + static_cast<std::int64_t>(shape.size()) < t.rank(0)) shape.push_back(1);
        if (shape != t.shape(1)) operands[1] = t.reshaped(operands[1], shape);
    }
    return operands;
}

/// The function with the numbers and switches the node states; the catalogue has ONNX's defaults.
Attributes settingsOf(const Translation& t, std::string_view function) {
    Attributes attributes = functionOf(function);
    for (const char* name : {"alpha", "beta", "gamma", "bias", "lambd"})
        if (const Attribute* stated = t.attribute(name);
            stated != nullptr && stated->type == Attribute::Type::Float)
            attributes.set(name, stated->number);
    if (t.integer("fmod", 0) != 0) attributes.set("fmod", std::int64_t{1});
    if (t.text("direction") == "LEFT") attributes.set("direction", std::string("left"));
    return attributes;
}

void simple(Translation& t, std::string_view function) {
    t.input(0);
    t.result(OpKind::Elementwise, settingsOf(t, function), alignedOperands(t));
}

/// The one number that bounds an operand, if it is known.
std::optional<double> bound(const Translation& t, std::string_view name, std::size_t i) {
    if (t.hasAttribute(name)) return t.number(name, 0);
    if (const auto integer = t.scalar(i)) return static_cast<double>(*integer);
    const auto* numbers = t.floats(i);
    return numbers != nullptr && numbers->size() == 1 ? std::optional(numbers->front())
                                                      : std::nullopt;
}

/// Bounds that are known become attributes, others operands.
void clip(Translation& t, std::string_view) {
    Attributes attributes = functionOf("clip");
    const auto low = bound(t, "min", 1), high = bound(t, "max", 2);
    if ((!low && t.has(1)) || (!high && t.has(2))) {
        if (t.has(1)) return simple(t, "clip");
        return (void)t.result(OpKind::Elementwise, functionOf("min"), {t.input(0), t.input(2)});
    }
    if (low) attributes.set("min", *low);
    if (high) attributes.set("max", *high);
    t.result(OpKind::Elementwise, std::move(attributes), {t.input(0)});
}

void identity(Translation& t, std::string_view) {
    t.alias(t.input(0));
}

void variadic(Translation& t, std::string_view function) {
    if (t.inputCount() == 1) return t.alias(t.input(0));
    simple(t, function);
}

void convert(Translation& t, DType dtype) {
    if (t.dtype(0) == dtype) return t.alias(t.input(0));
    t.result(OpKind::Elementwise,
             {{"function", std::string("cast")}, {"to", std::string(nameOf(dtype))}}, {t.input(0)});
}

void cast(Translation& t, std::string_view) {
    const auto dtype = t.dtypeAttribute("to");
    if (!dtype) return t.opaque();
    convert(t, *dtype);
}

void castLike(Translation& t, std::string_view) {
    convert(t, t.dtype(1));
}

void isInf(Translation& t, std::string_view function) {
    Attributes attributes = functionOf(function);
    for (const std::string_view name : {"detect_negative", "detect_positive"})
        if (t.integer(name, 1) == 0) attributes.set(std::string(name), std::int64_t{0});
    t.result(OpKind::Elementwise, std::move(attributes), {t.input(0)});
}

/// Gelu of ONNX, and those of com.microsoft that add a bias first.
void gelu(Translation& t, std::string_view function) {
    TensorId x = t.input(0);
    if (t.has(1)) x = t.step(OpKind::Elementwise, functionOf("add"), {x, t.input(1)});
    Attributes attributes = functionOf("gelu");
    if (function == "tanh" || t.text("approximate") == "tanh")
        attributes.set("approximate", std::string("tanh"));
    t.result(OpKind::Elementwise, std::move(attributes), {x});
}

/// x * sigmoid(alpha * x)
void quickGelu(Translation& t, std::string_view) {
    t.result(OpKind::Elementwise,
             {{"function", std::string("silu")}, {"alpha", t.number("alpha", 1.702)}},
             {t.input(0)});
}

/// A scale or zero point, shaped to broadcast against x. kNoTensor if it has one entry a block.
TensorId scaleOperand(Translation& t, std::size_t i) {
    if (!t.has(i)) return kNoTensor;
    const std::int64_t rank = t.rank(0);
    const Shape& shape = t.shape(i);
    if (elementsOf(shape) == 1)
        return static_cast<std::int64_t>(shape.size()) <= rank ? t.input(i)
                                                               : t.reshaped(t.input(i), {});
    if (shape.size() != 1 || rank == 0) return kNoTensor;
    const std::int64_t axis = t.axis(t.integer("axis", 1), rank);
    if (shape[0] != t.shape(0)[static_cast<std::size_t>(axis)]) return kNoTensor;
    if (axis + 1 == rank) return t.input(i);
    Shape aligned{shape[0]};
    aligned.resize(static_cast<std::size_t>(rank - axis), 1);
    return t.reshaped(t.input(i), aligned);
}

void scaled(Translation& t, std::string_view function, DType dtype) {
    if (blockwise(t, function, dtype)) return;
    std::vector<TensorId> operands{t.input(0)};
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
        if (const TensorId operand = scaleOperand(t, i); operand != kNoTensor)
            operands.push_back(operand);
    t.result(OpKind::Elementwise,
             {{"function", std::string(function)}, {"to", std::string(nameOf(dtype))}}, operands);
}

void quantize(Translation& t, std::string_view function) {
    DType dtype = t.has(2) ? t.dtype(2) : DType::U8;
    if (const auto stated = t.dtypeAttribute("output_dtype")) dtype = *stated;
    scaled(t, function, dtype);
}

void dequantize(Translation& t, std::string_view function) {
    DType dtype = t.dtype(1);
    if (const auto stated = t.dtypeAttribute("output_dtype")) dtype = *stated;
    scaled(t, function, dtype);
}

/// Noise in the shape of the operand.
void randomLike(Translation& t, std::string_view function) {
    t.result(OpKind::Elementwise, functionOf(function), {t.input(0)},
             t.dtypeAttribute("dtype").value_or(t.dtype(0)));
}

void dropout(Translation& t, std::string_view) {
    double ratio = t.number("ratio", 0.5);
    if (const auto* given = t.floats(1); given != nullptr && given->size() == 1)
        ratio = given->front();
    Attributes attributes{{"ratio", ratio}};
    // Old opsets drop when is_test is 0, those from 7 on never, new ones where operand 2 says so.
    const bool training = t.opset() < 7    ? t.integer("is_test", 0) == 0
                          : t.opset() < 12 ? false
                                           : t.has(2) && t.scalar(2).value_or(1) != 0;
    if (!training) attributes.set("training", std::int64_t{0});
    if (t.wants(1)) attributes.set("mask", std::int64_t{1});
    t.result(OpKind::Dropout, std::move(attributes), {t.input(0)});
}

/// SwiGLU-like splits are rare; BiasSplitGelu: (x + bias) in two halves, one gated by the other.
void biasSplitGelu(Translation& t, std::string_view) {
    const TensorId x = t.step(OpKind::Elementwise, functionOf("add"), {t.input(0), t.input(1)});
    const std::int64_t rank = t.rank(0);
    t.require(rank > 0 && t.shape(0).back() % 2 == 0, "the last dimension must be even");
    const std::int64_t half = t.shape(0).back() / 2;
    const auto part = [&](std::int64_t start) {
        return t.step(OpKind::Slice,
                      {{"axes", Translation::Ints{rank - 1}},
                       {"starts", Translation::Ints{start}},
                       {"ends", Translation::Ints{start + half}},
                       {"steps", Translation::Ints{1}}},
                      {x});
    };
    const TensorId gate = t.step(OpKind::Elementwise, functionOf("gelu"), {part(half)});
    t.result(OpKind::Elementwise, functionOf("mul"), {part(0), gate});
}

} // namespace

std::vector<Rule> elementwiseRules() {
    return {
        {"Abs", simple, "abs"},
        {"Acos", simple, "acos"},
        {"Acosh", simple, "acosh"},
        {"Asin", simple, "asin"},
        {"Asinh", simple, "asinh"},
        {"Atan", simple, "atan"},
        {"Atanh", simple, "atanh"},
        {"BitwiseNot", simple, "bitwisenot"},
        {"Ceil", simple, "ceil"},
        {"Celu", simple, "celu"},
        {"Cos", simple, "cos"},
        {"Cosh", simple, "cosh"},
        {"Elu", simple, "elu"},
        {"Erf", simple, "erf"},
        {"Exp", simple, "exp"},
        {"Floor", simple, "floor"},
        {"HardSigmoid", simple, "hardsigmoid"},
        {"HardSwish", simple, "hardswish"},
        {"IsNaN", simple, "isnan"},
        {"LeakyRelu", simple, "leakyrelu"},
        {"Log", simple, "log"},
        {"Mish", simple, "mish"},
        {"Neg", simple, "neg"},
        {"Not", simple, "not"},
        {"Reciprocal", simple, "reciprocal"},
        {"Relu", simple, "relu"},
        {"Round", simple, "round"},
        {"Selu", simple, "selu"},
        {"Shrink", simple, "shrink"},
        {"Sigmoid", simple, "sigmoid"},
        {"Sign", simple, "sign"},
        {"Sin", simple, "sin"},
        {"Sinh", simple, "sinh"},
        {"Softplus", simple, "softplus"},
        {"Softsign", simple, "softsign"},
        {"Sqrt", simple, "sqrt"},
        {"Swish", simple, "silu"},
        {"Tan", simple, "tan"},
        {"Tanh", simple, "tanh"},
        {"ThresholdedRelu", simple, "thresholdedrelu"},
        {"Clip", clip},
        {"Identity", identity},
        {"IsInf", isInf, "isinf"},
        {"Cast", cast},
        {"CastLike", castLike},
        {"Gelu", gelu, "gelu"},
        {"FastGelu", gelu, "tanh"},
        {"QuickGelu", quickGelu},
        {"BiasGelu", gelu, "gelu"},
        {"BiasSplitGelu", biasSplitGelu},
        {"Add", simple, "add"},
        {"Sub", simple, "sub"},
        {"Mul", simple, "mul"},
        {"Div", simple, "div"},
        {"Mod", simple, "mod"},
        {"Pow", simple, "pow"},
        {"PRelu", simple, "prelu"},
        {"And", simple, "and"},
        {"Or", simple, "or"},
        {"Xor", simple, "xor"},
        {"BitShift", simple, "bitshift"},
        {"BitwiseAnd", simple, "bitwiseand"},
        {"BitwiseOr", simple, "bitwiseor"},
        {"BitwiseXor", simple, "bitwisexor"},
        {"Equal", simple, "equal"},
        {"Less", simple, "less"},
        {"Greater", simple, "greater"},
        {"LessOrEqual", simple, "lessorequal"},
        {"GreaterOrEqual", simple, "greaterorequal"},
        {"Where", simple, "where"},
        {"Sum", variadic, "sum"},
        {"Mean", variadic, "mean"},
        {"Max", variadic, "max"},
        {"Min", variadic, "min"},
        {"QuantizeLinear", quantize, "quantize"},
        {"DequantizeLinear", dequantize, "dequantize"},
        {"DynamicQuantizeLinear", dynamicQuantize},
        {"Bernoulli", randomLike, "random"},
        {"Dropout", dropout},
    };
}

} // namespace shardlens::onnx
