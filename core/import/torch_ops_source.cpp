// SPDX-License-Identifier: Apache-2.0
// Operators of PyTorch that make tensors out of nothing: constants, ranges, noise, and tensors that
// the module holds.
#include "core/import/torch_translation.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shardlens::torch {

namespace {

using Ints = Translation::Ints;

/// A constant as result 0, with its one number where it has but one.
void constant(Translation& t, TensorSpec spec, std::string_view function,
              std::optional<double> number) {
    const bool single = elementsOf(spec.shape) == 1;
    Attributes attributes{{"function", std::string(function)}};
    if (number && !single) attributes.set("value", *number);
    t.resultAs(OpKind::Constant, std::move(attributes), {}, std::move(spec));
    Graph& graph = t.builder().graph();
    const auto id = static_cast<OpId>(graph.ops().size() - 1);
    if (number && single) graph.setKnownReals(graph.op(id).outputs[0], {*number});
}

std::optional<double> numberOf(std::string_view function) {
    if (function == "zeros") return 0.0;
    if (function == "ones") return 1.0;
    return std::nullopt;
}

/// zeros, ones, empty: the sizes come first.
void sized(Translation& t, std::string_view function) {
    constant(t, {t.dtype(1, "dtype").value_or(DType::F32), t.intsFrom(0, "size")}, "full",
             numberOf(function));
}

void full(Translation& t, std::string_view) {
    const Value& value = t.argument(1, "fill_value");
    DType dtype = value.kind == Value::Kind::Integer   ? DType::I64
                  : value.kind == Value::Kind::Boolean ? DType::Bool
                                                       : DType::F32;
    if (const auto stated = t.dtype(2, "dtype")) dtype = *stated;
    constant(t, {dtype, t.ints(0, "size")}, "full", t.number(1, "fill_value", 0));
}

void like(Translation& t, std::string_view function) {
    const TensorId x = t.tensor(0, "self");
    const bool filled = function == "full";
    const std::optional<double> number =
        filled ? std::optional(t.number(1, "fill_value|value", 0)) : numberOf(function);
    constant(t, {t.dtype(filled ? 2 : 1, "dtype").value_or(t.typeOf(x)), t.shape(x)}, "full",
             number);
}

/// x.new_zeros(sizes)
void sizedLike(Translation& t, std::string_view function) {
    const TensorId x = t.tensor(0, "self");
    const bool filled = function == "full";
    const std::optional<double> number =
        filled ? std::optional(t.number(2, "fill_value", 0)) : numberOf(function);
    constant(t, {t.dtype(filled ? 3 : 2, "dtype").value_or(t.typeOf(x)), t.ints(1, "size")}, "full",
             number);
}

void scalar(Translation& t, std::string_view) {
    const Value& value = t.argument(0, "s");
    t.require(value.isNumber() || value.kind == Value::Kind::Boolean, "it is no number");
    const DType own = value.kind == Value::Kind::Real ? DType::F32 : DType::I64;
    constant(t, {t.dtype(1, "dtype").value_or(own), {}}, "full", value.number());
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
    Attributes attributes{{"function", std::string("arange")}, {"start", start}, {"step", step}};
    t.resultAs(OpKind::Constant, std::move(attributes), {},
               {t.dtype(99, "dtype").value_or(real ? DType::F32 : DType::I64),
                {static_cast<std::int64_t>(count)}});
}

/// prims.iota: length first.
void iota(Translation& t, std::string_view) {
    Attributes attributes{{"function", std::string("arange")},
                          {"start", t.number(1, "start", 0)},
                          {"step", t.number(2, "step", 1)}};
    t.resultAs(OpKind::Constant, std::move(attributes), {},
               {t.dtype(3, "dtype").value_or(DType::I64), {t.integer(0, "length", 0)}});
}

void eye(Translation& t, std::string_view) {
    const std::int64_t n = t.integer(0, "n", 0);
    t.resultAs(OpKind::Constant, {{"function", std::string("eye")}}, {},
               {t.dtype(99, "dtype").value_or(DType::F32), {n, t.integer(1, "m", n)}});
}

/// Noise, cut like any elementwise result.
void noise(Translation& t, std::string_view form) {
    TensorId shaped = t.optionalTensor(0, "self");
    if (form == "sized")
        shaped = t.stepAs(OpKind::Constant, {{"function", std::string("full")}}, {},
                          {t.dtype(99, "dtype").value_or(DType::F32), t.intsFrom(0, "size")});
    t.require(shaped != kNoTensor, "it has no shape");
    t.result(OpKind::Elementwise, {{"function", std::string("random")}}, {shaped});
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
        {"rand", noise, "sized"},
        {"randn", noise, "sized"},
        {"rand_like", noise, "like"},
        {"randn_like", noise, "like"},
        {"bernoulli", noise, "like"},
        {"get_attr", attribute},
    };
}

} // namespace shardlens::torch
