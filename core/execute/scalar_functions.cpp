// SPDX-License-Identifier: Apache-2.0
// Definitions follow ONNX where it has the function (onnx/defs/math), else PyTorch.
#include "core/execute/scalar_functions.h"

#include "core/execute/array.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace shardlens {

namespace {

using S = ScalarSettings;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double sigmoidOf(double x) {
    return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}
double softplusOf(double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}
double normalDensity(double x) {
    return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
}
double normalCumulative(double x) {
    return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

// --- gelu: x * Phi(x), or its approximation by tanh --------------------------------------------

constexpr double kGeluCube = 0.044715;
double geluInner(double x) {
    return std::sqrt(2 / std::numbers::pi) * (x + kGeluCube * x * x * x);
}
double gelu(Scalars x, const S& s) {
    return s.flag ? 0.5 * x[0] * (1 + std::tanh(geluInner(x[0]))) : x[0] * normalCumulative(x[0]);
}
double geluDerivative(Scalars x, double, std::size_t, const S& s) {
    if (!s.flag) return normalCumulative(x[0]) + x[0] * normalDensity(x[0]);
    const double t = std::tanh(geluInner(x[0]));
    const double inner = std::sqrt(2 / std::numbers::pi) * (1 + 3 * kGeluCube * x[0] * x[0]);
    return 0.5 * (1 + t) + 0.5 * x[0] * (1 - t * t) * inner;
}

double mishDerivative(Scalars x, double, std::size_t, const S&) {
    const double t = std::tanh(softplusOf(x[0]));
    return t + x[0] * (1 - t * t) * sigmoidOf(x[0]);
}

double silu(Scalars x, const S& s) {
    return x[0] * sigmoidOf(s.alpha * x[0]);
}
double siluDerivative(Scalars x, double, std::size_t, const S& s) {
    const double p = sigmoidOf(s.alpha * x[0]);
    return p + s.alpha * x[0] * p * (1 - p);
}

double roundHalfEven(double x) {
    const double down = std::floor(x), rest = x - down;
    if (rest != 0.5) return std::round(x);
    return std::fmod(down, 2) == 0 ? down : down + 1;
}

// --- several operands ---------------------------------------------------------------------------

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

std::uint64_t bitsOfInteger(std::int64_t x) {
    return static_cast<std::uint64_t>(x);
}
std::int64_t held(std::uint64_t x) {
    return static_cast<std::int64_t>(x);
}
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

// --- the table ----------------------------------------------------------------------------------

#define VALUE [](Scalars x, [[maybe_unused]] const S& s) -> double
#define DERIVATIVE                                                                                 \
    []([[maybe_unused]] Scalars x, [[maybe_unused]] double y, [[maybe_unused]] std::size_t i,      \
       [[maybe_unused]] const S& s) -> double
#define INTEGER [](Integers x, [[maybe_unused]] const S& s) -> std::int64_t

/// One operand.
const ScalarFunction kUnary[] = {{"abs", VALUE{return std::abs(x[0]);
} // namespace
, DERIVATIVE {
    return static_cast<double>((x[0] > 0) - (x[0] < 0));
}
, INTEGER {
    return x[0] < 0 ? held(0 - bitsOfInteger(x[0])) : x[0];
}
} // namespace shardlens
, {"acos", VALUE{return std::acos(x[0]);
}
, DERIVATIVE {
    return -1 / std::sqrt(1 - x[0] * x[0]);
}
}
, {"acosh", VALUE{return std::acosh(x[0]);
}
, DERIVATIVE {
    return 1 / std::sqrt(x[0] * x[0] - 1);
}
}
, {"asin", VALUE{return std::asin(x[0]);
}
, DERIVATIVE {
    return 1 / std::sqrt(1 - x[0] * x[0]);
}
}
, {"asinh", VALUE{return std::asinh(x[0]);
}
, DERIVATIVE {
    return 1 / std::sqrt(x[0] * x[0] + 1);
}
}
, {"atan", VALUE{return std::atan(x[0]);
}
, DERIVATIVE {
    return 1 / (1 + x[0] * x[0]);
}
}
, {"atanh", VALUE{return std::atanh(x[0]);
}
, DERIVATIVE {
    return 1 / (1 - x[0] * x[0]);
}
}
, {"bitwisenot", nullptr, nullptr, INTEGER{return ~x[0];
}
}
, {"cast", VALUE{return x[0];
}
, DERIVATIVE {
    return 1;
}
, INTEGER {
    return x[0];
}
}
, {"ceil", VALUE{return std::ceil(x[0]);
}
}
, {"celu", VALUE{return std::max(x[0], 0.0) + std::min(s.alpha * std::expm1(x[0] / s.alpha), 0.0);
}
, DERIVATIVE {
    return x[0] > 0 ? 1 : std::exp(x[0] / s.alpha);
}
, nullptr, "alpha", {}, 1
}
, {"cos", VALUE{return std::cos(x[0]);
}
, DERIVATIVE {
    return -std::sin(x[0]);
}
}
, {"cosh", VALUE{return std::cosh(x[0]);
}
, DERIVATIVE {
    return std::sinh(x[0]);
}
}
, {"elu", VALUE{return x[0] > 0 ? x[0] : s.alpha* std::expm1(x[0]);
}
, DERIVATIVE {
    return x[0] > 0 ? 1 : y + s.alpha;
}
, nullptr, "alpha", {}, 1
}
, {"erf", VALUE{return std::erf(x[0]);
}
, DERIVATIVE {
    return 2 / std::sqrt(std::numbers::pi) * std::exp(-x[0] * x[0]);
}
}
, {"exp", VALUE{return std::exp(x[0]);
}
, DERIVATIVE {
    return y;
}
}
, {"exp2", VALUE{return std::exp2(x[0]);
}
, DERIVATIVE {
    return y * std::numbers::ln2;
}
}
, {"expm1", VALUE{return std::expm1(x[0]);
}
, DERIVATIVE {
    return y + 1;
}
}
, {"floor", VALUE{return std::floor(x[0]);
}
}
, {"gelu", gelu, geluDerivative},
    {"hardsigmoid", VALUE{return std::clamp(s.alpha * x[0] + s.beta, 0.0, 1.0);
}
, DERIVATIVE {
    return y > 0 && y < 1 ? s.alpha : 0;
}
, nullptr, "alpha", "beta", 0.2, 0.5
}
, {"hardswish", VALUE{return x[0] * std::clamp(x[0] / 6 + 0.5, 0.0, 1.0);
}
, DERIVATIVE {
    return x[0] <= -3 ? 0 : x[0] >= 3 ? 1 : x[0] / 3 + 0.5;
}
}
, {"identity", VALUE{return x[0];
}
, DERIVATIVE {
    return 1;
}
, INTEGER {
    return x[0];
}
}
,
    // Switched off for a sign by detect_positive or detect_negative = 0.
    {"isinf", VALUE{return std::isinf(x[0]) && (x[0] > 0 ? s.alpha : s.beta) != 0;
}
, nullptr, nullptr, "detect_positive", "detect_negative", 1, 1
}
, {"isnan", VALUE{return std::isnan(x[0]);
}
}
, {"leakyrelu", VALUE{return x[0] < 0 ? s.alpha * x[0] : x[0];
}
, DERIVATIVE {
    return x[0] < 0 ? s.alpha : 1;
}
, nullptr, "alpha", {}, 0.01
}
, {"log", VALUE{return std::log(x[0]);
}
, DERIVATIVE {
    return 1 / x[0];
}
}
, {"log1p", VALUE{return std::log1p(x[0]);
}
, DERIVATIVE {
    return 1 / (1 + x[0]);
}
}
, {"log2", VALUE{return std::log2(x[0]);
}
, DERIVATIVE {
    return 1 / (x[0] * std::numbers::ln2);
}
}
, {"mish", VALUE{return x[0] * std::tanh(softplusOf(x[0]));
}
, mishDerivative
}
, {"neg", VALUE{return -x[0];
}
, DERIVATIVE {
    return -1;
}
, INTEGER {
    return held(0 - bitsOfInteger(x[0]));
}
}
, {"not", VALUE{return x[0] == 0;
}
, nullptr, INTEGER {
    return x[0] == 0;
}
}
, {"reciprocal", VALUE{return 1 / x[0];
}
, DERIVATIVE {
    return -y * y;
}
}
, {"relu", VALUE{return std::max(x[0], 0.0);
}
, DERIVATIVE {
    return x[0] > 0 ? 1 : 0;
}
, INTEGER {
    return std::max<std::int64_t>(x[0], 0);
}
}
, {"round", VALUE{return roundHalfEven(x[0]);
}
}
, {"rsqrt", VALUE{return 1 / std::sqrt(x[0]);
}
, DERIVATIVE {
    return -0.5 * y / x[0];
}
}
, {"scale", VALUE{return s.alpha * x[0];
}
, DERIVATIVE {
    return s.alpha;
}
, nullptr, "alpha", {}, 1
}
, {"selu", VALUE{return s.beta * (x[0] > 0 ? x[0] : s.alpha * std::expm1(x[0]));
}
, DERIVATIVE {
    return x[0] > 0 ? s.beta : y + s.alpha * s.beta;
}
, nullptr, "alpha", "gamma", 1.67326319217681884765625, 1.05070102214813232421875
}
, {"shrink", VALUE{return x[0] < -s.beta ? x[0] + s.alpha : x[0] > s.beta ? x[0] - s.alpha : 0;
}
, DERIVATIVE {
    return std::abs(x[0]) > s.beta ? 1 : 0;
}
, nullptr, "bias", "lambd", 0, 0.5
}
, {"sigmoid", VALUE{return sigmoidOf(x[0]);
}
, DERIVATIVE {
    return y * (1 - y);
}
}
, {"sign", VALUE{return static_cast<double>((x[0] > 0) - (x[0] < 0));
}
, nullptr, INTEGER {
    return std::int64_t{x[0] > 0} - std::int64_t{x[0] < 0};
}
}
, {"silu", silu, siluDerivative, nullptr, "alpha", {}, 1}, {"sin", VALUE{return std::sin(x[0]);
}
, DERIVATIVE {
    return std::cos(x[0]);
}
}
, {"sinh", VALUE{return std::sinh(x[0]);
}
, DERIVATIVE {
    return std::cosh(x[0]);
}
}
, {"softplus", VALUE{return softplusOf(x[0]);
}
, DERIVATIVE {
    return sigmoidOf(x[0]);
}
}
, {"softsign", VALUE{return x[0] / (1 + std::abs(x[0]));
}
, DERIVATIVE {
    return 1 / ((1 + std::abs(x[0])) * (1 + std::abs(x[0])));
}
}
, {"sqrt", VALUE{return std::sqrt(x[0]);
}
, DERIVATIVE {
    return 0.5 / y;
}
}
, {"square", VALUE{return x[0] * x[0];
}
, DERIVATIVE {
    return 2 * x[0];
}
}
, {"tan", VALUE{return std::tan(x[0]);
}
, DERIVATIVE {
    return 1 + y * y;
}
}
, {"tanh", VALUE{return std::tanh(x[0]);
}
, DERIVATIVE {
    return 1 - y * y;
}
}
, {"thresholdedrelu", VALUE{return x[0] > s.alpha ? x[0] : 0;
}
, DERIVATIVE {
    return x[0] > s.alpha ? 1 : 0;
}
, nullptr, "alpha", {}, 1
}
,
}
;

/// Several operands.
const ScalarFunction kNary[] = {{"add", VALUE{return x[0] + x[1];
}
, DERIVATIVE {
    return 1;
}
, INTEGER {
    return held(bitsOfInteger(x[0]) + bitsOfInteger(x[1]));
}
}
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

#undef VALUE
#undef DERIVATIVE
#undef INTEGER

} // namespace

const ScalarFunction* findScalarFunction(std::string_view name) {
    for (const std::span<const ScalarFunction> table :
         {std::span<const ScalarFunction>(kUnary), std::span<const ScalarFunction>(kNary)})
        if (const auto found = std::ranges::find(table, name, &ScalarFunction::name);
            found != table.end())
            return &*found;
    return nullptr;
}

ScalarSettings scalarSettings(const ScalarFunction& function, const Attributes& attributes,
                              DType from, DType to) {
    ScalarSettings settings;
    settings.alpha = attributes.number(function.alphaName, function.alpha);
    settings.beta = attributes.number(function.betaName, function.beta);
    settings.flag = attributes.text("approximate") == "tanh" ||
                    attributes.text("direction") == "left" || attributes.integer("fmod", 0) != 0;
    settings.from = from;
    settings.to = to;
    return settings;
}

} // namespace shardlens
