// SPDX-License-Identifier: Apache-2.0
// Element types of results, and gradients of broadcast operands.
#include "core/execute/kernel_support.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shardlens::kernels {

void fail(const KernelContext& context, std::string_view problem) {
    throw Error(std::string(problem),
                fmt::format("op '{}' ({})", context.op().name, nameOf(context.op().kind)));
}

Numbers numbersOf(const Array& array) {
    if (!array.integral) return array.reals;
    return {array.ints.begin(), array.ints.end()};
}

Array realArray(Shape shape, Numbers numbers) {
    assert(numbers.size() == countOf(shape));
    Array array;
    array.shape = std::move(shape);
    array.reals = std::move(numbers);
    return array;
}

Array emptyResult(const KernelContext& context, std::size_t r) {
    return Array::zeros(context.whole().outputs[r], context.resultShape(r));
}

Array resultOf(const KernelContext& context, std::size_t r, Numbers numbers) {
    const DType dtype = context.whole().outputs[r].dtype;
    if (!isHeldAsInteger(dtype)) return realArray(context.resultShape(r), std::move(numbers));
    Array result = emptyResult(context, r);
    std::ranges::transform(numbers, result.ints.begin(),
                           [dtype](double x) { return integerFrom(dtype, x); });
    return result;
}

std::int64_t wrapped(DType dtype, std::int64_t value) {
    if (dtype == DType::Bool) return value != 0 ? 1 : 0;
    const int bits = bitsOf(dtype);
    if (bits == 0 || bits >= 64) return value;
    const auto unused = static_cast<unsigned>(64 - bits);
    const std::uint64_t kept = static_cast<std::uint64_t>(value) << unused;
    const bool isSigned =
        dtype == DType::I32 || dtype == DType::I16 || dtype == DType::I8 || dtype == DType::I4;
    return isSigned ? static_cast<std::int64_t>(kept) >> unused
                    : static_cast<std::int64_t>(kept >> unused);
}

std::int64_t integerFrom(DType dtype, double value) {
    constexpr double kTwo63 = 9223372036854775808.0;
    if (dtype == DType::Bool) return value != 0 ? 1 : 0;
    if (std::isnan(value)) return 0;
    if (dtype == DType::U64 && value >= kTwo63)
        return static_cast<std::int64_t>(
            static_cast<std::uint64_t>(std::min(value, 2 * kTwo63 - 2048)));
    const double held = std::clamp(value, -kTwo63, kTwo63 - 1024);
    return wrapped(dtype, static_cast<std::int64_t>(held));
}

std::size_t axisOf(const KernelContext& context, std::size_t rank) {
    const std::int64_t axis = context.op().attributes.integer("axis", 0);
    return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

bool hasOperand(Operands operands, std::size_t i) {
    return i < operands.size() && operands[i] != nullptr;
}

bool differentiable(Operands operands, std::size_t i) {
    return hasOperand(operands, i) && !operands[i]->integral;
}

Arrays noGradients(Operands operands) {
    return Arrays(operands.size());
}

const Array* gradientOf(std::span<const Array> gradients, std::size_t result) {
    return result < gradients.size() && !gradients[result].empty() ? &gradients[result] : nullptr;
}

Array zerosLike(Operands operands, std::size_t i) {
    return Array::real(operands[i]->shape);
}

Array summedTo(const Array& gradient, const Shape& shape) {
    Array sum = Array::real(shape);
    for (StridedWalk at(gradient.shape,
                        {signedStrides(gradient.shape), broadcastStrides(shape, gradient.shape)});
         !at.done(); at.next())
        sum.reals[at[1]] += gradient.reals[at[0]];
    return sum;
}

} // namespace shardlens::kernels
