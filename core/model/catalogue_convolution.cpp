// SPDX-License-Identifier: Apache-2.0
// Rows of the catalogue for convolutions and pooling. Spatial dimensions are halo exchanges
// (Permutation) unless the window is a point.
#include "core/model/catalogue_rows.h"

#include <algorithm>

namespace shardlens::catalogue {
namespace {

struct Window {
    std::vector<std::int64_t> kernel, strides, pads, dilations;
};

std::vector<std::int64_t> orDefault(std::vector<std::int64_t> values, std::size_t count,
                                    std::int64_t fallback) {
    if (values.empty()) values.assign(count, fallback);
    return values;
}

Window windowOf(const OpView& view, std::vector<std::int64_t> kernel) {
    const std::size_t n = kernel.size();
    const Attributes& a = view.op.attributes;
    Window w{std::move(kernel), orDefault(a.integers("strides"), n, 1),
             orDefault(a.integers("pads"), 2 * n, 0), orDefault(a.integers("dilations"), n, 1)};
    require(w.strides.size() == n && w.pads.size() == 2 * n && w.dilations.size() == n, view,
            "kernel, strides, pads and dilations differ in length");
    require(std::ranges::all_of(w.strides, [](auto s) { return s > 0; }) &&
                std::ranges::all_of(w.dilations, [](auto d) { return d > 0; }) &&
                std::ranges::all_of(w.kernel, [](auto k) { return k > 0; }),
            view, "kernel, strides and dilations must be positive");
    return w;
}

std::int64_t windowedSize(const OpView& view, const Window& w, std::size_t i, std::int64_t in,
                          bool ceil) {
    const std::int64_t padded = in + w.pads[i] + w.pads[i + w.kernel.size()];
    const std::int64_t span = w.dilations[i] * (w.kernel[i] - 1) + 1;
    require(padded >= span, view, "the window is larger than the padded image");
    const std::int64_t room = padded - span;
    std::int64_t out = room / w.strides[i] + 1;
    // A window that would start in the end padding is dropped (ONNX, PyTorch).
    if (ceil && room % w.strides[i] != 0 && out * w.strides[i] < in + w.pads[i]) ++out;
    return out;
}

Shape spatialOf(const Shape& shape) {
    return {shape.begin() + 2, shape.end()};
}

struct ConvDims {
    std::int64_t b, group, inPerGroup, outPerGroup;
    Shape spatial, kernel;
};

ConvDims convDims(const OpView& view, bool transposed) {
    const Shape &x = shapeOf(view, 0), &w = shapeOf(view, 1);
    require(x.size() >= 3 && w.size() == x.size(), view, "image and kernel ranks do not fit");
    const std::int64_t group = view.op.attributes.integer("group", 1);
    require(group > 0 && x[1] % group == 0 && w[0] % group == 0, view,
            "channels are not a multiple of group");
    ConvDims dims{x[0],         group,       x[1] / group, transposed ? w[1] : w[0] / group,
                  spatialOf(x), spatialOf(w)};
    const std::int64_t kernelIn = transposed ? w[0] / group : w[1];
    if (kernelIn != dims.inPerGroup)
        fail(view, fmt::format("kernel {} does not fit image {} with group {}", toString(w),
                               toString(x), group));
    return dims;
}

std::vector<TensorSpec> convShape(const OpView& view) {
    const ConvDims dims = convDims(view, false);
    const Window window = windowOf(view, dims.kernel);
    Shape shape{dims.b, dims.group * dims.outPerGroup};
    for (std::size_t i = 0; i < dims.spatial.size(); ++i)
        shape.push_back(windowedSize(view, window, i, dims.spatial[i], false));
    return {{view.inputs[0].dtype, shape}};
}

std::vector<TensorSpec> convTransposeShape(const OpView& view) {
    const ConvDims dims = convDims(view, true);
    const Window w = windowOf(view, dims.kernel);
    const auto extra =
        orDefault(view.op.attributes.integers("output_padding"), dims.spatial.size(), 0);
    require(extra.size() == dims.spatial.size(), view, "output_padding has the wrong length");
    Shape shape{dims.b, dims.group * dims.outPerGroup};
    for (std::size_t i = 0; i < dims.spatial.size(); ++i)
        shape.push_back(w.strides[i] * (dims.spatial[i] - 1) + extra[i] +
                        w.dilations[i] * (w.kernel[i] - 1) + 1 - w.pads[i] -
                        w.pads[i + dims.spatial.size()]);
    return {{view.inputs[0].dtype, shape}};
}

/// Adds the spatial factors: shared by image and result where the window is a point, else halo.
void addSpatial(FactorRule& rule, const OpView& view, const Window& window) {
    for (std::size_t i = 0; i < window.kernel.size(); ++i) {
        const bool point = window.kernel[i] == 1 && window.strides[i] == 1 && window.pads[i] == 0 &&
                           window.pads[i + window.kernel.size()] == 0;
        const std::size_t d = i + 2;
        const auto name = fmt::format("x{}", i);
        if (point) {
            const int f = rule.addFactor(name, view.outputs[0].shape[d]);
            rule.operands[0][d] = rule.results[0][d] = {f};
        } else {
            rule.operands[0][d] = {
                rule.addFactor(name, view.inputs[0].shape[d], FactorKind::Permutation)};
            rule.results[0][d] = {
                rule.addFactor("out_" + name, view.outputs[0].shape[d], FactorKind::Permutation)};
        }
    }
}

FactorRule convolutionRule(const OpView& view, bool transposed) {
    const ConvDims dims = convDims(view, transposed);
    FactorRule rule = emptyRule(view);
    const int b = rule.addFactor("b", dims.b);
    const int g = rule.addFactor("g", dims.group);
    const int c = rule.addFactor("c", dims.inPerGroup, FactorKind::Reduction);
    const int o = rule.addFactor("o", dims.outPerGroup);
    rule.operands[0][0] = rule.results[0][0] = {b};
    rule.operands[0][1] = {g, c};
    rule.results[0][1] = {g, o};
    rule.operands[1][0] = transposed ? DimFactors{g, c} : DimFactors{g, o};
    rule.operands[1][1] = transposed ? DimFactors{o} : DimFactors{c};
    if (view.hasInput(2)) {
        rule.operands[2][0] = {g, o};
        rule.addedOnce = {2};
    }
    addSpatial(rule, view, windowOf(view, dims.kernel));
    for (std::size_t i = 0; i < dims.kernel.size(); ++i)
        rule.operands[1][i + 2] = {
            rule.addFactor(fmt::format("k{}", i), dims.kernel[i], FactorKind::Replicate)};
    return rule;
}

FactorRule convRule(const OpView& view) {
    return convolutionRule(view, false);
}
FactorRule convTransposeRule(const OpView& view) {
    return convolutionRule(view, true);
}

double convFlops(const OpView& view, const FactorRule&) {
    const bool transposed = view.op.kind == OpKind::ConvTranspose;
    const ConvDims dims = convDims(view, transposed);
    const Shape points = transposed ? dims.spatial : spatialOf(view.outputs[0].shape);
    return 2.0 * static_cast<double>(dims.b) * static_cast<double>(dims.group) *
           static_cast<double>(dims.inPerGroup) * static_cast<double>(dims.outPerGroup) *
           elementsOf(dims.kernel) * elementsOf(points);
}

std::vector<TensorSpec> poolShape(const OpView& view) {
    const Shape& x = shapeOf(view, 0);
    const Window window = windowOf(view, view.op.attributes.integers("kernel"));
    require(x.size() == window.kernel.size() + 2, view,
            "the pooling window does not fit the image");
    const bool ceil = view.op.attributes.integer("ceil_mode", 0) != 0;
    Shape shape{x[0], x[1]};
    for (std::size_t i = 0; i + 2 < x.size(); ++i)
        shape.push_back(windowedSize(view, window, i, x[i + 2], ceil));
    std::vector<TensorSpec> results{{view.inputs[0].dtype, shape}};
    if (view.op.attributes.integer("indices", 0) != 0) results.push_back({DType::I64, shape});
    return results;
}

FactorRule poolRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape& x = view.inputs[0].shape;
    rule.operands[0][0] = rule.results[0][0] = {rule.addFactor("b", x[0])};
    rule.operands[0][1] = rule.results[0][1] = {rule.addFactor("c", x[1])};
    addSpatial(rule, view, windowOf(view, view.op.attributes.integers("kernel")));
    for (auto& dims : rule.results) dims = rule.results[0]; // the indices
    return rule;
}

std::vector<TensorSpec> globalPoolShape(const OpView& view) {
    const Shape& x = shapeOf(view, 0);
    require(x.size() >= 3, view, "global pooling needs an image");
    Shape shape(x.size(), 1);
    shape[0] = x[0];
    shape[1] = x[1];
    return {{view.inputs[0].dtype, shape}};
}

FactorRule globalPoolRule(const OpView& view) {
    FactorRule rule = emptyRule(view);
    const Shape& x = view.inputs[0].shape;
    rule.operands[0][0] = rule.results[0][0] = {rule.addFactor("b", x[0])};
    rule.operands[0][1] = rule.results[0][1] = {rule.addFactor("c", x[1])};
    const std::string mode = view.op.attributes.text("mode", "average");
    const bool inside = mode != "average"; // more than a sum of parts
    for (std::size_t d = 2; d < x.size(); ++d) {
        const int f = rule.addFactor(fmt::format("x{}", d - 2), x[d],
                                     inside ? FactorKind::Internal : FactorKind::Reduction);
        rule.factors[static_cast<std::size_t>(f)].exchanges = inside;
        rule.operands[0][d] = {f};
    }
    if (mode == "max") extremumStatistics(rule, view);
    if (mode == "lp") // the sum of powers, before its root
        rule.forwardStatistics = {{ReduceOp::Sum, elementsOf(view.outputs[0].shape)}};
    return rule;
}

SavedTensors savePooled(const OpView& view) {
    return view.op.attributes.text("mode") == "max" ? saveOperands(view) : saveNothing(view);
}

} // namespace

std::vector<Row> convolutionRows() {
    const SavedFunction saveImageAndKernel = [](const OpView& view) {
        SavedTensors saved = saveNothing(view);
        saved.operands[0] = saved.operands[1] = true;
        return saved;
    };
    return {
        {OpKind::Conv, convShape, convRule, ComputeClass::Contraction, convFlops, nullptr,
         saveImageAndKernel},
        {OpKind::ConvTranspose, convTransposeShape, convTransposeRule, ComputeClass::Contraction,
         convFlops, nullptr, saveImageAndKernel},
        {OpKind::Pool, poolShape, poolRule, ComputeClass::Vector, nullptr, nullptr, savePooled},
        {OpKind::GlobalPool, globalPoolShape, globalPoolRule, ComputeClass::Vector, nullptr,
         nullptr, savePooled},
    };
}

} // namespace shardlens::catalogue
