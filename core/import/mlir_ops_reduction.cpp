// SPDX-License-Identifier: Apache-2.0
// Reductions, windows and selections. What a reduction computes is told from its region: one
// operation over the region's two arguments.
#include "core/import/mlir_call.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace shardlens::mlir {

namespace {

using Ints = Call::Ints;

struct Reduction {
    std::string_view operation, function;
    double neutral;
    std::string_view elementwise; ///< to combine with a start that is not neutral
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array<Reduction, 6> kReductions{{
    {"add", "sum", 0, "add"},
    {"maximum", "max", -kInfinity, "max"},
    {"minimum", "min", kInfinity, "min"},
    {"multiply", "prod", 1, "mul"},
    {"or", "max", 0, "or"},
    {"and", "min", 1, "and"},
}};

std::string_view shortName(std::string_view name) {
    const auto dot = name.find('.');
    return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

const Reduction* reductionNamed(std::string_view operation) {
    const auto found = std::ranges::find(kReductions, operation, &Reduction::operation);
    return found == kReductions.end() ? nullptr : &*found;
}

const Reduction* findReduction(const Operation& op) {
    if (!op.regions.empty()) {
        if (op.regions.size() != 1 || op.regions[0].blocks.size() != 1) return nullptr;
        const auto& operations = op.regions[0].blocks[0].operations;
        return operations.size() == 2 ? reductionNamed(shortName(operations[0].name)) : nullptr;
    }
    // "reduce(%x init: %c) applies stablehlo.add across dimensions = [1]"
    const auto applies = std::ranges::find_if(op.attributes, [](const Attribute& attribute) {
        return attribute.name.empty() && attribute.value == "applies";
    });
    if (applies == op.attributes.end() || applies + 1 == op.attributes.end()) return nullptr;
    return reductionNamed(shortName((applies + 1)->value));
}

/// Whether the start value changes nothing. Of integers the extreme values count as infinite.
bool isNeutral(Call& call, std::size_t operand, double neutral) {
    KnownValues& known = call.builder().known();
    const TensorId start = call.input(operand);
    if (const auto* reals = known.floats(start); reals != nullptr && reals->size() == 1) {
        const bool lowest = neutral == -kInfinity && reals->front() <= -3.0e38;
        return reals->front() == neutral || lowest;
    }
    const KnownInts* ints = known.ints(start);
    if (ints == nullptr || ints->size() != 1) return false;
    if (std::isinf(neutral)) {
        const double far = std::ldexp(1.0, std::max(bitsOf(call.dtype(operand)) - 1, 0)) - 1;
        const auto value = static_cast<double>(ints->front());
        return neutral < 0 ? value <= -far || (value == 0 && call.dtype(operand) == DType::Bool)
                           : value >= far;
    }
    return static_cast<double>(ints->front()) == neutral;
}

void reduce(Call& call, std::string_view) {
    const Reduction* reduction = findReduction(call.op());
    if (reduction == nullptr || call.count() != 2) return call.opaque(); // pairs: argmax and such
    const Attributes attributes{{"function", std::string(reduction->function)},
                                {"axes", call.ints("dimensions")},
                                {"keepdims", std::int64_t{0}}};
    if (isNeutral(call, 1, reduction->neutral))
        return call.result(OpKind::Reduce, attributes, {call.input(0)});
    const TensorId reduced = call.step(OpKind::Reduce, attributes, {call.input(0)});
    call.result(OpKind::Elementwise, {{"function", std::string(reduction->elementwise)}},
                {reduced, call.input(1)});
}

// --- windows ------------------------------------------------------------------------------------

/// A running sum is written as a window over all that is before.
bool isRunningSum(Call& call, const Ints& window, const Ints& pads, std::size_t& axis) {
    const Shape& shape = call.shape(0);
    std::size_t wide = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (window[d] == 1) continue;
        ++wide;
        axis = d;
    }
    return wide == 1 && window[axis] == shape[axis] && pads[2 * axis] == shape[axis] - 1 &&
           pads[2 * axis + 1] == 0;
}

void reduceWindow(Call& call, std::string_view) {
    const Reduction* reduction = findReduction(call.op());
    if (reduction == nullptr || call.count() != 2) return call.opaque();
    const std::size_t rank = call.shape(0).size();
    const Ints window = call.intsOr("window_dimensions", {}, rank, 1);
    const Ints strides = call.intsOr("window_strides", {}, rank, 1);
    const Ints dilations = call.intsOr("window_dilations", {}, rank, 1);
    const Ints base = call.intsOr("base_dilations", {}, rank, 1);
    const Ints padding = call.intsOr("padding", {}, 2 * rank, 0);
    call.require(std::ranges::all_of(base, [](auto d) { return d == 1; }), "a dilated operand");
    std::size_t axis = 0;
    if (reduction->function == "sum" && isRunningSum(call, window, padding, axis))
        return call.result(OpKind::CumSum, {{"axis", static_cast<std::int64_t>(axis)}},
                           {call.input(0)});
    if (reduction->function != "max" || rank < 3) return call.opaque();
    // Batch and channels are two dimensions without a window; space is the others.
    Ints order, space;
    for (std::size_t d = 0; d < rank; ++d) {
        const bool point =
            window[d] == 1 && strides[d] == 1 && padding[2 * d] == 0 && padding[2 * d + 1] == 0;
        (point && order.size() < 2 ? order : space).push_back(static_cast<std::int64_t>(d));
    }
    if (order.size() != 2) return call.opaque();
    Ints kernel, by, apart, low, high;
    for (const std::int64_t dim : space) {
        const auto d = static_cast<std::size_t>(dim);
        call.require(padding[2 * d] >= 0 && padding[2 * d + 1] >= 0, "negative padding");
        kernel.push_back(window[d]);
        by.push_back(strides[d]);
        apart.push_back(dilations[d]);
        low.push_back(padding[2 * d]);
        high.push_back(padding[2 * d + 1]);
        order.push_back(dim);
    }
    low.insert(low.end(), high.begin(), high.end());
    const Attributes attributes{{"mode", std::string("max")},
                                {"kernel", kernel},
                                {"strides", by},
                                {"pads", low},
                                {"dilations", apart},
                                {"ceil_mode", std::int64_t{0}}};
    if (std::ranges::is_sorted(order))
        return call.result(OpKind::Pool, attributes, {call.input(0)});
    const TensorId image = call.transposed(call.input(0), order);
    const TensorId pooled = call.step(OpKind::Pool, attributes, {image});
    Ints back(order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
        back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    call.result(OpKind::Transpose, {{"perm", back}}, {pooled});
}

void topK(Call& call, std::string_view) {
    call.require(call.rank(0) >= 1, "a selection needs a dimension");
    call.result(OpKind::TopK, {{"axis", call.rank(0) - 1}, {"k", call.integer("k")}},
                {call.input(0)});
}

} // namespace

std::string_view reductionOf(const Operation& op) {
    const Reduction* reduction = findReduction(op);
    return reduction == nullptr ? std::string_view{} : reduction->function;
}

std::string_view scatterReduction(const Operation& op) {
    if (const Reduction* reduction = findReduction(op))
        return reduction->elementwise == "or" || reduction->elementwise == "and"
                   ? std::string_view{}
                   : reduction->elementwise;
    // "return %update": the second argument of the region.
    if (op.regions.size() != 1 || op.regions[0].blocks.size() != 1) return {};
    const Block& block = op.regions[0].blocks[0];
    const bool replaces = block.operations.size() == 1 && block.arguments.size() == 2 &&
                          block.operations[0].operands.size() == 1 &&
                          block.operations[0].operands[0].name == block.arguments[1].name;
    return replaces ? "none" : std::string_view{};
}

std::vector<Rule> reductionRules() {
    return {
        {"reduce", reduce},
        {"reduce_window", reduceWindow},
        {"top_k", topK},
    };
}

} // namespace shardlens::mlir
