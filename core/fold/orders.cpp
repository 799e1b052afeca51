// SPDX-License-Identifier: Apache-2.0
// All orders are topological; hoisting and eagerness move ops, never past an operand.
#include "core/fold/orders.h"

#include "core/fold/sequence.h"

#include <ranges>

namespace shardlens::fold_detail {

std::vector<bool> sharedByBlocks(const Graph& graph, const Folding& folding) {
    std::vector<bool> shared(graph.ops().size(), false);
    for (std::size_t p = folding.order.size(); p-- > 0;) {
        const OpId id = folding.order[p];
        if (isSource(graph.op(id)) || folding.classes[folding.classOf[id]].run >= 0) continue;
        int run = -1;
        std::uint32_t block = 0;
        bool severalBlocks = false, allShared = true;
        for (const TensorId out : graph.op(id).outputs)
            for (const auto& use : graph.uses(out)) {
                allShared = allShared && shared[use.op];
                const int here = folding.classes[folding.classOf[use.op]].run;
                if (here < 0) continue;
                severalBlocks =
                    severalBlocks || (here == run && folding.instanceOf[use.op] != block);
                run = here;
                block = folding.instanceOf[use.op];
            }
        shared[id] = severalBlocks || (allShared && run < 0);
    }
    return shared;
}

std::vector<OpId> hoisted(const Graph& graph, const std::vector<OpId>& order,
                          const std::vector<bool>& chosen) {
    std::vector<std::size_t> waiting(graph.ops().size(), 0);
    for (const OpId id : order)
        for (const TensorId in : graph.op(id).inputs)
            if (in != kNoTensor && !isSource(graph.op(graph.tensor(in).producer))) ++waiting[id];
    std::vector<OpId> result, stack;
    std::vector<bool> placed(graph.ops().size(), false);
    const auto place = [&](OpId root) {
        stack.push_back(root);
        while (!stack.empty()) {
            const OpId id = stack.back();
            stack.pop_back();
            if (placed[id]) continue;
            placed[id] = true;
            result.push_back(id);
            for (const TensorId out : graph.op(id).outputs)
                for (const auto& use : graph.uses(out) | std::views::reverse)
                    if (!isSource(graph.op(id)) && --waiting[use.op] == 0 && chosen[use.op])
                        stack.push_back(use.op);
        }
    };
    for (const OpId id : order)
        if (isSource(graph.op(id)) || (chosen[id] && waiting[id] == 0)) place(id);
    for (const OpId id : order) place(id);
    return result;
}

namespace {

/// Ops that depend on a parameter and on an input: the stream of activations and gradients. The
/// others prepare what it reads: weights cast and gathered, masks, tables.
std::vector<bool> inStream(const Graph& graph) {
    std::vector<std::uint8_t> reach(graph.ops().size(), 0);
    std::vector<bool> result(graph.ops().size(), false);
    for (OpId id = 0; id < graph.ops().size(); ++id) {
        const Op& op = graph.op(id);
        if (op.kind == OpKind::Parameter) reach[id] = 1;
        if (op.kind == OpKind::Input) reach[id] = 2;
        for (const TensorId in : op.inputs)
            if (in != kNoTensor) reach[id] |= reach[graph.tensor(in).producer];
        result[id] = reach[id] == 3;
    }
    return result;
}

} // namespace

std::vector<OpId> eagerOrder(const Graph& graph) {
    const std::vector<bool> stream = inStream(graph);
    const auto producer = [&](TensorId in) { return graph.tensor(in).producer; };
    std::vector<std::size_t> waiting(graph.ops().size(), 0);
    for (OpId id = 0; id < graph.ops().size(); ++id)
        for (const TensorId in : graph.op(id).inputs)
            if (in != kNoTensor && stream[producer(in)]) ++waiting[id];
    std::vector<OpId> result, pull, ready;
    std::vector<bool> placed(graph.ops().size(), false);
    const auto place = [&](OpId root) { // after what it reads from outside the stream
        pull.push_back(root);
        while (!pull.empty()) {
            const OpId id = pull.back();
            const std::size_t before = pull.size();
            if (!placed[id])
                for (const TensorId in : graph.op(id).inputs | std::views::reverse)
                    if (in != kNoTensor && !placed[producer(in)]) pull.push_back(producer(in));
            if (pull.size() > before) continue;
            pull.pop_back();
            if (placed[id]) continue;
            placed[id] = true;
            result.push_back(id);
        }
    };
    const auto run = [&](OpId root) {
        ready.push_back(root);
        while (!ready.empty()) {
            const OpId id = ready.back();
            ready.pop_back();
            place(id);
            for (const TensorId out : graph.op(id).outputs | std::views::reverse)
                for (const auto& use : graph.uses(out) | std::views::reverse)
                    if (--waiting[use.op] == 0) ready.push_back(use.op);
        }
    };
    for (OpId id = 0; id < graph.ops().size(); ++id)
        if (stream[id] && waiting[id] == 0 && !placed[id]) run(id);
    for (OpId id = 0; id < graph.ops().size(); ++id)
        if (!placed[id]) place(id);
    return result;
}

} // namespace shardlens::fold_detail
