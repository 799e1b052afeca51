// SPDX-License-Identifier: Apache-2.0
// Ops that stay opaque to the planner (replicated, shown as such) but whose result shapes follow
// from the operands, so that everything behind them is still understood.
#include "core/import/onnx_tensor.h"
#include "core/import/onnx_translation.h"

#include <algorithm>

namespace shardlens::onnx {

namespace {

using Specs = std::vector<std::optional<TensorSpec>>;

/// Result sizes that only the data tell are taken at their largest.
void largest(Translation& t, Specs specs) {
    t.builder().import().report.dataDependent(t.type());
    t.opaque(std::move(specs));
}

void compress(Translation& t, std::string_view) {
    Shape shape = t.shape(0);
    if (t.hasAttribute("axis")) {
        const auto axis = static_cast<std::size_t>(t.axis(t.integer("axis", 0), t.rank(0)));
        shape[axis] = std::min(shape[axis], static_cast<std::int64_t>(elementsOf(t.shape(1))));
        return largest(t, {TensorSpec{t.dtype(0), shape}});
    }
    largest(t, {TensorSpec{t.dtype(0), {static_cast<std::int64_t>(elementsOf(shape))}}});
}

void unique(Translation& t, std::string_view) {
    const std::int64_t count = static_cast<std::int64_t>(elementsOf(t.shape(0)));
    Shape values{count};
    std::int64_t length = count;
    if (t.hasAttribute("axis")) {
        values = t.shape(0);
        length = values[static_cast<std::size_t>(t.axis(t.integer("axis", 0), t.rank(0)))];
    }
    const TensorSpec indices{DType::I64, {length}};
    largest(t, {TensorSpec{t.dtype(0), values}, indices, indices, indices});
}

void nonMaxSuppression(Translation& t, std::string_view) {
    const auto perClass = t.scalar(2);
    t.require(t.rank(1) == 3, "the scores must have three dimensions");
    const Shape& scores = t.shape(1);
    const std::int64_t each = std::clamp<std::int64_t>(perClass.value_or(0), 0, scores[2]);
    const double rows =
        static_cast<double>(scores[0]) * static_cast<double>(scores[1]) * static_cast<double>(each);
    t.require(rows <= static_cast<double>(kMaxDim), "the result is too large");
    largest(t, {TensorSpec{DType::I64, {static_cast<std::int64_t>(rows), 3}}});
}

void multinomial(Translation& t, std::string_view) {
    t.require(t.rank(0) == 2, "the operand must be a matrix");
    t.opaque({TensorSpec{t.dtypeAttribute("dtype").value_or(DType::I32),
                         {t.shape(0)[0], t.integer("sample_size", 1)}}});
}

void determinant(Translation& t, std::string_view) {
    t.require(t.rank(0) >= 2, "the operand must be a matrix");
    const Shape& in = t.shape(0);
    t.opaque({TensorSpec{t.dtype(0), Shape(in.begin(), in.end() - 2)}});
}

/// com.microsoft: ids, segments, tables -> their sum, normalised.
void embedLayerNorm(Translation& t, std::string_view) {
    t.require(t.rank(0) == 2 && t.rank(2) == 2, "ids and table do not fit");
    const Shape& ids = t.shape(0);
    const TensorSpec embedded{t.dtype(2), {ids[0], ids[1], t.shape(2)[1]}};
    Specs specs{embedded, TensorSpec{DType::I32, {ids[0]}}, embedded};
    specs.resize(std::min(t.outputCount(), specs.size()));
    t.opaque(std::move(specs));
}

} // namespace

std::vector<Rule> shapeOnlyRules() {
    return {
        {"Compress", compress},
        {"Unique", unique},
        {"NonMaxSuppression", nonMaxSuppression},
        {"Multinomial", multinomial},
        {"Det", determinant},
        {"EmbedLayerNormalization", embedLayerNorm},
    };
}

} // namespace shardlens::onnx
