// SPDX-License-Identifier: Apache-2.0
// Rows of the catalogue that move data without computing: gather, transpose, reshape, expand,
// concat, split, slice, pad, tile.
#include "core/model/catalogue_rows.h"

#include <algorithm>
#include <numeric>

namespace shardlens::catalogue {
namespace {

using Ints = std::vector<std::int64_t>;

/// Dims pass from operand 0 to every result where `passes(d)`; the others get own factors of
/// `kind` on each side.
template <typename Passes>
FactorRule passThrough(const OpView& view, FactorKind kind, Passes passes) {
    FactorRule rule = emptyRule(view);
    const Shape& in = view.inputs[0].shape;
    for (std::size_t d = 0; d < in.size(); ++d) {
        if (passes(d)) {
            if (in[d] == 1) continue;
            const int f = rule.addFactor(dimName(d, in.size()), in[d]);
            for (auto& dims : rule.operands)
                if (dims.size() == in.size()) dims[d] = {f};
            for (auto& dims : rule.results) dims[d] = {f};
            continue;
        }
        const auto whole = [&](const char* side, std::size_t i, std::int64_t size) {
            return DimFactors{
                rule.addFactor(fmt::format("{}{}_{}", side, i, dimName(d, in.size())), size, kind)};
        };
        for (std::size_t i = 0; i < rule.operands.size(); ++i)
            if (rule.operands[i].size() == in.size())
                rule.operands[i][d] = whole("in", i, view.inputs[i].shape[d]);
        for (std::size_t r = 0; r < rule.results.size(); ++r)
            rule.results[r][d] = whole("out", r, view.outputs[r].shape[d]);
    }
    return rule;
}

// --- Gather -------------------------------------------------------------------------------------

std::size_t gatherAxis(const OpView& view) {
    return axisOf(view, view.op.attributes.integer("axis", 0), shapeOf(view, 0).size());
}

std::vector<TensorSpec> gatherShape(const OpView& view) {
    const std::size_t axis = gatherAxis(view);
    const Shape &table = shapeOf(view, 0), &indices = shapeOf(view, 1);
    Shape shape(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(axis));
    shape.insert(shape.end(), indices.begin(), indices.end());
    shape.insert(shape.end(), table.begin() + static_cast<std::ptrdiff_t>(axis) + 1, table.end());
    return {{view.inputs[0].dtype, shape}};
}

FactorRule gatherRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const std::size_t axis = gatherAxis(view);
    const Shape &table = view.inputs[0].shape, &indices = view.inputs[1].shape;
    const std::size_t rank = view.outputs[0].shape.size();
    for (std::size_t d = 0; d < table.size(); ++d) {
        if (d == axis) {
            // A masked look-up in the local part of the table; the sum over the parts is the row.
            rule.operands[0][d] = {rule.addFactor("v", table[d], FactorKind::Reduction)};
            continue;
        }
        const std::size_t out = d < axis ? d : d - 1 + indices.size();
        rule.operands[0][d] = rule.results[0][out] = {rule.addFactor(dimName(out, rank), table[d])};
    }
    for (std::size_t d = 0; d < indices.size(); ++d)
        rule.operands[1][d] =
            rule.results[0][axis + d] = {rule.addFactor(dimName(axis + d, rank), indices[d])};
    return rule;
}

// --- Transpose ----------------------------------------------------------------------------------

std::vector<TensorSpec> transposeShape(const OpView& view) {
    const Ints perm = view.op.attributes.integers("perm");
    const Shape& in = shapeOf(view, 0);
    require(perm.size() == in.size(), view, "perm and the operand's rank differ");
    std::vector<bool> seen(in.size(), false);
    Shape shape;
    for (const std::int64_t p : perm) {
        const std::size_t d = axisOf(view, p, in.size());
        require(!seen[d], view, "perm names a dimension twice");
        seen[d] = true;
        shape.push_back(in[d]);
    }
    return {{view.inputs[0].dtype, shape}};
}

FactorRule transposeRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Ints perm = view.op.attributes.integers("perm");
    const Shape& in = view.inputs[0].shape;
    for (std::size_t out = 0; out < perm.size(); ++out) {
        const auto d = static_cast<std::size_t>(perm[out]);
        if (in[d] > 1)
            rule.operands[0][d] =
                rule.results[0][out] = {rule.addFactor(dimName(d, in.size()), in[d])};
    }
    return rule;
}

// --- Reshape: factors by walking both shapes and matching products ------------------------------

std::vector<TensorSpec> reshapeShape(const OpView& view) {
    const Ints shape = view.op.attributes.integers("shape");
    require(std::ranges::all_of(shape, [](auto d) { return d >= 0; }), view,
            "the target shape has a negative size");
    if (elementsOf(shape) != elementsOf(shapeOf(view, 0)))
        fail(view, fmt::format("cannot reshape {} to {}", toString(view.inputs[0].shape),
                               toString(shape)));
    return {{view.inputs[0].dtype, shape}};
}

