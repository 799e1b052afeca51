// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding (Su et al. 2021): pairs of numbers of a head are turned by an angle
// that grows with the position. The tables of sines are computed in place, from the position of the
// local part in the whole sequence.
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"

#include <cmath>

namespace shardlens::kernels {

namespace {

/// Turns each pair by its angle, or back by it.
Numbers turned(const KernelContext& context, const Numbers& x, double direction) {
    const Shape shape = context.operandShape(0);
    const Attributes& attributes = context.op().attributes;
    const std::size_t rank = shape.size(), sequence = rank > 2 ? 1 : 0;
    const auto width = static_cast<std::size_t>(shape.back());
    const auto rotated =
        static_cast<std::size_t>(attributes.integer("width", static_cast<std::int64_t>(width)));
    const double base = attributes.number("base", 10000);
    const bool interleaved = attributes.integer("interleaved", 0) != 0;
    const std::int64_t first = context.operandBegin(0, sequence) + attributes.integer("past", 0);
    Numbers result = x;
    std::size_t row = 0;
    for (Counter at({shape.begin(), shape.end() - 1}); !at.done(); at.next(), row += width) {
        const double position = static_cast<double>(first + at.index()[sequence]);
        for (std::size_t pair = 0; pair < rotated / 2; ++pair) {
            const double angle = position * std::pow(base, -2 * static_cast<double>(pair) /
                                                               static_cast<double>(rotated));
            const std::size_t a = row + (interleaved ? 2 * pair : pair),
                              b = row + (interleaved ? 2 * pair + 1 : pair + rotated / 2);
            const double cosine = std::cos(angle), sine = direction * std::sin(angle);
            result[a] = x[a] * cosine - x[b] * sine;
            result[b] = x[b] * cosine + x[a] * sine;
        }
    }
    return result;
}

Arrays rotaryForward(const KernelContext& context, Operands operands) {
    return {resultOf(context, 0, turned(context, numbersOf(*operands[0]), 1))};
}

/// A turn's transpose is the turn back.
Arrays rotaryBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                      std::span<const Array> gradients) {
    Arrays given = noGradients(operands);
    if (const Array* gradient = gradientOf(gradients, 0))
        given[0] = realArray(gradient->shape, turned(context, gradient->reals, -1));
    return given;
}

} // namespace

Kernel rotaryKernel() {
    return {OpKind::Rotary, rotaryForward, rotaryBackward};
}

} // namespace shardlens::kernels
