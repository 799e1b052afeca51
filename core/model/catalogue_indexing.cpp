// SPDX-License-Identifier: Apache-2.0
// Rows of the catalogue whose elements go where indices or positions say: gathers and scatters by
// element and by index vector, one-hot, triangles, reversed sequences, and tensors that are made
// from positions alone. A look-up in a table that is cut is masked: the parts' results add up.
#include "core/model/catalogue_rows.h"

#include <algorithm>

namespace shardlens::catalogue {
namespace {

std::size_t axisAttribute(const OpView& view, std::size_t rank) {
    return axisOf(view, view.op.attributes.integer("axis", 0), rank);
}

int add(FactorRule& rule, std::string name, std::int64_t size,
        FactorKind kind = FactorKind::Parallel) {
    return rule.addFactor(std::move(name), size, kind);
}

// --- GatherElements: result[i][j] = data[indices[i][j]][j] along axis 0 --------------------------

std::vector<TensorSpec> gatherElementsShape(const OpView& view) {
    const Shape &data = shapeOf(view, 0), &indices = shapeOf(view, 1);
    require(data.size() == indices.size(), view, "data and indices differ in rank");
    const std::size_t axis = axisAttribute(view, data.size());
    for (std::size_t d = 0; d < data.size(); ++d)
        require(d == axis || indices[d] <= data[d], view, "the indices are larger than the data");
    return {{view.inputs[0].dtype, indices}};
}

FactorRule gatherElementsRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape &data = view.inputs[0].shape, &indices = view.inputs[1].shape;
    const std::size_t axis = axisAttribute(view, data.size());
    for (std::size_t d = 0; d < data.size(); ++d) {
        const std::string name = dimName(d, data.size());
        if (d == axis) {
            rule.operands[0][d] = {add(rule, "v", data[d], FactorKind::Reduction)};
            rule.operands[1][d] = rule.results[0][d] = {add(rule, name, indices[d])};
        } else if (data[d] == indices[d]) {
            const int f = add(rule, name, data[d]);
            rule.operands[0][d] = rule.operands[1][d] = rule.results[0][d] = {f};
        } else { // the first entries of the data
            rule.operands[0][d] = {add(rule, "in_" + name, data[d], FactorKind::Replicate)};
            const int f = add(rule, "out_" + name, indices[d], FactorKind::Replicate);
            rule.operands[1][d] = rule.results[0][d] = {f};
        }
    }
    return rule;
}

// --- index vectors: data[B.., K.., R..], indices[B.., I.., n] with n dims in K -------------------

struct Vectors {
    std::size_t batch = 0;   ///< dims of B
    std::size_t indexed = 0; ///< dims of K
    Shape entries;           ///< B.., I..
    Shape rest;              ///< R..
};

Vectors vectorsOf(const OpView& view) {
    const Shape &data = shapeOf(view, 0), &indices = shapeOf(view, 1);
    require(!indices.empty() && !data.empty(), view, "data and indices need a dimension");
    const std::int64_t batch = view.op.attributes.integer("batch_dims", 0), n = indices.back();
    const auto rank = static_cast<std::int64_t>(data.size());
    require(batch >= 0 && n >= 1 && batch + n <= rank &&
                batch < static_cast<std::int64_t>(indices.size()),
            view, "the indices do not fit the data");
    require(std::equal(data.begin(), data.begin() + batch, indices.begin()), view,
            "data and indices differ in their batch dimensions");
    return {static_cast<std::size_t>(batch),
            static_cast<std::size_t>(n),
            {indices.begin(), indices.end() - 1},
            {data.begin() + batch + n, data.end()}};
}

std::vector<TensorSpec> gatherNdShape(const OpView& view) {
    const Vectors v = vectorsOf(view);
    Shape shape = v.entries;
    shape.insert(shape.end(), v.rest.begin(), v.rest.end());
    return {{view.inputs[0].dtype, shape}};
}

FactorRule gatherNdRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Vectors v = vectorsOf(view);
    const Shape& data = view.inputs[0].shape;
    const std::size_t rank = view.outputs[0].shape.size();
    for (std::size_t d = 0; d < v.entries.size(); ++d) {
        const int f = add(rule, dimName(d, rank), v.entries[d]);
        rule.operands[1][d] = rule.results[0][d] = {f};
        if (d < v.batch) rule.operands[0][d] = {f};
    }
    for (std::size_t d = v.batch; d < v.batch + v.indexed; ++d)
        rule.operands[0][d] = {add(rule, fmt::format("v{}", d), data[d], FactorKind::Reduction)};
    for (std::size_t d = 0; d < v.rest.size(); ++d) {
        const std::size_t out = v.entries.size() + d;
        const int f = add(rule, dimName(out, rank), v.rest[d]);
        rule.operands[0][v.batch + v.indexed + d] = rule.results[0][out] = {f};
    }
    rule.operands[1].back() = {
        add(rule, "vector", static_cast<std::int64_t>(v.indexed), FactorKind::Replicate)};
    return rule;
}

