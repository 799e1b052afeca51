// SPDX-License-Identifier: Apache-2.0
// Private to the scalar functions: the parts of their table, and the words it is written in. A row
// is a name with small lambdas; VALUE, DERIVATIVE and INTEGER stand for their heads.
#pragma once

#include "core/execute/scalar_functions.h"

#include <cmath>

namespace shardlens::scalars {

using S = ScalarSettings;

std::span<const ScalarFunction> unaryFunctions();
std::span<const ScalarFunction> severalFunctions(); ///< of several operands

inline double roundHalfEven(double x) {
    const double down = std::floor(x), rest = x - down;
    if (rest != 0.5) return std::round(x);
    return std::fmod(down, 2) == 0 ? down : down + 1;
}

// Integers wrap around; U64 is held in the same 64 bits.
inline std::uint64_t bitsOfInteger(std::int64_t x) {
    return static_cast<std::uint64_t>(x);
}
inline std::int64_t held(std::uint64_t x) {
    return static_cast<std::int64_t>(x);
}

} // namespace shardlens::scalars

#define VALUE [](Scalars x, [[maybe_unused]] const S& s) -> double
#define DERIVATIVE                                                                                 \
    []([[maybe_unused]] Scalars x, [[maybe_unused]] double y, [[maybe_unused]] std::size_t i,      \
       [[maybe_unused]] const S& s) -> double
#define INTEGER [](Integers x, [[maybe_unused]] const S& s) -> std::int64_t
