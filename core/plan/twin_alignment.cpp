// SPDX-License-Identifier: Apache-2.0
// One pass over the local graph in topological order. Each tensor's counterpart in the whole graph
// is known when an op that reads it is reached; the op's own counterpart is then the first op that
// reads the same things and is alike. What has none and keeps its operand's shape and type stands
// for that operand.
#include "core/plan/twin_alignment.h"

#include "core/error.h"
#include "core/model/canonical.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace shardlens {

namespace {

bool isGiven(const Op& op) {
    return op.kind == OpKind::Input || op.kind == OpKind::Parameter;
}

/// Made of nothing: the same in every program that has it.
bool isMade(const Op& op) {
    return op.inputs.empty() && !isGiven(op);
}

/// Attributes that do not depend on how large the part is.
bool alike(const Op& a, const Op& b) {
    if (a.kind != b.kind || a.inputs.size() != b.inputs.size() ||
        a.outputs.size() != b.outputs.size())
        return false;
    if (a.kind == OpKind::Opaque && a.type != b.type) return false;
    constexpr std::array<std::string_view, 7> kText{"function", "mode",   "equation", "to",
                                                    "of",       "reduce", "reduction"};
    constexpr std::array<std::string_view, 7> kNumbers{"axis",   "keepdims", "transA", "transB",
                                                       "causal", "mask",     "k"};
    constexpr std::array<std::string_view, 3> kLists{"perm", "axes", "strides"};
    const Attributes &x = a.attributes, &y = b.attributes;
    return std::ranges::all_of(kText, [&](auto name) { return x.text(name) == y.text(name); }) &&
           std::ranges::all_of(
               kNumbers, [&](auto name) { return x.integer(name, -1) == y.integer(name, -1); }) &&
           std::ranges::all_of(kLists,
                               [&](auto name) { return x.integers(name) == y.integers(name); });
}

std::vector<OpId> sourcesOf(const Graph& graph) {
    std::vector<OpId> sources;
    for (OpId id = 0; id < graph.ops().size(); ++id)
        if (isGiven(graph.op(id))) sources.push_back(id);
    return sources;
}

class Aligner {
public:
    Aligner(const Graph& whole, const Graph& local) : m_whole(whole), m_local(local) {
        m_result.partner.assign(whole.ops().size(), kNoOp);
        m_result.partnerOf.assign(local.ops().size(), kNoOp);
        m_result.image.assign(local.tensors().size(), kNoTensor);
    }

    void pairSources(const Graph& wholeSource, const Graph& localSource) {
        const std::vector<OpId> ours = sourcesOf(wholeSource), theirs = sourcesOf(localSource);
        if (ours.size() != theirs.size())
            problem(fmt::format("The whole graph has {} inputs and parameters, the local one {}; "
                                "the first {} are taken as pairs.",
                                ours.size(), theirs.size(), std::min(ours.size(), theirs.size())));
        for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
            const auto a = m_whole.findOp(wholeSource.op(ours[i]).name);
            const auto b = m_local.findOp(localSource.op(theirs[i]).name);
            if (a && b) pair(*a, *b);
        }
    }

    TwinAlignment run() {
        for (OpId id = 0; id < m_local.ops().size(); ++id) visit(id);
        pairOutputs();
        for (OpId id = 0; id < m_whole.ops().size(); ++id)
            if (m_result.partner[id] == kNoOp && !isMade(m_whole.op(id)))
                problem(fmt::format("Op '{}' ({}) of the whole graph has no counterpart.",
                                    m_whole.op(id).name, nameOf(m_whole.op(id).kind)));
        return std::move(m_result);
    }

private:
    void problem(std::string sentence) { m_result.problems.push_back(std::move(sentence)); }

    void pair(OpId whole, OpId local) {
        m_result.partner[whole] = local;
        m_result.partnerOf[local] = whole;
        const Op &a = m_whole.op(whole), &b = m_local.op(local);
        for (std::size_t r = 0; r < b.outputs.size() && r < a.outputs.size(); ++r)
            m_result.image[b.outputs[r]] = a.outputs[r];
    }

    bool operandFits(TensorId whole, TensorId local) const {
        if (whole == kNoTensor || local == kNoTensor) return whole == local;
        const TensorId image = m_result.image[local];
        if (image != kNoTensor) return image == whole;
        const Op &a = m_whole.op(m_whole.tensor(whole).producer),
                 &b = m_local.op(m_local.tensor(local).producer);
        return isMade(a) && isMade(b) && alike(a, b);
    }

