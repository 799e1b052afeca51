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

std::string_view operationName(std::string_view name) {
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
        return operations.size() == 2 ? reductionNamed(operationName(operations[0].name)) : nullptr;
    }
    // "reduce(%x init: %c) applies stablehlo.add across dimensions = [1]"
    const auto applies = std::ranges::find_if(op.attributes, [](const Attribute& attribute) {
        return attribute.name.empty() && attribute.value == "applies";
    });
    if (applies == op.attributes.end() || applies + 1 == op.attributes.end()) return nullptr;
    return reductionNamed(operationName((applies + 1)->value));
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

const Reduction* reductionOfFunction(std::string_view function) {
    return &*std::ranges::find(kReductions, function, &Reduction::function);
}

Attributes reduceAttributes(Call& call, std::string_view function) {
    return {{"function", std::string(function)},
            {"axes", call.ints("dimensions")},
            {"keepdims", std::int64_t{0}}};
}

/// Several arrays that do not meet: an op each.
void reduceApart(Call& call) {
    const std::size_t n = call.count() / 2;
    const auto functions = reductionsApart(call.op(), n);
    if (functions.empty() || call.count() != 2 * n || call.resultCount() != n)
        return call.opaque(); // argmax and such
    std::vector<Value> results;
    for (std::size_t i = 0; i < n; ++i) {
        const Reduction* reduction = reductionOfFunction(functions[i]);
        TensorId reduced =
            call.step(OpKind::Reduce, reduceAttributes(call, functions[i]), {call.input(i)});
        if (!isNeutral(call, n + i, reduction->neutral))
            reduced =
                call.step(OpKind::Elementwise, {{"function", std::string(reduction->elementwise)}},
                          {reduced, call.input(n + i)});
        call.require(call.shapeOf(reduced) == call.declared(i).shape,
                     "a result of a reduction has another shape");
        results.push_back({{reduced}, nullptr});
    }
    call.setResults(std::move(results));
}