// --- Scatter ------------------------------------------------------------------------------------
// A part of the data takes the updates that fall into it, whatever the reduction is. A part of the
// updates makes a partial result if updates are added; in any other mode their order is lost.

std::vector<TensorSpec> scatterShape(const OpView& view) {
    const Shape &data = shapeOf(view, 0), &updates = shapeOf(view, 2);
    const std::string mode = view.op.attributes.text("mode", "elements");
    if (mode == "nd") {
        const Vectors v = vectorsOf(view);
        Shape wanted = v.entries;
        wanted.insert(wanted.end(), v.rest.begin(), v.rest.end());
        require(updates == wanted, view, "the updates do not fit data and indices");
        return {view.inputs[0]};
    }
    require(data.size() == updates.size(), view, "data and updates differ in rank");
    const std::size_t axis = axisAttribute(view, data.size());
    if (mode == "elements") {
        require(shapeOf(view, 1) == updates, view, "indices and updates differ in shape");
        for (std::size_t d = 0; d < data.size(); ++d)
            require(d == axis || updates[d] <= data[d], view, "the updates exceed the data");
        return {view.inputs[0]};
    }
    require(mode == "cache", view, "the mode of a scatter is elements, nd or cache");
    require(axis > 0, view, "the batch dimension of a cache is not written along");
    for (std::size_t d = 0; d < data.size(); ++d)
        require(d == axis ? updates[d] <= data[d] : updates[d] == data[d], view,
                "the updates do not fit the cache");
    require(!view.hasInput(1) || shapeOf(view, 1) == Shape{data[0]}, view,
            "the write indices need one entry a batch entry");
    return {view.inputs[0]};
}

FactorKind updatesKind(const OpView& view) {
    return view.op.attributes.text("reduction", "none") == "add" ? FactorKind::Reduction
                                                                 : FactorKind::Replicate;
}

void scatterNdFactors(FactorRule& rule, const OpView& view) {
    const Vectors v = vectorsOf(view);
    const Shape& data = view.inputs[0].shape;
    for (std::size_t d = 0; d < data.size(); ++d) {
        const int f = add(rule, dimName(d, data.size()), data[d]);
        rule.operands[0][d] = rule.results[0][d] = {f};
        if (d >= v.indexed) rule.operands[2][v.entries.size() + d - v.indexed] = {f};
    }
    for (std::size_t d = 0; d < v.entries.size(); ++d)
        rule.operands[1][d] = rule.operands[2][d] = {
            add(rule, fmt::format("u{}", d), v.entries[d], updatesKind(view))};
    rule.operands[1].back() = {
        add(rule, "vector", static_cast<std::int64_t>(v.indexed), FactorKind::Replicate)};
}

/// Elements and caches: one axis is written along, the other dims line up.
void scatterAxisFactors(FactorRule& rule, const OpView& view, bool cache) {
    const Shape &data = view.inputs[0].shape, &updates = view.inputs[2].shape;
    const std::size_t axis = axisAttribute(view, data.size());
    for (std::size_t d = 0; d < data.size(); ++d) {
        const bool same = d != axis && updates[d] == data[d];
        const bool cut = d == axis || same; // entries beyond the updates stay where they are
        const int f = add(rule, dimName(d, data.size()), data[d],
                          cut ? FactorKind::Parallel : FactorKind::Replicate);
        rule.operands[0][d] = rule.results[0][d] = {f};
        const FactorKind kind = d == axis && !cache ? updatesKind(view) : FactorKind::Replicate;
        const DimFactors own =
            same ? DimFactors{f} : DimFactors{add(rule, fmt::format("u{}", d), updates[d], kind)};
        rule.operands[2][d] = own;
        if (!cache) rule.operands[1][d] = own;
    }
    if (cache && view.hasInput(1)) rule.operands[1][0] = rule.operands[0][0];
}

FactorRule scatterRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const std::string mode = view.op.attributes.text("mode", "elements");
    if (mode == "nd")
        scatterNdFactors(rule, view);
    else
        scatterAxisFactors(rule, view, mode == "cache");
    rule.addedOnce = {0}; // the data themselves are not part of every part's updates
    return rule;
}

SavedTensors scatterSaved(const OpView& view) {
    const std::string reduction = view.op.attributes.text("reduction", "none");
    if (reduction == "none" || reduction == "add") return saveIndices(view);
    SavedTensors saved = saveOperands(view);
    saved.results[0] = true;
    return saved;
}

