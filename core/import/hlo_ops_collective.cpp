// SPDX-License-Identifier: Apache-2.0
// Collectives. Between a -start and its -done stands one op: the start carries it, the done passes
// it on.
#include "core/import/hlo_attributes.h"
#include "core/import/hlo_translation.h"

#include <algorithm>
#include <array>
#include <map>

namespace shardlens::hlo {

namespace {

struct CollectiveName {
    std::string_view opcode;
    std::string_view function;
};

constexpr std::array kCollectives{
    CollectiveName{"all-gather", "all-gather"},
    CollectiveName{"all-reduce", "all-reduce"},
    CollectiveName{"all-to-all", "all-to-all"},
    CollectiveName{"ragged-all-to-all", "all-to-all"},
    CollectiveName{"collective-broadcast", "broadcast"},
    CollectiveName{"collective-permute", "permute"},
    CollectiveName{"reduce-scatter", "reduce-scatter"},
};

/// A start's type holds operands, results and contexts; the results are what the done gives.
const Type& resultType(const Instruction& instruction) {
    const Type& type = instruction.type;
    const bool whole = !instruction.opcode.ends_with("-start") ||
                       instruction.opcode == "all-reduce-start" || type.kind != Type::Kind::Tuple ||
                       type.parts.size() < 2;
    return whole ? type : type.parts[1];
}

struct Groups {
    std::int64_t size = 1, count = 1;
    std::optional<std::vector<std::uint8_t>> axes;
};

Groups groupsOf(const Translation& t, const Instruction& instruction) {
    Groups groups{t.devices(), 1, std::nullopt};
    const auto array = deviceGroupsIn(instruction.attribute("replica_groups"));
    if (!array || array->devices.empty()) return groups; // none are written: all devices
    groups.count = array->dims[0];
    groups.size = array->dims[1];
    if (static_cast<std::size_t>(groups.count * groups.size) != array->devices.size())
        return groups;
    if (const auto ranges = rangesOf(*array)) groups.axes = axesOf(t.mesh(), (*ranges)[1]);
    return groups;
}

/// The rings that pairs of source and target make up: the largest, and how many.
Groups ringsOf(const std::vector<std::int64_t>& pairs) {
    std::map<std::int64_t, std::int64_t> parent;
    const auto root = [&](std::int64_t x) {
        parent.emplace(x, x);
        while (parent[x] != x) x = parent[x] = parent[parent[x]];
        return x;
    };
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
        const std::int64_t a = root(pairs[i]), b = root(pairs[i + 1]);
        parent[a] = b;
    }
    std::map<std::int64_t, std::int64_t> sizes;
    for (const auto& [device, unused] : std::map(parent)) ++sizes[root(device)];
    Groups groups{1, static_cast<std::int64_t>(sizes.size()), std::nullopt};
    for (const auto& [first, size] : sizes) groups.size = std::max(groups.size, size);
    return groups;
}

} // namespace

std::string_view collectiveOf(std::string_view opcode) {
    constexpr std::string_view kStart = "-start";
    if (opcode.ends_with(kStart)) opcode.remove_suffix(kStart.size());
    const auto found = std::ranges::find(kCollectives, opcode, &CollectiveName::opcode);
    return found == kCollectives.end() ? std::string_view() : found->opcode;
}

Value translateCollective(Translation& t, const Site& site) {
    const Instruction& instruction = site.instruction;
    const std::string_view opcode = collectiveOf(instruction.opcode);
    const std::string function(
        std::ranges::find(kCollectives, opcode, &CollectiveName::opcode)->function);
    Attributes attributes{{"function", function}};
    const auto pairs = integersIn(instruction.attribute("source_target_pairs"));
    const Groups groups =
        function == "permute" && pairs ? ringsOf(*pairs) : groupsOf(t, instruction);
    attributes.set("group_size", groups.size);
    attributes.set("groups", groups.count);
    if (groups.axes)
        attributes.set("mesh_axes",
                       std::vector<std::int64_t>(groups.axes->begin(), groups.axes->end()));
    const auto dims = integersIn(instruction.attribute("dimensions"));
    if (dims && dims->size() == 1) {
        attributes.set("axis", (*dims)[0]);
        if (function == "all-to-all") attributes.set("concat_axis", (*dims)[0]);
    }
    if (instruction.has("to_apply")) {
        const std::string reduce = t.reducer(instruction);
        attributes.set("reduce", reduce.empty() ? std::string("other") : reduce);
    }
    std::vector<const TensorSpec*> leaves;
    appendLeaves(resultType(instruction), leaves);
    std::vector<TensorSpec> results;
    for (const TensorSpec* leaf : leaves)
        if (leaf) results.push_back(*leaf);
    std::vector<Leaf> value(leaves.size(), kNoTensor);
    const OpId id = t.m_graph.addOp({t.nameAt(site),
                                     OpKind::Collective,
                                     std::string(opcode),
                                     std::move(attributes),
                                     t.tensors(site),
                                     {}},
                                    std::move(results));
    std::size_t port = 0;
    for (std::size_t i = 0; i < leaves.size(); ++i)
        if (leaves[i]) value[i] = t.m_graph.op(id).outputs[port++];
    return t.pool(value);
}

} // namespace shardlens::hlo
