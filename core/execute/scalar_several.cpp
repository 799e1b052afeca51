// SPDX-License-Identifier: Apache-2.0
// Functions of several operands.
#include "core/execute/array.h"
#include "core/execute/scalar_tables.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace shardlens::scalars {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double floorMod(double a, double b) {
    return a - std::floor(a / b) * b;
}
double modDerivative(Scalars x, double, std::size_t i, const S& s) {
    const double quotient = x[0] / x[1];
    if (i == 0) return 1;
    return s.flag ? -std::trunc(quotient) : -std::floor(quotient);
}

double powDerivative(Scalars x, double y, std::size_t i, const S&) {
    if (i == 0) return x[1] == 0 ? 0 : x[1] * std::pow(x[0], x[1] - 1);
    return x[0] > 0 ? y * std::log(x[0]) : 0;
}

/// The largest or smallest operands share the gradient.
double extremeDerivative(Scalars x, double y, std::size_t i, const S&) {
    return x[i] == y ? 1 / static_cast<double>(std::ranges::count(x, y)) : 0;
}

/// Bounds stand in attributes, or are operands 1 and 2.
double clip(Scalars x, const S& s) {
    const double low = x.size() > 1 ? x[1] : s.alpha, high = x.size() > 2 ? x[2] : s.beta;
    return std::min(std::max(x[0], low), high);
}
double clipDerivative(Scalars x, double y, std::size_t i, const S& s) {
    const double high = x.size() > 2 ? x[2] : s.beta;
    if (i == 0) return x[0] == y ? 1 : 0;
    if (i == 2) return std::max(x[0], x[1]) > high ? 1 : 0;
    return y == x[1] && x[0] < x[1] && y < high ? 1 : 0;
}

/// Rounds half to even, then saturates to the type of the result (ONNX QuantizeLinear).
double quantize(Scalars x, const S& s) {
    const double scale = x.size() > 1 ? x[1] : 1, zero = x.size() > 2 ? x[2] : 0;
    if (!isHeldAsInteger(s.to)) return x[0] / scale + zero;
    const int bits = bitsOf(s.to);
    const bool isUnsigned =
        s.to == DType::U8 || s.to == DType::U16 || s.to == DType::U4 || s.to == DType::U32;
    const double high = std::ldexp(1.0, isUnsigned ? bits : bits - 1) - 1;
    const double low = isUnsigned ? 0 : -high - 1;
    return std::clamp(roundHalfEven(x[0] / scale) + zero, low, high);
}
double dequantize(Scalars x, const S&) {
    return (x[0] - (x.size() > 2 ? x[2] : 0)) * (x.size() > 1 ? x[1] : 1);
}
double dequantizeDerivative(Scalars x, double, std::size_t i, const S&) {
    const double scale = x.size() > 1 ? x[1] : 1, zero = x.size() > 2 ? x[2] : 0;
    return i == 0 ? scale : i == 1 ? x[0] - zero : -scale;
}

// --- integers: they wrap around; U64 is held in the same 64 bits ---------------------------------

bool isLess(std::int64_t a, std::int64_t b, const S& s) {
    return s.from == DType::U64 ? bitsOfInteger(a) < bitsOfInteger(b) : a < b;
}

template <typename Combine>
std::int64_t folded(Integers x, Combine combine) {
    std::uint64_t result = bitsOfInteger(x[0]);
    for (const std::int64_t next : x.subspan(1)) result = combine(result, bitsOfInteger(next));
    return held(result);
}

std::int64_t divided(Integers x, const S& s) {
    if (x[1] == 0) return 0;
    if (s.from == DType::U64) return held(bitsOfInteger(x[0]) / bitsOfInteger(x[1]));
    return x[1] == -1 ? held(0 - bitsOfInteger(x[0])) : x[0] / x[1];
}

/// With `fmod` the sign of the dividend, else that of the divisor (Python's %).
std::int64_t remainder(Integers x, const S& s) {
    if (x[1] == 0 || x[1] == -1) return 0;
    if (s.from == DType::U64) return held(bitsOfInteger(x[0]) % bitsOfInteger(x[1]));
    const std::int64_t rest = x[0] % x[1];
    return !s.flag && rest != 0 && (rest < 0) != (x[1] < 0) ? rest + x[1] : rest;
}

std::int64_t integerPower(Integers x, const S&) {
    if (x[1] < 0) return x[0] == 1 ? 1 : x[0] == -1 ? (x[1] % 2 == 0 ? 1 : -1) : 0;
    std::uint64_t result = 1, square = bitsOfInteger(x[0]);
    for (std::uint64_t left = bitsOfInteger(x[1]); left > 0; left >>= 1, square *= square)
        if (left & 1) result *= square;
    return held(result);
}

std::int64_t shifted(Integers x, const S& s) {
    const std::uint64_t by = bitsOfInteger(x[1]);
    if (by >= 64) return 0;
    return held(s.flag ? bitsOfInteger(x[0]) << by : bitsOfInteger(x[0]) >> by);
}

std::int64_t largest(Integers x, const S& s) {
    return *std::ranges::max_element(x, [&](auto a, auto b) { return isLess(a, b, s); });
}
std::int64_t smallest(Integers x, const S& s) {
    return *std::ranges::min_element(x, [&](auto a, auto b) { return isLess(a, b, s); });
}

