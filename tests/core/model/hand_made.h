// SPDX-License-Identifier: Apache-2.0
// Short spellings for graphs that tests make by hand.
#pragma once

#include "core/model/graph.h"

namespace shardlens::test {

/// Adds an op with one result and returns the result.
inline TensorId add(Graph& graph, std::string name, OpKind kind, std::vector<TensorId> inputs,
                    TensorSpec spec, Attributes attributes = {}) {
    Op op;
    op.name = std::move(name);
    op.kind = kind;
    op.attributes = std::move(attributes);
    op.inputs = std::move(inputs);
    return graph.op(graph.addOp(std::move(op), {std::move(spec)})).outputs.front();
}

inline std::vector<std::string> namesOf(const Graph& graph, const std::vector<OpId>& ids) {
    std::vector<std::string> names;
    for (const OpId id : ids) names.push_back(graph.op(id).name);
    return names;
}

inline std::vector<std::string> namesOf(const Graph& graph) {
    std::vector<std::string> names;
    for (const Op& op : graph.ops()) names.push_back(op.name);
    return names;
}

} // namespace shardlens::test
