// SPDX-License-Identifier: Apache-2.0
// Two passes over the graph: the first forwards identities and turns known integers into constants,
// the second drops what no output needs any more.
#include "core/model/canonical.h"

#include "core/model/graph_algorithms.h"

#include <algorithm>
#include <numeric>

namespace shardlens {

namespace {

bool isIdentityPermutation(const std::vector<std::int64_t>& perm) {
    std::vector<std::int64_t> identity(perm.size());
    std::iota(identity.begin(), identity.end(), std::int64_t{0});
    return perm == identity;
}

/// The op returns its first operand as it is. Dropout is not one: it keeps a mask in training.
bool isIdentity(const Graph& graph, const Op& op) {
    if (op.outputs.size() != 1 || op.inputs.empty() || op.inputs.front() == kNoTensor) return false;
    if (graph.tensor(op.inputs.front()).spec != graph.tensor(op.outputs.front()).spec) return false;
    switch (op.kind) {
    case OpKind::Elementwise: {
        const std::string function = op.attributes.text("function");
        return function == "identity" || function == "cast"; // cast to the same type
    }
    case OpKind::Reshape:
    case OpKind::Expand:
        return true;
    case OpKind::Transpose:
        return isIdentityPermutation(op.attributes.integers("perm"));
    default:
        return false;
    }
}

bool isKnown(const Graph& graph, const Op& op) {
    return !op.outputs.empty() && std::ranges::all_of(op.outputs, [&](TensorId output) {
        return graph.tensor(output).value.has_value();
    });
}

/// Copies ops into a new graph and remembers where each tensor went.
class Rewriter {
public:
    explicit Rewriter(const Graph& source)
        : m_source(source), m_moved(source.tensors().size(), kNoTensor) {
        m_result.name = source.name;
        m_result.format = source.format;
        m_result.warnings = source.warnings;
        m_result.bindings = source.bindings;
        m_result.facts = source.facts;
        m_result.backwardIncluded = source.backwardIncluded;
    }

    void copy(Op op) {
        const std::vector<TensorId> from = op.outputs;
        std::vector<TensorSpec> specs;
        std::vector<std::string> names;
        for (const TensorId id : from) {
            specs.push_back(m_source.tensor(id).spec);
            names.push_back(m_source.tensor(id).name);
        }
        for (TensorId& input : op.inputs)
            if (input != kNoTensor) input = m_moved[input];
        const OpId id = m_result.addOp(std::move(op), std::move(specs), std::move(names));
        for (std::size_t port = 0; port < from.size(); ++port) {
            const TensorId to = m_result.op(id).outputs[port];
            m_moved[from[port]] = to;
            if (const auto& value = m_source.tensor(from[port]).value)
                m_result.setKnownValue(to, *value);
            if (const auto& reals = m_source.tensor(from[port]).reals)
                m_result.setKnownReals(to, *reals);
        }
    }

    void forward(TensorId result, TensorId operand) { m_moved[result] = m_moved[operand]; }

    Graph finish() {
        for (const TensorId output : m_source.outputs()) m_result.markOutput(m_moved[output]);
        if (m_source.partition) {
            m_result.partition = m_source.partition;
            m_result.partition->shardings.clear();
            for (const auto& [tensor, sharding] : m_source.partition->shardings)
                if (m_moved[tensor] != kNoTensor)
                    m_result.partition->shardings.emplace(m_moved[tensor], sharding);
        }
        return std::move(m_result);
    }

private:
    const Graph& m_source;
    std::vector<TensorId> m_moved;
    Graph m_result;
};

Graph withoutIdentities(const Graph& graph) {
    Rewriter rewriter(graph);
    for (const Op& op : graph.ops()) {
        if (isIdentity(graph, op)) {
            rewriter.forward(op.outputs.front(), op.inputs.front());
            continue;
        }
        Op copy = op;
        const bool source = op.inputs.empty();
        if (!source && isKnown(graph, op)) {
            copy.kind = OpKind::Constant;
            copy.attributes = {};
            copy.inputs.clear();
        }
        rewriter.copy(std::move(copy));
    }
    return rewriter.finish();
}

Graph onlyLive(const Graph& graph) {
    const std::vector<bool> live = reachesOutput(graph);
    Rewriter rewriter(graph);
    for (OpId id = 0; id < graph.ops().size(); ++id)
        if (live[id]) rewriter.copy(graph.op(id));
    return rewriter.finish();
}

} // namespace

Graph canonicalise(const Graph& graph) {
    return onlyLive(withoutIdentities(graph));
}

} // namespace shardlens
