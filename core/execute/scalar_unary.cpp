// SPDX-License-Identifier: Apache-2.0
// Functions of one operand.
#include "core/execute/scalar_tables.h"

#include <algorithm>
#include <numbers>

namespace shardlens::scalars {

namespace {

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

const ScalarFunction kUnary[] = {{"abs", VALUE{return std::abs(x[0]);
} // namespace
, DERIVATIVE {
    return static_cast<double>((x[0] > 0) - (x[0] < 0));
}
, INTEGER {
    return x[0] < 0 ? held(0 - bitsOfInteger(x[0])) : x[0];
}
} // namespace shardlens::scalars
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

} // namespace

std::span<const ScalarFunction> unaryFunctions() {
    return kUnary;
}

} // namespace shardlens::scalars

#undef VALUE
#undef DERIVATIVE
#undef INTEGER
