// SPDX-License-Identifier: Apache-2.0
// A neural network as a directed acyclic graph of ops and tensors. The graph is the forward pass
// (with the loss, if it is to be trained); the backward pass is derived from the factor rules,
// unless the source has it already.
// Storage is flat vectors with ids; graph algorithms run on Boost.Graph (graph_algorithms.h).
#pragma once

#include "core/model/op.h"
#include "core/model/partition.h"

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace shardlens {

class Graph {
public:
    /// A place where a tensor is read: operand `port` of `op`.
    struct Use {
        OpId op;
        std::uint32_t port;
        friend bool operator==(const Use&, const Use&) = default;
    };

    /// Adds an op with operands that exist already and creates one tensor per entry of `results`.
    /// An empty or taken `op.name` is made unique ("MatMul_12", "add#2"). Result tensors are named
    /// after `resultNames` where given, else after the op.
    /// @return the op's id; its results are op(id).outputs.
    OpId addOp(Op op, std::vector<TensorSpec> results, std::vector<std::string> resultNames = {});

    std::span<const Op> ops() const { return m_ops; }
    const Op& op(OpId id) const { return m_ops.at(id); }
    std::span<const Tensor> tensors() const { return m_tensors; }
    const Tensor& tensor(TensorId id) const { return m_tensors.at(id); }
    std::span<const Use> uses(TensorId id) const { return m_uses.at(id); }
    std::optional<OpId> findOp(std::string_view name) const;

    void setKnownValue(TensorId id, KnownInts value) { m_tensors.at(id).value = std::move(value); }
    void setKnownReals(TensorId id, KnownReals reals) { m_tensors.at(id).reals = std::move(reals); }
    void markOutput(TensorId id) { m_outputs.push_back(id); }
    std::span<const TensorId> outputs() const { return m_outputs; }

    /// Operand and result specs of an op; an absent operand has dtype Unknown and rank 0.
    std::vector<TensorSpec> inputSpecs(OpId id) const;
    std::vector<TensorSpec> outputSpecs(OpId id) const;

    double parameterCount() const; ///< elements of all Parameter ops, each counted once

    // What the source said about itself.
    std::string name;                             ///< model name, for titles
    std::string format;                           ///< "ONNX", "HF config", …
    std::vector<std::string> warnings;            ///< one sentence each; shown, never fatal
    std::map<std::string, std::int64_t> bindings; ///< symbolic dimensions and the values used
    std::map<std::string, std::string> facts;     ///< counts of the source ("nodes": "2848", …)
    /// The graph holds its own backward pass and optimizer (a traced or compiled train step), so
    /// that none is to be derived.
    bool backwardIncluded = false;
    std::optional<Partition> partition; ///< how the source spreads it over devices, if it says so

private:
    std::string uniqueName(const Op& op);

    std::vector<Op> m_ops;
    std::vector<Tensor> m_tensors;
    std::vector<std::vector<Use>> m_uses;
    std::vector<TensorId> m_outputs;
    std::unordered_map<std::string, OpId> m_byName;
    std::unordered_map<std::string, std::uint32_t> m_lastSuffix; ///< of names given more than once
};

} // namespace shardlens
