// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic is checked for overflow: a hostile file must end in "not known", never in
// undefined behaviour.
#include "core/import/element_functions.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardlens {

namespace {

using Scalar = KnownValues::Scalar;
using Value = std::optional<Scalar>;

Value truth(bool value) {
    return std::int64_t{value ? 1 : 0};
}

double asDouble(const Scalar& value) {
    return std::visit([](auto v) { return static_cast<double>(v); }, value);
}

Value integerBinary(std::string_view function, std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (function == "add" || function == "sum")
        return __builtin_add_overflow(a, b, &result) ? Value{} : result;
    if (function == "sub") return __builtin_sub_overflow(a, b, &result) ? Value{} : result;
    if (function == "mul") return __builtin_mul_overflow(a, b, &result) ? Value{} : result;
    if (function == "max") return std::max(a, b);
    if (function == "min") return std::min(a, b);
    if (function == "and") return truth(a != 0 && b != 0);
    if (function == "or") return truth(a != 0 || b != 0);
    if (function == "xor") return truth((a != 0) != (b != 0));
    if (function == "bitwiseand") return a & b;
    if (function == "bitwiseor") return a | b;
    if (function == "bitwisexor") return a ^ b;
    if (function == "div" || function == "mod") {
        if (b == 0 || b == -1) return b == 0 || function == "div" ? Value{} : std::int64_t{0};
        if (function == "div") return a / b;
        const std::int64_t rest = a % b; // the sign of the divisor, as in Python
        return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    if (function == "pow") {
        if (b < 0 || b > 64) return std::nullopt;
        result = 1;
        for (std::int64_t i = 0; i < b; ++i)
            if (__builtin_mul_overflow(result, a, &result)) return std::nullopt;
        return result;
    }
    return std::nullopt;
}

Value numberBinary(std::string_view function, double a, double b) {
    if (function == "add" || function == "sum") return a + b;
    if (function == "sub") return a - b;
    if (function == "mul") return a * b;
    if (function == "div") return a / b;
    if (function == "pow") return std::pow(a, b);
    if (function == "max") return std::max(a, b);
    if (function == "min") return std::min(a, b);
    return std::nullopt;
}

Value compare(std::string_view function, const Scalar& a, const Scalar& b) {
    const auto decide = [&](auto x, auto y) -> Value {
        if (function == "equal") return truth(x == y);
        if (function == "less") return truth(x < y);
        if (function == "greater") return truth(x > y);
        if (function == "lessorequal") return truth(x <= y);
        if (function == "greaterorequal") return truth(x >= y);
        return std::nullopt;
    };
    const auto *x = std::get_if<std::int64_t>(&a), *y = std::get_if<std::int64_t>(&b);
    return x && y ? decide(*x, *y) : decide(asDouble(a), asDouble(b));
}

Value integerUnary(std::string_view function, std::int64_t a) {
    const bool lowest = a == std::numeric_limits<std::int64_t>::min();
    if (function == "neg") return lowest ? Value{} : -a;
    if (function == "abs") return lowest ? Value{} : std::abs(a);
    if (function == "sign") return std::int64_t{a > 0} - std::int64_t{a < 0};
    if (function == "not") return truth(a == 0);
    return std::nullopt;
}

Value numberUnary(const Attributes& attributes, std::string_view function, double a) {
    if (function == "neg") return -a;
    if (function == "abs") return std::abs(a);
    if (function == "sign") return static_cast<double>((a > 0) - (a < 0));
    if (function == "floor") return std::floor(a);
    if (function == "ceil") return std::ceil(a);
    if (function == "round") return std::nearbyint(a);
    if (function == "sqrt") return std::sqrt(a);
    if (function == "reciprocal") return 1 / a;
    if (function == "isnan") return truth(std::isnan(a));
    if (function == "isinf")
        return truth(std::isinf(a) &&
                     attributes.integer(a > 0 ? "detect_positive" : "detect_negative", 1) != 0);
    return std::nullopt;
}

} // namespace

std::optional<Scalar> castTo(const Scalar& value, DType dtype) {
    if (isFloat(dtype)) {
        const double number = asDouble(value);
        return dtype == DType::F32 ? static_cast<double>(static_cast<float>(number)) : number;
    }
    if (dtype == DType::Bool) return truth(asDouble(value) != 0);
    if (dtype == DType::Unknown || dtype == DType::String) return std::nullopt;
    std::int64_t integer = 0;
    if (const auto* number = std::get_if<double>(&value)) {
        if (!(std::abs(*number) < 9.0e18)) return std::nullopt;
        integer = static_cast<std::int64_t>(*number);
    } else {
        integer = std::get<std::int64_t>(value);
    }
    const auto unused = static_cast<unsigned>(64 - bitsOf(dtype));
    const auto bits = static_cast<std::uint64_t>(integer) << unused;
    const bool isSigned = dtype == DType::I32 || dtype == DType::I16 || dtype == DType::I8 ||
                          dtype == DType::I4 || dtype == DType::I64;
    return isSigned ? static_cast<std::int64_t>(bits) >> unused
                    : static_cast<std::int64_t>(bits >> unused);
}

std::optional<Scalar> applyFunction(const Attributes& attributes, std::span<const Scalar> arguments,
                                    DType dtype) {
    const std::string function = attributes.text("function");
    if (arguments.empty()) return std::nullopt;
    const Scalar& first = arguments[0];
    if (function == "where") {
        if (arguments.size() != 3) return std::nullopt;
        return asDouble(first) != 0 ? arguments[1] : arguments[2];
    }
    if (arguments.size() == 1) {
        if (function == "identity" || function == "cast") return castTo(first, dtype);
        if (function == "sum" || function == "max" || function == "min") return first;
        if (const auto* integer = std::get_if<std::int64_t>(&first))
            return integerUnary(function, *integer);
        return numberUnary(attributes, function, std::get<double>(first));
    }
    if (const Value decided = compare(function, first, arguments[1]);
        decided && arguments.size() == 2)
        return decided;
    Scalar result = first;
    for (const Scalar& argument : arguments.subspan(1)) {
        const auto *a = std::get_if<std::int64_t>(&result),
                   *b = std::get_if<std::int64_t>(&argument);
        const Value next = a && b ? integerBinary(function, *a, *b)
                                  : numberBinary(function, asDouble(result), asDouble(argument));
        if (!next) return std::nullopt;
        result = *next;
    }
    return result;
}

} // namespace shardlens
