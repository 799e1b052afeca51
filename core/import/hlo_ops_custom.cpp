// SPDX-License-Identifier: Apache-2.0
// Custom calls: the library routines that compilers put in the place of products and attention, and
// the markers that carry an annotation and compute nothing.
#include "core/import/hlo_contraction.h"
#include "core/import/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace shardlens::hlo {

namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::array<std::string_view, 9> kMarkers{
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "xla.sdy.FuncResultSharding",
    "AssumeGatherIndicesInBound",
    "annotate_device_placement",
    "MoveToHost",
    "LayoutConstraint",
    "MoveToDevice",
};

std::string targetOf(const Instruction& instruction) {
    std::string_view target = instruction.attribute("custom_call_target");
    if (target.starts_with('"')) target.remove_prefix(1);
    if (target.ends_with('"')) target.remove_suffix(1);
    constexpr std::size_t kLongest = 120;
    return target.empty() ? "custom-call" : cleaned(target.substr(0, kLongest));
}

/// The type of a call's main result: the first of its tuple.
const TensorSpec* mainResult(const Instruction& instruction) {
    const Type* type = &instruction.type;
    while (type->kind == Type::Kind::Tuple && !type->parts.empty()) type = &type->parts.front();
    return type->kind == Type::Kind::Array ? &type->spec : nullptr;
}

/// The main result, and nothing for the scratch memory beside it.
Value withScratch(Translation& t, const Site& site, Leaf main) {
    std::vector<Leaf> leaves(std::max<std::size_t>(site.instruction.type.leaves, 1), kNoTensor);
    leaves[0] = main;
    return t.pool(leaves);
}

// --- matrix products ----------------------------------------------------------------------------

/// `"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],…}` inside a backend_config.
std::optional<DotDims> gemmDims(std::string_view config) {
    const auto json = nlohmann::json::parse(config, nullptr, false);
    if (!json.is_object()) return std::nullopt;
    const auto& inside = json.contains("gemm_backend_config") ? json["gemm_backend_config"] : json;
    if (!inside.is_object() || !inside.contains("dot_dimension_numbers")) return std::nullopt;
    const auto& numbers = inside["dot_dimension_numbers"];
    if (!numbers.is_object()) return std::nullopt;
    const auto list = [&](const char* key) {
        Ints result;
        if (!numbers.contains(key) || !numbers[key].is_array()) return result;
        for (const auto& entry : numbers[key]) {
            if (entry.is_number_integer()) result.push_back(entry.get<std::int64_t>());
            if (entry.is_string()) {
                const std::string& text = entry.get_ref<const std::string&>();
                const auto value = integersIn(text);
                result.push_back(value && value->size() == 1 ? (*value)[0] : -1);
            }
        }
        return result;
    };
    return DotDims{list("lhs_contracting_dimensions"), list("rhs_contracting_dimensions"),
                   list("lhs_batch_dimensions"), list("rhs_batch_dimensions")};
}

/// a·b, and what is added to it: a matrix of the result's shape, or a bias along its last
/// dimension.
std::optional<Value> gemm(Translation& t, const Site& site) {
    const TensorSpec* spec = mainResult(site.instruction);
    const auto dims = gemmDims(site.instruction.attribute("backend_config"));
    if (!spec || !dims) return std::nullopt;
    auto result = emitDot(t, site, *dims, *spec);
    if (!result) return std::nullopt;
    for (std::size_t i = 2; i < site.instruction.operands.size(); ++i) {
        const TensorId more = t.tensor(site, i);
        const Shape& shape = t.spec(more).shape;
        const bool bias =
            shape.size() == 1 && !spec->shape.empty() && shape[0] == spec->shape.back();
        if (shape == spec->shape || bias)
            result = t.emit(site, OpKind::Elementwise, {{"function", std::string("add")}},
                            {*result, more}, *spec);
    }
    return withScratch(t, site, *result);
}

// --- attention ----------------------------------------------------------------------------------

struct AttentionCall {
    bool backward = false;
    bool causal = false;
    bool headsSecond = false; ///< operands are [b,H,s,d], not [b,s,H,d]
};

std::optional<AttentionCall> attentionCall(std::string_view target, std::string_view config) {
    const bool transformerEngine = contains(target, "te_fused_attn");
    if (!transformerEngine && !target.starts_with("__cudnn$fmha")) return std::nullopt;
    AttentionCall call;
    call.backward = contains(target, "ackward");
    // Transformer Engine numbers its masks: 2 causal, 3 padding and causal.
    call.causal = transformerEngine
                      ? contains(config, "mask_type = 2") || contains(config, "mask_type = 3")
                      : contains(config, "CAUSAL");
    call.headsSecond = contains(config, R"("lhs_batch_dimensions":["0","1"])");
    return call;
}

