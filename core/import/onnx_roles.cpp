// SPDX-License-Identifier: Apache-2.0
// Which operands of which ops give a role. Functions are looked at once each; one that calls itself
// is met while it is being looked at and adds nothing.
#include "core/import/onnx_roles.h"

#include <algorithm>

namespace shardlens::onnx {

namespace {

struct RoleReader {
    std::string_view type;
    std::size_t operand;
    Role role;
    std::string_view bits = {}; ///< attribute that says how many bits a weight has; absent: 4
};

// clang-format off: a table
constexpr RoleReader kReaders[] = {
    {"BatchNormalization", 3, Role::Fixed},
    {"BatchNormalization", 4, Role::Fixed},
    {"Resize", 1, Role::Fixed},
    {"Resize", 2, Role::Fixed},
    {"Upsample", 1, Role::Fixed},
    {"QuantizeLinear", 1, Role::Fixed},
    {"DequantizeLinear", 1, Role::Fixed},
    {"DequantizeLinear", 0, Role::QuantizedWeight},
    {"MatMulInteger", 1, Role::QuantizedWeight},
    {"ConvInteger", 1, Role::QuantizedWeight},
    {"QLinearMatMul", 3, Role::QuantizedWeight},
    {"QLinearConv", 3, Role::QuantizedWeight},
    {"QLinearConv", 8, Role::QuantizedWeight},
    {"MatMulNBits", 1, Role::QuantizedWeight, "bits"},
    {"MatMulNBits", 2, Role::Fixed},
    {"QMoE", 2, Role::QuantizedWeight, "expert_weight_bits"},
    {"QMoE", 3, Role::Fixed},
    {"QMoE", 5, Role::QuantizedWeight, "expert_weight_bits"},
    {"QMoE", 6, Role::Fixed},
    {"QMoE", 8, Role::QuantizedWeight, "expert_weight_bits"},
    {"QMoE", 9, Role::Fixed},
};
// clang-format on

Role roleOf(const RoleReader& reader, const Node& node) {
    if (reader.bits.empty()) return reader.role;
    const Attribute* bits = node.attribute(reader.bits);
    return bits == nullptr || bits->integer == 4 ? Role::Packed4Bit : reader.role;
}

} // namespace

RoleMap Roles::of(const std::vector<Node>& nodes) {
    RoleMap roles;
    add(nodes, roles);
    return roles;
}

void Roles::add(const std::vector<Node>& nodes, RoleMap& roles) {
    for (const Node& node : nodes) addNode(node, roles);
}

void Roles::addNode(const Node& node, RoleMap& roles) {
    if (const Function* function = m_findFunction(node)) {
        const RoleMap& inner = ofFunction(*function);
        const std::size_t count = std::min(function->inputs.size(), node.inputs.size());
        for (std::size_t i = 0; i < count; ++i)
            if (const auto role = inner.find(function->inputs[i]); role != inner.end())
                roles.try_emplace(node.inputs[i], role->second);
        return;
    }
    for (const RoleReader& reader : kReaders)
        if (node.type == reader.type && reader.operand < node.inputs.size())
            roles.try_emplace(node.inputs[reader.operand], roleOf(reader, node));
    for (const Attribute& attribute : node.attributes)
        if (attribute.graph) add(attribute.graph->nodes, roles);
}

const RoleMap& Roles::ofFunction(const Function& function) {
    const auto [entry, isNew] = m_functions.try_emplace(&function);
    if (!isNew || m_depth >= kMaxDepth) return entry->second;
    RoleMap roles;
    ++m_depth;
    add(function.nodes, roles); // may insert further functions: `entry` does not survive it
    --m_depth;
    return m_functions[&function] = std::move(roles);
}

} // namespace shardlens::onnx