/// Walks operand and result dims from the left; equal parts become shared factors, major first.
/// Where sizes share no whole part the greatest common divisor is kept and the rest of the group
/// must stay whole (6x4 -> 4x6 keeps the factor 2).
FactorRule reshapeRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape &in = view.inputs[0].shape, &out = view.outputs[0].shape;
    std::size_t i = 0, j = 0;
    std::int64_t a = 1, b = 1; // what is left of in[i] and out[j]
    int serial = 0;
    const auto name = [&] { return fmt::format("f{}", serial++); };
    if (elementsOf(in) == 0) return rule;
    while (true) {
        while (a == 1 && i < in.size()) a = in[i++];
        while (b == 1 && j < out.size()) b = out[j++];
        if (a == 1 && b == 1) break;
        auto& inDim = rule.operands[0][i - 1];
        auto& outDim = rule.results[0][j - 1];
        const std::int64_t common = std::gcd(a, b);
        if (common == std::min(a, b)) {
            const int f = rule.addFactor(name(), common);
            inDim.push_back(f);
            outDim.push_back(f);
            a /= common;
            b /= common;
            continue;
        }
        if (common > 1) {
            const int f = rule.addFactor(name(), common);
            inDim.push_back(f);
            outDim.push_back(f);
        }
        // The rest of this group does not line up: consume whole dims until the products meet.
        std::int64_t restIn = a / common, restOut = b / common;
        inDim.push_back(rule.addFactor(name(), restIn, FactorKind::Replicate));
        outDim.push_back(rule.addFactor(name(), restOut, FactorKind::Replicate));
        while (restIn != restOut) {
            if (restIn < restOut) {
                rule.operands[0][i].push_back(rule.addFactor(name(), in[i], FactorKind::Replicate));
                restIn *= in[i++];
            } else {
                rule.results[0][j].push_back(rule.addFactor(name(), out[j], FactorKind::Replicate));
                restOut *= out[j++];
            }
        }
        a = b = 1;
    }
    // Speak of dims by their usual names where a whole result or operand dim is one factor.
    for (std::size_t d = 0; d < out.size(); ++d)
        if (rule.results[0][d].size() == 1 && out.size() >= in.size())
            rule.factors[static_cast<std::size_t>(rule.results[0][d][0])].name =
                dimName(d, out.size());
    for (std::size_t d = 0; d < in.size(); ++d)
        if (rule.operands[0][d].size() == 1 && in.size() > out.size())
            rule.factors[static_cast<std::size_t>(rule.operands[0][d][0])].name =
                dimName(d, in.size());
    return rule;
}

// --- Expand, Tile -------------------------------------------------------------------------------

std::vector<TensorSpec> expandShape(const OpView& view) {
    return {{view.inputs.at(0).dtype,
             broadcastShapes(view, shapeOf(view, 0), view.op.attributes.integers("shape"))}};
}

FactorRule expandRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape &in = view.inputs[0].shape, &out = view.outputs[0].shape;
    const std::size_t lead = out.size() - in.size();
    for (std::size_t d = 0; d < out.size(); ++d) {
        if (out[d] == 1) continue;
        const int f = rule.addFactor(dimName(d, out.size()), out[d]);
        rule.results[0][d] = {f};
        if (d >= lead && in[d - lead] == out[d]) rule.operands[0][d - lead] = {f};
    }
    return rule;
}

std::vector<TensorSpec> tileShape(const OpView& view) {
    const Ints repeats = view.op.attributes.integers("repeats");
    Shape shape = shapeOf(view, 0);
    require(repeats.size() == shape.size(), view, "repeats and the operand's rank differ");
    for (std::size_t d = 0; d < shape.size(); ++d) shape[d] *= repeats[d];
    return {{view.inputs[0].dtype, shape}};
}

FactorRule sameSizePasses(const OpView& view, FactorKind kind) {
    return passThrough(view, kind, [&](std::size_t d) {
        return view.inputs[0].shape[d] == view.outputs[0].shape[d];
    });
}

FactorRule tileRule(const OpView& view) {
    return sameSizePasses(view, FactorKind::Replicate);
}

// --- Concat, Split, Slice, Pad ------------------------------------------------------------------

std::vector<TensorSpec> concatShape(const OpView& view) {
    Shape shape = shapeOf(view, 0);
    const std::size_t axis = axisOf(view, view.op.attributes.integer("axis", 0), shape.size());
    for (std::size_t i = 1; i < view.inputs.size(); ++i) {
        const Shape& other = shapeOf(view, i);
        if (other.size() != shape.size())
            fail(view, fmt::format("operand {} has rank {}, operand 0 rank {}", i, other.size(),
                                   shape.size()));
        for (std::size_t d = 0; d < shape.size(); ++d)
            if (d != axis && other[d] != shape[d])
                fail(view, fmt::format("operand shapes {} and {} differ off the axis",
                                       toString(view.inputs[0].shape), toString(other)));
        shape[axis] += other[axis];
    }
    return {{view.inputs[0].dtype, shape}};
}

