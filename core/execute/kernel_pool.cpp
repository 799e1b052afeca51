// SPDX-License-Identifier: Apache-2.0
// Pooling: the maximum, mean or p-norm of a window of each channel, or of the whole channel.
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardlens::kernels {

namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

enum class PoolMode { Max, Average, Lp };

PoolMode modeOf(const KernelContext& context, const char* fallback) {
    const std::string mode = context.op().attributes.text("mode", fallback);
    return mode == "max" ? PoolMode::Max : mode == "lp" ? PoolMode::Lp : PoolMode::Average;
}

double powerOf(const KernelContext& context) {
    return static_cast<double>(context.op().attributes.integer("p", 2));
}

/// d(sum |x|^p)^(1/p) / dx, from the value y.
double normSlope(double x, double y, double p) {
    return y == 0 ? 0 : std::copysign(std::pow(std::abs(x) / y, p - 1), x);
}

struct Pooled {
    PoolMode mode = PoolMode::Max;
    double power = 2;
    bool countsPads = false;
    Shape image, windows, kernel;
    Window window;
    std::size_t channels = 0; ///< of all samples
};

Pooled pooled(const KernelContext& context) {
    const Shape x = context.operandShape(0), y = context.resultShape(0);
    Pooled p;
    p.mode = modeOf(context, "max");
    p.power = powerOf(context);
    p.countsPads = context.op().attributes.integer("count_include_pad", 0) != 0;
    p.image.assign(x.begin() + 2, x.end());
    p.windows.assign(y.begin() + 2, y.end());
    p.kernel = context.op().attributes.integers("kernel");
    p.window = windowOf(context, p.kernel);
    p.channels = static_cast<std::size_t>(x[0] * x[1]);
    return p;
}

/// What an average divides by: the taps inside the image, or inside its padding.
double countedIn(const Pooled& p, const Shape& at) {
    double count = 0;
    for (Counter tap(p.kernel); !tap.done(); tap.next()) {
        if (!p.countsPads) {
            count += placeOf(p.window, p.image, at, tap.index()) ? 1 : 0;
            continue;
        }
        bool inside = true;
        for (std::size_t d = 0; d < p.image.size(); ++d)
            inside =
                inside && at[d] * p.window.strides[d] + tap.index()[d] * p.window.dilations[d] <
                              p.image[d] + p.window.pads[d] + p.window.pads[d + p.image.size()];
        count += inside ? 1 : 0;
    }
    return count;
}

/// Calls use(place in the channel) for every tap of a window that lies in the image.
template <typename Use>
void eachPlace(const Pooled& p, const Shape& at, Use use) {
    for (Counter tap(p.kernel); !tap.done(); tap.next())
        if (const auto place = placeOf(p.window, p.image, at, tap.index())) use(*place);
}

/// Calls use(first element of the channel, window, result element) for every window.
template <typename Use>
void eachWindow(const Pooled& p, Use use) {
    const std::size_t image = countOf(p.image);
    std::size_t result = 0;
    for (std::size_t channel = 0; channel < p.channels; ++channel)
        for (Counter at(p.windows); !at.done(); at.next(), ++result)
            use(channel * image, at.index(), result);
}

/// The first of the largest of a window, as an element of x.
std::size_t winnerOf(const Pooled& p, const Numbers& x, std::size_t first, const Shape& at) {
    std::size_t winner = first;
    double most = kLowest;
    eachPlace(p, at, [&](std::size_t place) {
        if (x[first + place] <= most) return;
        most = x[first + place];
        winner = first + place;
    });
    return winner;
}

double pooledValue(const Pooled& p, const Numbers& x, std::size_t first, const Shape& at) {
    double sum = 0;
    switch (p.mode) {
    case PoolMode::Max:
        return x[winnerOf(p, x, first, at)];
    case PoolMode::Average:
        eachPlace(p, at, [&](std::size_t place) { sum += x[first + place]; });
        return sum / std::max(countedIn(p, at), 1.0);
    case PoolMode::Lp:
        eachPlace(p, at,
                  [&](std::size_t place) { sum += std::pow(std::abs(x[first + place]), p.power); });
        return std::pow(sum, 1 / p.power);
    }
    return 0;
}

/// The index in the whole of x of each local element.
Ints wholePlaces(const KernelContext& context) {
    const Shape whole = context.whole().inputs[0].shape, local = context.operandShape(0);
    const Strides strides = signedStrides(whole);
    std::ptrdiff_t first = 0;
    for (std::size_t d = 0; d < whole.size(); ++d) first += context.operandBegin(0, d) * strides[d];
    Ints places;
    for (StridedWalk at(local, {strides}); !at.done(); at.next())
        places.push_back(first + static_cast<std::ptrdiff_t>(at[0]));
    return places;
}

Arrays poolForward(const KernelContext& context, Operands operands) {
    const Pooled p = pooled(context);
    const Numbers x = numbersOf(*operands[0]);
    Numbers y(countOf(context.resultShape(0)));
    eachWindow(p, [&](std::size_t first, const Shape& at, std::size_t result) {
        y[result] = pooledValue(p, x, first, at);
    });
    Arrays results{resultOf(context, 0, std::move(y))};
    if (context.whole().outputs.size() < 2) return results;
    const Ints places = wholePlaces(context);
    results.push_back(emptyResult(context, 1));
    eachWindow(p, [&](std::size_t first, const Shape& at, std::size_t result) {
        results[1].ints[result] = places[winnerOf(p, x, first, at)];
    });
    return results;
}

Arrays poolBackward(const KernelContext& context, Operands operands, std::span<const Array> results,
                    std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr || !differentiable(operands, 0)) return given;
    const Pooled p = pooled(context);
    const Numbers &x = operands[0]->reals, &y = results[0].reals, &g = gradient->reals;
    given[0] = zerosLike(operands, 0);
    Numbers& to = given[0].reals;
    eachWindow(p, [&](std::size_t first, const Shape& at, std::size_t result) {
        if (p.mode == PoolMode::Max) {
            to[winnerOf(p, x, first, at)] += g[result];
            return;
        }
        const double count = p.mode == PoolMode::Average ? std::max(countedIn(p, at), 1.0) : 1;
        eachPlace(p, at, [&](std::size_t place) {
            const double slope = p.mode == PoolMode::Average
                                     ? 1 / count
                                     : normSlope(x[first + place], y[result], p.power);
            to[first + place] += g[result] * slope;
        });
    });
    return given;
}

