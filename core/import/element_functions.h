// SPDX-License-Identifier: Apache-2.0
// The scalar functions of Elementwise ops, as far as shape arithmetic uses them.
#pragma once

#include "core/import/known_values.h"

#include <span>

namespace shardlens {

/// The attributes of an op that applies this function.
inline Attributes functionOf(std::string_view function) {
    return {{"function", std::string(function)}};
}

/// Converts as ONNX's Cast does: integers wrap to the width of the type, bools are 0 or 1, floats
/// lose their fraction. std::nullopt where the result is not defined (infinity to integer).
std::optional<KnownValues::Scalar> castTo(const KnownValues::Scalar& value, DType dtype);

/// Applies `attributes["function"]`. std::nullopt for functions that are not shape arithmetic, and
/// for results that are not defined (overflow, division by zero).
/// @param dtype of the result
std::optional<KnownValues::Scalar> applyFunction(const Attributes& attributes,
                                                 std::span<const KnownValues::Scalar> arguments,
                                                 DType dtype);

} // namespace shardlens
