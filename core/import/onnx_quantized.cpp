// SPDX-License-Identifier: Apache-2.0
// Zero points and scales as elementwise ops around a product.
#include "core/import/onnx_quantized.h"

#include "core/import/element_functions.h"

#include <algorithm>
#include <numeric>

namespace shardlens::onnx {

namespace {

Attributes convertTo(std::string_view function, DType dtype) {
    return {{"function", std::string(function)}, {"to", std::string(nameOf(dtype))}};
}

/// A number a slice of a tensor, shaped to broadcast against it; one number stays as it is.
TensorId aligned(Translation& t, TensorId values, std::int64_t axis, std::size_t rank) {
    const Shape shape = t.specOf(values).shape;
    if (axis < 0) axis += static_cast<std::int64_t>(rank);
    if (elementsOf(shape) == 1) return shape.size() <= rank ? values : t.reshaped(values, {});
    if (shape.size() != 1 || axis < 0 || axis + 1 >= static_cast<std::int64_t>(rank)) return values;
    Shape wide(rank - static_cast<std::size_t>(axis), 1);
    wide[0] = shape[0];
    return t.reshaped(values, wide);
}

} // namespace

TensorId withoutZeroPoint(Translation& t, std::size_t x, std::size_t zero, std::int64_t axis) {
    if (!t.has(zero)) return t.input(x);
    if (const KnownInts* known = t.ints(zero);
        known != nullptr && std::ranges::all_of(*known, [](auto z) { return z == 0; }))
        return t.input(x);
    const auto wide = [&](TensorId tensor) {
        return t.step(OpKind::Elementwise, convertTo("cast", DType::I32), {tensor});
    };
    const TensorId point = aligned(t, t.input(zero), axis, t.shape(x).size());
    return t.step(OpKind::Elementwise, functionOf("sub"), {wide(t.input(x)), wide(point)});
}

void requantize(Translation& t, TensorId sums, const std::array<std::size_t, 4>& operands,
                std::int64_t axis) {
    const auto [a, b, y, zero] = operands;
    const std::size_t rank = t.specOf(sums).shape.size();
    const TensorId factors =
        t.step(OpKind::Elementwise, functionOf("mul"), {t.input(a), t.input(b)});
    const TensorId scale = t.step(OpKind::Elementwise, functionOf("div"), {t.input(y), factors});
    std::vector<TensorId> all{sums, aligned(t, scale, axis, rank)};
    if (t.has(zero)) all.push_back(aligned(t, t.input(zero), axis, rank));
    const DType dtype = t.has(zero) ? t.dtype(zero) : t.dtype(0);
    t.result(OpKind::Elementwise, convertTo("quantize", dtype), std::move(all));
}

void dynamicQuantize(Translation& t, std::string_view) {
    constexpr double kSteps = 255;
    const TensorId x = t.input(0);
    Translation::Ints axes(t.shape(0).size());
    std::iota(axes.begin(), axes.end(), std::int64_t{0});
    // The range holds 0, so that 0 is represented exactly.
    const auto end = [&](std::string_view function, std::string_view bound) {
        Attributes reduce = functionOf(function), clip = functionOf("clip");
        reduce.set("axes", axes);
        reduce.set("keepdims", std::int64_t{0});
        clip.set(std::string(bound), 0.0);
        return t.step(OpKind::Elementwise, clip, {t.step(OpKind::Reduce, reduce, {x})});
    };
    const TensorId low = end("min", "max"), high = end("max", "min");
    const TensorId width = t.step(OpKind::Elementwise, functionOf("sub"), {high, low});
    Attributes perStep = functionOf("scale");
    perStep.set("alpha", 1 / kSteps);
    const TensorId scale = t.result(OpKind::Elementwise, perStep, {width}, DType::Unknown, 1);
    const TensorId offset = t.step(OpKind::Elementwise, functionOf("neg"), {low});
    const TensorId zero = t.result(OpKind::Elementwise, convertTo("quantize", DType::U8),
                                   {offset, scale}, DType::Unknown, 2);
    t.result(OpKind::Elementwise, convertTo("quantize", DType::U8), {x, scale, zero});
}

} // namespace shardlens::onnx
