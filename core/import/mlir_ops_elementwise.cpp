// SPDX-License-Identifier: Apache-2.0
// Elementwise operations and constants of StableHLO and CHLO. On booleans, "add" and "maximum" are
// "or", "multiply" and "minimum" are "and" (StableHLO specification).
#include "core/error.h"
#include "core/import/element_functions.h"
#include "core/import/mlir_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace shardlens::mlir {

namespace {

/// CHLO may say which dimensions of the result an operand of lower rank has; only the usual
/// alignment at the right end is an Elementwise op as it is.
void checkAlignment(Call& call) {
    const auto dims = call.maybeInts("broadcast_dimensions");
    if (!dims) return;
    const std::int64_t rank = std::max(call.rank(0), call.rank(1));
    for (std::size_t i = 0; i < dims->size(); ++i)
        call.require((*dims)[i] == rank - static_cast<std::int64_t>(dims->size() - i),
                     "broadcasting is not aligned at the right end");
}

std::string_view forType(std::string_view function, DType dtype) {
    struct Other {
        std::string_view function, onBooleans, onIntegers;
    };
    static constexpr std::array<Other, 8> kOthers{{
        {"add", "or", "add"},
        {"max", "or", "max"},
        {"mul", "and", "mul"},
        {"min", "and", "min"},
        {"and", "and", "bitwiseand"},
        {"or", "or", "bitwiseor"},
        {"xor", "xor", "bitwisexor"},
        {"not", "not", "bitwisenot"},
    }};
    if (isFloat(dtype)) return function;
    const auto other = std::ranges::find(kOthers, function, &Other::function);
    if (other == kOthers.end()) return function;
    return dtype == DType::Bool ? other->onBooleans : other->onIntegers;
}

void simple(Call& call, std::string_view function) {
    const DType dtype = call.dtype(0);
    if (call.count() == 2) checkAlignment(call);
    call.result(OpKind::Elementwise, functionOf(forType(function, dtype)), call.inputs());
}

void convert(Call& call, std::string_view) {
    const DType to = call.declared(0).dtype;
    call.require(bitsOf(to) > 0, "the element type is not known");
    call.result(OpKind::Elementwise,
                {{"function", std::string("cast")}, {"to", std::string(nameOf(to))}},
                {call.input(0)});
}

/// Between widths a dimension comes or goes.
void bitcast(Call& call, std::string_view) {
    const DType to = call.declared(0).dtype;
    if (bitsOf(to) != bitsOf(call.dtype(0)))
        return call.result(OpKind::Bitcast, {{"to", std::string(nameOf(to))}}, {call.input(0)});
    call.result(OpKind::Elementwise, functionOf("bitcast"), {call.input(0)});
}

void compare(Call& call, std::string_view) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kNames{{
        {"EQ", "equal"},
        {"NE", "equal"},
        {"LT", "less"},
        {"LE", "lessorequal"},
        {"GT", "greater"},
        {"GE", "greaterorequal"},
    }};
    checkAlignment(call);
    const std::string_view direction = directionOf(call.op());
    const auto named =
        std::ranges::find(kNames, direction, &std::pair<std::string_view, std::string_view>::first);
    if (named == kNames.end()) call.fail("the direction of a comparison is not known");
    if (direction != "NE")
        return call.result(OpKind::Elementwise, functionOf(named->second), call.inputs());
    const TensorId equal = call.step(OpKind::Elementwise, functionOf("equal"), call.inputs());
    call.result(OpKind::Elementwise, functionOf("not"), {equal});
}

/// clamp(low, x, high) = min(max(x, low), high)
void clamp(Call& call, std::string_view) {
    const TensorId raised =
        call.step(OpKind::Elementwise, functionOf("max"), {call.input(1), call.input(0)});
    call.result(OpKind::Elementwise, functionOf("min"), {raised, call.input(2)});
}

void square(Call& call, std::string_view) {
    call.result(OpKind::Elementwise, functionOf("mul"), {call.input(0), call.input(0)});
}

/// Whether a value is stored as data, as trained weights are, rather than written out.
bool isStored(std::string_view value) {
    return value.starts_with("dense_resource") || value.starts_with("dense<\"");
}

void constant(Call& call, std::string_view) {
    std::string_view text = call.op().attribute("value");
    if (text.empty()) text = call.op().positional(0);
    TensorSpec spec = call.declared(0);
    call.require(std::ranges::find(spec.shape, kDynamic) == spec.shape.end(),
                 "a constant has a dimension without a size");
    Builder& builder = call.builder();
    const bool real = isFloat(spec.dtype);
    const std::size_t most = real ? KnownValues::kMaxFloats : KnownValues::kMaxInts;
    const Literal literal = readLiteral(text, spec.dtype, most);
    const Shape whole = spec.shape;
    if (literal.splat) spec.shape.clear();
    // Weights that were folded into the program: trained all the same.
    const bool trained = real && isStored(text) && elementsOf(spec.shape) > 64;
    const OpId id = builder.graph().addOp({call.opName(),
                                           trained ? OpKind::Parameter : OpKind::Constant,
                                           std::string(call.op().name),
                                           {},
                                           {},
                                           {}},
                                          {spec});
    const TensorId tensor = builder.graph().op(id).outputs.front();
    const auto elements = static_cast<double>(literal.ints    ? literal.ints->size()
                                              : literal.reals ? literal.reals->size()
                                                              : 0);
    if (elements == elementsOf(spec.shape)) {
        if (literal.ints) builder.known().setInts(tensor, *literal.ints);
        if (literal.reals) {
            builder.known().setFloats(tensor, *literal.reals);
            builder.graph().setKnownReals(tensor, *literal.reals);
        }
    }
    if (whole == spec.shape) return call.alias(tensor);
    call.result(OpKind::Expand, {{"shape", whole}}, {tensor});
}

