// SPDX-License-Identifier: Apache-2.0
// Resizing and local response normalisation. A resize is a weighted sum of a few elements along
// each dimension in turn, so that its gradient is the same sums turned round. How places of the
// result map to the operand is that of ONNX's Resize.
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace shardlens::kernels {

namespace {

// --- LocalNorm: y = x / (bias + alpha/size * sum of squares around)^beta -------------------------

struct Response {
    std::int64_t batch, channels, inner, size;
    double alpha, beta, bias;

    /// First and last channel of the window around c.
    std::pair<std::int64_t, std::int64_t> window(std::int64_t c) const {
        return {std::max<std::int64_t>(c - (size - 1) / 2, 0),
                std::min(c + size / 2, channels - 1)};
    }
    std::size_t at(std::int64_t b, std::int64_t c, std::int64_t i) const {
        return static_cast<std::size_t>((b * channels + c) * inner + i);
    }
};

Response responseOf(const KernelContext& context) {
    const Attributes& a = context.op().attributes;
    const Shape shape = context.operandShape(0);
    const Shape inner(shape.begin() + 2, shape.end());
    return {shape[0],
            shape[1],
            static_cast<std::int64_t>(countOf(inner)),
            a.integer("size", 1),
            a.number("alpha", 0.0001),
            a.number("beta", 0.75),
            a.number("bias", 1)};
}

template <typename Use>
void eachElement(const Response& r, Use use) {
    for (std::int64_t b = 0; b < r.batch; ++b)
        for (std::int64_t c = 0; c < r.channels; ++c)
            for (std::int64_t i = 0; i < r.inner; ++i) use(b, c, i);
}

Numbers denominators(const Response& r, const Numbers& x) {
    Numbers result(x.size(), r.bias);
    eachElement(r, [&](auto b, auto c, auto i) {
        const auto [first, last] = r.window(c);
        for (std::int64_t k = first; k <= last; ++k)
            result[r.at(b, c, i)] +=
                r.alpha / static_cast<double>(r.size) * x[r.at(b, k, i)] * x[r.at(b, k, i)];
    });
    return result;
}

Arrays localNormForward(const KernelContext& context, Operands operands) {
    const Response r = responseOf(context);
    Numbers x = numbersOf(*operands[0]);
    const Numbers d = denominators(r, x);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= std::pow(d[i], -r.beta);
    return {resultOf(context, 0, std::move(x))};
}

Arrays localNormBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                         std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr || !differentiable(operands, 0)) return given;
    const Response r = responseOf(context);
    const Numbers &x = operands[0]->reals, &g = gradient->reals, d = denominators(r, x);
    given[0] = zerosLike(operands, 0);
    Numbers& dx = given[0].reals;
    eachElement(r, [&](auto b, auto c, auto i) {
        const std::size_t at = r.at(b, c, i);
        dx[at] += g[at] * std::pow(d[at], -r.beta);
        const double through = -2 * r.alpha * r.beta / static_cast<double>(r.size) * g[at] * x[at] *
                               std::pow(d[at], -r.beta - 1);
        const auto [first, last] = r.window(c);
        for (std::int64_t k = first; k <= last; ++k)
            dx[r.at(b, k, i)] += through * x[r.at(b, k, i)];
    });
    return given;
}

// --- Resize -------------------------------------------------------------------------------------

struct Tap {
    std::int64_t from;
    double weight;
};

/// One dimension of a resize: for each place of the result, what it is made of.
struct Dimension {
    std::vector<std::vector<Tap>> taps;
    std::vector<bool> outside; ///< the place lies beyond the operand (crop and resize)
};

struct Mapping {
    std::string coordinates, mode, rounding;
    std::int64_t in, out;
    double scale, start = 0, end = 1, cubic = -0.75;
    bool excludeOutside = false;

    double place(std::int64_t index) const {
        const auto x = static_cast<double>(index);
        const auto n = static_cast<double>(in), m = static_cast<double>(out);
        if (coordinates == "align_corners") // the resized length before it was made whole
            return out == 1 ? 0 : x * (n - 1) / (scale * n - 1);
        if (coordinates == "asymmetric") return x / scale;
        if (coordinates == "pytorch_half_pixel" && out <= 1) return 0;
        if (coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
        if (coordinates == "half_pixel_symmetric")
            return n / 2 * (1 - m / (scale * n)) + (x + 0.5) / scale - 0.5;
        if (coordinates == "tf_crop_and_resize")
            return out > 1 ? start * (n - 1) + x * (end - start) * (n - 1) / (m - 1)
                           : 0.5 * (start + end) * (n - 1);
        return (x + 0.5) / scale - 0.5;
    }

    std::int64_t inside(std::int64_t index) const {
        return std::clamp<std::int64_t>(index, 0, in - 1);
    }

    std::int64_t nearest(double x) const {
        const double y = rounding == "floor"               ? std::floor(x)
                         : rounding == "ceil"              ? std::ceil(x)
                         : rounding == "round_prefer_ceil" ? std::floor(x + 0.5)
                                                           : std::ceil(x - 0.5);
        return inside(static_cast<std::int64_t>(y));
    }

    /// Keys' cubic convolution (1981).
    double cubicWeight(double distance) const {
        const double t = std::abs(distance), a = cubic;
        if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
        return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
    }

    std::vector<Tap> taps(double x) const {
        if (mode == "nearest") return {{nearest(x), 1}};
        const auto first = static_cast<std::int64_t>(std::floor(x));
        const double rest = x - std::floor(x);
        if (mode == "linear") return {{inside(first), 1 - rest}, {inside(first + 1), rest}};
        std::vector<Tap> taps;
        double total = 0;
        for (std::int64_t k = first - 1; k <= first + 2; ++k) {
            if (excludeOutside && (k < 0 || k >= in)) continue;
            taps.push_back({inside(k), cubicWeight(x - static_cast<double>(k))});
            total += taps.back().weight;
        }
        for (Tap& tap : taps)
            if (excludeOutside) tap.weight /= total;
        return taps;
    }

    Dimension dimension() const {
        Dimension d;
        for (std::int64_t index = 0; index < out; ++index) {
            const double x = place(index);
            const bool beyond =
                coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(in - 1));
            d.outside.push_back(beyond);
            d.taps.push_back(beyond ? std::vector<Tap>{} : taps(x));
        }
        return d;
    }
};

