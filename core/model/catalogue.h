// SPDX-License-Identifier: Apache-2.0
// The op catalogue: one table with a row per op kind, holding its shape function, factor rule,
// FLOPs, memory traffic and what it keeps for the backward pass. Nothing else in the program
// knows ops one by one.
#pragma once

#include "core/model/factor_rule.h"
#include "core/model/graph.h"

namespace shardlens {

/// An op with the specs of its operands and results, as the table's functions see it.
struct OpView {
    const Op& op;
    std::vector<TensorSpec> inputs;  ///< absent optionals have dtype Unknown
    std::vector<TensorSpec> outputs; ///< empty while shapes are being inferred

    bool hasInput(std::size_t port) const {
        return port < inputs.size() && inputs[port].dtype != DType::Unknown;
    }
};

/// How an op's time is modelled.
enum class ComputeClass : std::uint8_t {
    None,        ///< sources and pure views: no time
    Contraction, ///< matrix units: FLOPs at matrix peak, traffic at memory bandwidth
    Attention,   ///< fused attention kernel
    Vector,      ///< bound by memory traffic
};

/// Forward work of the whole, unsharded op.
struct OpWork {
    ComputeClass compute = ComputeClass::None;
    double flops = 0;      ///< multiply and add count 2
    double bytes = 0;      ///< memory traffic: operands read + results written
    double reduceSize = 1; ///< contraction length K of the matrix product (GEMM efficiency)
    int reduceFactor = -1; ///< the factor that is contracted, -1 if none
};

/// Result specs of an op from its operands and attributes (dtype included).
/// @throws InputError naming the op when operands do not fit.
std::vector<TensorSpec> inferShapes(const OpView& view);

FactorRule factorRule(const OpView& view);
OpWork forwardWork(const OpView& view, const FactorRule& rule);

/// What the backward pass of an op reads again.
struct SavedTensors {
    std::vector<bool> operands;
    std::vector<bool> results;
    double extraBytes = 0; ///< statistics, masks: whole op, sharded like result 0
};
SavedTensors savedForBackward(const OpView& view);

/// Adds an op, inferring its results from the catalogue.
OpId addInferred(Graph& graph, Op op, std::vector<std::string> resultNames = {});

OpView viewOf(const Graph& graph, OpId id);

} // namespace shardlens
