// SPDX-License-Identifier: Apache-2.0
// Convolutions, and the pooling that shares their windows: strides, pads and dilations with every
// default filled in and automatic padding worked out.
#include "core/import/element_functions.h"
#include "core/import/onnx_quantized.h"
#include "core/import/onnx_translation.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens::onnx {

namespace {

using Ints = Translation::Ints;

/// Strides, pads and dilations over `kernel`, with automatic padding worked out.
struct Window {
    Ints kernel, strides, pads, dilations;

    Attributes attributes() const {
        return {{"strides", strides}, {"pads", pads}, {"dilations", dilations}};
    }
};

Ints windowList(const Translation& t, std::string_view name, std::size_t count,
                std::int64_t fallback) {
    constexpr std::int64_t kLargest = std::int64_t{1} << 20; // products stay within 64 bits
    Ints values = t.integers(name).value_or(Ints(count, fallback));
    t.require(values.size() == count, fmt::format("{} must have {} entries", name, count));
    t.require(std::ranges::all_of(values, [](auto v) { return v >= -kLargest && v <= kLargest; }),
              fmt::format("{} is out of range", name));
    return values;
}

Window windowOf(const Translation& t, Ints kernel) {
    const std::size_t n = kernel.size();
    Window w{std::move(kernel), windowList(t, "strides", n, 1), windowList(t, "pads", 2 * n, 0),
             windowList(t, "dilations", n, 1)};
    t.require(std::ranges::all_of(w.strides, [](auto s) { return s > 0; }) &&
                  std::ranges::all_of(w.dilations, [](auto d) { return d > 0; }),
              "strides and dilations must be positive");
    return w;
}

/// Splits what must be padded over both ends; the odd one goes where `auto_pad` says.
void setPads(Window& w, std::size_t i, std::int64_t total, bool upper) {
    const std::int64_t small = total / 2, large = total - small;
    w.pads[i] = upper ? small : large;
    w.pads[i + w.kernel.size()] = upper ? large : small;
}

/// SAME: as many windows as strides fit the image. VALID: no padding.
void resolveAutoPad(const Translation& t, Window& w) {
    const std::string_view mode = t.text("auto_pad", "NOTSET");
    if (mode == "VALID") w.pads.assign(2 * w.kernel.size(), 0);
    if (mode != "SAME_UPPER" && mode != "SAME_LOWER") return;
    for (std::size_t i = 0; i < w.kernel.size(); ++i) {
        const std::int64_t in = t.shape(0)[i + 2];
        const std::int64_t out = (in + w.strides[i] - 1) / w.strides[i];
        const std::int64_t span = (w.kernel[i] - 1) * w.dilations[i] + 1;
        const std::int64_t total = std::max<std::int64_t>((out - 1) * w.strides[i] + span - in, 0);
        setPads(w, i, total, mode == "SAME_UPPER");
    }
}

Ints spatialOf(const Shape& shape) {
    return {shape.begin() + 2, shape.end()};
}

std::vector<TensorId> imageKernelBias(const Translation& t, std::size_t kernel, std::size_t bias) {
    t.require(t.rank(0) >= 3 && t.rank(kernel) == t.rank(0), "image and kernel ranks do not fit");
    std::vector<TensorId> operands{t.input(0), t.input(kernel)};
    if (t.has(bias)) {
        t.require(t.rank(bias) == 1, "the bias must have one dimension");
        operands.push_back(t.input(bias));
    }
    return operands;
}

Attributes convolution(const Translation& t, std::size_t kernel) {
    Window window = windowOf(t, spatialOf(t.shape(kernel)));
    resolveAutoPad(t, window);
    Attributes attributes = window.attributes();
    attributes.set("group", t.integer("group", 1));
    return attributes;
}

void conv(Translation& t, std::string_view) {
    auto operands = imageKernelBias(t, 1, 2);
    t.result(OpKind::Conv, convolution(t, 1), std::move(operands));
}

/// com.microsoft: a convolution, optionally a sum with Z, then an activation.
void fusedConv(Translation& t, std::string_view) {
    auto operands = imageKernelBias(t, 1, 2);
    TensorId y = t.step(OpKind::Conv, convolution(t, 1), std::move(operands));
    if (t.has(3)) y = t.step(OpKind::Elementwise, functionOf("add"), {y, t.input(3)});
    t.result(OpKind::Elementwise, functionOf("relu"), {y});
}

/// Zero points are one number, or one an output channel of the kernel.
void convInteger(Translation& t, std::string_view) {
    auto operands = imageKernelBias(t, 1, 99); // no bias
    operands[0] = withoutZeroPoint(t, 0, 2, 1);
    operands[1] = withoutZeroPoint(t, 1, 3, 0);
    t.result(OpKind::Conv, convolution(t, 1), std::move(operands), DType::I32);
}

void qLinearConv(Translation& t, std::string_view) {
    auto operands = imageKernelBias(t, 3, 8);
    operands[0] = withoutZeroPoint(t, 0, 2, 1);
    operands[1] = withoutZeroPoint(t, 3, 5, 0);
    const TensorId sums = t.step(OpKind::Conv, convolution(t, 3), std::move(operands), DType::I32);
    requantize(t, sums, {1, 4, 6, 7}, 1);
}

void convTranspose(Translation& t, std::string_view) {
    auto operands = imageKernelBias(t, 1, 2);
    Window w = windowOf(t, spatialOf(t.shape(1)));
    const std::size_t n = w.kernel.size();
    const Ints extra = windowList(t, "output_padding", n, 0);
    const std::string_view mode = t.text("auto_pad", "NOTSET");
    const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    const auto wanted = t.integers("output_shape");
    if (mode == "VALID") w.pads.assign(2 * n, 0);
    for (std::size_t i = 0; i < n && (wanted || same); ++i) {
        const std::int64_t in = t.shape(0)[i + 2];
        t.require(!wanted || wanted->size() >= n, "output_shape is too short");
        const std::int64_t out = wanted ? (*wanted)[wanted->size() - n + i] : in * w.strides[i];
        t.require(out >= 0 && out < std::int64_t{1} << 40, "output_shape is out of range");
        const std::int64_t total =
            w.strides[i] * (in - 1) + extra[i] + (w.kernel[i] - 1) * w.dilations[i] + 1 - out;
        setPads(w, i, total, mode != "SAME_LOWER");
    }
    Attributes attributes = w.attributes();
    attributes.set("group", t.integer("group", 1));
    attributes.set("output_padding", extra);
    t.result(OpKind::ConvTranspose, std::move(attributes), std::move(operands));
}

void pool(Translation& t, std::string_view mode) {
    t.require(t.rank(0) >= 3, "pooling needs an image");
    const auto n = static_cast<std::size_t>(t.rank(0) - 2);
    Window w = windowOf(t, windowList(t, "kernel_shape", n, 1));
    resolveAutoPad(t, w);
    Attributes attributes = w.attributes();
    attributes.set("kernel", w.kernel);
    attributes.set("mode", std::string(mode));
    attributes.set("ceil_mode", std::int64_t{t.integer("ceil_mode", 0) != 0});
    if (t.integer("count_include_pad", 0) != 0)
        attributes.set("count_include_pad", std::int64_t{1});
    if (t.integer("p", 2) != 2) attributes.set("p", t.integer("p", 2));
    const bool indices = t.wants(1) && t.integer("storage_order", 0) == 0;
    if (indices) attributes.set("indices", std::int64_t{1});
    const TensorId y = t.result(OpKind::Pool, std::move(attributes), {t.input(0)});
    if (!indices) t.opaqueOutput(1, TensorSpec{DType::I64, t.specOf(y).shape});
}

void globalPool(Translation& t, std::string_view mode) {
    Attributes attributes{{"mode", std::string(mode)}};
    if (t.integer("p", 2) != 2) attributes.set("p", t.integer("p", 2));
    t.result(OpKind::GlobalPool, std::move(attributes), {t.input(0)});
}

} // namespace

std::vector<Rule> convolutionRules() {
    return {
        {"Conv", conv},
        {"FusedConv", fusedConv},
        {"ConvInteger", convInteger},
        {"QLinearConv", qLinearConv},
        {"ConvTranspose", convTranspose},
        {"MaxPool", pool, "max"},
        {"AveragePool", pool, "average"},
        {"LpPool", pool, "lp"},
        {"GlobalMaxPool", globalPool, "max"},
        {"GlobalAveragePool", globalPool, "average"},
        {"GlobalLpPool", globalPool, "lp"},
    };
}

} // namespace shardlens::onnx
