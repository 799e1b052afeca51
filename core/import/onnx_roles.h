// SPDX-License-Identifier: Apache-2.0
// What a weight is for cannot be told from the weight, but from who reads it: running statistics of
// a BatchNormalization and scales are not trained; integers that are dequantised are weights.
#pragma once

#include "core/import/onnx_model.h"

#include <functional>
#include <unordered_map>
#include <vector>

namespace shardlens::onnx {

enum class Role : std::uint8_t {
    Fixed,           ///< floats that are not trained: running statistics, scales
    QuantizedWeight, ///< integers that stand for trained numbers
    Packed4Bit,      ///< likewise, two in a byte (com.microsoft's MatMulNBits, QMoE)
};
using RoleMap = std::unordered_map<std::string_view, Role>;

/// Finds a node's local function; nullptr if it calls none.
using FindFunction = std::function<const Function*(const Node&)>;

class Roles {
public:
    explicit Roles(FindFunction findFunction) : m_findFunction(std::move(findFunction)) {}

    /// Roles of the names a list of nodes reads, through functions and nested graphs.
    RoleMap of(const std::vector<Node>& nodes);
    /// Those of a function's own names; worked out once.
    const RoleMap& ofFunction(const Function& function);

private:
    void add(const std::vector<Node>& nodes, RoleMap& roles);
    void addNode(const Node& node, RoleMap& roles);

    FindFunction m_findFunction;
    std::unordered_map<const Function*, RoleMap> m_functions;
    int m_depth = 0;
};

} // namespace shardlens::onnx
