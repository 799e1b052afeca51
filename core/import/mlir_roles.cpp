// SPDX-License-Identifier: Apache-2.0
// An argument is followed through ops that only move it (gathers of shards, casts, transposes,
// slices of stacks) to the ops that read it.
#include "core/import/mlir_roles.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace shardlens::mlir {

namespace {

bool namedParameter(std::string_view name) {
    std::string lower(name);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto has = [&](std::string_view part) { return lower.find(part) != std::string::npos; };
    if (has("opt_state") || has("optimizer")) return false;
    return has("param") || has("weight") || has("kernel") || has("bias");
}

bool onlyMoves(const Op& op) {
    switch (op.kind) {
    case OpKind::Reshape:
    case OpKind::Transpose:
    case OpKind::Slice:
        return true;
    case OpKind::Elementwise: {
        const std::string function = op.attributes.text("function");
        return function == "cast" || function == "identity";
    }
    case OpKind::Collective:
        return op.attributes.text("function") == "all-gather" && op.inputs.size() == 1;
    default:
        return false;
    }
}

/// "ab,bc->ac": a letter that both operands and the result have is a batch dimension.
bool hasBatch(std::string_view equation) {
    const auto comma = equation.find(','), arrow = equation.find("->");
    if (comma == std::string_view::npos || arrow == std::string_view::npos) return true;
    const std::string_view left = equation.substr(0, comma);
    const std::string_view right = equation.substr(comma + 1, arrow - comma - 1);
    const std::string_view result = equation.substr(arrow + 2);
    return std::ranges::any_of(left, [&](char c) {
        return right.find(c) != std::string_view::npos && result.find(c) != std::string_view::npos;
    });
}

bool readsWeight(const Graph& graph, const Graph::Use& use, TensorId tensor) {
    const Op& op = graph.op(use.op);
    switch (op.kind) {
    case OpKind::Einsum:
        return use.port == 1 && !hasBatch(op.attributes.text("equation"));
    case OpKind::Conv:
        return use.port == 1;
    case OpKind::Gather:
        return use.port == 0;
    case OpKind::Expand: // bias and scale
        return std::ranges::count_if(graph.tensor(tensor).spec.shape,
                                     [](std::int64_t size) { return size != 1; }) == 1;
    default:
        return false;
    }
}

bool readAsWeight(const Graph& graph, TensorId argument) {
    constexpr std::size_t kMostSteps = 1024;
    std::vector<TensorId> pending{argument};
    for (std::size_t step = 0; !pending.empty() && step < kMostSteps; ++step) {
        const TensorId tensor = pending.back();
        pending.pop_back();
        for (const Graph::Use& use : graph.uses(tensor)) {
            if (readsWeight(graph, use, tensor)) return true;
            const Op& op = graph.op(use.op);
            if (onlyMoves(op)) pending.push_back(op.outputs.front());
        }
    }
    return false;
}

} // namespace

std::set<std::size_t> parameterArguments(const Graph& graph,
                                         const std::vector<TensorId>& arguments) {
    std::set<std::size_t> trained;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i] == kNoTensor) continue;
        const Tensor& tensor = graph.tensor(arguments[i]);
        if (!isFloat(tensor.spec.dtype) || tensor.spec.shape.empty()) continue;
        const std::string& name = graph.op(tensor.producer).name;
        const bool plain = name.starts_with("arg"); // no name of its own
        if (plain ? readAsWeight(graph, arguments[i])
                  : namedParameter(name) || readAsWeight(graph, arguments[i]))
            trained.insert(i);
    }
    return trained;
}

} // namespace shardlens::mlir