std::int64_t integerClip(Integers x, const S& s) {
    const auto inside = [&](std::int64_t value, double bound, bool low) {
        if (std::isinf(bound)) return value;
        const auto limit = static_cast<std::int64_t>(bound);
        return isLess(value, limit, s) == low ? limit : value;
    };
    if (x.size() == 1) {
        const std::int64_t raised = inside(x[0], s.alpha, true);
        return inside(raised, s.beta, false);
    }
    const std::int64_t raised = isLess(x[0], x[1], s) ? x[1] : x[0];
    return x.size() > 2 && isLess(x[2], raised, s) ? x[2] : raised;
}

const ScalarFunction kNary[] = {{"add", VALUE{return x[0] + x[1];
} // namespace
, DERIVATIVE {
    return 1;
}
, INTEGER {
    return held(bitsOfInteger(x[0]) + bitsOfInteger(x[1]));
}
} // namespace shardlens::scalars
, {"sub", VALUE{return x[0] - x[1];
}
, DERIVATIVE {
    return i == 0 ? 1 : -1;
}
, INTEGER {
    return held(bitsOfInteger(x[0]) - bitsOfInteger(x[1]));
}
}
, {"mul", VALUE{return x[0] * x[1];
}
, DERIVATIVE {
    return x[1 - i];
}
, INTEGER {
    return held(bitsOfInteger(x[0]) * bitsOfInteger(x[1]));
}
}
, {"div", VALUE{return x[0] / x[1];
}
, DERIVATIVE {
    return i == 0 ? 1 / x[1] : -y / x[1];
}
, divided
}
, {"mod", VALUE{return s.flag ? std::fmod(x[0], x[1]) : floorMod(x[0], x[1]);
}
, modDerivative, remainder
}
, {"pow", VALUE{return std::pow(x[0], x[1]);
}
, powDerivative, integerPower
}
, {"atan2", VALUE{return std::atan2(x[0], x[1]);
}
, DERIVATIVE {
    return (i == 0 ? x[1] : -x[0]) / (x[0] * x[0] + x[1] * x[1]);
}
}
, {"prelu", VALUE{return x[0] < 0 ? x[1] * x[0] : x[0];
}
, DERIVATIVE {
    return x[0] < 0 ? (i == 0 ? x[1] : x[0]) : (i == 0 ? 1 : 0);
}
, INTEGER {
    return x[0] < 0 ? x[1] * x[0] : x[0];
}
}
, {"clip", clip, clipDerivative, integerClip, "min", "max", -kInfinity, kInfinity},
    {"where", VALUE{return x[0] != 0 ? x[1] : x[2];
}
, DERIVATIVE {
    return i != 0 && (x[0] != 0) == (i == 1) ? 1 : 0;
}
, INTEGER {
    return x[0] != 0 ? x[1] : x[2];
}
}
, {"and", VALUE{return x[0] != 0 && x[1] != 0;
}
, nullptr, INTEGER {
    return x[0] != 0 && x[1] != 0;
}
}
, {"or", VALUE{return x[0] != 0 || x[1] != 0;
}
, nullptr, INTEGER {
    return x[0] != 0 || x[1] != 0;
}
}
, {"xor", VALUE{return (x[0] != 0) != (x[1] != 0);
}
, nullptr, INTEGER {
    return (x[0] != 0) != (x[1] != 0);
}
}
, {"bitwiseand", nullptr, nullptr, INTEGER{return x[0] & x[1];
}
}
, {"bitwiseor", nullptr, nullptr, INTEGER{return x[0] | x[1];
}
}
, {"bitwisexor", nullptr, nullptr, INTEGER{return x[0] ^ x[1];
}
}
, {"bitshift", nullptr, nullptr, shifted}, {"equal", VALUE{return x[0] == x[1];
}
, nullptr, INTEGER {
    return x[0] == x[1];
}
}
, {"notequal", VALUE{return x[0] != x[1];
}
, nullptr, INTEGER {
    return x[0] != x[1];
}
}
, {"less", VALUE{return x[0] < x[1];
}
, nullptr, INTEGER {
    return isLess(x[0], x[1], s);
}
}
, {"greater", VALUE{return x[0] > x[1];
}
, nullptr, INTEGER {
    return isLess(x[1], x[0], s);
}
}
, {"lessorequal", VALUE{return x[0] <= x[1];
}
, nullptr, INTEGER {
    return !isLess(x[1], x[0], s);
}
}
, {"greaterorequal", VALUE{return x[0] >= x[1];
}
, nullptr, INTEGER {
    return !isLess(x[0], x[1], s);
}
}
, {"sum", VALUE{double total = 0;
for (const double each : x) total += each;
return total;
}
, DERIVATIVE {
    return 1;
}
, INTEGER {
    return folded(x, std::plus<>{});
}
}
, {"mean", VALUE{double total = 0;
for (const double each : x) total += each;
return total / static_cast<double>(x.size());
}
, DERIVATIVE {
    return 1 / static_cast<double>(x.size());
}
}
, {"max", VALUE{return *std::ranges::max_element(x);
}
, extremeDerivative, largest
}
, {"min", VALUE{return *std::ranges::min_element(x);
}
, extremeDerivative, smallest
}
, {"quantize", quantize}, {"dequantize", dequantize, dequantizeDerivative},
}
;

} // namespace

std::span<const ScalarFunction> severalFunctions() {
    return kNary;
}

} // namespace shardlens::scalars

#undef VALUE
#undef DERIVATIVE
#undef INTEGER
