// SPDX-License-Identifier: Apache-2.0
// See megatron_layout.h.
#include "core/plan/planners/megatron_layout.h"

#include <algorithm>
#include <iterator>

namespace shardlens {

namespace {

/// Operands of Attention that all queries need.
constexpr std::uint32_t kKeys = 1, kValues = 2;

bool carriedByResult(const FactorRule& rule, int factor) {
    return std::ranges::any_of(
        rule.results, [&](const auto& dims) { return shardedDim(dims, rule, factor) >= 0; });
}

} // namespace

MegatronLayout::MegatronLayout(std::shared_ptr<const StagedModel> model,
                               const std::vector<AxisSize>& axes, bool sequenceParallel)
    : m_model(std::move(model)), m_graph(*m_model->graph), m_sequence(sequenceParallel) {
    for (const AxisSize& axis : axes) {
        Axis role{axis.size, axis.name == "tp", 0, axis.name == "ep" || axis.name == "cp_ep"};
        if (axis.name == "cp" || axis.name == "cp_ep") role.data = kSequenceDim;
        if (axis.name == "ep") role.data = kBatchDim;
        if (role.data != 0) m_dataAxes |= static_cast<std::uint8_t>(1u << m_axes.size());
        m_context |= role.data == kSequenceDim;
        m_axes.push_back(role);
    }
}

bool MegatronLayout::readsMatrix(OpId id) const {
    const Op& op = m_graph.op(id);
    if (op.kind == OpKind::Elementwise || op.kind == OpKind::Norm) return false;
    if ((m_model->labels->any(op.outputs[0]) & kRouterDim) != 0) return false;
    bool matrix = false, data = false; // places are looked up whole, as in Megatron-LM
    for (const TensorId t : op.inputs) {
        if (t == kNoTensor) continue;
        const OpKind producer = m_graph.op(m_graph.tensor(t).producer).kind;
        matrix |= producer == OpKind::Parameter && m_graph.tensor(t).spec.shape.size() >= 2;
        data |= producer != OpKind::Parameter && producer != OpKind::Constant;
    }
    return matrix && data;
}

/// Whether the op makes or reads the residual stream, or scores experts for it.
bool MegatronLayout::onStream(OpId id) const {
    const auto carries = [&](TensorId t) {
        return t != kNoTensor && (m_model->labels->any(t) & (kStreamDim | kRouterDim)) != 0;
    };
    const Op& op = m_graph.op(id);
    return std::ranges::any_of(op.inputs, carries) || std::ranges::any_of(op.outputs, carries);
}

/// Whether the op works on rows that are sorted by expert already.
bool MegatronLayout::onExperts(OpId id) const {
    const Op& op = m_graph.op(id);
    if (op.kind == OpKind::MoeDispatch || op.kind == OpKind::MoeCombine) return false;
    return std::ranges::any_of(op.inputs, [&](TensorId t) {
        return t != kNoTensor && (m_model->labels->any(t) & kExpertDim) != 0;
    });
}

bool MegatronLayout::isExpert(OpId parameter) const {
    return std::ranges::any_of(m_graph.uses(m_graph.op(parameter).outputs[0]),
                               [&](const Graph::Use& use) { return onExperts(use.op); });
}

/// Whether the tensor group may cut the factor.
bool MegatronLayout::cutsTensor(OpId id, const FactorRule& rule, int factor) const {
    const DimLabel label = m_model->labels->ofFactor(id, rule, factor);
    if ((label & (kBatchDim | kStreamDim | kExpertDim | kRouterDim)) != 0) return false;
    if ((label & kSequenceDim) == 0) return true;
    return m_sequence && !readsMatrix(id) && onStream(id);
}

MegatronLayout::Allowed MegatronLayout::allowed(OpId id, const FactorRule& rule,
                                                const Axis& axis) const {
    const Op& op = m_graph.op(id);
    if (op.kind == OpKind::Parameter) return allowedOfParameter(id, rule, axis);
    Allowed allowed;
    const DimLabel wanted = axis.experts && onExperts(id) ? kExpertDim : axis.data;
    for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f) {
        const bool may = axis.tensor
                             ? cutsTensor(id, rule, f)
                             : (m_model->labels->ofFactor(id, rule, f) & wanted) != 0 &&
                                   (op.kind != OpKind::Attention || carriedByResult(rule, f));
        if (may) allowed.factors.push_back(static_cast<AxisChoice>(f));
    }
    allowed.idle = axis.tensor && !readsMatrix(id);
    const auto cuts = [&](AxisChoice f) {
        const Factor& factor = rule.factors[static_cast<std::size_t>(f)];
        return factor.kind != FactorKind::Replicate && factor.size % axis.size == 0;
    };
    // A vocabulary that Megatron-LM would pad: cut what can be cut.
    if (axis.tensor && !allowed.idle && std::ranges::none_of(allowed.factors, cuts))
        for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f)
            if ((m_model->labels->ofFactor(id, rule, f) & (kBatchDim | kExpertDim)) == 0)
                allowed.factors.push_back(static_cast<AxisChoice>(f));
    return allowed;
}

