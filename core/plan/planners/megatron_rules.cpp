// SPDX-License-Identifier: Apache-2.0
// See megatron_rules.h.
#include "core/plan/planners/megatron_rules.h"

#include <algorithm>

namespace shardlens {

MegatronModel megatronModel(const StagedModel& model) {
    MegatronModel facts;
    const Graph& graph = *model.graph;
    facts.layers = std::ranges::count_if(model.units.units,
                                         [](const StageUnit& unit) { return unit.run >= 0; });
    for (const Op& op : graph.ops()) {
        if (op.kind == OpKind::MoeDispatch && facts.experts == 0)
            facts.experts = graph.tensor(op.outputs[0]).spec.shape[0];
        if (op.kind != OpKind::Attention || facts.heads != 0) continue;
        const Shape& q = graph.tensor(op.inputs[0]).spec.shape;
        const Shape& k = graph.tensor(op.inputs[1]).spec.shape;
        facts.sequence = q[1];
        facts.heads = q[2];
        facts.keyHeads = k[2];
    }
    return facts;
}

std::string_view brokenRule(const MegatronDegrees& d, const MegatronModel& m) {
    if (d.devices % (d.tensor * d.context * d.pipeline) != 0)
        return "tensor x context x pipeline degree does not divide the devices";
    if (m.heads % d.tensor != 0) return "the tensor degree does not divide the attention heads";
    if (m.keyHeads > 0 && m.keyHeads % d.tensor != 0 && d.tensor % m.keyHeads != 0)
        return "tensor degree and key/value heads do not divide each other";
    if (d.sequenceParallel && d.tensor == 1) return "sequence parallelism needs a tensor degree";
    if (d.sequenceParallel &&
        (m.sequence == 0 || m.sequence % (std::int64_t{d.tensor} * d.context) != 0))
        return "the tensor group does not divide the sequence";
    if (m.experts > 0 && d.tensor > 1 && !d.sequenceParallel)
        return "experts with a tensor degree need sequence parallelism";
    if (d.context > 1 && (m.sequence == 0 || m.sequence % (2 * std::int64_t{d.context}) != 0))
        return "the sequence is no multiple of twice the context degree";
    if (d.expert > 1 && m.experts == 0) return "an expert degree needs experts";
    if (m.experts % d.expert != 0) return "the expert degree does not divide the experts";
    const std::int64_t ranks = std::int64_t{d.data()} * d.context * d.tensor;
    if (ranks % (std::int64_t{d.expert} * d.expertTensor) != 0)
        return "the expert degree does not divide data x context x tensor / expert tensor degree";
    if (d.batch % (d.samples * d.data()) != 0)
        return "micro-batch x data degree does not divide the batch";
    if (d.pipeline > 1 && m.layers % d.pipeline != 0)
        return "the pipeline degree does not divide the layers";
    if (d.chunks == 1) return {};
    if (d.pipeline == 1) return "interleaving needs a pipeline degree";
    if (m.layers % (std::int64_t{d.pipeline} * d.chunks) != 0)
        return "pipeline degree x chunks does not divide the layers";
    if (d.batch / (d.samples * d.data()) % d.pipeline != 0)
        return "interleaving needs micro-batches divisible by the pipeline degree";
    return {};
}

} // namespace shardlens