// --- the whole channel --------------------------------------------------------------------------

struct Channels {
    std::size_t points = 1; ///< local elements of a channel
    double count = 1;       ///< of the whole op
    Array rows;             ///< one number a channel
};

Channels channelsOf(const KernelContext& context, double fill) {
    const Shape x = context.operandShape(0), whole = context.whole().inputs[0].shape;
    return {countOf({x.begin() + 2, x.end()}), elementsOf({whole.begin() + 2, whole.end()}),
            Array::real(context.resultShape(0), fill)};
}

/// A mean is left a partial sum; the maximum and the sum of powers are exchanged.
Arrays globalPoolForward(const KernelContext& context, Operands operands) {
    const PoolMode mode = modeOf(context, "average");
    const double p = powerOf(context);
    Channels c = channelsOf(context, mode == PoolMode::Max ? kLowest : 0);
    const Numbers x = numbersOf(*operands[0]);
    for (std::size_t i = 0; i < x.size(); ++i) {
        double& row = c.rows.reals[i / c.points];
        if (mode == PoolMode::Max) row = std::max(row, x[i]);
        if (mode == PoolMode::Average) row += x[i] / c.count;
        if (mode == PoolMode::Lp) row += std::pow(std::abs(x[i]), p);
    }
    if (mode != PoolMode::Average)
        context.allReduce(c.rows, mode == PoolMode::Max ? ReduceOp::Max : ReduceOp::Sum);
    if (mode == PoolMode::Lp)
        for (double& row : c.rows.reals) row = std::pow(row, 1 / p);
    return {resultOf(context, 0, std::move(c.rows.reals))};
}

Arrays globalPoolBackward(const KernelContext& context, Operands operands,
                          std::span<const Array> results, std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (gradient == nullptr || !differentiable(operands, 0)) return given;
    const PoolMode mode = modeOf(context, "average");
    const Numbers &x = operands[0]->reals, &y = results[0].reals;
    Channels c = channelsOf(context, 0);
    if (mode == PoolMode::Max) { // how many elements reach the maximum: they share the gradient
        for (std::size_t i = 0; i < x.size(); ++i)
            if (x[i] == y[i / c.points]) c.rows.reals[i / c.points] += 1;
        context.allReduce(c.rows, ReduceOp::Sum);
    }
    given[0] = zerosLike(operands, 0);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t row = i / c.points;
        const double slope = mode == PoolMode::Average ? 1 / c.count
                             : mode == PoolMode::Lp    ? normSlope(x[i], y[row], powerOf(context))
                             : x[i] == y[row]          ? 1 / c.rows.reals[row]
                                                       : 0;
        given[0].reals[i] = gradient->reals[row] * slope;
    }
    return given;
}

} // namespace

Kernel poolKernel() {
    return {OpKind::Pool, poolForward, poolBackward};
}
Kernel globalPoolKernel() {
    return {OpKind::GlobalPool, globalPoolForward, globalPoolBackward};
}

} // namespace shardlens::kernels
