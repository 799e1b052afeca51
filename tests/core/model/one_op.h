// SPDX-License-Identifier: Apache-2.0
// One op of the catalogue on inputs of given shapes.
#pragma once

#include "core/model/catalogue.h"

#include <fmt/format.h>

namespace shardlens::test {

struct OneOp {
    Graph graph;
    OpId id;

    OpView view() const { return viewOf(graph, id); }
    FactorRule rule() const { return factorRule(view()); }
    Shape shape(std::size_t result = 0) const { return graph.outputSpecs(id).at(result).shape; }
    DType dtype(std::size_t result = 0) const { return graph.outputSpecs(id).at(result).dtype; }
};

/// An operand whose dtype is Unknown is absent.
inline OneOp oneOp(OpKind kind, const std::vector<TensorSpec>& operands,
                   Attributes attributes = {}) {
    Graph graph;
    std::vector<TensorId> inputs;
    for (const TensorSpec& operand : operands) {
        if (operand.dtype == DType::Unknown) {
            inputs.push_back(kNoTensor);
            continue;
        }
        const OpId source = graph.addOp(
            {fmt::format("in{}", inputs.size()), OpKind::Input, {}, {}, {}, {}}, {operand});
        inputs.push_back(graph.op(source).outputs[0]);
    }
    const OpId id = addInferred(graph, {"op", kind, {}, std::move(attributes), inputs, {}});
    return {std::move(graph), id};
}

inline TensorSpec real(Shape shape) {
    return {DType::F32, std::move(shape)};
}
inline TensorSpec integer(Shape shape) {
    return {DType::I64, std::move(shape)};
}

} // namespace shardlens::test
