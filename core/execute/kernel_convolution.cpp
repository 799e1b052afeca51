// SPDX-License-Identifier: Apache-2.0
// Convolutions: a sum over taps, each of which is one element of the image, the kernel and the
// result; the transposed one has image and result change places. Images and kernels are those of
// this rank: cut channels and groups are told from their shapes.
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"

namespace shardlens::kernels {

namespace {

struct Taps {
    std::int64_t batch = 0, groups = 1, in = 1, out = 1; ///< channels of a group
    Shape windows;                                       ///< where a window can lie
    Shape image;                                         ///< what it slides over
    Shape kernel;
    Window window;
    bool transposed = false;
};

Taps tapsOf(const KernelContext& context) {
    const Shape x = context.operandShape(0), w = context.operandShape(1),
                y = context.resultShape(0);
    Taps taps;
    taps.transposed = context.op().kind == OpKind::ConvTranspose;
    taps.batch = x[0];
    if (taps.transposed) {
        taps.out = w[1];
        taps.groups = y[1] / w[1];
        taps.in = x[1] / taps.groups;
    } else {
        taps.in = w[1];
        taps.groups = x[1] / w[1];
        taps.out = y[1] / taps.groups;
    }
    const auto spatial = [](const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); };
    taps.windows = spatial(taps.transposed ? x : y);
    taps.image = spatial(taps.transposed ? y : x);
    taps.kernel = spatial(w);
    taps.window = windowOf(context, taps.kernel);
    return taps;
}

/// Calls use(x, w, y) with the offsets of the elements of every tap inside the image.
template <typename Use>
void eachTap(const Taps& t, Use use) {
    const auto points = [](const Shape& shape) { return static_cast<std::size_t>(countOf(shape)); };
    const std::size_t windows = points(t.windows), image = points(t.image),
                      kernel = points(t.kernel);
    std::size_t window = 0;
    for (Counter at(t.windows); !at.done(); at.next(), ++window) {
        std::size_t k = 0;
        for (Counter tap(t.kernel); !tap.done(); tap.next(), ++k) {
            const auto place = placeOf(t.window, t.image, at.index(), tap.index());
            if (!place) continue;
            for (std::int64_t b = 0; b < t.batch; ++b)
                for (std::int64_t g = 0; g < t.groups; ++g)
                    for (std::int64_t o = 0; o < t.out; ++o)
                        for (std::int64_t c = 0; c < t.in; ++c) {
                            const auto channelX =
                                static_cast<std::size_t>((b * t.groups + g) * t.in + c);
                            const auto channelY =
                                static_cast<std::size_t>((b * t.groups + g) * t.out + o);
                            const auto row =
                                static_cast<std::size_t>(t.transposed ? (g * t.in + c) * t.out + o
                                                                      : (g * t.out + o) * t.in + c);
                            const std::size_t x = t.transposed ? channelX * windows + window
                                                               : channelX * image + *place;
                            const std::size_t y = t.transposed ? channelY * image + *place
                                                               : channelY * windows + window;
                            use(x, row * kernel + k, y);
                        }
        }
    }
}

/// Strides of one number a channel in the result.
Strides channelStrides(const Shape& result) {
    Strides strides(result.size(), 0);
    strides[1] = 1;
    return strides;
}

Arrays convolutionForward(const KernelContext& context, Operands operands) {
    const Numbers x = numbersOf(*operands[0]), w = numbersOf(*operands[1]);
    const Shape shape = context.resultShape(0);
    Numbers y(countOf(shape), 0.0);
    eachTap(tapsOf(context),
            [&](std::size_t i, std::size_t j, std::size_t k) { y[k] += x[i] * w[j]; });
    if (hasOperand(operands, 2) && context.leads())
        for (StridedWalk at(shape, {signedStrides(shape), channelStrides(shape)}); !at.done();
             at.next())
            y[at[0]] += operands[2]->at(at[1]);
    return {resultOf(context, 0, std::move(y))};
}

Arrays convolutionBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                           std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr) return given;
    for (std::size_t i = 0; i < operands.size(); ++i)
        if (differentiable(operands, i)) given[i] = zerosLike(operands, i);
    const Numbers x = numbersOf(*operands[0]), w = numbersOf(*operands[1]), &g = gradient->reals;
    eachTap(tapsOf(context), [&](std::size_t i, std::size_t j, std::size_t k) {
        if (!given[0].empty()) given[0].reals[i] += g[k] * w[j];
        if (!given[1].empty()) given[1].reals[j] += g[k] * x[i];
    });
    if (differentiable(operands, 2))
        for (StridedWalk at(gradient->shape,
                            {signedStrides(gradient->shape), channelStrides(gradient->shape)});
             !at.done(); at.next())
            given[2].reals[at[1]] += g[at[0]];
    return given;
}

} // namespace

Window windowOf(const KernelContext& context, const Shape& kernel) {
    const std::size_t n = kernel.size();
    const auto listed = [&](const char* name, std::size_t count, std::int64_t fallback) {
        Ints values = context.op().attributes.integers(name);
        if (values.empty()) values.assign(count, fallback);
        return values;
    };
    return {listed("strides", n, 1), listed("pads", 2 * n, 0), listed("dilations", n, 1)};
}

std::optional<std::size_t> placeOf(const Window& window, const Shape& image, const Shape& at,
                                   const Shape& tap) {
    std::size_t place = 0;
    for (std::size_t d = 0; d < image.size(); ++d) {
        const std::int64_t position =
            at[d] * window.strides[d] - window.pads[d] + tap[d] * window.dilations[d];
        if (position < 0 || position >= image[d]) return std::nullopt;
        place = place * static_cast<std::size_t>(image[d]) + static_cast<std::size_t>(position);
    }
    return place;
}

} // namespace shardlens::kernels

namespace shardlens {

std::vector<Kernel> convolutionKernels() {
    using namespace kernels;
    return {
        {OpKind::Conv, convolutionForward, convolutionBackward},
        {OpKind::ConvTranspose, convolutionForward, convolutionBackward},
        poolKernel(),
        globalPoolKernel(),
    };
}

} // namespace shardlens
