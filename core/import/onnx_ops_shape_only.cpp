// SPDX-License-Identifier: Apache-2.0
// Ops that stay opaque to the planner (replicated, shown as such) but whose result shapes follow
// from the operands, so that everything behind them is still understood.
#include "core/import/onnx_tensor.h"
#include "core/import/onnx_translation.h"

#include <algorithm>
#include <cmath>

namespace shardlens::onnx {

namespace {

using Ints = Translation::Ints;
using Specs = std::vector<std::optional<TensorSpec>>;

void likeFirst(Translation& t, std::string_view) {
    t.opaque({t.spec(0)});
}

/// Result sizes that only the data tell are taken at their largest.
void largest(Translation& t, Specs specs) {
    t.builder().import().report.dataDependent(t.type());
    t.opaque(std::move(specs));
}

void gatherElements(Translation& t, std::string_view) {
    t.opaque({TensorSpec{t.dtype(0), t.shape(1)}});
}

void gatherNd(Translation& t, std::string_view) {
    const Shape &data = t.shape(0), &indices = t.shape(1);
    const std::int64_t batch = t.integer("batch_dims", 0);
    t.require(!indices.empty() && batch >= 0 && indices.back() >= 0 &&
                  batch + indices.back() <= t.rank(0),
              "the indices do not fit the data");
    Shape shape(indices.begin(), indices.end() - 1);
    shape.insert(shape.end(), data.begin() + batch + indices.back(), data.end());
    t.opaque({TensorSpec{t.dtype(0), shape}});
}

void oneHot(Translation& t, std::string_view) {
    const auto depth = t.scalar(1);
    if (!depth) return t.opaque();
    t.require(*depth >= 0 && *depth <= kMaxDim, "the depth is out of range");
    Shape shape = t.shape(0);
    const std::int64_t axis = t.axis(t.integer("axis", -1), t.rank(0) + 1);
    shape.insert(shape.begin() + axis, *depth);
    t.opaque({TensorSpec{t.dtype(2), shape}});
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

/// LSTM, GRU and RNN: Y [s,dirs,b,h], Y_h and Y_c [dirs,b,h]; layout 1 has the batch first.
void recurrent(Translation& t, std::string_view) {
    t.require(t.rank(0) == 3 && t.rank(2) == 3, "the operands must have three dimensions");
    const Shape& x = t.shape(0);
    const std::int64_t hidden = t.integer("hidden_size", t.shape(2)[2]);
    t.require(hidden >= 0 && hidden <= kMaxDim, "hidden_size is out of range");
    const std::int64_t directions = t.text("direction", "forward") == "bidirectional" ? 2 : 1;
    const bool batchFirst = t.integer("layout", 0) != 0;
    const std::int64_t steps = x[batchFirst ? 1 : 0], batch = x[batchFirst ? 0 : 1];
    const Shape all = batchFirst ? Shape{batch, steps, directions, hidden}
                                 : Shape{steps, directions, batch, hidden};
    const Shape last =
        batchFirst ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
    const TensorSpec state{t.dtype(0), last};
    Specs specs{TensorSpec{t.dtype(0), all}, state, state};
    specs.resize(std::min(t.outputCount(), specs.size()));
    t.opaque(std::move(specs));
}

/// Sizes or scales, for all dims or (opset 18) for those named by `axes`.
void resize(Translation& t, std::string_view) {
    const bool upsample = t.node().type == "Upsample" || t.opset() < 11;
    const std::size_t scalesAt = upsample ? 1 : 2;
    const auto rank = static_cast<std::size_t>(t.rank(0));
    Ints axes(rank);
    for (std::size_t d = 0; d < rank; ++d) axes[d] = static_cast<std::int64_t>(d);
    if (const auto named = t.integers("axes")) axes = *named;
    Shape shape = t.shape(0);
    std::vector<double> scales;
    if (const Attribute* attribute = t.attribute("scales")) scales = attribute->numbers;
    if (const auto* values = t.floats(scalesAt)) scales = *values;
    const KnownInts* sizes = upsample ? nullptr : t.ints(3);
    if (sizes != nullptr && sizes->empty()) sizes = nullptr;
    if ((sizes == nullptr && scales.empty()) ||
        t.text("keep_aspect_ratio_policy", "stretch") != "stretch")
        return t.opaque();
    t.require((sizes != nullptr ? sizes->size() : scales.size()) == axes.size(),
              "scales or sizes do not fit the operand");
    for (std::size_t i = 0; i < axes.size(); ++i) {
        auto& size = shape[static_cast<std::size_t>(t.axis(axes[i], t.rank(0)))];
        const double wanted = sizes != nullptr ? static_cast<double>((*sizes)[i])
                                               : std::floor(static_cast<double>(size) * scales[i]);
        t.require(wanted >= 0 && wanted <= static_cast<double>(kMaxDim),
                  "the resized shape is out of range");
        size = static_cast<std::int64_t>(wanted);
    }
    t.opaque({TensorSpec{t.dtype(0), shape}});
}

void gridSample(Translation& t, std::string_view) {
    t.require(t.rank(0) >= 3 && t.rank(1) == t.rank(0), "image and grid do not fit");
    Shape shape = t.shape(1);
    shape.pop_back();
    shape.insert(shape.begin() + 1, t.shape(0)[1]);
    t.opaque({TensorSpec{t.dtype(0), shape}});
}

void roiAlign(Translation& t, std::string_view) {
    t.require(t.rank(0) == 4 && t.rank(1) == 2, "image and regions do not fit");
    t.opaque({TensorSpec{t.dtype(0),
                         {t.shape(1)[0], t.shape(0)[1], t.integer("output_height", 1),
                          t.integer("output_width", 1)}}});
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

void dynamicQuantize(Translation& t, std::string_view) {
    t.opaque(
        {TensorSpec{DType::U8, t.shape(0)}, TensorSpec{DType::F32, {}}, TensorSpec{DType::U8, {}}});
}

/// com.microsoft: tokens pass through experts chosen inside; the result is like the tokens.
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
        {"ScatterND", likeFirst},
        {"ScatterElements", likeFirst},
        {"Scatter", likeFirst},
        {"TensorScatter", likeFirst},
        {"Trilu", likeFirst},
        {"ReverseSequence", likeFirst},
        {"MoE", likeFirst},
        {"QMoE", likeFirst},
        {"GatherElements", gatherElements},
        {"GatherND", gatherNd},
        {"OneHot", oneHot},
        {"Compress", compress},
        {"Unique", unique},
        {"NonMaxSuppression", nonMaxSuppression},
        {"LSTM", recurrent},
        {"GRU", recurrent},
        {"RNN", recurrent},
        {"Resize", resize},
        {"Upsample", resize},
        {"GridSample", gridSample},
        {"RoiAlign", roiAlign},
        {"Multinomial", multinomial},
        {"Det", determinant},
        {"DynamicQuantizeLinear", dynamicQuantize},
        {"EmbedLayerNormalization", embedLayerNorm},
    };
}

} // namespace shardlens::onnx
