// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of PyTorch: one row each, the function named as the catalogue names it.
// Element types follow torch's promotion: tensors with dimensions before those without, complex
// before real before whole before boolean, then the wider; half and bfloat16 meet in float32.
#include "core/import/element_functions.h"
#include "core/import/torch_translation.h"

#include <algorithm>

namespace shardlens::torch {

namespace {

int category(DType dtype) {
    if (dtype == DType::C64 || dtype == DType::C128) return 3;
    if (isFloat(dtype)) return 2;
    return dtype == DType::Bool ? 0 : 1;
}

DType promoted(DType a, DType b) {
    if (a == DType::Unknown || a == b) return b;
    if (category(a) != category(b)) return category(a) > category(b) ? a : b;
    if (bitsOf(a) == bitsOf(b) && category(a) == 2) return DType::F32;
    return bitsOf(a) >= bitsOf(b) ? a : b;
}

DType promoted(const Translation& t, const std::vector<TensorId>& operands) {
    DType ranked = DType::Unknown, scalar = DType::Unknown;
    for (const TensorId operand : operands) {
        DType& side = t.rank(operand) > 0 ? ranked : scalar;
        side = promoted(side, t.typeOf(operand));
    }
    if (ranked == DType::Unknown) return scalar;
    return scalar != DType::Unknown && category(scalar) > category(ranked) ? scalar : ranked;
}

DType floatOf(DType dtype) {
    return category(dtype) < 2 ? DType::F32 : dtype;
}

void unary(Translation& t, std::string_view function) {
    const TensorId x = t.tensor(0, "self");
    t.result(OpKind::Elementwise, functionOf(function), {x});
}

/// Unary functions whose result is real whatever the operand.
void unaryReal(Translation& t, std::string_view function) {
    const TensorId x = t.tensor(0, "self");
    t.result(OpKind::Elementwise, functionOf(function), {x}, floatOf(t.typeOf(x)));
}

void unaryTruth(Translation& t, std::string_view function) {
    t.result(OpKind::Elementwise, functionOf(function), {t.tensor(0, "self")}, DType::Bool);
}

/// Both operands may be numbers; where both are, so is the result.
std::vector<TensorId> pairOf(Translation& t) {
    const Value& first = t.argument(0, "self");
    const TensorId left = first.kind == Value::Kind::Tensor ? first.tensor : kNoTensor;
    const TensorId right = t.optionalTensor(1, "other|exponent|value");
    t.require(left != kNoTensor || right != kNoTensor, "neither operand is a tensor");
    if (left == kNoTensor) return {t.operand(0, "self", t.typeOf(right)), right};
    return {left, t.operand(1, "other|exponent|value", t.typeOf(left))};
}

void binary(Translation& t, std::string_view function) {
    const std::vector<TensorId> operands = pairOf(t);
    t.result(OpKind::Elementwise, functionOf(function), operands, promoted(t, operands));
}

std::optional<std::int64_t> ofSizes(std::string_view function, std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (function == "add" && !__builtin_add_overflow(a, b, &result)) return result;
    if (function == "sub" && !__builtin_sub_overflow(a, b, &result)) return result;
    if (function == "mul" && !__builtin_mul_overflow(a, b, &result)) return result;
    if (function == "floordiv" && b > 0) return a / b - (a % b < 0 ? 1 : 0);
    if (function == "mod" && b > 0) return (a % b + b) % b;
    return std::nullopt;
}

/// +, -, * of tensors, or of sizes.
void arithmetic(Translation& t, std::string_view function) {
    const Value a = t.argument(0, "self"), b = t.argument(1, "other");
    if (a.kind == Value::Kind::Integer && b.kind == Value::Kind::Integer) {
        const auto result = ofSizes(function, a.integer, b.integer);
        t.require(result.has_value(), "sizes are out of range");
        return t.value(Value::ofInteger(*result));
    }
    std::vector<TensorId> operands = pairOf(t);
    const double alpha = function == "add" || function == "sub" ? t.number(2, "alpha", 1) : 1;
    if (alpha != 1)
        operands[1] = t.step(OpKind::Elementwise, functionOf("mul"),
                             {operands[1], t.constant(alpha, t.typeOf(operands[1]))});
    t.result(OpKind::Elementwise, functionOf(function), operands, promoted(t, operands));
}

void reversed(Translation& t, std::string_view function) {
    std::vector<TensorId> operands = pairOf(t);
    std::ranges::reverse(operands);
    t.result(OpKind::Elementwise, functionOf(function), operands, promoted(t, operands));
}

void divide(Translation& t, std::string_view) {
    const std::vector<TensorId> operands = pairOf(t);
    const std::string rounding = t.text(2, "rounding_mode");
    const DType dtype = promoted(t, operands);
    if (rounding.empty())
        return t.result(OpKind::Elementwise, functionOf("div"), operands, floatOf(dtype));
    const TensorId quotient =
        t.step(OpKind::Elementwise, functionOf("div"), operands, floatOf(dtype));
    t.result(OpKind::Elementwise, functionOf(rounding == "floor" ? "floor" : "trunc"), {quotient},
             dtype);
}

void floorDivide(Translation& t, std::string_view) {
    const Value a = t.argument(0, "self"), b = t.argument(1, "other");
    if (a.kind == Value::Kind::Integer && b.kind == Value::Kind::Integer)
        return arithmetic(t, "floordiv");
    const std::vector<TensorId> operands = pairOf(t);
    const DType dtype = promoted(t, operands);
    const TensorId quotient =
        t.step(OpKind::Elementwise, functionOf("div"), operands, floatOf(dtype));
    t.result(OpKind::Elementwise, functionOf("floor"), {quotient}, dtype);
}

void compare(Translation& t, std::string_view function) {
    t.result(OpKind::Elementwise, functionOf(function), pairOf(t), DType::Bool);
}

void power(Translation& t, std::string_view) {
    const std::vector<TensorId> operands = pairOf(t);
    const Value& exponent = t.argument(1, "exponent");
    if (exponent.isNumber() && exponent.number() == 2)
        return t.result(OpKind::Elementwise, functionOf("mul"), {operands[0], operands[0]});
    t.result(OpKind::Elementwise, functionOf("pow"), operands, promoted(t, operands));
}

void square(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    t.result(OpKind::Elementwise, functionOf("mul"), {x, x});
}

/// Clamps and their kin; the bounds are settings.
void clip(Translation& t, std::string_view function) {
    Attributes attributes = functionOf("clip");
    const auto bound = [&](const char* name, std::size_t i) {
        if (t.argument(i, name).isNumber()) attributes.set(name, t.number(i, name, 0));
    };
    if (function == "min" || function == "both") bound("min", 1);
    if (function == "max") bound("max", 1);
    if (function == "both") bound("max", 2);
    if (function == "hardtanh") {
        attributes.set("min", t.number(1, "min_val", -1));
        attributes.set("max", t.number(2, "max_val", 1));
    }
    if (function == "relu6") {
        attributes.set("min", 0.0);
        attributes.set("max", 6.0);
    }
    t.require(t.optionalTensor(1, "min") == kNoTensor && t.optionalTensor(2, "max") == kNoTensor,
              "its bounds are tensors");
    t.result(OpKind::Elementwise, std::move(attributes), {t.tensor(0, "self")});
}

void gelu(Translation& t, std::string_view function) {
    Attributes attributes = functionOf(function);
    const bool backward = function == "gelugrad";
    if (t.text(backward ? 2 : 1, "approximate") == "tanh")
        attributes.set("approximate", std::string("tanh"));
    std::vector<TensorId> operands{t.tensor(0, backward ? "grad_output" : "self")};
    if (backward) operands.push_back(t.tensor(1, "self"));
    t.result(OpKind::Elementwise, std::move(attributes), std::move(operands));
}

void leakyRelu(Translation& t, std::string_view function) {
    Attributes attributes = functionOf(function);
    attributes.set("alpha", t.number(1, "negative_slope|alpha", function == "elu" ? 1 : 0.01));
    t.result(OpKind::Elementwise, std::move(attributes), {t.tensor(0, "self")});
}

/// The gradient of the result, and what the forward op kept.
void gradient(Translation& t, std::string_view function) {
    t.result(OpKind::Elementwise, functionOf(function),
             {t.tensor(0, "grad_output"), t.tensor(1, "self|output")});
}

void dropoutGradient(Translation& t, std::string_view) {
    const TensorId gradient = t.tensor(0, "grad_output"), mask = t.tensor(1, "mask");
    const TensorId kept =
        t.step(OpKind::Elementwise, functionOf("mul"), {gradient, mask}, t.typeOf(gradient));
    t.result(OpKind::Elementwise, functionOf("mul"),
             {kept, t.constant(t.number(2, "scale", 1), t.typeOf(gradient))});
}

void where(Translation& t, std::string_view) {
    const TensorId condition = t.tensor(0, "condition");
    const TensorId a = t.optionalTensor(1, "self|input"), b = t.optionalTensor(2, "other");
    const DType like = a != kNoTensor ? t.typeOf(a) : b != kNoTensor ? t.typeOf(b) : DType::F32;
    const std::vector<TensorId> choices{t.operand(1, "self|input", like),
                                        t.operand(2, "other", like)};
    t.result(OpKind::Elementwise, functionOf("where"), {condition, choices[0], choices[1]},
             promoted(t, choices));
}

void maskedFill(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    t.result(OpKind::Elementwise, functionOf("where"),
             {t.tensor(1, "mask"), t.operand(2, "value", t.typeOf(x)), x}, t.typeOf(x));
}

/// index_put with a mask in place of indices is masked_fill; anything else scatters.
void indexPut(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    const std::vector<TensorId> indices = t.tensors(1, "indices");
    t.require(indices.size() == 1 && t.typeOf(indices[0]) == DType::Bool, "it scatters by indices");
    t.require(!t.boolean(3, "accumulate", false), "it accumulates");
    const TensorId values = t.operand(2, "values", t.typeOf(x));
    t.require(t.rank(values) == 0, "its values are not one number");
    Shape mask = t.shape(indices[0]);
    t.require(mask.size() <= t.shape(x).size(), "its mask has more dimensions than its operand");
    mask.resize(t.shape(x).size(), 1);
    t.result(OpKind::Elementwise, functionOf("where"), {t.reshaped(indices[0], mask), values, x},
             t.typeOf(x));
}

void cast(Translation& t, TensorId x, DType dtype) {
    if (t.typeOf(x) == dtype) return t.alias(x);
    t.result(OpKind::Elementwise,
             {{"function", std::string("cast")}, {"to", std::string(nameOf(dtype))}}, {x});
}

/// Other element type, device or memory layout; only the first changes anything here.
void convert(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "self");
    std::optional<DType> dtype;
    for (std::size_t i = 1; i < 4 && !dtype; ++i) dtype = t.dtype(i, "dtype");
    if (const TensorId other = t.optionalTensor(1, "other"); other != kNoTensor)
        dtype = t.typeOf(other);
    cast(t, x, dtype.value_or(t.typeOf(x)));
}

void convertTo(Translation& t, std::string_view name) {
    cast(t, t.tensor(0, "self"), dtypeFromTorch(name).value_or(DType::F32));
}

void identity(Translation& t, std::string_view) {
    if (t.argument(0, "self").kind != Value::Kind::Text) return t.alias(t.tensor(0, "self"));
    // A tensor that the module holds; the text says what it is only here.
    const auto spec = t.declared(0);
    t.require(spec.has_value(), "the module's tensor has no known shape");
    t.resultAs(OpKind::Constant, {}, {}, *spec);
}

/// Writes the second operand over the first.
void copy(Translation& t, std::string_view) {
    const TensorId target = t.tensor(0, "self");
    TensorId source = t.tensor(1, "src");
    if (t.shape(source) != t.shape(target))
        source = t.step(OpKind::Expand, {{"shape", t.shape(target)}}, {source});
    cast(t, source, t.typeOf(target));
}

void dropout(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "input");
    const double ratio = t.number(1, "p", 0.5);
    if (!t.boolean(2, "train", true) || ratio == 0) {
        t.require(!t.wants(1), "it does not drop, but its mask is read");
        return t.alias(x);
    }
    Attributes attributes{{"ratio", ratio}};
    if (t.wants(1)) attributes.set("mask", std::int64_t{1});
    t.result(OpKind::Dropout, std::move(attributes), {x});
}

