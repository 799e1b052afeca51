// SPDX-License-Identifier: Apache-2.0
// Kahn's algorithm with the smallest index first.
#include "core/import/onnx_order.h"

#include "core/error.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <queue>

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace shardlens::onnx {

namespace {

using Producers = std::unordered_map<std::string_view, std::size_t>;

/// Everything a node reads, its nested graphs included; a name may occur twice.
std::vector<std::string_view> readsOf(const Node& node) {
    std::vector<std::string_view> names;
    for (const std::string_view input : node.inputs)
        if (!input.empty()) names.push_back(input);
    for (const Attribute& attribute : node.attributes)
        if (attribute.graph) {
            const auto inner = freeNames(*attribute.graph);
            names.insert(names.end(), inner.begin(), inner.end());
        }
    return names;
}

Producers producersOf(const std::vector<Node>& nodes,
                      const std::function<bool(std::string_view)>& isTaken,
                      const std::string& where) {
    Producers producers;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        for (const std::string_view output : nodes[i].outputs) {
            if (output.empty()) continue;
            if (isTaken(output) || !producers.emplace(output, i).second)
                throw InputError(fmt::format("{} defines the value {}, which exists already",
                                             describe(nodes[i], i), inQuotes(output)),
                                 where, "a name may be defined once: export the model again");
        }
    return producers;
}

} // namespace

std::string describe(const Node& node, std::size_t index) {
    const std::string type = cleaned(node.type.substr(0, 80));
    return node.name.empty() ? fmt::format("node {} ({})", index, type)
                             : fmt::format("node {} {} ({})", index, inQuotes(node.name), type);
}

std::unordered_set<std::string_view> freeNames(const GraphData& graph) {
    std::unordered_set<std::string_view> names;
    for (const Node& node : graph.nodes)
        for (const std::string_view name : readsOf(node)) names.insert(name);
    for (const ValueInfo& output : graph.outputs) names.insert(output.name);
    for (const ValueInfo& input : graph.inputs) names.erase(input.name);
    for (const TensorData& initializer : graph.initializers) names.erase(initializer.name);
    for (const Node& node : graph.nodes)
        for (const std::string_view output : node.outputs) names.erase(output);
    return names;
}

std::vector<std::size_t> executionOrder(const std::vector<Node>& nodes,
                                        const std::function<bool(std::string_view)>& isDefined,
                                        const std::function<bool(std::string_view)>& isTaken,
                                        const std::string& where) {
    const Producers producers = producersOf(nodes, isTaken, where);
    std::vector<std::vector<std::size_t>> readers(nodes.size());
    std::vector<std::size_t> missing(nodes.size(), 0);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        for (const std::string_view name : readsOf(nodes[i])) {
            if (const auto producer = producers.find(name); producer != producers.end()) {
                readers[producer->second].push_back(i);
                ++missing[i];
            } else if (!isDefined(name)) {
                throw InputError(fmt::format("{} reads the value {}, which nothing defines",
                                             describe(nodes[i], i), inQuotes(name)),
                                 where, "the model is incomplete: export it again");
            }
        }
    }
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (missing[i] == 0) ready.push(i);
    std::vector<std::size_t> order;
    while (!ready.empty()) {
        const std::size_t node = ready.top();
        ready.pop();
        order.push_back(node);
        for (const std::size_t reader : readers[node])
            if (--missing[reader] == 0) ready.push(reader);
    }
    if (order.size() < nodes.size()) {
        const auto stuck = std::ranges::find_if(missing, [](std::size_t n) { return n > 0; });
        const auto index = static_cast<std::size_t>(stuck - missing.begin());
        throw InputError(fmt::format("{} depends on its own result", describe(nodes[index], index)),
                         where, "a graph must not have cycles: export the model again");
    }
    return order;
}

} // namespace shardlens::onnx