/// Dimensions that pass have no entry: they are as they were.
std::vector<std::optional<Dimension>> dimensionsOf(const KernelContext& context) {
    const Attributes& a = context.op().attributes;
    const Shape &in = context.whole().inputs[0].shape, &out = context.whole().outputs[0].shape;
    const Numbers scales = a.numbers("scales"), region = a.numbers("region");
    std::vector<std::optional<Dimension>> dimensions(in.size());
    for (std::size_t d = 0; d < in.size(); ++d) {
        const std::string coordinates = a.text("coordinates", "half_pixel");
        const bool placed = coordinates.starts_with("tf_");
        if (in[d] == out[d] && scales[d] == 1 && !placed) continue;
        Mapping m{coordinates,
                  a.text("mode", "nearest"),
                  a.text("rounding", "round_prefer_floor"),
                  in[d],
                  out[d],
                  scales[d]};
        m.cubic = a.number("cubic_coefficient", -0.75);
        m.excludeOutside = a.integer("exclude_outside", 0) != 0;
        if (region.size() == 2 * in.size()) {
            m.start = region[d];
            m.end = region[d + in.size()];
        }
        dimensions[d] = m.dimension();
    }
    return dimensions;
}

/// Sums along one dimension; `turned`: from the result back to the operand.
Array along(const Array& x, std::size_t d, const Dimension& dimension, std::int64_t in,
            bool turned) {
    Shape shape = x.shape;
    shape[d] = turned ? in : static_cast<std::int64_t>(dimension.taps.size());
    Array y = Array::real(shape);
    const Strides from = signedStrides(x.shape), to = signedStrides(shape);
    Shape lines = x.shape;
    lines[d] = 1;
    for (StridedWalk at(lines, {from, to}); !at.done(); at.next())
        for (std::size_t o = 0; o < dimension.taps.size(); ++o)
            for (const Tap& tap : dimension.taps[o]) {
                const auto result = static_cast<std::ptrdiff_t>(o);
                const std::ptrdiff_t read = turned ? result : tap.from,
                                     written = turned ? tap.from : result;
                y.reals[at[1] + static_cast<std::size_t>(written * to[d])] +=
                    tap.weight * x.reals[at[0] + static_cast<std::size_t>(read * from[d])];
            }
    return y;
}

Arrays resizeForward(const KernelContext& context, Operands operands) {
    const auto dimensions = dimensionsOf(context);
    Array x = realArray(operands[0]->shape, numbersOf(*operands[0]));
    for (std::size_t d = 0; d < dimensions.size(); ++d)
        if (dimensions[d]) x = along(x, d, *dimensions[d], 0, false);
    const double beyond = context.op().attributes.number("outside", 0);
    std::size_t i = 0;
    for (Counter at(x.shape); !at.done(); at.next(), ++i)
        for (std::size_t d = 0; d < dimensions.size(); ++d)
            if (dimensions[d] && dimensions[d]->outside[static_cast<std::size_t>(at.index()[d])])
                x.reals[i] = beyond;
    return {resultOf(context, 0, std::move(x.reals))};
}

Arrays resizeBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                      std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr || !differentiable(operands, 0)) return given;
    const auto dimensions = dimensionsOf(context);
    given[0] = *gradient;
    for (std::size_t d = dimensions.size(); d-- > 0;)
        if (dimensions[d])
            given[0] = along(given[0], d, *dimensions[d], operands[0]->shape[d], true);
    return given;
}

} // namespace

} // namespace shardlens::kernels

namespace shardlens {

std::vector<Kernel> imageKernels() {
    using namespace kernels;
    return {
        {OpKind::LocalNorm, localNormForward, localNormBackward},
        {OpKind::Resize, resizeForward, resizeBackward},
        gridSampleKernel(),
        roiAlignKernel(),
    };
}

} // namespace shardlens