void iota(Call& call, std::string_view) {
    call.declaredResult(OpKind::Constant, {}, {});
    const TensorSpec& spec = call.declared(0);
    const std::int64_t axis = call.axis(call.integer("dim", "iota_dimension"),
                                        static_cast<std::int64_t>(spec.shape.size()));
    const double elements = elementsOf(spec.shape);
    if (isFloat(spec.dtype) || elements > static_cast<double>(KnownValues::kMaxInts) ||
        elements < 1 || std::ranges::find(spec.shape, kDynamic) != spec.shape.end())
        return;
    const auto at = spec.shape.begin() + axis;
    const std::int64_t inner =
        std::accumulate(at + 1, spec.shape.end(), std::int64_t{1}, std::multiplies<>());
    KnownInts values(static_cast<std::size_t>(elements));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<std::int64_t>(i) / inner % *at;
    std::vector<Value> results = call.takeResults();
    call.builder().known().setInts(results.front().tensors.front(), std::move(values));
    call.setResults(std::move(results));
}

} // namespace

std::string_view directionOf(const Operation& op) {
    std::string_view text = op.attribute("comparison_direction");
    if (text.empty()) text = op.positional(0);
    if (text.find('<') != std::string_view::npos) text = fieldOf(text, "comparison_direction");
    const auto begin = text.find_first_not_of("\" ");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of("\" ") - begin + 1);
}

std::vector<Rule> elementwiseRules() {
    std::vector<Rule> rules{
        {"abs", simple, "abs"},
        {"add", simple, "add"},
        {"and", simple, "and"},
        {"atan2", simple, "atan2"},
        {"cbrt", simple, "cbrt"},
        {"ceil", simple, "ceil"},
        {"complex", simple, "complex"},
        {"cosine", simple, "cos"},
        {"count_leading_zeros", simple, "clz"},
        {"divide", simple, "div"},
        {"exponential", simple, "exp"},
        {"exponential_minus_one", simple, "expm1"},
        {"floor", simple, "floor"},
        {"imag", simple, "imag"},
        {"is_finite", simple, "isfinite"},
        {"log", simple, "log"},
        {"log_plus_one", simple, "log1p"},
        {"logistic", simple, "sigmoid"},
        {"maximum", simple, "max"},
        {"minimum", simple, "min"},
        {"multiply", simple, "mul"},
        {"negate", simple, "neg"},
        {"not", simple, "not"},
        {"or", simple, "or"},
        {"popcnt", simple, "popcount"},
        {"power", simple, "pow"},
        {"real", simple, "real"},
        {"reduce_precision", simple, "reduceprecision"},
        {"remainder", simple, "mod"},
        {"round_nearest_afz", simple, "roundaway"},
        {"round_nearest_even", simple, "round"},
        {"rsqrt", simple, "rsqrt"},
        {"select", simple, "where"},
        {"shift_left", simple, "shiftleft"},
        {"shift_right_arithmetic", simple, "shiftright"},
        {"shift_right_logical", simple, "shiftrightlogical"},
        {"sign", simple, "sign"},
        {"sine", simple, "sin"},
        {"sqrt", simple, "sqrt"},
        {"subtract", simple, "sub"},
        {"tan", simple, "tan"},
        {"tanh", simple, "tanh"},
        {"xor", simple, "xor"},
        {"convert", convert},
        {"bitcast_convert", bitcast},
        {"compare", compare},
        {"clamp", clamp},
        {"constant", constant},
        {"iota", iota},
        // CHLO
        {"acos", simple, "acos"},
        {"acosh", simple, "acosh"},
        {"asin", simple, "asin"},
        {"asinh", simple, "asinh"},
        {"atan", simple, "atan"},
        {"atanh", simple, "atanh"},
        {"conj", simple, "conj"},
        {"cosh", simple, "cosh"},
        {"digamma", simple, "digamma"},
        {"erf", simple, "erf"},
        {"erf_inv", simple, "erfinv"},
        {"erfc", simple, "erfc"},
        {"is_inf", simple, "isinf"},
        {"lgamma", simple, "lgamma"},
        {"next_after", simple, "nextafter"},
        {"sinh", simple, "sinh"},
        {"square", square},
        {"broadcast_add", simple, "add"},
        {"broadcast_and", simple, "and"},
        {"broadcast_atan2", simple, "atan2"},
        {"broadcast_compare", compare},
        {"broadcast_divide", simple, "div"},
        {"broadcast_maximum", simple, "max"},
        {"broadcast_minimum", simple, "min"},
        {"broadcast_multiply", simple, "mul"},
        {"broadcast_or", simple, "or"},
        {"broadcast_power", simple, "pow"},
        {"broadcast_remainder", simple, "mod"},
        {"broadcast_select", simple, "where"},
        {"broadcast_subtract", simple, "sub"},
        {"broadcast_xor", simple, "xor"},
    };
    return rules;
}

} // namespace shardlens::mlir
