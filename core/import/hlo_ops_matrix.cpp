// SPDX-License-Identifier: Apache-2.0
// Linear algebra, transforms, sorts, scatters and random bits; and the opcodes with several
// results.
#include "core/error.h"
#include "core/import/hlo_attributes.h"
#include "core/import/hlo_contraction.h"
#include "core/model/catalogue.h"

#include <algorithm>
#include <array>

namespace shardlens::hlo {

namespace {

using Ints = std::vector<std::int64_t>;

Ints list(const Site& site, std::string_view key) {
    return integersIn(site.instruction.attribute(key)).value_or(Ints{});
}

std::int64_t flag(const Site& site, std::string_view key) {
    return site.instruction.attribute(key) == "true" ? 1 : 0;
}

/// An op with several results, if the catalogue derives those of the text.
std::optional<Value> tryEmitMany(Translation& t, const Site& site, OpKind kind,
                                 Attributes attributes, std::vector<TensorId> inputs) {
    std::vector<TensorSpec> stated;
    for (const Type& part : site.instruction.type.parts) {
        if (part.kind != Type::Kind::Array) return std::nullopt;
        stated.push_back(part.spec);
    }
    const Op op{{}, kind, {}, attributes, inputs, {}};
    OpView view{op, {}, {}};
    for (const TensorId id : inputs) view.inputs.push_back(t.spec(id));
    try {
        const std::vector<TensorSpec> results = inferShapes(view);
        if (!std::ranges::equal(results, stated, {}, &TensorSpec::shape, &TensorSpec::shape))
            return std::nullopt;
    } catch (const InputError&) { // the operands do not fit: the op stays opaque
        return std::nullopt;
    }
    return t.emitMany(site, kind, std::move(attributes), std::move(inputs), std::move(stated));
}

// --- linear algebra, transforms -----------------------------------------------------------------

std::optional<Leaf> cholesky(Translation& t, const Site& site) {
    return t.tryEmit(site, OpKind::LinearAlgebra,
                     {{"function", std::string("cholesky")}, {"lower", flag(site, "lower")}},
                     t.arrays(site), site.instruction.type.spec);
}

/// Of real matrices: an adjoint is a transpose.
std::optional<Leaf> triangularSolve(Translation& t, const Site& site) {
    if (site.instruction.operands.size() != 2) return std::nullopt;
    const std::string_view turned = site.instruction.attribute("transpose_a");
    const bool transposes = turned == "TRANSPOSE" || turned == "ADJOINT";
    return t.tryEmit(site, OpKind::LinearAlgebra,
                     {{"function", std::string("solve")},
                      {"left", flag(site, "left_side")},
                      {"lower", flag(site, "lower")},
                      {"unit", flag(site, "unit_diagonal")},
                      {"transpose", std::int64_t{transposes ? 1 : 0}}},
                     t.arrays(site), site.instruction.type.spec);
}

std::optional<Leaf> fft(Translation& t, const Site& site) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kNames{
        {{"FFT", "fft"}, {"IFFT", "ifft"}, {"RFFT", "rfft"}, {"IRFFT", "irfft"}}};
    const auto named = std::ranges::find(kNames, site.instruction.attribute("fft_type"),
                                         &std::pair<std::string_view, std::string_view>::first);
    if (named == kNames.end()) return std::nullopt;
    return t.tryEmit(
        site, OpKind::Fourier,
        {{"function", std::string(named->second)}, {"length", list(site, "fft_length")}},
        t.arrays(site), site.instruction.type.spec);
}

// --- sorts, scatters ----------------------------------------------------------------------------

struct Comparison {
    std::size_t keys = 0; ///< operand that is compared
    bool descending = false;
};

/// "compare(p0, p1), direction=GT" of the two elements of one operand.
std::optional<Comparison> comparisonOf(Translation& t, const Site& site) {
    const Computation* computation = t.module().callee(site.instruction, "to_apply");
    if (!computation) return std::nullopt;
    const Instruction& root = computation->instructions[computation->root];
    const auto& parameters = computation->parameters;
    if (root.opcode != "compare" || root.operands.size() != 2 ||
        parameters.size() != 2 * site.instruction.operands.size())
        return std::nullopt;
    const std::string_view direction = root.attribute("direction");
    const bool descending = direction == "GT" || direction == "GE";
    if (!descending && direction != "LT" && direction != "LE") return std::nullopt;
    for (std::size_t i = 0; i < parameters.size(); i += 2) {
        if (root.operands[0] == parameters[i] && root.operands[1] == parameters[i + 1])
            return Comparison{i / 2, descending};
        if (root.operands[1] == parameters[i] && root.operands[0] == parameters[i + 1])
            return Comparison{i / 2, !descending};
    }
    return std::nullopt;
}

std::optional<Attributes> sortAttributes(const Site& site, const Comparison& comparison) {
    const Ints axis = list(site, "dimensions");
    if (axis.size() != 1) return std::nullopt;
    return Attributes{{"axis", axis[0]}, {"descending", std::int64_t{comparison.descending}}};
}

std::optional<Leaf> sort(Translation& t, const Site& site) {
    const auto comparison = comparisonOf(t, site);
    if (!comparison) return std::nullopt;
    const auto attributes = sortAttributes(site, *comparison);
    if (!attributes) return std::nullopt;
    return t.tryEmit(site, OpKind::Sort, *attributes, t.arrays(site), site.instruction.type.spec);
}

/// The keys come first in a Sort; where they do not in the text, it stays opaque.
std::optional<Value> sortSeveral(Translation& t, const Site& site) {
    const auto comparison = comparisonOf(t, site);
    if (!comparison || comparison->keys != 0) return std::nullopt;
    const auto attributes = sortAttributes(site, *comparison);
    if (!attributes) return std::nullopt;
    return tryEmitMany(t, site, OpKind::Sort, *attributes, t.arrays(site));
}

/// @param reduction as a reducer names it
std::optional<Attributes> scatterAttributes(const Site& site, std::string_view reduction) {
    const Ints vectorDim = list(site, "index_vector_dim");
    if (vectorDim.size() != 1 || reduction.empty()) return std::nullopt;
    const std::string name = reduction == "sum"    ? "add"
                             : reduction == "prod" ? "mul"
                                                   : std::string(reduction);
    return Attributes{{"offset_dims", list(site, "update_window_dims")},
                      {"collapsed_dims", list(site, "inserted_window_dims")},
                      {"index_map", list(site, "scatter_dims_to_operand_dims")},
                      {"index_vector_dim", vectorDim[0]},
                      {"batching_dims", list(site, "input_batching_dims")},
                      {"index_batching_dims", list(site, "scatter_indices_batching_dims")},
                      {"reduction", name}};
}

/// The reducer of a scatter; "none" where it returns the update.
std::string reductionOf(Translation& t, const Site& site) {
    const Computation* computation = t.module().callee(site.instruction, "to_apply");
    const bool replaces = computation && computation->parameters.size() == 2 &&
                          computation->root == computation->parameters[1];
    return replaces ? "none" : t.reducer(site.instruction);
}

std::optional<Leaf> scatter(Translation& t, const Site& site) {
    const auto attributes = scatterAttributes(site, reductionOf(t, site));
    if (!attributes || site.instruction.operands.size() != 3) return std::nullopt;
    return t.tryEmit(site, OpKind::ScatterWindows, *attributes, t.arrays(site),
                     site.instruction.type.spec);
}

std::optional<Value> scatterSeveral(Translation& t, const Site& site) {
    const auto reductions = t.reducersApart(site.instruction, site.instruction.operands.size() / 2);
    if (reductions.empty() ||
        std::ranges::count(reductions, reductions[0]) != std::ssize(reductions))
        return std::nullopt;
    const auto attributes = scatterAttributes(site, reductions[0]);
    if (!attributes) return std::nullopt;
    return tryEmitMany(t, site, OpKind::ScatterWindows, *attributes, t.arrays(site));
}

// --- random bits --------------------------------------------------------------------------------

std::optional<Value> randomBits(Translation& t, const Site& site) {
    const auto& parts = site.instruction.type.parts;
    if (parts.size() != 2 || site.instruction.operands.size() != 1) return std::nullopt;
    const TensorSpec& bits = parts[1].spec;
    return tryEmitMany(t, site, OpKind::RandomBits,
                       {{"shape", bits.shape}, {"to", std::string(nameOf(bits.dtype))}},
                       t.arrays(site));
}

std::optional<Value> routine(Translation& t, const Site& site, std::string_view function) {
    return tryEmitMany(t, site, OpKind::LinearAlgebra, {{"function", std::string(function)}},
                       t.arrays(site));
}

} // namespace

std::optional<Value> translateSeveral(Translation& t, const Site& site) {
    const std::string_view opcode = site.instruction.opcode;
    if (opcode == "reduce") return reduceSeveral(t, site);
    if (opcode == "sort") return sortSeveral(t, site);
    if (opcode == "scatter") return scatterSeveral(t, site);
    if (opcode == "rng-bit-generator") return randomBits(t, site);
    if (opcode != "custom-call") return std::nullopt;
    const std::string_view target = site.instruction.attribute("custom_call_target");
    if (target == "\"Eigh\"") return routine(t, site, "eigh");
    if (target == "\"Qr\"" || target == "\"QrDecompositionBlock\"") return routine(t, site, "qr");
    return std::nullopt;
}

std::span<const OpcodeRow> matrixRows() {
    static constexpr std::array kRows{
        OpcodeRow{"cholesky", cholesky}, OpcodeRow{"triangular-solve", triangularSolve},
        OpcodeRow{"fft", fft},           OpcodeRow{"sort", sort},
        OpcodeRow{"scatter", scatter},
    };
    return kRows;
}

} // namespace shardlens::hlo
