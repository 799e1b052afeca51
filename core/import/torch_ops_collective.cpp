// SPDX-License-Identifier: Apache-2.0
// Functional collectives of torch.distributed (torch/distributed/_functional_collectives.py): they
// gather and scatter along dimension 0 and are followed by wait_tensor. A group of one rank makes
// them identities. all_reduce does not say how large its group is.
#include "core/import/text.h"
#include "core/import/torch_translation.h"

#include <algorithm>

namespace shardlens::torch {

namespace {

std::string groupOf(const Translation& t, std::size_t i) {
    const Value& group = t.argument(i, "group_name|group|tag");
    if (group.kind == Value::Kind::Text) return cleaned(group.text);
    if (group.kind == Value::Kind::Integer) return std::to_string(group.integer);
    return {};
}

void collective(Translation& t, std::string_view function, std::vector<TensorId> operands,
                std::vector<TensorSpec> specs, std::int64_t size, const std::string& group,
                const std::string& reduce) {
    t.builder().noteCollective(std::string(function), group, size);
    Attributes attributes{{"function", std::string(function)}, {"axis", std::int64_t{0}}};
    if (function == "all-to-all") attributes.set("concat_axis", std::int64_t{0});
    if (size > 0) attributes.set("group_size", size);
    if (!group.empty()) attributes.set("group", group);
    if (!reduce.empty()) attributes.set("reduce", reduce);
    for (std::size_t i = 0; i < operands.size(); ++i)
        t.resultAs(OpKind::Collective, attributes, {operands[i]}, specs[i], i);
}

void allReduce(Translation& t, std::string_view) {
    const std::vector<TensorId> operands = t.tensors(0, "self|inputs|tensors");
    std::vector<TensorSpec> specs;
    for (const TensorId x : operands) specs.push_back({t.typeOf(x), t.shape(x)});
    std::string reduce = t.text(1, "reduce_op");
    if (reduce.empty()) reduce = "sum";
    collective(t, "all-reduce", operands, specs, 0, groupOf(t, 2), reduce);
}

void checkGroup(const Translation& t, std::int64_t size) {
    t.require(size >= 1 && size < (std::int64_t{1} << 31), "its group has no size");
}

void allGather(Translation& t, std::string_view) {
    const std::vector<TensorId> operands = t.tensors(0, "input|inputs");
    const std::int64_t size = t.integer(1, "group_size", 0);
    checkGroup(t, size);
    if (size == 1 && operands.size() == 1) return t.alias(operands[0]);
    std::vector<TensorSpec> specs;
    for (const TensorId x : operands) {
        Shape shape = t.shape(x);
        t.require(!shape.empty(), "its operand has no dimension");
        shape[0] *= size;
        specs.push_back({t.typeOf(x), std::move(shape)});
    }
    collective(t, "all-gather", operands, specs, size, groupOf(t, 2), {});
}

void reduceScatter(Translation& t, std::string_view) {
    const std::vector<TensorId> operands = t.tensors(0, "input|inputs");
    const std::int64_t size = t.integer(2, "group_size", 0);
    checkGroup(t, size);
    if (size == 1 && operands.size() == 1) return t.alias(operands[0]);
    std::vector<TensorSpec> specs;
    for (const TensorId x : operands) {
        Shape shape = t.shape(x);
        t.require(!shape.empty() && shape[0] % size == 0, "its operand cannot be cut evenly");
        shape[0] /= size;
        specs.push_back({t.typeOf(x), std::move(shape)});
    }
    collective(t, "reduce-scatter", operands, specs, size, groupOf(t, 3), t.text(1, "reduce_op"));
}

/// Blocks of rows go to each rank and come from each: as many as the sizes say, else as many as
/// there were.
void allToAll(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "input");
    Shape shape = t.shape(x);
    t.require(!shape.empty(), "its operand has no dimension");
    const Translation::Ints outputs = t.ints(1, "output_split_sizes");
    if (!outputs.empty()) {
        double rows = 0;
        for (const std::int64_t count : outputs) rows += static_cast<double>(count);
        t.require(rows >= 0 && rows < 9e15, "its sizes are impossible");
        shape[0] = static_cast<std::int64_t>(rows);
    }
    collective(t, "all-to-all", {x}, {{t.typeOf(x), shape}},
               static_cast<std::int64_t>(outputs.size()), groupOf(t, 3), {});
}

void broadcast(Translation& t, std::string_view) {
    const TensorId x = t.tensor(0, "input|self");
    collective(t, "broadcast", {x}, {{t.typeOf(x), t.shape(x)}}, 0, groupOf(t, 2), {});
}

void wait(Translation& t, std::string_view) {
    t.alias(t.tensor(0, "tensor"));
}

} // namespace

std::vector<Rule> collectiveRules() {
    return {
        {"all_reduce", allReduce},
        {"all_reduce_coalesced", allReduce, {}, true},
        {"all_gather_into_tensor", allGather},
        {"all_gather_into_tensor_coalesced", allGather, {}, true},
        {"reduce_scatter_tensor", reduceScatter},
        {"reduce_scatter_tensor_coalesced", reduceScatter, {}, true},
        {"all_to_all_single", allToAll},
        {"broadcast", broadcast},
        {"wait_tensor", wait},
    };
}

} // namespace shardlens::torch
