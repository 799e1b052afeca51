// SPDX-License-Identifier: Apache-2.0
// Ops whose elements depend on where they lie: tensors made from positions alone, one-hot,
// triangles, reversed sequences.
#include "core/execute/feeds.h"
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"

#include <cmath>
#include <numbers>

namespace shardlens::kernels {

namespace {

// --- Generate -----------------------------------------------------------------------------------

/// Normal noise by the transform of Box and Muller (1958).
double normalAt(std::uint64_t seed, std::uint64_t index) {
    const double radius = std::sqrt(-2 * std::log(1 - uniformAt(seed, 2 * index)));
    return radius * std::cos(2 * std::numbers::pi * uniformAt(seed, 2 * index + 1));
}

Numbers noise(const KernelContext& context, bool normal) {
    const Attributes& a = context.op().attributes;
    const auto seed = static_cast<std::uint64_t>(std::llround(a.number("seed", 0)));
    const double low = a.number("low", 0), high = a.number("high", 1);
    Numbers numbers;
    for (const std::uint64_t index : wholeIndices(context, 0))
        numbers.push_back(normal
                              ? a.number("mean", 0) + a.number("scale", 1) * normalAt(seed, index)
                              : low + (high - low) * uniformAt(seed, index));
    return numbers;
}

Arrays generateForward(const KernelContext& context, Operands) {
    const Attributes& a = context.op().attributes;
    const std::string function = a.text("function", "constant");
    const Shape shape = context.resultShape(0);
    if (function == "normal" || function == "uniform")
        return {resultOf(context, 0, noise(context, function == "normal"))};
    Numbers numbers;
    const auto at = [&](const Counter& counter, std::size_t d) {
        return context.resultBegin(0, d) + counter.index()[d];
    };
    for (Counter counter(shape); !counter.done(); counter.next()) {
        if (function == "range")
            numbers.push_back(a.number("start", 0) +
                              a.number("step", 1) * static_cast<double>(at(counter, 0)));
        else if (function == "eye")
            numbers.push_back(at(counter, 1) - at(counter, 0) == a.integer("diagonal", 0) ? 1 : 0);
        else if (function == "constant")
            numbers.push_back(a.number("value", 0));
        else
            fail(context, "there is no generator '" + function + "'");
    }
    return {resultOf(context, 0, std::move(numbers))};
}

// --- OneHot -------------------------------------------------------------------------------------

/// By element of the result: 1 where the index says so, else 0: which of the two values it is.
std::vector<std::size_t> hotElements(const KernelContext& context, const Array& indices) {
    const Shape shape = context.resultShape(0);
    const std::int64_t axis = context.op().attributes.integer("axis", 0),
                       depth = context.whole().outputs[0].shape[static_cast<std::size_t>(axis)],
                       begin = context.resultBegin(0, static_cast<std::size_t>(axis));
    const Strides strides = signedStrides(indices.shape);
    std::vector<std::size_t> hot;
    for (Counter at(shape); !at.done(); at.next()) {
        std::ptrdiff_t place = 0;
        for (std::size_t d = 0; d < indices.shape.size(); ++d)
            place += at.index()[d < static_cast<std::size_t>(axis) ? d : d + 1] * strides[d];
        std::int64_t index = indices.ints[static_cast<std::size_t>(place)];
        if (index < 0) index += depth;
        hot.push_back(index == begin + at.index()[static_cast<std::size_t>(axis)] ? 1 : 0);
    }
    return hot;
}

/// Indices may be held as any type of number.
Array asIndices(const Array& array) {
    if (array.integral) return array;
    Array indices = Array::integer(array.shape);
    for (std::size_t i = 0; i < array.size(); ++i)
        indices.ints[i] = static_cast<std::int64_t>(array.reals[i]);
    return indices;
}

Arrays oneHotForward(const KernelContext& context, Operands operands) {
    Numbers numbers;
    for (const std::size_t which : hotElements(context, asIndices(*operands[0])))
        numbers.push_back(operands[1]->at(which));
    return {resultOf(context, 0, std::move(numbers))};
}

Arrays oneHotBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                      std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    const Array* gradient = gradientOf(gradients, 0);
    if (differentiable(operands, 0)) given[0] = zerosLike(operands, 0); // steps: zero slope
    if (gradient == nullptr || !differentiable(operands, 1)) return given;
    given[1] = zerosLike(operands, 1);
    const auto hot = hotElements(context, asIndices(*operands[0]));
    for (std::size_t i = 0; i < hot.size(); ++i) given[1].reals[hot[i]] += gradient->reals[i];
    return given;
}

// --- Trilu --------------------------------------------------------------------------------------

/// x where the triangle is, 0 elsewhere; its own gradient.
Array triangle(const KernelContext& context, Array x) {
    const std::size_t rank = x.shape.size();
    const bool upper = context.op().attributes.integer("upper", 1) != 0;
    const std::int64_t diagonal = context.op().attributes.integer("diagonal", 0),
                       offset = context.resultBegin(0, rank - 1) - context.resultBegin(0, rank - 2);
    std::size_t i = 0;
    for (Counter at(x.shape); !at.done(); at.next(), ++i) {
        const std::int64_t right = at.index()[rank - 1] - at.index()[rank - 2] + offset;
        if (upper ? right >= diagonal : right <= diagonal) continue;
        if (x.integral)
            x.ints[i] = 0;
        else
            x.reals[i] = 0;
    }
    return x;
}

Arrays triluForward(const KernelContext& context, Operands operands) {
    return {triangle(context, *operands[0])};
}

Arrays triluBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                     std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    if (const Array* gradient = gradientOf(gradients, 0)) given[0] = triangle(context, *gradient);
    return given;
}

// --- ReverseSequence ----------------------------------------------------------------------------

/// Its own inverse, and so its own gradient.
Array reversed(const KernelContext& context, const Array& x, const Array& lengths) {
    const Attributes& a = context.op().attributes;
    const auto batch = static_cast<std::size_t>(a.integer("batch_axis", 1)),
               time = static_cast<std::size_t>(a.integer("time_axis", 0));
    const Strides strides = signedStrides(x.shape);
    Array result = Array::like(x, x.shape);
    std::size_t i = 0;
    for (Counter at(x.shape); !at.done(); at.next(), ++i) {
        const std::int64_t length = lengths.ints[static_cast<std::size_t>(at.index()[batch])],
                           t = at.index()[time];
        const std::int64_t moved = t < length ? length - 1 - 2 * t : 0;
        const auto from =
            static_cast<std::size_t>(static_cast<std::ptrdiff_t>(i) + moved * strides[time]);
        if (x.integral)
            result.ints[i] = x.ints[from];
        else
            result.reals[i] = x.reals[from];
    }
    return result;
}

Arrays reverseForward(const KernelContext& context, Operands operands) {
    return {reversed(context, *operands[0], *operands[1])};
}

Arrays reverseBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                       std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    if (const Array* gradient = gradientOf(gradients, 0))
        given[0] = reversed(context, *gradient, *operands[1]);
    return given;
}

} // namespace

} // namespace shardlens::kernels

namespace shardlens {

std::vector<Kernel> positionKernels() {
    using namespace kernels;
    return {
        {OpKind::Generate, generateForward, nullptr},
        {OpKind::OneHot, oneHotForward, oneHotBackward},
        {OpKind::Trilu, triluForward, triluBackward},
        {OpKind::ReverseSequence, reverseForward, reverseBackward},
    };
}

} // namespace shardlens
