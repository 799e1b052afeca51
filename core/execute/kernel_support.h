// SPDX-License-Identifier: Apache-2.0
// Private to the kernels: what every family needs to make results and gradients.
#pragma once

#include "core/execute/kernel.h"
#include "core/execute/strided.h"

#include <string_view>

namespace shardlens::kernels {

using Ints = std::vector<std::int64_t>;
using Numbers = std::vector<double>;

/// @throws Error naming the op
[[noreturn]] void fail(const KernelContext& context, std::string_view problem);

/// The elements as doubles, whatever they are held as.
Numbers numbersOf(const Array& array);
/// A floating-point array. @pre numbers.size() == countOf(shape)
Array realArray(Shape shape, Numbers numbers);
/// Result `r` in its own element type: integers are truncated and wrapped to the type's width.
Array resultOf(const KernelContext& context, std::size_t r, Numbers numbers);
/// Zeros in the shape and type of result `r`.
Array emptyResult(const KernelContext& context, std::size_t r);

/// An integer as an element of this type holds it: bools are 0 or 1, others wrap around. U64 is
/// held in the same 64 bits.
std::int64_t wrapped(DType dtype, std::int64_t value);
/// Likewise from a number, whose fraction is dropped; NaN gives 0.
std::int64_t integerFrom(DType dtype, double value);

/// The attribute "axis", 0 if absent, counted from the front. @param rank of what it is an axis of
std::size_t axisOf(const KernelContext& context, std::size_t rank);
bool hasOperand(Operands operands, std::size_t i);
/// Whether a gradient can flow to the operand: it is there and holds floating-point numbers.
bool differentiable(Operands operands, std::size_t i);
/// One "none" an operand.
Arrays noGradients(Operands operands);
/// The gradient of a result, if one flows.
const Array* gradientOf(std::span<const Array> gradients, std::size_t result);
/// Zeros in the operand's shape.
Array zerosLike(Operands operands, std::size_t i);

/// What a gradient is for an operand of `shape` that was broadcast: summed where it is repeated.
Array summedTo(const Array& gradient, const Shape& shape);

} // namespace shardlens::kernels