FactorRule axisWholeRule(const OpView& view) {
    const std::size_t axis =
        axisOf(view, view.op.attributes.integer("axis", 0), view.inputs[0].shape.size());
    return passThrough(view, FactorKind::Replicate, [axis](std::size_t d) { return d != axis; });
}

std::vector<TensorSpec> splitShape(const OpView& view) {
    const Shape& in = shapeOf(view, 0);
    const std::size_t axis = axisOf(view, view.op.attributes.integer("axis", 0), in.size());
    const Ints sizes = view.op.attributes.integers("sizes");
    require(!sizes.empty() &&
                std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) == in[axis],
            view, "the parts do not add up to the dimension");
    std::vector<TensorSpec> results;
    for (const std::int64_t size : sizes) {
        results.push_back({view.inputs[0].dtype, in});
        results.back().shape[axis] = size;
    }
    return results;
}

std::vector<TensorSpec> sliceShape(const OpView& view) {
    Shape shape = shapeOf(view, 0);
    const Attributes& a = view.op.attributes;
    const Ints starts = a.integers("starts"), ends = a.integers("ends"), axes = a.integers("axes"),
               steps = a.integers("steps");
    require(starts.size() == axes.size() && ends.size() == axes.size() &&
                steps.size() == axes.size(),
            view, "starts, ends, axes and steps differ in length");
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::int64_t size = shape[axisOf(view, axes[i], shape.size())], step = steps[i];
        require(step != 0, view, "a slice step is zero");
        const auto clamp = [&](std::int64_t x) {
            if (x < 0) x = x < -size ? -1 : x + size;
            return step > 0 ? std::clamp<std::int64_t>(x, 0, size)
                            : std::clamp<std::int64_t>(x, -1, size - 1);
        };
        const std::int64_t from = starts[i] < -size && step > 0 ? 0 : clamp(starts[i]);
        const std::int64_t to = ends[i] < -size && step > 0 ? 0 : clamp(ends[i]);
        const std::int64_t span = step > 0 ? to - from : from - to;
        const std::int64_t stride = step > 0 ? step : -step;
        shape[axisOf(view, axes[i], shape.size())] = span <= 0 ? 0 : 1 + (span - 1) / stride;
    }
    return {{view.inputs[0].dtype, shape}};
}

/// A dimension passes where nothing moves; a reversed one keeps its size, but its parts change
/// places.
FactorRule sliceRule(const OpView& view) {
    const Ints axes = view.op.attributes.integers("axes"),
               steps = view.op.attributes.integers("steps");
    return passThrough(view, FactorKind::Permutation, [&](std::size_t d) {
        if (view.inputs[0].shape[d] != view.outputs[0].shape[d]) return false;
        for (std::size_t i = 0; i < axes.size(); ++i)
            if (axisOf(view, axes[i], view.inputs[0].shape.size()) == d && steps[i] != 1)
                return false;
        return true;
    });
}

std::vector<TensorSpec> padShape(const OpView& view) {
    Shape shape = shapeOf(view, 0);
    const Ints pads = view.op.attributes.integers("pads");
    require(pads.size() == 2 * shape.size(), view, "pads must have two entries a dimension");
    for (std::size_t d = 0; d < shape.size(); ++d) shape[d] += pads[d] + pads[d + shape.size()];
    require(std::ranges::all_of(shape, [](auto d) { return d >= 0; }), view,
            "padding makes a dimension negative");
    return {{view.inputs[0].dtype, shape}};
}

/// Padding one end and cutting the other keeps the size, but moves everything.
FactorRule padRule(const OpView& view) {
    const Ints pads = view.op.attributes.integers("pads");
    const std::size_t rank = view.inputs[0].shape.size();
    return passThrough(view, FactorKind::Permutation,
                       [&](std::size_t d) { return pads[d] == 0 && pads[d + rank] == 0; });
}

} // namespace

std::vector<Row> movementRows() {
    using enum OpKind;
    constexpr auto kVector = ComputeClass::Vector;
    return {
        {Gather, gatherShape, gatherRule, kVector, noFlops, twiceResult, saveIndices},
        {Transpose, transposeShape, transposeRule, kVector, noFlops},
        {Reshape, reshapeShape, reshapeRule, ComputeClass::None, noFlops},
        {Expand, expandShape, expandRule, ComputeClass::None, noFlops},
        {Tile, tileShape, tileRule, kVector, noFlops},
        {Concat, concatShape, axisWholeRule, kVector, noFlops},
        {Split, splitShape, axisWholeRule, ComputeClass::None, noFlops},
        {Slice, sliceShape, sliceRule, kVector, noFlops, twiceResult},
        {Pad, padShape, padRule, kVector, noFlops},
    };
}

} // namespace shardlens::catalogue