    /// The first op of the whole graph that reads what the local one reads and is like it.
    std::optional<OpId> counterpart(const Op& op) const {
        for (std::size_t port = 0; port < op.inputs.size(); ++port) {
            const TensorId in = op.inputs[port];
            if (in == kNoTensor || m_result.image[in] == kNoTensor) continue;
            for (const Graph::Use& use : m_whole.uses(m_result.image[in])) {
                const Op& candidate = m_whole.op(use.op);
                if (use.port != port || m_result.partner[use.op] != kNoOp || !alike(candidate, op))
                    continue;
                bool fits = true;
                for (std::size_t i = 0; i < op.inputs.size() && fits; ++i)
                    fits = operandFits(candidate.inputs[i], op.inputs[i]);
                if (fits) return use.op;
            }
            return std::nullopt; // every reader of the first known operand was looked at
        }
        return std::nullopt;
    }

    void visit(OpId id) {
        const Op& op = m_local.op(id);
        if (isMade(op) || m_result.partnerOf[id] != kNoOp) return; // made when an op reads it
        if (isGiven(op)) {
            problem(fmt::format("'{}' of the local graph has no counterpart.", op.name));
            return;
        }
        if (op.kind == OpKind::Collective) return standIns(op);
        if (const auto whole = counterpart(op)) {
            const Op& other = m_whole.op(*whole);
            for (std::size_t i = 0; i < op.inputs.size(); ++i)
                if (op.inputs[i] != kNoTensor && m_result.image[op.inputs[i]] == kNoTensor)
                    pair(m_whole.tensor(other.inputs[i]).producer,
                         m_local.tensor(op.inputs[i]).producer);
            return pair(*whole, id);
        }
        if (op.kind == OpKind::Slice) return standIns(op);
        m_result.localOnly.push_back(id);
        passThrough(op);
    }

    /// Results that nothing computes: constants that are handed back.
    void pairOutputs() {
        const std::size_t count = std::min(m_whole.outputs().size(), m_local.outputs().size());
        for (std::size_t i = 0; i < count; ++i) {
            const OpId a = m_whole.tensor(m_whole.outputs()[i]).producer,
                       b = m_local.tensor(m_local.outputs()[i]).producer;
            if (m_result.partner[a] == kNoOp && m_result.partnerOf[b] == kNoOp &&
                isMade(m_whole.op(a)) && alike(m_whole.op(a), m_local.op(b)))
                pair(a, b);
        }
    }

    void standIns(const Op& op) {
        for (std::size_t r = 0; r < op.outputs.size(); ++r)
            if (const TensorId in = op.inputs[std::min(r, op.inputs.size() - 1)]; in != kNoTensor)
                m_result.image[op.outputs[r]] = m_result.image[in];
    }

    /// An elementwise op that only a part needs stands for its operand of the same shape and type.
    void passThrough(const Op& op) {
        if (op.kind != OpKind::Elementwise) return;
        const TensorSpec& result = m_local.tensor(op.outputs[0]).spec;
        for (const TensorId in : op.inputs)
            if (in != kNoTensor && m_result.image[in] != kNoTensor &&
                m_local.tensor(in).spec == result)
                m_result.image[op.outputs[0]] = m_result.image[in];
    }

    const Graph& m_whole;
    const Graph& m_local;
    TwinAlignment m_result;
};

} // namespace

Graph wholeForm(const Graph& whole) {
    Graph copy;
    copy.name = whole.name;
    copy.format = whole.format;
    copy.warnings = whole.warnings;
    copy.bindings = whole.bindings;
    copy.facts = whole.facts;
    copy.backwardIncluded = whole.backwardIncluded;
    for (Op op : whole.ops()) {
        std::vector<TensorSpec> specs;
        std::vector<std::string> names;
        const std::vector<TensorId> outputs = op.outputs;
        for (const TensorId out : outputs) {
            specs.push_back(whole.tensor(out).spec);
            names.push_back(whole.tensor(out).name);
        }
        if (op.kind == OpKind::Collective) {
            if (op.inputs.size() != 1 || outputs.size() != 1 || op.inputs[0] == kNoTensor ||
                whole.tensor(op.inputs[0]).spec != specs[0])
                throw InputError(fmt::format("the collective '{}' changes a shape", op.name),
                                 whole.name, "give the model of a single device as the whole one");
            op.kind = OpKind::Elementwise;
            op.attributes = {{"function", std::string("identity")}};
        }
        const OpId id = copy.addOp(std::move(op), std::move(specs), std::move(names));
        for (std::size_t r = 0; r < outputs.size(); ++r) {
            const TensorId out = copy.op(id).outputs[r];
            if (const auto& value = whole.tensor(outputs[r]).value) copy.setKnownValue(out, *value);
            if (const auto& reals = whole.tensor(outputs[r]).reals) copy.setKnownReals(out, *reals);
        }
    }
    for (const TensorId out : whole.outputs()) copy.markOutput(out);
    return canonicalise(copy);
}

TwinAlignment alignTwins(const Graph& whole, const Graph& local, const Graph& wholeSource,
                         const Graph& localSource) {
    Aligner aligner(whole, local);
    aligner.pairSources(wholeSource, localSource);
    return aligner.run();
}

} // namespace shardlens