/// A parameter is stored as one of its readers uses it.
MegatronLayout::Allowed MegatronLayout::allowedOfParameter(OpId id, const FactorRule& rule,
                                                           const Axis& axis) const {
    Allowed result;
    const TensorId out = m_graph.op(id).outputs[0];
    if (!axis.tensor && !(axis.experts && isExpert(id))) return result;
    for (const Graph::Use& use : m_graph.uses(out)) {
        const FactorRule& reader = m_model->labels->rule(use.op);
        for (const AxisChoice f : allowed(use.op, reader, axis).factors) {
            const int dim = shardedDim(reader.operands[use.port], reader, f);
            for (int own = 0; dim >= 0 && own < static_cast<int>(rule.factors.size()); ++own)
                if (shardedDim(rule.results[0], rule, own) == dim)
                    result.factors.push_back(static_cast<AxisChoice>(own));
        }
    }
    result.idle = axis.tensor;
    return result;
}

void MegatronLayout::keep(OpId id, const FactorRule& rule, std::vector<Choice>& choices) const {
    std::vector<Allowed> byAxis;
    for (std::size_t a = 0; a < m_axes.size(); ++a) {
        Allowed now = allowed(id, rule, m_axes[a]);
        std::erase_if(now.factors, [&](AxisChoice f) {
            return std::ranges::none_of(choices, [&](const Choice& c) { return c.axis[a] == f; });
        });
        now.idle |= now.factors.empty();
        byAxis.push_back(std::move(now));
    }
    const auto filtered = [&](bool idleToo) {
        std::vector<Choice> kept;
        std::ranges::copy_if(choices, std::back_inserter(kept), [&](const Choice& choice) {
            for (std::size_t a = 0; a < byAxis.size(); ++a) {
                const bool idle = choice.axis[a] == kIdle && (idleToo || byAxis[a].idle);
                if (!idle &&
                    std::ranges::find(byAxis[a].factors, choice.axis[a]) == byAxis[a].factors.end())
                    return false;
            }
            return true;
        });
        return kept;
    };
    std::vector<Choice> kept = filtered(false);
    choices = kept.empty() ? filtered(true) : std::move(kept);
}

/// What the axis cuts of a tensor that is handed over.
DimLabel MegatronLayout::wanted(TensorId t, const Axis& axis) const {
    const bool experts = axis.experts && (m_model->labels->any(t) & kExpertDim) != 0;
    return static_cast<DimLabel>(axis.data | (experts ? kExpertDim : 0));
}

bool MegatronLayout::keeps(TensorId t, const Layout& layout) const {
    const TensorSpec& spec = m_graph.tensor(t).spec;
    const OpId producer = m_graph.tensor(t).producer;
    const bool parameter = m_graph.op(producer).kind == OpKind::Parameter;
    for (std::size_t a = 0; a < m_axes.size(); ++a) {
        const Axis& axis = m_axes[a];
        const AxisLayout code = layout.axis[a];
        if (parameter) {
            if (code < 0) continue;
            const FactorRule& rule = m_model->labels->rule(producer);
            const Allowed own = allowedOfParameter(producer, rule, axis);
            if (std::ranges::none_of(own.factors, [&](AxisChoice f) {
                    return shardedDim(rule.results[0], rule, f) == code;
                }))
                return false;
            continue;
        }
        if (axis.size == 1) continue;
        const auto cuts = [&](std::size_t d, DimLabel labels) {
            return (m_model->labels->of(t, d) & labels) != 0 && spec.shape[d] % axis.size == 0;
        };
        if (axis.tensor) {
            const bool stream = (m_model->labels->any(t) & kStreamDim) != 0;
            if (code < 0) { // kept in shards where one product gathers it
                for (std::size_t d = 0; d < spec.shape.size(); ++d)
                    if (handsOver(t) && m_sequence && stream && cuts(d, kSequenceDim)) return false;
                continue;
            }
            const DimLabel label = m_model->labels->of(t, static_cast<std::size_t>(code));
            if ((label & (kBatchDim | kStreamDim | kExpertDim | kRouterDim)) != 0) return false;
            if ((label & kSequenceDim) != 0 && !(m_sequence && stream)) return false;
            continue;
        }
        const DimLabel labels = wanted(t, axis);
        bool possible = false;
        for (std::size_t d = 0; d < spec.shape.size(); ++d) possible |= cuts(d, labels);
        if (possible ? code < 0 || !cuts(static_cast<std::size_t>(code), labels) : code >= 0)
            return false;
    }
    return true;
}

bool MegatronLayout::handsOver(TensorId t) const {
    const OpKind producer = m_graph.op(m_graph.tensor(t).producer).kind;
    if (producer == OpKind::Parameter || producer == OpKind::Constant) return false;
    const auto uses = m_graph.uses(t);
    if (uses.size() != 1) return false;
    const Graph::Use& use = uses.front();
    const bool gathered =
        m_graph.op(use.op).kind == OpKind::Attention && (use.port == kKeys || use.port == kValues);
    if (m_context && gathered) return true;
    return m_sequence && (m_model->labels->any(t) & kStreamDim) != 0 && readsMatrix(use.op);
}

} // namespace shardlens
