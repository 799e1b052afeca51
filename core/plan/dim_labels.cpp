// SPDX-License-Identifier: Apache-2.0
// See dim_labels.h.
#include "core/plan/dim_labels.h"

#include "core/model/catalogue.h"

#include <algorithm>
#include <ranges>

namespace shardlens {

namespace {

/// The one factor of a dimension that can be cut; -1 if there are none or several.
int onlyFactor(const DimFactors& dim, const FactorRule& rule) {
    int found = -1;
    for (const int f : dim) {
        if (rule.factors[static_cast<std::size_t>(f)].size == 1) continue;
        if (found >= 0) return -1;
        found = f;
    }
    return found;
}

} // namespace

DimLabels::DimLabels(const Graph& graph, const Folding& folding, const StageUnits& units)
    : m_graph(&graph), m_folding(&folding) {
    for (const OpClass& c : folding.classes)
        m_rules.push_back(factorRule(viewOf(graph, c.representative)));
    for (const Tensor& tensor : graph.tensors()) m_labels.emplace_back(tensor.spec.shape.size(), 0);
    seed(units);
    for (bool changed = true; changed;) {
        changed = false;
        for (const OpId id : folding.order) changed |= carry(id);
        for (const OpId id : folding.order | std::views::reverse) changed |= carry(id);
    }
}

bool DimLabels::isParameter(TensorId t) const {
    return m_graph->op(m_graph->tensor(t).producer).kind == OpKind::Parameter;
}

void DimLabels::seed(const StageUnits& units) {
    for (const Op& op : m_graph->ops()) {
        if (op.kind == OpKind::Input) {
            std::vector<DimLabel>& dims = m_labels[op.outputs[0]];
            if (!dims.empty()) dims[0] = kBatchDim;
            if (dims.size() == 2 || dims.size() == 3) dims[1] = kSequenceDim; // no image
        }
        if (op.kind == OpKind::MoeDispatch) {
            std::vector<DimLabel>& rows = m_labels[op.outputs[0]]; // [experts,b,capacity,h]
            rows[0] = kExpertDim;
            rows[2] = kSequenceDim;
        }
        if (op.kind == OpKind::MoeDispatch || op.kind == OpKind::MoeCombine)
            m_labels[op.inputs[1]].back() = kRouterDim;
    }
    for (const StageUnit& unit : units.units)
        for (const TensorId t : unit.enters) {
            std::vector<DimLabel>& dims = m_labels[t];
            if (unit.run < 0 || dims.size() < 2) continue;
            (dims.size() == 3 ? dims[2] : dims[1]) |= kStreamDim; // of images the channels
        }
}

/// From the dimensions of an op's operands and results to those that carry the same factor.
bool DimLabels::carry(OpId id) {
    const Op& op = m_graph->op(id);
    if (op.kind == OpKind::Parameter) return false;
    const FactorRule& rule = m_rules[m_folding->classOf[id]];
    // Rows and scores have the experts in common there.
    const DimLabel carried = op.kind == OpKind::MoeCombine
                                 ? static_cast<DimLabel>(~(kExpertDim | kRouterDim))
                                 : static_cast<DimLabel>(~0);
    std::vector<DimLabel> byFactor(rule.factors.size(), 0);
    const auto each = [&](const std::vector<TensorId>& tensors,
                          const std::vector<std::vector<DimFactors>>& dims, auto&& visit) {
        for (std::size_t i = 0; i < tensors.size() && i < dims.size(); ++i) {
            if (tensors[i] == kNoTensor || isParameter(tensors[i])) continue;
            std::vector<DimLabel>& labels = m_labels[tensors[i]];
            for (std::size_t d = 0; d < labels.size() && d < dims[i].size(); ++d)
                visit(labels[d], dims[i][d]);
        }
    };
    const auto read = [&](DimLabel label, const DimFactors& dim) {
        const int f = onlyFactor(dim, rule);
        if (f >= 0) byFactor[static_cast<std::size_t>(f)] |= label & carried;
    };
    each(op.inputs, rule.operands, read);
    each(op.outputs, rule.results, read);
    bool changed = false;
    const auto write = [&](DimLabel& label, const DimFactors& dim) {
        DimLabel all = label;
        for (const int f : dim)
            if (rule.factors[static_cast<std::size_t>(f)].size != 1)
                all |= byFactor[static_cast<std::size_t>(f)];
        changed |= all != label;
        label = all;
    };
    each(op.inputs, rule.operands, write);
    each(op.outputs, rule.results, write);
    return changed;
}

DimLabel DimLabels::any(TensorId tensor) const {
    DimLabel all = 0;
    for (const DimLabel label : m_labels[tensor]) all |= label;
    return all;
}

DimLabel DimLabels::ofFactor(OpId id, const FactorRule& rule, int factor) const {
    const Op& op = m_graph->op(id);
    DimLabel all = 0;
    const auto add = [&](const std::vector<TensorId>& tensors,
                         const std::vector<std::vector<DimFactors>>& dims) {
        for (std::size_t i = 0; i < tensors.size() && i < dims.size(); ++i) {
            if (tensors[i] == kNoTensor) continue;
            const int dim = shardedDim(dims[i], rule, factor);
            if (dim >= 0) all |= m_labels[tensors[i]][static_cast<std::size_t>(dim)];
        }
    };
    add(op.inputs, rule.operands);
    add(op.outputs, rule.results);
    return all;
}

} // namespace shardlens
