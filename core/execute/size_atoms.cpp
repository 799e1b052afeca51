// SPDX-License-Identifier: Apache-2.0
// Sizes are tied where a rule's factor carries them, and frozen where an op's attributes or window
// arithmetic fix them.
#include "core/execute/size_atoms.h"

#include <algorithm>

namespace shardlens {

namespace {

/// Kinds whose one-sided factors (carried by a single dimension) are tied to attributes that hold
/// positions or lengths.
bool fixesOwnFactors(OpKind kind) {
    switch (kind) {
    case OpKind::MatMul:
    case OpKind::Einsum:
    case OpKind::Reduce:
    case OpKind::ArgReduce:
    case OpKind::GlobalPool:
    case OpKind::Gather:
    case OpKind::CrossEntropy:
    case OpKind::Expand:
    case OpKind::Attention:
    case OpKind::MoeDispatch: // the capacity follows from the sequence
    case OpKind::MoeCombine:
    case OpKind::Input:
    case OpKind::Parameter:
    case OpKind::Constant:
    case OpKind::Reshape: // what does not line up is frozen below
        return false;
    default:
        return true;
    }
}

std::size_t timesCarried(const FactorRule& rule, int f) {
    std::size_t times = 0;
    for (const auto* side : {&rule.operands, &rule.results})
        for (const std::vector<DimFactors>& dims : *side)
            for (const DimFactors& dim : dims)
                times += static_cast<std::size_t>(std::ranges::count(dim, f));
    return times;
}

} // namespace

SizeAtoms::SizeAtoms(const Graph& graph) {
    for (const Tensor& tensor : graph.tensors()) {
        auto& dims = m_dims.emplace_back();
        for (const std::int64_t size : tensor.spec.shape) dims.push_back(make(size));
    }
    m_factors.resize(graph.ops().size());
    for (OpId id = 0; id < graph.ops().size(); ++id) addOp(graph, id);
}

SizeAtoms::Var SizeAtoms::make(std::int64_t size) {
    m_nodes.push_back({m_nodes.size(), size, {}, size <= 1});
    return m_nodes.size() - 1;
}

SizeAtoms::Var SizeAtoms::find(Var v) const {
    while (m_nodes[v].parent != v) v = m_nodes[v].parent;
    return v;
}

std::vector<SizeAtoms::Var> SizeAtoms::atoms(Var v) const {
    const Var root = find(v);
    if (m_nodes[root].parts.empty()) return {root};
    std::vector<Var> all;
    for (const Var part : m_nodes[root].parts) {
        const std::vector<Var> more = atoms(part);
        all.insert(all.end(), more.begin(), more.end());
    }
    return all;
}

void SizeAtoms::freeze(Var v) {
    for (const Var atom : atoms(v)) m_nodes[atom].frozen = true;
}

/// Makes two products equal part by part, from the major end.
void SizeAtoms::unite(std::vector<Var> a, std::vector<Var> b) {
    std::ranges::reverse(a);
    std::ranges::reverse(b);
    const auto dropOnes = [&](std::vector<Var>& list) {
        while (!list.empty() && m_nodes[list.back()].size == 1) list.pop_back();
    };
    const auto expand = [&](std::vector<Var>& list) { // the last may have been split meanwhile
        std::vector<Var> parts = atoms(list.back());
        list.pop_back();
        list.insert(list.end(), parts.rbegin(), parts.rend());
    };
    while (true) {
        dropOnes(a);
        dropOnes(b);
        if (a.empty() || b.empty()) break;
        expand(a);
        expand(b);
        const Var x = a.back(), y = b.back();
        const std::int64_t sx = m_nodes[x].size, sy = m_nodes[y].size;
        if (x == y || sx == sy) {
            m_nodes[x].frozen = m_nodes[y].frozen = m_nodes[x].frozen || m_nodes[y].frozen;
            m_nodes[y].parent = x;
            a.pop_back();
            b.pop_back();
            continue;
        }
        const bool splitX = sx > sy;
        const Var large = splitX ? x : y;
        const std::int64_t major = std::min(sx, sy), rest = std::max(sx, sy) / major;
        if (major * rest != std::max(sx, sy)) break;
        const bool frozen = m_nodes[large].frozen;
        const Var first = make(major), second = make(rest);
        m_nodes[first].frozen = m_nodes[first].frozen || frozen;
        m_nodes[second].frozen = m_nodes[second].frozen || frozen;
        m_nodes[large].parts = {first, second};
    }
    for (const std::vector<Var>* left : {&a, &b}) // what does not line up keeps its sizes
        for (const Var v : *left) freeze(v);
}

void SizeAtoms::tie(const std::vector<Var>& dims, const std::vector<DimFactors>& rule, OpId id) {
    for (std::size_t d = 0; d < dims.size(); ++d) {
        std::vector<Var> factors;
        for (const int f : rule[d]) {
            const std::vector<Var> more = atoms(m_factors[id][static_cast<std::size_t>(f)]);
            factors.insert(factors.end(), more.begin(), more.end());
        }
        if (factors.empty())
            freeze(dims[d]);
        else
            unite(atoms(dims[d]), factors);
    }
}

void SizeAtoms::addOp(const Graph& graph, OpId id) {
    const Op& op = graph.op(id);
    const FactorRule rule = factorRule(viewOf(graph, id));
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        const Factor& factor = rule.factors[f];
        m_factors[id].push_back(make(factor.size));
        const bool ownOnly = timesCarried(rule, static_cast<int>(f)) == 1;
        const bool lone = op.kind == OpKind::Reshape ? factor.kind == FactorKind::Replicate
                                                     : fixesOwnFactors(op.kind);
        if (ownOnly && lone) freeze(m_factors[id].back());
    }
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
        if (op.inputs[i] != kNoTensor) tie(m_dims[op.inputs[i]], rule.operands[i], id);
    for (std::size_t r = 0; r < op.outputs.size(); ++r)
        tie(m_dims[op.outputs[r]], rule.results[r], id);
}

} // namespace shardlens
