// SPDX-License-Identifier: Apache-2.0
// Collectives of a program that is one device's: replica_groups lists the devices of each group.
#include "core/import/mlir_call.h"

#include <algorithm>
#include <set>

namespace shardlens::mlir {

namespace {

using Ints = Call::Ints;

struct Groups {
    std::int64_t count = 0, size = 0;
    Ints devices;           ///< row-major, empty if not known
    std::int64_t total = 0; ///< one more than the largest device
};

Groups groupsOf(Call& call, std::string_view attribute) {
    Groups groups;
    const std::string_view text = call.op().attribute(attribute);
    if (const auto shape = shapeOfDense(text); shape && shape->size() == 2) {
        groups.count = (*shape)[0];
        groups.size = (*shape)[1];
    }
    constexpr std::int64_t kMostDevices = std::int64_t{1} << 30;
    call.require(groups.count >= 1 && groups.size >= 1 && groups.count <= kMostDevices &&
                     groups.size <= kMostDevices / groups.count,
                 "the groups of devices cannot be read");
    if (auto devices = readIntegers(text);
        devices && static_cast<std::int64_t>(devices->size()) == groups.count * groups.size)
        groups.devices = std::move(*devices);
    for (const std::int64_t device : groups.devices)
        groups.total = std::max(groups.total, std::min(device, kMostDevices) + 1);
    groups.total = std::max(groups.total, groups.count * groups.size);
    return groups;
}

void addGroups(Call& call, const Groups& groups, Attributes& attributes) {
    attributes.set("group_size", groups.size);
    attributes.set("groups", groups.count);
    call.builder().noteCollective(groups.total);
    if (groups.devices.empty()) return;
    const Ints first(groups.devices.begin(), groups.devices.begin() + groups.size);
    if (const Ints axes = call.builder().axesOf(first); !axes.empty())
        attributes.set("mesh_axes", axes);
}

void collective(Call& call, std::string_view function) {
    Attributes attributes{{"function", std::string(function)}};
    addGroups(call, groupsOf(call, "replica_groups"), attributes);
    if (function == "all-gather")
        attributes.set("axis", call.axis(call.integer("all_gather_dim"), call.rank(0)));
    if (function == "reduce-scatter")
        attributes.set("axis", call.axis(call.integer("scatter_dimension"), call.rank(0)));
    if (function == "all-to-all") {
        attributes.set("axis", call.axis(call.integer("split_dimension"), call.rank(0)));
        attributes.set("concat_axis", call.axis(call.integer("concat_dimension"), call.rank(0)));
    }
    if (function == "all-reduce" || function == "reduce-scatter") {
        const std::string_view reduction = reductionOf(call.op());
        attributes.set("reduce", std::string(reduction.empty() ? "other" : reduction));
    }
    call.declaredResult(OpKind::Collective, std::move(attributes), call.inputs());
}

/// Pairs of devices; the ring they form is as long as there are devices in it.
void permute(Call& call, std::string_view function) {
    Attributes attributes{{"function", std::string(function)}};
    const Groups pairs = groupsOf(call, "source_target_pairs");
    call.require(pairs.size == 2, "source_target_pairs are no pairs");
    std::set<std::int64_t> devices(pairs.devices.begin(), pairs.devices.end());
    // Devices that are linked, directly or not, make a ring or a line: its length is the group's.
    std::map<std::int64_t, std::int64_t> next;
    for (std::size_t i = 0; i + 1 < pairs.devices.size(); i += 2)
        next[pairs.devices[i]] = pairs.devices[i + 1];
    Ints ring;
    if (!pairs.devices.empty()) {
        std::int64_t device = pairs.devices.front();
        do {
            ring.push_back(device);
            const auto to = next.find(device);
            if (to == next.end()) break;
            device = to->second;
        } while (device != ring.front() && ring.size() <= devices.size());
    }
    const auto size = static_cast<std::int64_t>(std::max<std::size_t>(ring.size(), 2));
    attributes.set("group_size", size);
    attributes.set("groups",
                   std::max<std::int64_t>(static_cast<std::int64_t>(devices.size()) / size, 1));
    call.builder().noteCollective(pairs.devices.empty() ? 2 : pairs.total);
    if (const Ints axes = call.builder().axesOf(ring); !axes.empty())
        attributes.set("mesh_axes", axes);
    call.declaredResult(OpKind::Collective, std::move(attributes), call.inputs());
}

} // namespace

std::vector<Rule> collectiveRules() {
    return {
        {"all_gather", collective, "all-gather"},
        {"all_reduce", collective, "all-reduce"},
        {"reduce_scatter", collective, "reduce-scatter"},
        {"all_to_all", collective, "all-to-all"},
        {"collective_broadcast", collective, "broadcast"},
        {"collective_permute", permute, "permute"},
    };
}

} // namespace shardlens::mlir
