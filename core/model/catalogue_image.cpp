// SPDX-License-Identifier: Apache-2.0
// Rows of the catalogue that resample images or look at a neighbourhood of channels. The dimensions
// whose sizes change stay whole; batch and channels pass.
#include "core/model/catalogue_rows.h"

#include <algorithm>

namespace shardlens::catalogue {
namespace {

// --- LocalNorm: a window of channels, so that a cut would need its neighbours' channels ---------

std::vector<TensorSpec> localNormShape(const OpView& view) {
    require(shapeOf(view, 0).size() >= 2, view, "the operand needs channels");
    require(view.op.attributes.integer("size", 1) > 0, view, "the window is empty");
    return {view.inputs[0]};
}

FactorRule localNormRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape& shape = view.inputs[0].shape;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        const std::string name = d == 0 ? "b" : d == 1 ? "c" : fmt::format("x{}", d - 2);
        const int f =
            rule.addFactor(name, shape[d], d == 1 ? FactorKind::Permutation : FactorKind::Parallel);
        rule.operands[0][d] = rule.results[0][d] = {f};
    }
    return rule;
}

double localNormFlops(const OpView& view, const FactorRule&) {
    return elementsOf(view.outputs[0].shape) *
           (10.0 + 2.0 * static_cast<double>(view.op.attributes.integer("size", 1)));
}

// --- Resize -------------------------------------------------------------------------------------

std::vector<TensorSpec> resizeShape(const OpView& view) {
    const Shape& in = shapeOf(view, 0);
    const Shape sizes = view.op.attributes.integers("sizes");
    require(sizes.size() == in.size() && view.op.attributes.numbers("scales").size() == in.size(),
            view, "sizes and scales must have an entry a dimension");
    require(std::ranges::all_of(sizes, [](auto d) { return d >= 0; }), view, "a size is negative");
    return {{view.inputs[0].dtype, sizes}};
}

FactorRule resizeRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape &in = view.inputs[0].shape, &out = view.outputs[0].shape;
    const std::vector<double> scales = view.op.attributes.numbers("scales");
    // These two map places even where sizes stay.
    const bool placed = view.op.attributes.text("coordinates").starts_with("tf_");
    for (std::size_t d = 0; d < in.size(); ++d) {
        const std::string name = dimName(d, in.size());
        if (in[d] == out[d] && scales[d] == 1 && !placed) {
            rule.operands[0][d] = rule.results[0][d] = {rule.addFactor(name, in[d])};
            continue;
        }
        rule.operands[0][d] = {rule.addFactor("in_" + name, in[d], FactorKind::Replicate)};
        rule.results[0][d] = {rule.addFactor("out_" + name, out[d], FactorKind::Replicate)};
    }
    return rule;
}

double resizeFlops(const OpView& view, const FactorRule&) {
    return 8 * elementsOf(view.outputs[0].shape);
}

// --- GridSample: every point of the result looks anywhere in its image --------------------------

std::vector<TensorSpec> gridSampleShape(const OpView& view) {
    const Shape &x = shapeOf(view, 0), &grid = shapeOf(view, 1);
    require(x.size() == 4 && grid.size() == 4 && grid[3] == 2 && grid[0] == x[0], view,
            "grid sampling needs x[b,C,h,w] and grid[b,h,w,2]");
    return {{view.inputs[0].dtype, {x[0], x[1], grid[1], grid[2]}}};
}

FactorRule gridSampleRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape &x = view.inputs[0].shape, &grid = view.inputs[1].shape;
    const int b = rule.addFactor("b", x[0]), c = rule.addFactor("c", x[1]);
    const int h = rule.addFactor("h", grid[1]), w = rule.addFactor("w", grid[2]);
    const int inH = rule.addFactor("in_h", x[2], FactorKind::Replicate);
    const int inW = rule.addFactor("in_w", x[3], FactorKind::Replicate);
    const int xy = rule.addFactor("xy", 2, FactorKind::Replicate);
    rule.operands[0] = {{b}, {c}, {inH}, {inW}};
    rule.operands[1] = {{b}, {h}, {w}, {xy}};
    rule.results[0] = {{b}, {c}, {h}, {w}};
    return rule;
}

// --- RoiAlign: every region looks anywhere in its image -----------------------------------------

std::vector<TensorSpec> roiAlignShape(const OpView& view) {
    const Shape &x = shapeOf(view, 0), &regions = shapeOf(view, 1);
    require(x.size() == 4 && regions.size() == 2 && regions[1] == 4 &&
                shapeOf(view, 2) == Shape{regions[0]},
            view, "regions need x[b,C,h,w], regions[r,4] and image[r]");
    const std::int64_t height = view.op.attributes.integer("height", 1),
                       width = view.op.attributes.integer("width", 1);
    require(height > 0 && width > 0, view, "regions need a height and a width");
    return {{view.inputs[0].dtype, {regions[0], x[1], height, width}}};
}

FactorRule roiAlignRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape &x = view.inputs[0].shape, &y = view.outputs[0].shape;
    const int r = rule.addFactor("r", y[0]), c = rule.addFactor("c", x[1]);
    const auto whole = [&](const char* name, std::int64_t size) {
        return DimFactors{rule.addFactor(name, size, FactorKind::Replicate)};
    };
    rule.operands[0] = {whole("images", x[0]), {c}, whole("in_h", x[2]), whole("in_w", x[3])};
    rule.operands[1] = {{r}, whole("corners", 4)};
    rule.operands[2] = {{r}};
    rule.results[0] = {{r}, {c}, whole("h", y[2]), whole("w", y[3])};
    return rule;
}

/// Four pixels a sample; where the samples follow from the regions, four samples a bin are assumed.
double roiAlignFlops(const OpView& view, const FactorRule&) {
    const auto ratio = static_cast<double>(view.op.attributes.integer("sampling_ratio", 0));
    return 8 * (ratio > 0 ? ratio * ratio : 4) * elementsOf(view.outputs[0].shape);
}

} // namespace

std::vector<Row> imageRows() {
    using enum OpKind;
    constexpr auto kVector = ComputeClass::Vector;
    return {
        {LocalNorm, localNormShape, localNormRule, kVector, localNormFlops, nullptr, saveOperands},
        {Resize, resizeShape, resizeRule, kVector, resizeFlops},
        {GridSample, gridSampleShape, gridSampleRule, kVector, resizeFlops, nullptr, saveOperands},
        {RoiAlign, roiAlignShape, roiAlignRule, kVector, roiAlignFlops, nullptr, saveOperands},
    };
}

} // namespace shardlens::catalogue