TensorId swapHeads(Translation& t, const Site& site, TensorId from) {
    TensorSpec spec = t.spec(from);
    std::swap(spec.shape[1], spec.shape[2]);
    return t.emit(site, OpKind::Transpose, {{"perm", Ints{0, 2, 1, 3}}}, {from}, spec);
}

std::optional<Value> attentionForward(Translation& t, const Site& site, const AttentionCall& call,
                                      const std::string& target) {
    std::vector<TensorId> inputs;
    for (std::size_t i = 0; i < 3; ++i) {
        inputs.push_back(t.tensor(site, i));
        if (t.spec(inputs[i]).shape.size() != 4) return std::nullopt;
        if (call.headsSecond) inputs[i] = swapHeads(t, site, inputs[i]);
    }
    const TensorSpec* declared = mainResult(site.instruction);
    if (!declared || declared->shape.size() != 4) return std::nullopt;
    TensorSpec spec = *declared;
    if (call.headsSecond) std::swap(spec.shape[1], spec.shape[2]);
    auto result = t.tryEmit(site, OpKind::Attention,
                            {{"causal", std::int64_t{call.causal ? 1 : 0}}}, inputs, spec);
    if (!result) return std::nullopt;
    if (call.headsSecond) result = swapHeads(t, site, *result);
    return t.attentionResults(site, *result, {inputs[0], inputs[1]}, target + " (statistics)");
}

/// 5 products of the forward's size against its 2 (FlashAttention, Dao et al. 2022).
double backwardFlops(Translation& t, const Site& site, const AttentionCall& call) {
    Shape q = t.spec(t.tensor(site, 0)).shape, k = t.spec(t.tensor(site, 1)).shape;
    if (q.size() != 4 || k.size() != 4) return -1;
    const double keys = static_cast<double>(k[call.headsSecond ? 2 : 1]);
    return 10 * elementsOf(q) * keys * (call.causal ? 0.5 : 1.0);
}

// --- others -------------------------------------------------------------------------------------

/// Values and indices of the k largest along the last dimension.
std::optional<Value> topK(Translation& t, const Site& site) {
    const Type& type = site.instruction.type;
    if (type.kind != Type::Kind::Tuple || type.parts.size() != 2 || type.leaves != 2 ||
        site.instruction.operands.size() != 1)
        return std::nullopt;
    const TensorId from = t.tensor(site, 0);
    Shape shape = t.spec(from).shape;
    const TensorSpec &values = type.parts[0].spec, &indices = type.parts[1].spec;
    if (shape.empty() || values.shape.size() != shape.size() || values.shape != indices.shape)
        return std::nullopt;
    const std::int64_t k = values.shape.back();
    shape.back() = k;
    if (values.shape != shape) return std::nullopt;
    return t.emitMany(site, OpKind::TopK,
                      {{"axis", static_cast<std::int64_t>(shape.size()) - 1}, {"k", k}}, {from},
                      {values, indices});
}

} // namespace

Value translateCustomCall(Translation& t, const Site& site) {
    const Instruction& instruction = site.instruction;
    const std::string target = targetOf(instruction);
    const std::size_t operands = instruction.operands.size();
    if (std::ranges::find(kMarkers, target) != kMarkers.end() && operands > 0) {
        const Value value = site.values[instruction.operands[0]];
        const TensorSpec* spec = mainResult(instruction);
        const auto leaves = t.leavesOf(value);
        if (leaves.size() == 1 && leaves[0] != kNoTensor && spec && t.spec(leaves[0]) == *spec)
            return value;
    }
    const std::string_view config = instruction.attribute("backend_config");
    if (const auto values = translateSeveral(t, site)) return *values;
    if (target == "ProductOfElementaryHouseholderReflectors" && operands == 2 &&
        instruction.type.kind == Type::Kind::Array)
        if (const auto product =
                t.tryEmit(site, OpKind::LinearAlgebra, {{"function", std::string("householder")}},
                          {t.tensor(site, 0), t.tensor(site, 1)}, instruction.type.spec))
            return t.pool(*product);
    if (target == "TopK")
        if (const auto value = topK(t, site)) return *value;
    if (target.starts_with("__cublas$"))
        if (const auto value = gemm(t, site)) return *value;
    if (target.starts_with("__cudnn$conv") && operands >= 2)
        if (const TensorSpec* spec = mainResult(instruction)) {
            if (target.starts_with("__cudnn$convForward") ||
                target.starts_with("__cudnn$convBiasActivationForward"))
                if (const auto conv = emitConvolution(t, site, *spec))
                    return withScratch(t, site, *conv);
            return t.opaque(site, target, convolutionFlops(t, site, *spec));
        }
    if (const auto call = attentionCall(target, config); call && operands >= 3) {
        if (call->backward) return t.opaque(site, target, backwardFlops(t, site, *call));
        if (const auto value = attentionForward(t, site, *call, target)) return *value;
    }
    return t.opaque(site, target);
}

} // namespace shardlens::hlo