double scatterBytes(const OpView& view, const FactorRule&) {
    return 2 * bytesOf(view.inputs[0]) + 2 * bytesOf(view.inputs[2]);
}

// --- OneHot: every device makes its own part of the new dimension -------------------------------

std::size_t oneHotAxis(const OpView& view) {
    return axisAttribute(view, shapeOf(view, 0).size() + 1);
}

std::vector<TensorSpec> oneHotShape(const OpView& view) {
    Shape shape = shapeOf(view, 0);
    require(elementsOf(shapeOf(view, 1)) == 2, view, "the values must be two: off and on");
    const std::int64_t depth = view.op.attributes.integer("depth", -1);
    require(depth >= 0, view, "the depth is missing or negative");
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(oneHotAxis(view)), depth);
    return {{view.inputs[1].dtype, shape}};
}

FactorRule oneHotRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape& out = view.outputs[0].shape;
    const std::size_t axis = oneHotAxis(view);
    for (std::size_t d = 0; d < out.size(); ++d) {
        const int f = add(rule, d == axis ? "depth" : dimName(d, out.size()), out[d]);
        rule.results[0][d] = {f};
        if (d != axis) rule.operands[0][d < axis ? d : d - 1] = {f};
    }
    addOwnFactors(rule, rule.operands[1], view.inputs[1].shape, FactorKind::Replicate, "values");
    return rule;
}

// --- Generate, Trilu, ReverseSequence -----------------------------------------------------------

std::vector<TensorSpec> generateShape(const OpView& view) {
    const auto dtype = dtypeFromName(view.op.attributes.text("to", "f32"));
    if (!dtype) fail(view, "the element type is not known");
    const Shape shape = view.op.attributes.integers("shape");
    require(std::ranges::all_of(shape, [](auto d) { return d >= 0; }), view, "a size is negative");
    return {{*dtype, shape}};
}

FactorRule generateRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    addOwnFactors(rule, rule.results[0], view.outputs[0].shape, FactorKind::Parallel);
    return rule;
}

FactorRule triluRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape& shape = view.inputs[0].shape;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (shape[d] > 1)
            rule.operands[0][d] =
                rule.results[0][d] = {add(rule, dimName(d, shape.size()), shape[d])};
    return rule;
}

std::vector<TensorSpec> triluShape(const OpView& view) {
    require(shapeOf(view, 0).size() >= 2, view, "a triangle needs a matrix");
    return {view.inputs[0]};
}

std::vector<TensorSpec> reverseSequenceShape(const OpView& view) {
    const Shape& shape = shapeOf(view, 0);
    const std::size_t batch =
        axisOf(view, view.op.attributes.integer("batch_axis", 1), shape.size());
    const std::size_t time = axisOf(view, view.op.attributes.integer("time_axis", 0), shape.size());
    require(batch != time && shapeOf(view, 1) == Shape{shape[batch]}, view,
            "the lengths do not fit the batch");
    return {view.inputs[0]};
}

FactorRule reverseSequenceRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape& shape = view.inputs[0].shape;
    const Attributes& a = view.op.attributes;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        const bool time = d == axisOf(view, a.integer("time_axis", 0), shape.size());
        const int f = add(rule, dimName(d, shape.size()), shape[d],
                          time ? FactorKind::Replicate : FactorKind::Parallel);
        rule.operands[0][d] = rule.results[0][d] = {f};
    }
    rule.operands[1][0] = rule.operands[0][axisOf(view, a.integer("batch_axis", 1), shape.size())];
    return rule;
}

} // namespace

std::vector<Row> indexingRows() {
    using enum OpKind;
    constexpr auto kVector = ComputeClass::Vector;
    return {
        {GatherElements, gatherElementsShape, gatherElementsRule, kVector, noFlops, twiceResult,
         saveIndices},
        {GatherND, gatherNdShape, gatherNdRule, kVector, noFlops, twiceResult, saveIndices},
        {Scatter, scatterShape, scatterRule, kVector, noFlops, scatterBytes, scatterSaved},
        {OneHot, oneHotShape, oneHotRule, kVector, noFlops, nullptr,
         [](const OpView& view) {
             SavedTensors saved = saveNothing(view);
             saved.operands[0] = true;
             return saved;
         }},
        {Generate, generateShape, generateRule, kVector, noFlops},
        {Trilu, triluShape, triluRule, kVector, noFlops},
        {ReverseSequence, reverseSequenceShape, reverseSequenceRule, kVector, noFlops, nullptr,
         saveIndices},
    };
}

} // namespace shardlens::catalogue
