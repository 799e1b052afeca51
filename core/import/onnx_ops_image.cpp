// SPDX-License-Identifier: Apache-2.0
// Resampling of images, and local response normalisation. Sizes, scales and every convention of how
// coordinates are mapped become attributes, with the defaults of the opset filled in.
#include "core/import/onnx_tensor.h"
#include "core/import/onnx_translation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shardlens::onnx {

namespace {

using Ints = Translation::Ints;
using Numbers = std::vector<double>;

/// What a Resize says about sizes: an entry for each of `axes`.
struct Wanted {
    Ints axes;
    Numbers scales; ///< empty: sizes are given
    Ints sizes;
};

std::optional<Wanted> wantedOf(const Translation& t, bool upsample) {
    Wanted wanted;
    wanted.axes.resize(t.shape(0).size());
    std::iota(wanted.axes.begin(), wanted.axes.end(), std::int64_t{0});
    if (const auto named = t.integers("axes")) wanted.axes = *named;
    for (std::int64_t& axis : wanted.axes) axis = t.axis(axis, t.rank(0));
    const KnownInts* sizes = upsample ? nullptr : t.ints(3);
    if (sizes != nullptr && !sizes->empty()) {
        wanted.sizes = *sizes;
    } else {
        if (const Attribute* attribute = t.attribute("scales")) wanted.scales = attribute->numbers;
        if (const auto* values = t.floats(upsample ? 1 : 2)) wanted.scales = *values;
        if (wanted.scales.empty()) return std::nullopt;
    }
    t.require(std::max(wanted.scales.size(), wanted.sizes.size()) == wanted.axes.size(),
              "scales or sizes do not fit the operand");
    return wanted;
}

/// With an aspect ratio that is to be kept, all sizes follow from one scale (opset 18).
void keepAspectRatio(const Translation& t, Wanted& wanted) {
    const std::string_view policy = t.text("keep_aspect_ratio_policy", "stretch");
    if (policy == "stretch" || wanted.sizes.empty()) return;
    const auto in = [&](std::size_t i) {
        return static_cast<double>(t.shape(0)[static_cast<std::size_t>(wanted.axes[i])]);
    };
    Numbers ratios;
    for (std::size_t i = 0; i < wanted.sizes.size(); ++i)
        ratios.push_back(static_cast<double>(wanted.sizes[i]) / std::max(in(i), 1.0));
    const double scale = policy == "not_larger" ? *std::ranges::min_element(ratios)
                                                : *std::ranges::max_element(ratios);
    for (std::size_t i = 0; i < wanted.sizes.size(); ++i) {
        const double size = std::round(scale * in(i));
        t.require(size >= 0 && size <= static_cast<double>(kMaxDim), "the sizes are out of range");
        wanted.sizes[i] = static_cast<std::int64_t>(size);
    }
}

void setSizes(const Translation& t, const Wanted& wanted, Attributes& attributes) {
    Shape sizes = t.shape(0);
    Numbers scales(sizes.size(), 1.0);
    for (std::size_t i = 0; i < wanted.axes.size(); ++i) {
        const auto d = static_cast<std::size_t>(wanted.axes[i]);
        const auto in = static_cast<double>(sizes[d]);
        const bool given = !wanted.sizes.empty();
        const double size =
            given ? static_cast<double>(wanted.sizes[i]) : std::floor(in * wanted.scales[i]);
        t.require(size >= 0 && size <= static_cast<double>(kMaxDim),
                  "the resized shape is out of range");
        sizes[d] = static_cast<std::int64_t>(size);
        scales[d] = given ? (in > 0 ? size / in : 1.0) : wanted.scales[i];
    }
    attributes.set("sizes", std::move(sizes));
    attributes.set("scales", std::move(scales));
}

/// Start and end of the region that is resized, both for all dims; std::nullopt if not known.
std::optional<Numbers> regionOf(const Translation& t, const Wanted& wanted) {
    const auto* given = t.floats(1);
    if (given == nullptr || given->size() != 2 * wanted.axes.size()) return std::nullopt;
    const std::size_t rank = t.shape(0).size();
    Numbers region(2 * rank, 0.0);
    std::fill(region.begin() + static_cast<std::ptrdiff_t>(rank), region.end(), 1.0);
    for (std::size_t i = 0; i < wanted.axes.size(); ++i) {
        const auto d = static_cast<std::size_t>(wanted.axes[i]);
        region[d] = (*given)[i];
        region[d + rank] = (*given)[i + wanted.axes.size()];
    }
    return region;
}

void resize(Translation& t, std::string_view) {
    const bool old = t.node().type == "Upsample" || t.opset() < 11;
    auto wanted = wantedOf(t, old);
    if (!wanted) return t.opaque();
    keepAspectRatio(t, *wanted);
    Attributes attributes{{"mode", std::string(t.text("mode", "nearest"))}};
    setSizes(t, *wanted, attributes);
    const std::string coordinates(old ? "asymmetric"
                                      : t.text("coordinate_transformation_mode", "half_pixel"));
    attributes.set("coordinates", coordinates);
    attributes.set("rounding",
                   std::string(old ? "floor" : t.text("nearest_mode", "round_prefer_floor")));
    if (t.text("mode") == "cubic") {
        attributes.set("cubic_coefficient", t.number("cubic_coeff_a", -0.75));
        if (t.integer("exclude_outside", 0) != 0)
            attributes.set("exclude_outside", std::int64_t{1});
    }
    if (coordinates == "tf_crop_and_resize") {
        auto region = regionOf(t, *wanted);
        if (!region) return t.opaque({TensorSpec{t.dtype(0), attributes.integers("sizes")}});
        attributes.set("region", std::move(*region));
        attributes.set("outside", t.number("extrapolation_value", 0));
    }
    if (t.integer("antialias", 0) != 0)
        return t.opaque({TensorSpec{t.dtype(0), attributes.integers("sizes")}});
    t.result(OpKind::Resize, std::move(attributes), {t.input(0)});
}

/// Opset 16 says bilinear and bicubic, opset 20 linear and cubic (and takes volumes).
void gridSample(Translation& t, std::string_view) {
    t.require(t.rank(0) >= 3 && t.rank(1) == t.rank(0), "image and grid do not fit");
    if (t.rank(0) != 4) {
        Shape shape = t.shape(1);
        shape.pop_back();
        shape.insert(shape.begin() + 1, t.shape(0)[1]);
        return t.opaque({TensorSpec{t.dtype(0), shape}});
    }
    std::string mode(t.text("mode", "linear"));
    if (mode.starts_with("bi")) mode.erase(0, 2);
    t.result(OpKind::GridSample,
             {{"mode", mode},
              {"padding", std::string(t.text("padding_mode", "zeros"))},
              {"align_corners", std::int64_t{t.integer("align_corners", 0) != 0}}},
             {t.input(0), t.input(1)});
}

/// Until opset 16 regions were not moved by half a pixel.
void roiAlign(Translation& t, std::string_view) {
    const std::string_view usual = t.opset() < 16 ? "output_half_pixel" : "half_pixel";
    t.result(OpKind::RoiAlign,
             {{"height", t.integer("output_height", 1)},
              {"width", t.integer("output_width", 1)},
              {"mode", std::string(t.text("mode", "avg"))},
              {"scale", t.number("spatial_scale", 1)},
              {"sampling_ratio", t.integer("sampling_ratio", 0)},
              {"half_pixel",
               std::int64_t{t.text("coordinate_transformation_mode", usual) == "half_pixel"}}},
             {t.input(0), t.input(1), t.input(2)});
}

void localResponseNorm(Translation& t, std::string_view) {
    t.result(OpKind::LocalNorm,
             {{"size", t.integer("size", 1)},
              {"alpha", t.number("alpha", 0.0001)},
              {"beta", t.number("beta", 0.75)},
              {"bias", t.number("bias", 1)}},
             {t.input(0)});
}

} // namespace

std::vector<Rule> imageRules() {
    return {
        {"Resize", resize},     {"Upsample", resize},       {"GridSample", gridSample},
        {"RoiAlign", roiAlign}, {"LRN", localResponseNorm},
    };
}

} // namespace shardlens::onnx
