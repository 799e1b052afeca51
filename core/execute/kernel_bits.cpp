// SPDX-License-Identifier: Apache-2.0
// Sorts that carry other operands along, the bits of numbers as another type, and random bits from
// a state.
#include "core/execute/feeds.h"
#include "core/execute/kernel_parts.h"
#include "core/execute/kernel_support.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace shardlens::kernels {

namespace {

// --- Sort ---------------------------------------------------------------------------------------

/// Of each element of the result the element of the operands that is put there.
std::vector<std::size_t> sortedPlaces(const KernelContext& context, const Array& keys,
                                      const Shape& result) {
    std::int64_t axis = context.op().attributes.integer("axis", -1);
    if (axis < 0) axis += static_cast<std::int64_t>(keys.shape.size());
    const auto along = static_cast<std::size_t>(axis);
    const bool descending = context.op().attributes.integer("descending", 0) != 0;
    const Strides in = signedStrides(keys.shape), out = signedStrides(result);
    const auto stride = static_cast<std::size_t>(in[along]),
               step = static_cast<std::size_t>(out[along]),
               kept = static_cast<std::size_t>(result[along]);
    std::vector<std::size_t> places(countOf(result)),
        order(static_cast<std::size_t>(keys.shape[along]));
    Shape lines = keys.shape;
    lines[along] = 1;
    for (StridedWalk at(lines, {in, out}); !at.done(); at.next()) {
        const std::size_t first = at[0];
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
            if (descending) std::swap(a, b);
            const std::size_t i = first + a * stride, j = first + b * stride;
            return keys.integral ? keys.ints[i] < keys.ints[j] : keys.reals[i] < keys.reals[j];
        });
        for (std::size_t i = 0; i < kept; ++i) places[at[1] + i * step] = first + order[i] * stride;
    }
    return places;
}

Arrays sortForward(const KernelContext& context, Operands operands) {
    const auto places = sortedPlaces(context, *operands[0], context.resultShape(0));
    Arrays results;
    for (const Array* operand : operands) {
        Array result = Array::like(*operand, context.resultShape(0));
        for (std::size_t i = 0; i < places.size(); ++i) {
            if (result.integral)
                result.ints[i] = operand->ints[places[i]];
            else
                result.reals[i] = operand->reals[places[i]];
        }
        results.push_back(std::move(result));
    }
    return results;
}

Arrays sortBackward(const KernelContext& context, Operands operands, std::span<const Array>,
                    std::span<const Array> gradients) {
    const auto places = sortedPlaces(context, *operands[0], context.resultShape(0));
    Arrays given = noGradients(operands);
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const Array* gradient = gradientOf(gradients, i);
        if (gradient == nullptr || !differentiable(operands, i)) continue;
        given[i] = zerosLike(operands, i);
        for (std::size_t e = 0; e < places.size(); ++e)
            given[i].reals[places[e]] += gradient->reals[e];
    }
    return given;
}

// --- Bitcast ------------------------------------------------------------------------------------

std::uint64_t lowBits(int count) {
    return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

/// The bits of an element. @throws Error for floating-point types narrower than 32 bits
std::uint64_t bitsAt(const KernelContext& context, const Array& array, std::size_t i, DType dtype) {
    if (array.integral) return static_cast<std::uint64_t>(array.ints[i]) & lowBits(bitsOf(dtype));
    if (dtype == DType::F64) return std::bit_cast<std::uint64_t>(array.reals[i]);
    if (dtype == DType::F32)
        return std::bit_cast<std::uint32_t>(static_cast<float>(array.reals[i]));
    fail(context, "the bits of this element type are not known");
}

void setBits(const KernelContext& context, Array& array, std::size_t i, DType dtype,
             std::uint64_t bits) {
    if (array.integral)
        array.ints[i] = wrapped(dtype, static_cast<std::int64_t>(bits));
    else if (dtype == DType::F64)
        array.reals[i] = std::bit_cast<double>(bits);
    else if (dtype == DType::F32)
        array.reals[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    else
        fail(context, "the bits of this element type are not known");
}

Arrays bitcastForward(const KernelContext& context, Operands operands) {
    const DType from = context.whole().inputs[0].dtype, to = context.whole().outputs[0].dtype;
    const auto in = bitsOf(from), out = bitsOf(to);
    Array result = emptyResult(context, 0);
    const auto parts = static_cast<std::size_t>(std::max(in, out) / std::min(in, out));
    for (std::size_t i = 0; i < result.size(); ++i) {
        std::uint64_t bits = 0;
        if (in >= out) {
            const auto shift = static_cast<unsigned>(i % parts) * static_cast<unsigned>(out);
            bits = (bitsAt(context, *operands[0], i / parts, from) >> shift) & lowBits(out);
        } else {
            for (std::size_t p = 0; p < parts; ++p)
                bits |= bitsAt(context, *operands[0], i * parts + p, from)
                        << (static_cast<unsigned>(p) * static_cast<unsigned>(in));
        }
        setBits(context, result, i, to, bits);
    }
    return {std::move(result)};
}

// --- RandomBits ---------------------------------------------------------------------------------

/// Bits that depend on the state and the element's place: which ones is left to the algorithm, and
/// none of them is imitated. The state counts the elements that were made.
Arrays randomBitsForward(const KernelContext& context, Operands operands) {
    Array state = *operands[0], bits = emptyResult(context, 1);
    std::uint64_t seed = 0;
    for (const std::int64_t word : state.ints)
        seed = (seed ^ static_cast<std::uint64_t>(word)) * 0x9E3779B97F4A7C15ULL;
    const std::vector<std::uint64_t> places = wholeIndices(context, 1);
    const DType dtype = context.whole().outputs[1].dtype;
    constexpr double kTwo32 = 4294967296.0;
    for (std::size_t i = 0; i < bits.size(); ++i) {
        const auto half = [&](std::uint64_t which) {
            return static_cast<std::uint64_t>(uniformAt(seed, 2 * places[i] + which) * kTwo32);
        };
        setBits(context, bits, i, dtype, (half(0) << 32 | half(1)) & lowBits(bitsOf(dtype)));
    }
    if (!state.ints.empty())
        state.ints.back() =
            wrapped(context.whole().outputs[0].dtype,
                    state.ints.back() +
                        static_cast<std::int64_t>(elementsOf(context.whole().outputs[1].shape)));
    return {std::move(state), std::move(bits)};
}

} // namespace

} // namespace shardlens::kernels

namespace shardlens {

std::vector<Kernel> matrixKernels() {
    using namespace kernels;
    return {
        linearAlgebraKernel(),
        fourierKernel(),
        {OpKind::Sort, sortForward, sortBackward},
        {OpKind::Bitcast, bitcastForward, nullptr},
        {OpKind::RandomBits, randomBitsForward, nullptr},
    };
}

} // namespace shardlens
