// SPDX-License-Identifier: Apache-2.0
// Ops whose results are made from sizes or settings alone: constants, shapes, ranges.
#include "core/import/onnx_tensor.h"
#include "core/import/onnx_translation.h"

#include <cmath>

namespace shardlens::onnx {

namespace {

using Ints = Translation::Ints;

Shape vectorOf(std::size_t length) {
    return {static_cast<std::int64_t>(length)};
}

void constant(Translation& t, std::string_view) {
    if (const TensorData* data = t.tensor("value"))
        return t.source(data->spec(), data->ints, data->floats, true);
    if (t.hasAttribute("value_int"))
        return t.source({DType::I64, {}}, KnownInts{t.integer("value_int", 0)}, {}, false);
    if (t.hasAttribute("value_float"))
        return t.source({DType::F32, {}}, {}, std::vector<double>{t.number("value_float", 0)},
                        false);
    if (const auto values = t.integers("value_ints"))
        return t.source({DType::I64, vectorOf(values->size())}, values, {}, false);
    if (const Attribute* values = t.attribute("value_floats"))
        return t.source({DType::F32, vectorOf(values->numbers.size())}, {}, values->numbers, true);
    if (t.hasAttribute("value_string")) return t.source({DType::String, {}}, {}, {}, false);
    if (const Attribute* values = t.attribute("value_strings"))
        return t.source({DType::String, vectorOf(values->texts.size())}, {}, {}, false);
    t.opaque(); // a sparse tensor
}

/// Exporters of test models write weights like this: what depends on no input may be trained.
void constantOfShape(Translation& t, std::string_view) {
    const KnownInts* sizes = t.ints(0);
    if (sizes == nullptr) return t.opaque();
    const TensorData* value = t.tensor("value");
    TensorSpec spec{value != nullptr ? value->dtype : DType::F32, *sizes};
    const double elements = elementsOf(spec.shape);
    std::optional<KnownInts> ints;
    std::optional<std::vector<double>> floats;
    if (elements >= 0 && elements <= static_cast<double>(kMaxKnownInts)) {
        const auto count = static_cast<std::size_t>(elements);
        if (value == nullptr) floats.emplace(count, 0.0);
        if (value != nullptr && value->ints && value->ints->size() == 1)
            ints.emplace(count, value->ints->front());
        if (value != nullptr && value->floats && value->floats->size() == 1)
            floats.emplace(count, value->floats->front());
    }
    // No value is zero; one that is not read is that of a float type with few bits, or of a string.
    const bool readable = value == nullptr || (value->ints && value->ints->size() == 1) ||
                          (value->floats && value->floats->size() == 1);
    std::optional<Attributes> made;
    if (readable) {
        made.emplace(Attributes{{"function", std::string("constant")}});
        if (value != nullptr)
            made->set("value", value->ints ? static_cast<double>(value->ints->front())
                                           : value->floats->front());
    }
    t.source(std::move(spec), std::move(ints), std::move(floats),
             !t.dependsOnInput() && !t.builder().isBody(), std::move(made));
}

void shape(Translation& t, std::string_view) {
    if (t.dtype(0) == DType::Unknown) return t.opaque();
    const Shape& in = t.shape(0);
    const std::int64_t rank = t.rank(0);
    const auto bound = [&](std::string_view name, std::int64_t fallback) {
        const std::int64_t at = t.integer(name, fallback);
        return std::clamp<std::int64_t>(at < 0 ? std::max(at, -rank) + rank : at, 0, rank);
    };
    const std::int64_t start = bound("start", 0), end = std::max(bound("end", rank), start);
    KnownInts value(in.begin() + start, in.begin() + end);
    const TensorSpec spec{DType::I64, vectorOf(value.size())};
    t.computed(spec, std::move(value));
}

void size(Translation& t, std::string_view) {
    const double elements = elementsOf(t.shape(0));
    t.computed({DType::I64, {}}, KnownInts{static_cast<std::int64_t>(elements)});
}

/// start, limit and step as numbers; std::nullopt if one of them is not known.
std::optional<double> number(const Translation& t, std::size_t i) {
    if (const auto integer = t.scalar(i)) return static_cast<double>(*integer);
    const auto* values = t.floats(i);
    return values != nullptr && values->size() == 1 ? std::optional(values->front()) : std::nullopt;
}

void range(Translation& t, std::string_view) {
    const auto start = number(t, 0), limit = number(t, 1);
    const auto step = t.has(2) ? number(t, 2) : std::optional(1.0);
    if (!start || !limit || !step) return t.opaque();
    t.require(*step != 0, "the step of a range is zero");
    const double count = std::max(std::ceil((*limit - *start) / *step), 0.0);
    t.require(count <= static_cast<double>(kMaxDim), "the range is too long");
    const TensorSpec spec{t.dtype(0), {static_cast<std::int64_t>(count)}};
    std::optional<KnownInts> ints;
    if (const auto first = t.scalar(0);
        first && count <= static_cast<double>(kMaxKnownInts) && !isFloat(spec.dtype)) {
        ints.emplace();
        for (std::int64_t i = 0; i < spec.shape[0]; ++i)
            ints->push_back(*first + i * static_cast<std::int64_t>(*step));
    }
    t.source(spec, std::move(ints), {}, false,
             Attributes{{"function", std::string("range")}, {"start", *start}, {"step", *step}});
}

void eyeLike(Translation& t, std::string_view) {
    t.require(t.rank(0) == 2, "the operand must be a matrix");
    t.source({t.dtypeAttribute("dtype").value_or(t.dtype(0)), t.shape(0)}, {}, {}, false,
             Attributes{{"function", std::string("eye")}, {"diagonal", t.integer("k", 0)}});
}

/// Noise of a stated shape, or of that of an operand.
void random(Translation& t, std::string_view function) {
    const auto stated = t.integers("shape");
    if (!stated && !t.has(0)) return t.opaque();
    const Shape shape = stated ? *stated : t.shape(0);
    const DType dtype = t.dtypeAttribute("dtype").value_or(t.has(0) ? t.dtype(0) : DType::F32);
    Attributes made{{"function", std::string(function)}};
    const bool normal = function == "normal";
    for (const auto& [name, fallback] : {std::pair{"mean", 0.0}, std::pair{"scale", 1.0}})
        if (normal) made.set(name, t.number(name, fallback));
    for (const auto& [name, fallback] : {std::pair{"low", 0.0}, std::pair{"high", 1.0}})
        if (!normal) made.set(name, t.number(name, fallback));
    if (t.hasAttribute("seed")) made.set("seed", t.number("seed", 0));
    t.source({dtype, shape}, {}, {}, false, std::move(made));
}

void nonZero(Translation& t, std::string_view) {
    const Shape in = t.shape(0);
    const double most = elementsOf(in);
    const auto known = t.builder().known().elements(t.input(0));
    if (!known) {
        t.builder().import().report.dataDependent(t.type());
        return t.opaque({TensorSpec{DType::I64, {t.rank(0), static_cast<std::int64_t>(most)}}});
    }
    std::vector<Ints> rows(in.size());
    std::int64_t found = 0;
    for (std::size_t i = 0; i < known->size(); ++i) {
        if (std::visit([](auto v) { return v == 0; }, (*known)[i])) continue;
        ++found;
        auto rest = static_cast<std::int64_t>(i);
        for (std::size_t d = in.size(); d-- > 0; rest /= in[d]) rows[d].push_back(rest % in[d]);
    }
    KnownInts value;
    for (const Ints& row : rows) value.insert(value.end(), row.begin(), row.end());
    t.computed({DType::I64, {t.rank(0), found}}, std::move(value));
}

} // namespace

std::vector<Rule> constantRules() {
    return {
        {"Constant", constant},
        {"ConstantOfShape", constantOfShape},
        {"Shape", shape, {}, true},
        {"Size", size},
        {"Range", range},
        {"EyeLike", eyeLike},
        {"RandomNormal", random, "normal"},
        {"RandomUniform", random, "uniform"},
        {"RandomNormalLike", random, "normal"},
        {"RandomUniformLike", random, "uniform"},
        {"NonZero", nonZero},
    };
}

} // namespace shardlens::onnx
