// SPDX-License-Identifier: Apache-2.0
// The functions of Elementwise ops on one element, with their derivatives: one table, so that what
// an attribute means stands beside what it does.
#pragma once

#include "core/model/op.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace shardlens {

/// An op's attributes as its function reads them, with defaults filled in.
struct ScalarSettings {
    double alpha = 0, beta = 0;  ///< the function's first and second number, see the table
    bool flag = false;           ///< its switch
    DType from = DType::Unknown; ///< of operand 0
    DType to = DType::Unknown;   ///< of the result
};

using Scalars = std::span<const double>;
using Integers = std::span<const std::int64_t>;

struct ScalarFunction {
    std::string_view name;
    double (*value)(Scalars x, const ScalarSettings&) = nullptr;
    /// By operand i; y is the value. nullptr: zero almost everywhere, nothing flows back.
    double (*derivative)(Scalars x, double y, std::size_t i, const ScalarSettings&) = nullptr;
    /// Where every operand and the result is an integer or a bool; nullptr: as for numbers.
    std::int64_t (*integer)(Integers x, const ScalarSettings&) = nullptr;
    std::string_view alphaName = {}, betaName = {}; ///< attributes of the op
    double alpha = 0, beta = 0;                     ///< where the op does not have them
};

/// nullptr if there is no such function.
const ScalarFunction* findScalarFunction(std::string_view name);
ScalarSettings scalarSettings(const ScalarFunction& function, const Attributes& attributes,
                              DType from, DType to);

} // namespace shardlens
