// SPDX-License-Identifier: Apache-2.0
// Sampling of images at computed places (spatial transformers, Jaderberg et al. 2015), with ONNX's
// interpolations and paddings.
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_recorded.h"

#include <cmath>

namespace shardlens::kernels {

namespace {

enum class Padding { Zeros, Border, Reflection };

struct Sampling {
    std::string mode;
    Padding padding = Padding::Zeros;
    bool alignCorners = false;
    std::int64_t h = 0, w = 0;
};

Sampling samplingOf(const KernelContext& context) {
    const Attributes& a = context.op().attributes;
    const std::string padding = a.text("padding", "zeros");
    const Shape x = context.operandShape(0);
    return {a.text("mode", "linear"),
            padding == "border"       ? Padding::Border
            : padding == "reflection" ? Padding::Reflection
                                      : Padding::Zeros,
            a.integer("align_corners", 0) != 0, x[2], x[3]};
}

/// From [-1, 1] to pixels.
template <typename T>
T pixel(const T& place, std::int64_t size, bool alignCorners) {
    const auto n = static_cast<double>(size);
    return alignCorners ? (place + T(1)) * T((n - 1) / 2) : ((place + T(1)) * T(n) - T(1)) * T(0.5);
}

/// Mirrored at the borders until it lies between them.
template <typename T>
T reflected(T x, double low, double high) {
    const double range = high - low;
    if (range <= 0) return T(low);
    const double value = valueOf(x);
    if (value >= low && value <= high) return x;
    const double distance = value < low ? low - value : value - high;
    const auto times = static_cast<std::int64_t>(distance / range);
    const double rest = distance - static_cast<double>(times) * range;
    const bool even = times % 2 == 0, below = value < low;
    // The slope is that of the rest: -1 where an odd number of mirrors turns it round.
    const double target = below == even ? low + rest : high - rest;
    const double slope = (below ? -1.0 : 1.0) * (below == even ? 1.0 : -1.0);
    return T(target) + (x - T(value)) * T(slope);
}

/// Sampled pixels of one image and channel.
template <typename T>
class Channel {
public:
    Channel(const Sampling& s, const std::vector<T>& x, std::size_t first)
        : m_s(s), m_x(x), m_first(first) {}

    T sample(T px, T py) const {
        if (m_s.mode == "cubic") return cubic(px, py);
        px = inside(px, m_s.w);
        py = inside(py, m_s.h);
        if (m_s.mode == "nearest")
            return at(static_cast<std::int64_t>(std::nearbyint(valueOf(px))),
                      static_cast<std::int64_t>(std::nearbyint(valueOf(py))));
        const auto i = static_cast<std::int64_t>(std::floor(valueOf(px))),
                   j = static_cast<std::int64_t>(std::floor(valueOf(py)));
        const T right = px - T(static_cast<double>(i)), down = py - T(static_cast<double>(j));
        return (T(1) - down) * ((T(1) - right) * at(i, j) + right * at(i + 1, j)) +
               down * ((T(1) - right) * at(i, j + 1) + right * at(i + 1, j + 1));
    }

private:
    double low() const { return m_s.alignCorners ? 0 : -0.5; }
    double high(std::int64_t size) const {
        return static_cast<double>(size) - (m_s.alignCorners ? 1 : 0.5);
    }

    T inside(const T& x, std::int64_t size) const {
        if (m_s.padding == Padding::Border) return clamped(x, 0, static_cast<double>(size - 1));
        if (m_s.padding == Padding::Reflection)
            return clamped(reflected(x, low(), high(size)), 0, static_cast<double>(size - 1));
        return x;
    }

    std::int64_t index(std::int64_t i, std::int64_t size) const {
        const double x = valueOf(inside(T(static_cast<double>(i)), size));
        return static_cast<std::int64_t>(std::nearbyint(x));
    }

    T at(std::int64_t i, std::int64_t j) const {
        if (m_s.padding != Padding::Zeros) {
            i = index(i, m_s.w);
            j = index(j, m_s.h);
        }
        if (i < 0 || j < 0 || i >= m_s.w || j >= m_s.h) return T(0);
        return m_x[m_first + static_cast<std::size_t>(j * m_s.w + i)];
    }

    /// Keys' cubic convolution with a = -0.75; `t` from the second of four pixels.
    static std::array<T, 4> weights(const T& t) {
        const double a = -0.75;
        const auto near = [&](const T& d) { return ((T(a + 2) * d - T(a + 3)) * d) * d + T(1); };
        const auto far = [&](const T& d) {
            return ((T(a) * d - T(5 * a)) * d + T(8 * a)) * d - T(4 * a);
        };
        return {far(t + T(1)), near(t), near(T(1) - t), far(T(2) - t)};
    }

    T cubic(const T& px, const T& py) const {
        const auto i = static_cast<std::int64_t>(std::floor(valueOf(px))),
                   j = static_cast<std::int64_t>(std::floor(valueOf(py)));
        const auto across = weights(px - T(static_cast<double>(i))),
                   down = weights(py - T(static_cast<double>(j)));
        T sum(0);
        for (std::int64_t r = 0; r < 4; ++r)
            for (std::int64_t c = 0; c < 4; ++c)
                sum = sum + down[static_cast<std::size_t>(r)] *
                                across[static_cast<std::size_t>(c)] * at(i - 1 + c, j - 1 + r);
        return sum;
    }

    const Sampling& m_s;
    const std::vector<T>& m_x;
    std::size_t m_first;
};

struct GridSampleProgram {
    template <typename T>
    NumberLists<T> operator()(const KernelContext& context, Operands,
                              const NumberLists<T>& numbers) const {
        const Sampling s = samplingOf(context);
        const Shape out = context.resultShape(0);
        const auto channels = static_cast<std::size_t>(out[1]),
                   points = static_cast<std::size_t>(out[2] * out[3]),
                   pixels = static_cast<std::size_t>(s.h * s.w);
        std::vector<T> y;
        for (std::size_t b = 0; b < static_cast<std::size_t>(out[0]); ++b)
            for (std::size_t c = 0; c < channels; ++c) {
                const Channel<T> channel(s, numbers[0], (b * channels + c) * pixels);
                for (std::size_t p = 0; p < points; ++p) {
                    const std::size_t place = (b * points + p) * 2;
                    y.push_back(channel.sample(pixel(numbers[1][place], s.w, s.alignCorners),
                                               pixel(numbers[1][place + 1], s.h, s.alignCorners)));
                }
            }
        return {std::move(y)};
    }
};

} // namespace

Kernel gridSampleKernel() {
    return recordedKernel<GridSampleProgram>(OpKind::GridSample);
}

} // namespace shardlens::kernels
