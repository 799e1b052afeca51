// SPDX-License-Identifier: Apache-2.0
// Signatures: kind, attributes, operand and result specs.
#include "core/fold/sequence.h"

#include <functional>
#include <string_view>

namespace shardlens::fold_detail {

std::uint64_t mix(std::uint64_t hash,
                  std::uint64_t value) { // splitmix64 finaliser (Steele et al. 2014)
    hash += 0x9e3779b97f4a7c15ULL + value;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9ULL;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebULL;
    return hash ^ (hash >> 31);
}

static std::uint64_t mix(std::uint64_t hash, std::string_view text) {
    return mix(hash, std::uint64_t{std::hash<std::string_view>{}(text)});
}

static std::uint64_t mix(std::uint64_t hash, const std::vector<std::int64_t>& values) {
    for (const std::int64_t value : values) hash = mix(hash, static_cast<std::uint64_t>(value));
    return mix(hash, values.size());
}

std::uint64_t mix(std::uint64_t hash, const TensorSpec& spec) {
    return mix(mix(hash, static_cast<std::uint64_t>(spec.dtype)), spec.shape);
}

static std::uint64_t mix(std::uint64_t hash, const AttributeValue& value) {
    hash = mix(hash, value.index());
    if (const auto* i = std::get_if<std::int64_t>(&value))
        return mix(hash, static_cast<std::uint64_t>(*i));
    if (const auto* d = std::get_if<double>(&value)) return mix(hash, std::hash<double>{}(*d));
    if (const auto* s = std::get_if<std::string>(&value)) return mix(hash, std::string_view(*s));
    if (const auto* v = std::get_if<std::vector<std::int64_t>>(&value)) return mix(hash, *v);
    for (const double d : std::get<std::vector<double>>(value))
        hash = mix(hash, std::hash<double>{}(d));
    return hash;
}

namespace {

/// Where a slice begins changes neither its rule nor its cost; the size it has is in its result.
/// Blocks that cut their weights from one stacked tensor differ in it, and Proof looks at it.
bool isOffset(const Op& op, std::string_view attribute) {
    return op.kind == OpKind::Slice && (attribute == "starts" || attribute == "ends");
}

} // namespace

std::uint64_t ownSignature(const Graph& graph, OpId id) {
    const Op& op = graph.op(id);
    std::uint64_t hash = mix(0, static_cast<std::uint64_t>(op.kind));
    if (op.kind == OpKind::Opaque) hash = mix(hash, std::string_view(op.type));
    for (const auto& [name, value] : op.attributes.values()) {
        if (isOffset(op, name)) continue;
        hash = mix(mix(hash, std::string_view(name)), value);
    }
    for (const TensorId out : op.outputs) {
        const Tensor& tensor = graph.tensor(out);
        hash = mix(hash, tensor.spec);
        if (tensor.value) hash = mix(hash, *tensor.value);
    }
    return hash;
}

namespace {

/// ownSignature with the specs of the operands.
std::vector<std::uint64_t> signatures(const Graph& graph) {
    std::vector<std::uint64_t> result(graph.ops().size());
    for (OpId id = 0; id < result.size(); ++id) {
        std::uint64_t hash = ownSignature(graph, id);
        for (const TensorId in : graph.op(id).inputs)
            hash = in == kNoTensor ? mix(hash, 1) : mix(mix(hash, 2), graph.tensor(in).spec);
        result[id] = hash;
    }
    return result;
}

} // namespace

Sequence makeSequence(const Graph& graph, const std::vector<OpId>& order) {
    Sequence s{&graph,
               {},
               std::vector<std::size_t>(graph.ops().size(), Sequence::kNowhere),
               signatures(graph)};
    for (const OpId id : order)
        if (!isSource(graph.op(id))) {
            s.position[id] = s.ops.size();
            s.ops.push_back(id);
        }
    return s;
}

} // namespace shardlens::fold_detail
