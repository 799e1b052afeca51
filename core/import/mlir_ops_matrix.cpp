// SPDX-License-Identifier: Apache-2.0
// Linear algebra, transforms, sorts and random bits, as operations and as the custom calls that
// stand for them (JAX and the TPU compiler; the targets are those of openxla/shardy's rules).
#include "core/import/mlir_call.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace shardlens::mlir {

namespace {

using Ints = Call::Ints;

std::int64_t flag(const Call& call, std::string_view name, std::int64_t fallback) {
    return call.op().hasAttribute(name) ? call.integer(name) : fallback;
}

Attributes routine(std::string_view function) {
    return {{"function", std::string(function)}};
}

void cholesky(Call& call, std::string_view) {
    Attributes attributes = routine("cholesky");
    attributes.set("lower", flag(call, "lower", 0));
    call.result(OpKind::LinearAlgebra, std::move(attributes), {call.input(0)});
}

/// Of real matrices: an adjoint is a transpose.
void triangularSolve(Call& call, std::string_view) {
    const std::string_view turned = call.op().attribute("transpose_a");
    const bool plain = turned.empty() || turned.find("NO_TRANSPOSE") != std::string_view::npos;
    Attributes attributes = routine("solve");
    attributes.set("left", flag(call, "left_side", 1));
    attributes.set("lower", flag(call, "lower", 0));
    attributes.set("unit", flag(call, "unit_diagonal", 0));
    attributes.set("transpose", std::int64_t{plain ? 0 : 1});
    call.result(OpKind::LinearAlgebra, std::move(attributes), {call.input(0), call.input(1)});
}

void fft(Call& call, std::string_view) {
    std::string text(call.op().attribute("type", "fft_type"));
    std::ranges::transform(text, text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    static constexpr std::array<std::string_view, 4> kNames{"irfft", "rfft", "ifft", "fft"};
    const auto named = std::ranges::find_if(kNames, [&](std::string_view name) {
        return text == name || text.ends_with(" " + std::string(name) + ">");
    });
    call.require(named != kNames.end(), "the type of a transform is not known");
    Attributes attributes = routine(*named);
    attributes.set("length", call.ints("length", "fft_length"));
    call.result(OpKind::Fourier, std::move(attributes), {call.input(0)});
}

// --- sorts --------------------------------------------------------------------------------------

struct Comparison {
    std::size_t keys = 0; ///< operand that is compared
    bool descending = false;
};

/// "compare LT, %a, %b" of the two elements of one operand.
std::optional<Comparison> comparisonOf(const Operation& op, std::size_t operands) {
    if (op.regions.size() != 1 || op.regions[0].blocks.size() != 1) return std::nullopt;
    const Block& block = op.regions[0].blocks[0];
    if (block.operations.size() != 2 || block.arguments.size() != 2 * operands ||
        !block.operations[0].name.ends_with(".compare") || block.operations[0].operands.size() != 2)
        return std::nullopt;
    const std::string_view direction = directionOf(block.operations[0]);
    bool descending = direction == "GT" || direction == "GE";
    if (!descending && direction != "LT" && direction != "LE") return std::nullopt;
    const std::string_view x = block.operations[0].operands[0].name,
                           y = block.operations[0].operands[1].name;
    for (std::size_t i = 0; i < operands; ++i) {
        const std::string_view a = block.arguments[2 * i].name, b = block.arguments[2 * i + 1].name;
        if (x == b && y == a) descending = !descending;
        if ((x == a && y == b) || (x == b && y == a)) return Comparison{i, descending};
    }
    return std::nullopt;
}

/// Adds a Sort whose keys come first, and hands on its results in the operands' order.
void sortBy(Call& call, std::size_t keys, Attributes attributes,
            const std::vector<TensorId>& operands) {
    if (keys == 0) return call.result(OpKind::Sort, std::move(attributes), operands);
    std::vector<TensorId> order = operands;
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(keys),
                order.begin() + static_cast<std::ptrdiff_t>(keys) + 1);
    call.step(OpKind::Sort, std::move(attributes), order);
    const Graph& graph = call.builder().graph();
    const auto& sorted = graph.ops().back().outputs;
    std::vector<Value> results;
    for (std::size_t i = 0; i < sorted.size(); ++i)
        results.push_back({{sorted[i == keys ? 0 : i < keys ? i + 1 : i]}, nullptr});
    call.setResults(std::move(results));
}

void sort(Call& call, std::string_view) {
    const auto comparison = comparisonOf(call.op(), call.count());
    if (!comparison) return call.opaque();
    const std::int64_t last = call.rank(0) - 1;
    std::int64_t axis = flag(call, "dimension", last);
    if (axis < 0) axis += call.rank(0);
    sortBy(call, comparison->keys,
           {{"axis", call.axis(axis, call.rank(0))},
            {"descending", std::int64_t{comparison->descending}}},
           call.inputs());
}

// --- random bits --------------------------------------------------------------------------------

void randomBits(Call& call, std::string_view) {
    const TensorSpec& bits = call.declared(1);
    call.result(OpKind::RandomBits,
                {{"shape", bits.shape}, {"to", std::string(nameOf(bits.dtype))}}, {call.input(0)});
}

// --- custom calls -------------------------------------------------------------------------------

void same(Call& call, std::string_view) {
    call.alias(call.input(0));
}

void routineOf(Call& call, std::string_view function) {
    call.result(OpKind::LinearAlgebra, routine(function), call.inputs());
}

void elementwise(Call& call, std::string_view function) {
    call.result(OpKind::Elementwise, {{"function", std::string(function)}}, {call.input(0)});
}

/// mhlo.topk: k is the size of the result.
void largest(Call& call, std::string_view) {
    const Shape& values = call.declared(0).shape;
    const std::string_view attributes = call.op().attribute("mhlo.attributes");
    call.require(!values.empty() && fieldOf(attributes, "largest") != "false",
                 "a selection of the smallest");
    call.result(OpKind::TopK,
                {{"axis", static_cast<std::int64_t>(values.size()) - 1}, {"k", values.back()}},
                {call.input(0)});
}

/// The largest of a line and what stands beside them; exactly, where the call may approximate. The
/// dimension is the one that gets smaller.
void approximate(Call& call, std::string_view) {
    call.require(call.count() == 4 && call.declared(0).shape.size() == call.shape(0).size() &&
                     call.shape(1) == call.shape(0),
                 "an approximate selection of another form");
    const Shape &whole = call.shape(0), &kept = call.declared(0).shape;
    const auto differs = std::ranges::mismatch(whole, kept);
    const std::size_t at = differs.in1 == whole.end()
                               ? whole.size() - 1
                               : static_cast<std::size_t>(differs.in1 - whole.begin());
    call.result(
        OpKind::Sort,
        {{"axis", static_cast<std::int64_t>(at)}, {"descending", std::int64_t{1}}, {"k", kept[at]}},
        {call.input(0), call.input(1)});
}

} // namespace

bool knownCustomCall(Call& call, std::string_view target) {
    static constexpr std::array<Rule, 13> kTargets{{
        {"LayoutConstraint", same},
        {"MoveToDevice", same},
        {"MoveToHost", same},
        {"annotate_device_placement", same},
        {"Cholesky", routineOf, "cholesky"},
        {"Eigh", routineOf, "eigh"},
        {"Qr", routineOf, "qr"},
        {"QrDecompositionBlock", routineOf, "qr"},
        {"ProductOfElementaryHouseholderReflectors", routineOf, "householder"},
        {"mhlo.erf", elementwise, "erf"},
        {"mhlo.topk", largest},
        {"ApproxTopK", approximate},
        {"PartialReduce", approximate},
    }};
    const auto known = std::ranges::find(kTargets, target, &Rule::name);
    if (known == kTargets.end() || call.count() == 0) return false;
    known->apply(call, known->detail);
    return true;
}

std::vector<Rule> matrixRules() {
    return {
        {"cholesky", cholesky}, {"triangular_solve", triangularSolve}, {"fft", fft},
        {"sort", sort},         {"rng_bit_generator", randomBits},
    };
}

} // namespace shardlens::mlir
