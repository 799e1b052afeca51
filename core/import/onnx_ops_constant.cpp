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
        return t.source({DType::I64, vectorOf(values->size())}, *values, {}, false);
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
    t.source(std::move(spec), std::move(ints), std::move(floats),
             !t.dependsOnInput() && !t.builder().isBody());
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
    t.source(spec, std::move(ints), {}, false);
}

void eyeLike(Translation& t, std::string_view) {
    t.source({t.dtypeAttribute("dtype").value_or(t.dtype(0)), t.shape(0)}, {}, {}, false);
}

/// Noise of a stated shape.
void random(Translation& t, std::string_view) {
    const auto shape = t.integers("shape");
    if (!shape) return t.opaque();
    t.opaque({TensorSpec{t.dtypeAttribute("dtype").value_or(DType::F32), *shape}});
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
        {"Constant", constant},     {"ConstantOfShape", constantOfShape},
        {"Shape", shape, {}, true}, {"Size", size},
        {"Range", range},           {"EyeLike", eyeLike},
        {"RandomNormal", random},   {"RandomUniform", random},
        {"NonZero", nonZero},
    };
}

} // namespace shardlens::onnx
