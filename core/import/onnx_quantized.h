// SPDX-License-Identifier: Apache-2.0
// What the quantised forms of products and convolutions share: zero points are taken off before
// the product, and its 32-bit sums are rounded to the result's type behind it.
#pragma once

#include "core/import/onnx_translation.h"

#include <array>

namespace shardlens::onnx {

/// Operand `x` as 32-bit integers without its zero point, operand `zero`; `x` itself where there is
/// none or it is known to be 0. @param axis what a zero point for each of several belongs to;
/// negative: from the end
TensorId withoutZeroPoint(Translation& t, std::size_t x, std::size_t zero, std::int64_t axis);

/// The node's result: sums * scale a * scale b / scale y, rounded, with the zero point of y.
/// @param operands scale a, scale b, scale y, zero point y
/// @param axis of the result that a scale for each of several belongs to; negative: from the end
void requantize(Translation& t, TensorId sums, const std::array<std::size_t, 4>& operands,
                std::int64_t axis);

/// DynamicQuantizeLinear: scale and zero point of all 8 bits from the operand's own range.
void dynamicQuantize(Translation& t, std::string_view);

} // namespace shardlens::onnx
