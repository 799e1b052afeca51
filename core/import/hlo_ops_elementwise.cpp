// SPDX-License-Identifier: Apache-2.0
// Elementwise opcodes, each with the catalogue's name of its function. HLO does not broadcast by
// itself: operands have the shape of the result, or are scalars where the opcode allows it.
#include "core/import/hlo_translation.h"

#include <algorithm>
#include <array>

namespace shardlens::hlo {

namespace {

struct Function {
    std::string_view opcode;
    std::string_view function;
};

constexpr std::array kFunctions{
    Function{"abs", "abs"},
    Function{"add", "add"},
    Function{"atan2", "atan2"},
    Function{"cbrt", "cbrt"},
    Function{"ceil", "ceil"},
    Function{"complex", "complex"},
    Function{"cosine", "cos"},
    Function{"count-leading-zeros", "clz"},
    Function{"divide", "div"},
    Function{"erf", "erf"},
    Function{"exponential", "exp"},
    Function{"exponential-minus-one", "expm1"},
    Function{"floor", "floor"},
    Function{"imag", "imag"},
    Function{"is-finite", "isfinite"},
    Function{"log", "log"},
    Function{"log-plus-one", "log1p"},
    Function{"logistic", "sigmoid"},
    Function{"maximum", "max"},
    Function{"minimum", "min"},
    Function{"multiply", "mul"},
    Function{"negate", "neg"},
    Function{"popcnt", "popcount"},
    Function{"power", "pow"},
    Function{"real", "real"},
    Function{"reduce-precision", "reduceprecision"},
    Function{"remainder", "mod"},
    Function{"round-nearest-afz", "round"},
    Function{"round-nearest-even", "round"},
    Function{"rsqrt", "rsqrt"},
    Function{"select", "where"},
    Function{"shift-left", "shiftleft"},
    Function{"shift-right-arithmetic", "shiftright"},
    Function{"shift-right-logical", "shiftright"},
    Function{"sign", "sign"},
    Function{"sine", "sin"},
    Function{"sqrt", "sqrt"},
    Function{"stochastic-convert", "cast"},
    Function{"subtract", "sub"},
    Function{"tan", "tan"},
    Function{"tanh", "tanh"},
};

std::optional<Leaf> emitFunction(Translation& t, const Site& site, std::string_view function,
                                 std::vector<TensorId> inputs) {
    const TensorSpec& spec = site.instruction.type.spec;
    const bool fits = std::ranges::all_of(inputs, [&](TensorId id) {
        const Shape& shape = t.spec(id).shape;
        return shape == spec.shape || shape.empty();
    });
    const bool full =
        std::ranges::any_of(inputs, [&](TensorId id) { return t.spec(id).shape == spec.shape; });
    if (!fits || !full) return std::nullopt;
    Attributes attributes{{"function", std::string(function)}};
    // The type of the result is the file's where it is not that of the operands.
    if (t.spec(inputs.back()).dtype != spec.dtype && spec.dtype != DType::Unknown)
        attributes.set("to", std::string(nameOf(spec.dtype)));
    return t.emit(site, OpKind::Elementwise, std::move(attributes), std::move(inputs), spec);
}

std::optional<Leaf> byTable(Translation& t, const Site& site) {
    const auto entry =
        std::ranges::lower_bound(kFunctions, site.instruction.opcode, {}, &Function::opcode);
    return emitFunction(t, site, entry->function, t.arrays(site));
}

/// On booleans logical, on integers bit by bit.
std::optional<Leaf> logical(Translation& t, const Site& site) {
    const std::string name(site.instruction.opcode);
    const bool boolean = site.instruction.type.spec.dtype == DType::Bool;
    return emitFunction(t, site, boolean || name == "not" ? name : "bitwise" + name,
                        t.arrays(site));
}

std::optional<Leaf> compare(Translation& t, const Site& site) {
    const std::string_view direction = site.instruction.attribute("direction");
    const std::string_view function = direction == "EQ"   ? "equal"
                                      : direction == "NE" ? "notequal"
                                      : direction == "LT" ? "less"
                                      : direction == "LE" ? "lessorequal"
                                      : direction == "GT" ? "greater"
                                      : direction == "GE" ? "greaterorequal"
                                                          : "";
    if (function.empty() || site.instruction.operands.size() != 2) return std::nullopt;
    return emitFunction(t, site, function, t.arrays(site));
}

std::optional<Leaf> convert(Translation& t, const Site& site) {
    const TensorId from = t.tensor(site, 0);
    if (site.instruction.operands.size() != 1) return std::nullopt;
    if (t.spec(from) == site.instruction.type.spec) return from;
    return emitFunction(t, site, "cast", {from});
}

/// The same bits as another type; between widths a dimension comes or goes.
std::optional<Leaf> bitcastConvert(Translation& t, const Site& site) {
    if (site.instruction.operands.size() != 1) return std::nullopt;
    const TensorSpec& spec = site.instruction.type.spec;
    const TensorId from = t.tensor(site, 0);
    if (bitsOf(t.spec(from).dtype) != bitsOf(spec.dtype))
        return t.tryEmit(site, OpKind::Bitcast, {{"to", std::string(nameOf(spec.dtype))}}, {from},
                         spec);
    return emitFunction(t, site, "bitcast", {t.tensor(site, 0)});
}

/// clamp(low, x, high) is the catalogue's clip(x, low, high).
std::optional<Leaf> clamp(Translation& t, const Site& site) {
    if (site.instruction.operands.size() != 3) return std::nullopt;
    return emitFunction(t, site, "clip", {t.tensor(site, 1), t.tensor(site, 0), t.tensor(site, 2)});
}

} // namespace

std::span<const OpcodeRow> elementwiseRows() {
    static const std::vector<OpcodeRow> rows = [] {
        std::vector<OpcodeRow> result{
            {"and", logical},     {"or", logical},
            {"xor", logical},     {"not", logical},
            {"compare", compare}, {"convert", convert},
            {"clamp", clamp},     {"bitcast-convert", bitcastConvert},
        };
        for (const Function& entry : kFunctions) result.push_back({entry.opcode, byTable});
        return result;
    }();
    return rows;
}

} // namespace shardlens::hlo