/// input + value * t1 * t2 (or / t2).
void addProduct(Translation& t, std::string_view function) {
    const TensorId product = t.step(OpKind::Elementwise, functionOf(function),
                                    {t.tensor(1, "tensor1"), t.tensor(2, "tensor2")});
    const double value = t.number(3, "value", 1);
    const TensorId weighted = value == 1 ? product
                                         : t.step(OpKind::Elementwise, functionOf("mul"),
                                                  {product, t.constant(value, t.typeOf(product))});
    t.result(OpKind::Elementwise, functionOf("add"), {t.tensor(0, "self"), weighted});
}

void lerp(Translation& t, std::string_view) {
    const TensorId a = t.tensor(0, "self"), b = t.tensor(1, "end");
    const TensorId difference = t.step(OpKind::Elementwise, functionOf("sub"), {b, a});
    const TensorId part = t.step(OpKind::Elementwise, functionOf("mul"),
                                 {difference, t.operand(2, "weight", t.typeOf(a))});
    t.result(OpKind::Elementwise, functionOf("add"), {a, part});
}

} // namespace

std::vector<Rule> elementwiseRules() {
    return {
        {"abs", unary, "abs"},
        {"ceil", unary, "ceil"},
        {"floor", unary, "floor"},
        {"round", unary, "round"},
        {"trunc", unary, "trunc"},
        {"neg", unary, "neg"},
        {"sign", unary, "sign"},
        {"sgn", unary, "sign"},
        {"relu", unary, "relu"},
        {"silu", unary, "silu"},
        {"mish", unary, "mish"},
        {"selu", unary, "selu"},
        {"hardswish", unary, "hardswish"},
        {"hardsigmoid", unary, "hardsigmoid"},
        {"softplus", unary, "softplus"},
        {"log_sigmoid_forward", unary, "logsigmoid"},
        {"bitwise_not", unary, "bitwisenot"},
        {"acos", unaryReal, "acos"},
        {"acosh", unaryReal, "acosh"},
        {"asin", unaryReal, "asin"},
        {"asinh", unaryReal, "asinh"},
        {"atan", unaryReal, "atan"},
        {"atanh", unaryReal, "atanh"},
        {"cos", unaryReal, "cos"},
        {"cosh", unaryReal, "cosh"},
        {"erf", unaryReal, "erf"},
        {"exp", unaryReal, "exp"},
        {"exp2", unaryReal, "exp2"},
        {"expm1", unaryReal, "expm1"},
        {"log", unaryReal, "log"},
        {"log10", unaryReal, "log10"},
        {"log1p", unaryReal, "log1p"},
        {"log2", unaryReal, "log2"},
        {"reciprocal", unaryReal, "reciprocal"},
        {"rsqrt", unaryReal, "rsqrt"},
        {"sigmoid", unaryReal, "sigmoid"},
        {"sin", unaryReal, "sin"},
        {"sinh", unaryReal, "sinh"},
        {"sqrt", unaryReal, "sqrt"},
        {"tan", unaryReal, "tan"},
        {"tanh", unaryReal, "tanh"},
        {"isnan", unaryTruth, "isnan"},
        {"isinf", unaryTruth, "isinf"},
        {"isfinite", unaryTruth, "isfinite"},
        {"logical_not", unaryTruth, "not"},
        {"add", arithmetic, "add"},
        {"iadd", arithmetic, "add"},
        {"sub", arithmetic, "sub"},
        {"mul", arithmetic, "mul"},
        {"imul", arithmetic, "mul"},
        {"mod", arithmetic, "mod"},
        {"rsub", reversed, "sub"},
        {"div", divide},
        {"true_divide", divide},
        {"truediv", divide},
        {"floor_divide", floorDivide},
        {"floordiv", floorDivide},
        {"pow", power},
        {"square", square},
        {"remainder", binary, "mod"},
        {"fmod", binary, "fmod"},
        {"atan2", binary, "atan2"},
        {"maximum", binary, "max"},
        {"minimum", binary, "min"},
        {"bitwise_and", binary, "bitwiseand"},
        {"bitwise_or", binary, "bitwiseor"},
        {"bitwise_xor", binary, "bitwisexor"},
        {"__and__", binary, "bitwiseand"},
        {"__or__", binary, "bitwiseor"},
        {"and_", binary, "bitwiseand"},
        {"or_", binary, "bitwiseor"},
        {"logical_and", compare, "and"},
        {"logical_or", compare, "or"},
        {"logical_xor", compare, "xor"},
        {"eq", compare, "equal"},
        {"ne", compare, "notequal"},
        {"lt", compare, "less"},
        {"gt", compare, "greater"},
        {"le", compare, "lessorequal"},
        {"ge", compare, "greaterorequal"},
        {"clamp", clip, "both"},
        {"clamp_min", clip, "min"},
        {"clamp_max", clip, "max"},
        {"hardtanh", clip, "hardtanh"},
        {"relu6", clip, "relu6"},
        {"gelu", gelu, "gelu"},
        {"leaky_relu", leakyRelu, "leakyrelu"},
        {"elu", leakyRelu, "elu"},
        {"gelu_backward", gelu, "gelugrad"},
        {"silu_backward", gradient, "silugrad"},
        {"tanh_backward", gradient, "tanhgrad"},
        {"sigmoid_backward", gradient, "sigmoidgrad"},
        {"threshold_backward", gradient, "relugrad"},
        {"native_dropout_backward", dropoutGradient},
        {"where", where},
        {"masked_fill", maskedFill},
        {"index_put", indexPut},
        {"_unsafe_index_put", indexPut},
        {"_to_copy", convert},
        {"to", convert},
        {"type", convert},
        {"convert_element_type", convert},
        {"float", convertTo, "float32"},
        {"half", convertTo, "float16"},
        {"bfloat16", convertTo, "bfloat16"},
        {"double", convertTo, "float64"},
        {"long", convertTo, "int64"},
        {"int", convertTo, "int32"},
        {"bool", convertTo, "bool"},
        {"clone", identity},
        {"alias", identity},
        {"detach", identity},
        {"contiguous", identity},
        {"lift", identity},
        {"lift_fresh", identity},
        {"lift_fresh_copy", identity},
        {"device_put", identity},
        {"cuda", identity},
        {"cpu", identity},
        {"requires_grad_", identity},
        {"copy", copy},
        {"dropout", dropout},
        {"native_dropout", dropout, {}, true},
        {"addcmul", addProduct, "mul"},
        {"addcdiv", addProduct, "div"},
        {"lerp", lerp},
    };
}

} // namespace shardlens::torch
