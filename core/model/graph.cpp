// SPDX-License-Identifier: Apache-2.0
// Building and reading a graph. Operands must exist before the op that reads them, so ids are
// always a topological order and a cycle cannot be expressed.
#include "core/model/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace shardlens {

namespace {

TensorSpec specOf(const Graph& graph, TensorId id) {
    return id == kNoTensor ? TensorSpec{} : graph.tensor(id).spec;
}

} // namespace

std::string Graph::uniqueName(const Op& op) {
    std::string base = op.name;
    if (base.empty())
        base = fmt::format("{}_{}", op.type.empty() ? nameOf(op.kind) : op.type, m_ops.size());
    if (!m_byName.contains(base)) return base;
    std::uint32_t& suffix = m_lastSuffix.try_emplace(base, 1).first->second;
    std::string candidate;
    do candidate = fmt::format("{}#{}", base, ++suffix);
    while (m_byName.contains(candidate));
    return candidate;
}

OpId Graph::addOp(Op op, std::vector<TensorSpec> results, std::vector<std::string> resultNames) {
    const auto id = static_cast<OpId>(m_ops.size());
    op.name = uniqueName(op);
    for (std::uint32_t port = 0; port < op.inputs.size(); ++port)
        if (op.inputs[port] != kNoTensor) m_uses.at(op.inputs[port]).push_back({id, port});

    op.outputs.clear();
    for (std::uint32_t port = 0; port < results.size(); ++port) {
        Tensor tensor;
        if (port < resultNames.size()) tensor.name = std::move(resultNames[port]);
        if (tensor.name.empty())
            tensor.name = port == 0 ? op.name : fmt::format("{}:{}", op.name, port);
        tensor.spec = std::move(results[port]);
        tensor.producer = id;
        tensor.producerPort = port;
        op.outputs.push_back(static_cast<TensorId>(m_tensors.size()));
        m_tensors.push_back(std::move(tensor));
        m_uses.emplace_back();
    }
    m_byName.emplace(op.name, id);
    m_ops.push_back(std::move(op));
    return id;
}

std::optional<OpId> Graph::findOp(std::string_view opName) const {
    const auto found = m_byName.find(std::string(opName));
    if (found == m_byName.end()) return std::nullopt;
    return found->second;
}

std::vector<TensorSpec> Graph::inputSpecs(OpId id) const {
    std::vector<TensorSpec> specs;
    std::ranges::transform(op(id).inputs, std::back_inserter(specs),
                           [this](TensorId input) { return specOf(*this, input); });
    return specs;
}

std::vector<TensorSpec> Graph::outputSpecs(OpId id) const {
    std::vector<TensorSpec> specs;
    std::ranges::transform(op(id).outputs, std::back_inserter(specs),
                           [this](TensorId output) { return specOf(*this, output); });
    return specs;
}

double Graph::parameterCount() const {
    return std::accumulate(m_ops.begin(), m_ops.end(), 0.0, [this](double sum, const Op& op) {
        if (op.kind != OpKind::Parameter || op.outputs.empty()) return sum;
        return sum + elementsOf(tensor(op.outputs.front()).spec.shape);
    });
}

} // namespace shardlens
