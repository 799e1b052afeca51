// SPDX-License-Identifier: Apache-2.0
// Operators of PyTorch that make tensors out of nothing: constants, ranges, noise, and tensors that
// the module holds.
#include "core/import/torch_translation.h"

#include <cmath>

namespace shardlens::torch {

namespace {

using Ints = Translation::Ints;

/// A tensor of one number as result 0; a tensor without dimensions is a constant.
void filled(Translation& t, TensorSpec spec, double number) {
    if (spec.shape.empty()) {
        t.resultAs(OpKind::Constant, {}, {}, std::move(spec));
        Graph& graph = t.builder().graph();
        const auto id = static_cast<OpId>(graph.ops().size() - 1);
        graph.setKnownReals(graph.op(id).outputs[0], {number});
        return;
    }
    Attributes attributes{{"function", std::string("constant")},
                          {"value", number},
                          {"shape", spec.shape},
                          {"to", std::string(nameOf(spec.dtype))}};
    t.resultAs(OpKind::Generate, std::move(attributes), {}, std::move(spec));
}

/// empty is filled too: nothing reads it before it is written.
double numberOf(std::string_view function) {
    return function == "ones" ? 1 : 0;
}

/// zeros, ones, empty: the sizes come first.
void sized(Translation& t, std::string_view function) {
    filled(t, {t.dtype(1, "dtype").value_or(DType::F32), t.intsFrom(0, "size")},
           numberOf(function));
}

void full(Translation& t, std::string_view) {
    const Value& value = t.argument(1, "fill_value");
    DType dtype = value.kind == Value::Kind::Integer   ? DType::I64
                  : value.kind == Value::Kind::Boolean ? DType::Bool
                                                       : DType::F32;
    if (const auto stated = t.dtype(2, "dtype")) dtype = *stated;
    filled(t, {dtype, t.ints(0, "size")}, t.number(1, "fill_value", 0));
}

void like(Translation& t, std::string_view function) {
    const TensorId x = t.tensor(0, "self");
    const bool given = function == "full";
    filled(t, {t.dtype(given ? 2 : 1, "dtype").value_or(t.typeOf(x)), t.shape(x)},
           given ? t.number(1, "fill_value|value", 0) : numberOf(function));
}

/// x.new_zeros(sizes)
void sizedLike(Translation& t, std::string_view function) {
    const TensorId x = t.tensor(0, "self");
    const bool given = function == "full";
    filled(t, {t.dtype(given ? 3 : 2, "dtype").value_or(t.typeOf(x)), t.ints(1, "size")},
           given ? t.number(2, "fill_value", 0) : numberOf(function));
}

void scalar(Translation& t, std::string_view) {
    const Value& value = t.argument(0, "s");
    t.require(value.isNumber() || value.kind == Value::Kind::Boolean, "it is no number");
    const DType own = value.kind == Value::Kind::Real ? DType::F32 : DType::I64;
    filled(t, {t.dtype(1, "dtype").value_or(own), {}}, value.number());
}

void generate(Translation& t, Attributes attributes, TensorSpec spec) {
    attributes.set("shape", spec.shape);
    attributes.set("to", std::string(nameOf(spec.dtype)));
    t.resultAs(OpKind::Generate, std::move(attributes), {}, std::move(spec));
}

/// Numbers from start to end, and how many there are.
void range(Translation& t, std::string_view) {
    const bool withStart = t.overload().starts_with("start") ||
                           (t.overload().empty() && t.argument(1, "end").isNumber());
    const double start = withStart ? t.number(0, "start", 0) : 0;
    const double end = withStart ? t.number(1, "end", 0) : t.number(0, "end", 0);
    const double step = withStart ? t.number(2, "step", 1) : 1;
    t.require(step != 0 && std::isfinite(start) && std::isfinite(end) && std::isfinite(step),
              "its step is zero");
    const double count = std::ceil((end - start) / step);
    t.require(count >= 0 && count < 9e15, "it has no end");
    const bool real = t.argument(0, "start").kind == Value::Kind::Real ||
                      t.argument(1, "end").kind == Value::Kind::Real;
    generate(t, {{"function", std::string("range")}, {"start", start}, {"step", step}},
             {t.dtype(99, "dtype").value_or(real ? DType::F32 : DType::I64),
              {static_cast<std::int64_t>(count)}});
}

/// prims.iota: length first.
void iota(Translation& t, std::string_view) {
    generate(t,
             {{"function", std::string("range")},
              {"start", t.number(1, "start", 0)},
              {"step", t.number(2, "step", 1)}},
             {t.dtype(3, "dtype").value_or(DType::I64), {t.integer(0, "length", 0)}});
}

void eye(Translation& t, std::string_view) {
    const std::int64_t n = t.integer(0, "n", 0);
    generate(t, {{"function", std::string("eye")}, {"diagonal", std::int64_t{0}}},
             {t.dtype(99, "dtype").value_or(DType::F32), {n, t.integer(1, "m", n)}});
}

/// Noise, between 0 and 1 or with mean 0 and deviation 1.
void noise(Translation& t, std::string_view function) {
    Attributes attributes{{"function", std::string(function)}};
    attributes.set(function == "normal" ? "mean" : "low", 0.0);
    attributes.set(function == "normal" ? "scale" : "high", 1.0);
    if (const TensorId x = t.optionalTensor(0, "self"); x != kNoTensor)
        return generate(t, std::move(attributes),
                        {t.dtype(1, "dtype").value_or(t.typeOf(x)), t.shape(x)});
    generate(t, std::move(attributes),
             {t.dtype(1, "dtype").value_or(DType::F32), t.intsFrom(0, "size")});
}

/// Each element 1 with the probability that the operand holds.
void bernoulli(Translation& t, std::string_view) {
    t.result(OpKind::Elementwise, {{"function", std::string("random")}}, {t.tensor(0, "self")});
}

/// self.NAME: what it is may be said here, or by the op that lifts it.
void attribute(Translation& t, std::string_view) {
    const std::string path = t.text(0, "path");
    const auto spec = t.declared(0);
    if (!spec) return t.value(Value::ofText(path));
    const bool weight = path.find("param") != std::string::npos || path.ends_with("weight") ||
                        path.ends_with("bias");
    t.resultAs(weight && isFloat(spec->dtype) ? OpKind::Parameter : OpKind::Constant, {}, {},
               *spec);
}

} // namespace

std::vector<Rule> sourceRules() {
    return {
        {"zeros", sized, "zeros"},
        {"ones", sized, "ones"},
        {"empty", sized, "empty"},
        {"empty_strided", sized, "empty"},
        {"empty_permuted", sized, "empty"},
        {"full", full},
        {"zeros_like", like, "zeros"},
        {"ones_like", like, "ones"},
        {"empty_like", like, "empty"},
        {"full_like", like, "full"},
        {"fill", like, "full"},
        {"zero", like, "zeros"},
        {"new_zeros", sizedLike, "zeros"},
        {"new_ones", sizedLike, "ones"},
        {"new_empty", sizedLike, "empty"},
        {"new_empty_strided", sizedLike, "empty"},
        {"new_full", sizedLike, "full"},
        {"scalar_tensor", scalar},
        {"arange", range},
        {"iota", iota},
        {"eye", eye},
        {"rand", noise, "uniform"},
        {"randn", noise, "normal"},
        {"rand_like", noise, "uniform"},
        {"randn_like", noise, "normal"},
        {"bernoulli", bernoulli},
        {"get_attr", attribute},
    };
}

} // namespace shardlens::torch
