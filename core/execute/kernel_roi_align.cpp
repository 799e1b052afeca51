// SPDX-License-Identifier: Apache-2.0
// Regions of images, averaged (or their largest sample taken) on a grid without rounding their
// edges: He et al., "Mask R-CNN" (ICCV 2017), in ONNX's form. A bin is sampled at the middles of
// equal cells; a sample is bilinear, and one further than a pixel outside the image is 0.
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_recorded.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shardlens::kernels {

namespace {

/// One side of a bilinear sample: two neighbouring pixels and the weight of each.
template <typename T>
struct Side {
    std::array<std::size_t, 2> pixel{};
    std::array<T, 2> weight{T(0), T(0)};
};

template <typename T>
Side<T> sideAt(const T& given, std::int64_t size) {
    if (valueOf(given) < -1 || valueOf(given) > static_cast<double>(size)) return {};
    T at = valueOf(given) <= 0 ? T(0) : given;
    auto low = static_cast<std::int64_t>(valueOf(at));
    std::int64_t high = low + 1;
    if (low >= size - 1) {
        low = high = size - 1;
        at = T(static_cast<double>(low));
    }
    const T part = at - T(static_cast<double>(low));
    return {{static_cast<std::size_t>(low), static_cast<std::size_t>(high)}, {T(1) - part, part}};
}

/// One direction of a region: where it begins, how long a bin is, and in how many cells it is cut.
template <typename T>
struct Extent {
    T begin, bin;
    std::int64_t cells = 1, size = 0;

    Side<T> side(std::size_t bins, std::int64_t cell) const {
        const T inside = T(static_cast<double>(cell) + 0.5) * bin / T(static_cast<double>(cells));
        return sideAt(begin + T(static_cast<double>(bins)) * bin + inside, size);
    }
};

struct RoiAlignProgram {
    template <typename T>
    NumberLists<T> operator()(const KernelContext& context, Operands,
                              const NumberLists<T>& numbers) const {
        const Shape x = context.operandShape(0), out = context.resultShape(0);
        const auto channels = static_cast<std::size_t>(out[1]),
                   height = static_cast<std::size_t>(out[2]),
                   width = static_cast<std::size_t>(out[3]),
                   pixels = static_cast<std::size_t>(x[2] * x[3]);
        std::vector<T> y;
        for (std::size_t r = 0; r < static_cast<std::size_t>(out[0]); ++r) {
            const double image = valueOf(numbers[2][r]);
            if (image < 0 || image >= static_cast<double>(x[0]))
                fail(context, "a region lies in no image");
            const Extent<T> down = extent(context, numbers[1], 4 * r + 1, x[2], out[2]),
                            across = extent(context, numbers[1], 4 * r, x[3], out[3]);
            for (std::size_t c = 0; c < channels; ++c) {
                const std::size_t first = (static_cast<std::size_t>(image) * channels + c) * pixels;
                for (std::size_t i = 0; i < height; ++i)
                    for (std::size_t j = 0; j < width; ++j)
                        y.push_back(bin(context, numbers[0], first, down, across, i, j));
            }
        }
        return {std::move(y)};
    }

    /// @param at of the region's first coordinate; its last is two further on
    template <typename T>
    static Extent<T> extent(const KernelContext& context, const std::vector<T>& regions,
                            std::size_t at, std::int64_t size, std::int64_t bins) {
        const Attributes& a = context.op().attributes;
        const bool half = a.integer("half_pixel", 0) != 0;
        const T scale(a.number("scale", 1)), shift(half ? 0.5 : 0.0);
        const T begin = regions[at] * scale - shift;
        T length = regions[at + 2] * scale - shift - begin;
        if (!half && valueOf(length) < 1) length = T(1);
        const T count(static_cast<double>(bins));
        const std::int64_t stated = a.integer("sampling_ratio", 0);
        const auto needed =
            static_cast<std::int64_t>(std::ceil(valueOf(length) / static_cast<double>(bins)));
        return {begin, length / count, std::max<std::int64_t>(stated > 0 ? stated : needed, 0),
                size};
    }

    template <typename T>
    static T bin(const KernelContext& context, const std::vector<T>& x, std::size_t first,
                 const Extent<T>& down, const Extent<T>& across, std::size_t i, std::size_t j) {
        const bool largest = context.op().attributes.text("mode", "avg") == "max";
        const auto width = static_cast<std::size_t>(across.size);
        T sum(0);
        bool any = false;
        for (std::int64_t r = 0; r < down.cells; ++r) {
            const Side<T> v = down.side(i, r);
            for (std::int64_t c = 0; c < across.cells; ++c) {
                const Side<T> h = across.side(j, c);
                for (std::size_t p = 0; p < 4; ++p) {
                    const T part = v.weight[p / 2] * h.weight[p % 2] *
                                   x[first + v.pixel[p / 2] * width + h.pixel[p % 2]];
                    // Of the largest sample ONNX takes the largest of its four parts.
                    if (!largest)
                        sum = sum + part;
                    else if (!any || valueOf(part) > valueOf(sum))
                        sum = part;
                    any = true;
                }
            }
        }
        const auto samples = static_cast<double>(down.cells * across.cells);
        return largest ? sum : sum / T(std::max(samples, 1.0));
    }
};

} // namespace

Kernel roiAlignKernel() {
    return recordedKernel<RoiAlignProgram>(OpKind::RoiAlign);
}

} // namespace shardlens::kernels