void reduce(Call& call, std::string_view) {
    if (call.count() > 2) return reduceApart(call);
    const Reduction* reduction = findReduction(call.op());
    if (reduction == nullptr || call.count() != 2) return call.opaque();
    const Attributes attributes = reduceAttributes(call, reduction->function);
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

/// "[[low, high], …]" as the catalogue has it: lows, highs.
Ints padsOf(const Ints& padding) {
    Ints low, high;
    for (std::size_t i = 0; i < padding.size(); ++i)
        (i % 2 == 0 ? low : high).push_back(padding[i]);
    low.insert(low.end(), high.begin(), high.end());
    return low;
}

/// Windows over any dimensions, of one array or several that do not meet.
void slide(Call& call) {
    const std::size_t n = call.count() / 2, rank = call.shape(0).size();
    std::string_view function;
    if (const Reduction* one = findReduction(call.op()); n == 1 && one != nullptr) {
        function = one->function;
    } else if (const auto apart = reductionsApart(call.op(), n);
               n > 1 && !apart.empty() &&
               std::ranges::count(apart, apart[0]) == std::ssize(apart)) {
        function = apart[0];
    }
    if (function.empty() || call.count() != 2 * n) return call.opaque();
    std::vector<TensorId> arrays;
    for (std::size_t i = 0; i < n; ++i) {
        if (!isNeutral(call, n + i, reductionOfFunction(function)->neutral)) return call.opaque();
        arrays.push_back(call.input(i));
    }
    call.result(OpKind::ReduceWindow,
                {{"function", std::string(function)},
                 {"kernel", call.intsOr("window_dimensions", {}, rank, 1)},
                 {"strides", call.intsOr("window_strides", {}, rank, 1)},
                 {"dilations", call.intsOr("window_dilations", {}, rank, 1)},
                 {"pads", padsOf(call.intsOr("padding", {}, 2 * rank, 0))}},
                std::move(arrays));
}

/// Where a window chooses one of its elements, and adds up what arrives there.
void selectAndScatter(Call& call, std::string_view) {
    const std::size_t rank = call.shape(0).size();
    const Operation& op = call.op();
    call.require(call.count() == 3 && op.regions.size() == 2 && op.regions[0].blocks.size() == 1 &&
                     op.regions[1].blocks.size() == 1,
                 "a selection without its regions");
    const Block &select = op.regions[0].blocks[0], &scatter = op.regions[1].blocks[0];
    const bool adds = scatter.operations.size() == 2 &&
                      operationName(scatter.operations[0].name) == "add" && isNeutral(call, 2, 0);
    const bool compares = select.operations.size() == 2 && select.arguments.size() == 2 &&
                          operationName(select.operations[0].name) == "compare" &&
                          select.operations[0].operands.size() == 2 &&
                          select.operations[0].operands[0].name == select.arguments[0].name &&
                          select.operations[0].operands[1].name == select.arguments[1].name;
    if (!adds || !compares) return call.opaque();
    const std::string_view direction = directionOf(select.operations[0]);
    const bool most = direction == "GE" || direction == "GT";
    if (!most && direction != "LE" && direction != "LT") return call.opaque();
    call.result(OpKind::SelectAndScatter,
                {{"function", std::string(most ? "max" : "min")},
                 {"kernel", call.intsOr("window_dimensions", {}, rank, 1)},
                 {"strides", call.intsOr("window_strides", {}, rank, 1)},
                 {"pads", padsOf(call.intsOr("padding", {}, 2 * rank, 0))}},
                {call.input(0), call.input(1)});
}

void reduceWindow(Call& call, std::string_view) {
    const std::size_t rank = call.shape(0).size();
    const Ints dilated = call.intsOr("base_dilations", {}, rank, 1);
    call.require(std::ranges::all_of(dilated, [](auto d) { return d == 1; }), "a dilated operand");
    const Reduction* reduction = findReduction(call.op());
    if (reduction == nullptr || call.count() != 2) return slide(call);
    const Ints window = call.intsOr("window_dimensions", {}, rank, 1);
    const Ints strides = call.intsOr("window_strides", {}, rank, 1);
    const Ints dilations = call.intsOr("window_dilations", {}, rank, 1);
    const Ints padding = call.intsOr("padding", {}, 2 * rank, 0);
    std::size_t axis = 0;
    if (reduction->function == "sum" && isRunningSum(call, window, padding, axis))
        return call.result(OpKind::CumSum, {{"axis", static_cast<std::int64_t>(axis)}},
                           {call.input(0)});
    if (reduction->function != "max" || rank < 3) return slide(call);
    // Batch and channels are two dimensions without a window; space is the others.
    Ints order, space;
    for (std::size_t d = 0; d < rank; ++d) {
        const bool point =
            window[d] == 1 && strides[d] == 1 && padding[2 * d] == 0 && padding[2 * d + 1] == 0;
        (point && order.size() < 2 ? order : space).push_back(static_cast<std::int64_t>(d));
    }
    const bool negative = std::ranges::any_of(padding, [](auto p) { return p < 0; });
    if (order.size() != 2 || negative) return slide(call);
    Ints kernel, by, apart, low, high;
    for (const std::int64_t dim : space) {
        const auto d = static_cast<std::size_t>(dim);
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

std::vector<std::string_view> reductionsApart(const Operation& op, std::size_t n) {
    if (n == 0 || op.regions.size() != 1 || op.regions[0].blocks.size() != 1) return {};
    const Block& block = op.regions[0].blocks[0];
    if (block.arguments.size() != 2 * n || block.operations.size() != n + 1 ||
        block.operations.back().operands.size() != n)
        return {};
    std::vector<std::string_view> functions;
    for (std::size_t i = 0; i < n; ++i) {
        const std::string_view returned = block.operations.back().operands[i].name;
        const auto made = std::ranges::find_if(block.operations, [&](const Operation& each) {
            return each.results.size() == 1 && each.results[0].name == returned;
        });
        if (made == block.operations.end() || made->operands.size() != 2) return {};
        const Reduction* reduction = reductionNamed(operationName(made->name));
        const std::string_view a = block.arguments[i].name, b = block.arguments[n + i].name,
                               x = made->operands[0].name, y = made->operands[1].name;
        if (reduction == nullptr || !((x == a && y == b) || (x == b && y == a))) return {};
        functions.push_back(reduction->function);
    }
    return functions;
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
        {"select_and_scatter", selectAndScatter},
        {"top_k", topK},
    };
}

} // namespace shardlens::mlir
