// SPDX-License-Identifier: Apache-2.0
// What ops, parameters and hand-overs cost under each choice; see pricing.h.
#include "core/plan/pricing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace shardlens {

namespace {

/// Optimizer update: gradient, master copy and two moments read, three of them and the working copy
/// written; bytes a parameter (costs.md section 3, "optimizer").
constexpr double kOptimizerTraffic = 30;

/// A factor size that every mesh divides.
constexpr std::int64_t kAnySize = std::int64_t{27 * 25 * 7 * 11 * 13} << 20;

ParameterBytes bytesFor(DType dtype, const ParameterBytes& mixed) {
    if (dtype == DType::F32) return {4, 4, 8}; // no separate master copy
    if (bitsOf(dtype) == 8) return {1, mixed.gradient, mixed.optimizer};
    return mixed;
}

double axisSize(const Mesh& mesh, std::size_t axis) {
    return mesh.axes[axis].size;
}

} // namespace

void Pricing::priceClass(ClassId id) {
    const OpId opId = m_folding->classes[id].representative;
    const Op& op = m_graph->op(opId);
    const OpView view = viewOf(*m_graph, opId);
    PricedOp& priced = m_ops[id];
    priced.rule = factorRule(view);
    const bool states = op.kind == OpKind::Parameter && m_training && m_cost->parameterStates() &&
                        m_gradient[op.outputs[0]];
    LegalChoices legal = enumerateChoices(priced.rule, m_mesh, m_cost->divisibility(), states);
    priced.choices = std::move(legal.legal);
    priced.illegal = std::move(legal.illegal);
    const OpWork work = forwardWork(view, priced.rule);
    if (!m_cost->replicatedProducts() &&
        (work.compute == ComputeClass::Contraction || work.compute == ComputeClass::Attention))
        barReplicated(priced);
    if (m_filter) m_filter->keep(opId, priced.rule, priced.choices);
    for (const Choice& choice : priced.choices)
        priced.prices.push_back(op.kind == OpKind::Parameter
                                    ? priceParameter(opId, choice)
                                    : priceOp(opId, priced, choice, view, work));
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        auto& layouts = priced.operandLayouts.emplace_back();
        for (const Choice& choice : priced.choices)
            layouts.push_back(operandLayout(choice, priced.rule, i, m_mesh));
    }
    for (std::size_t r = 0; r < op.outputs.size(); ++r) {
        auto& sides = priced.resultSides.emplace_back();
        for (const Choice& choice : priced.choices) {
            ProducerSide side{resultLayout(choice, priced.rule, r, m_mesh), 0};
            for (std::size_t a = 0; a < m_mesh.axes.size(); ++a)
                if (choice.axis[a] == kStateSharded)
                    side.stateAxes = static_cast<std::uint8_t>(side.stateAxes | 1u << a);
            sides.push_back(side);
        }
    }
    m_handovers[id].resize(op.outputs.size());
    for (const TensorId out : op.outputs)
        if (m_hasHandover[out]) priceHandover(out);
}

/// Keeps the choices that use every mesh axis, if there are any.
void Pricing::barReplicated(PricedOp& priced) const {
    const auto leavesAxisIdle = [&](const Choice& choice) {
        for (std::size_t a = 0; a < m_mesh.axes.size(); ++a)
            if (m_mesh.axes[a].size > 1 && choice.axis[a] == kIdle) return true;
        return false;
    };
    std::vector<Choice> kept;
    std::ranges::remove_copy_if(priced.choices, std::back_inserter(kept), leavesAxisIdle);
    if (kept.empty()) return;
    for (const Choice& choice : priced.choices)
        if (leavesAxisIdle(choice))
            priced.illegal.push_back(
                {choice, "this cost model never computes a matrix product twice: every "
                         "mesh axis must split it"});
    priced.choices = std::move(kept);
}

NodePrice Pricing::priceOp(OpId id, const PricedOp& op, const Choice& choice, const OpView& view,
                           const OpWork& work) const {
    NodePrice price;
    const Op& graphOp = m_graph->op(id);
    double shards = 1, reduceShards = 1;
    for (std::size_t a = 0; a < m_mesh.axes.size(); ++a) {
        if (choice.axis[a] < 0) continue;
        shards *= axisSize(m_mesh, a);
        if (choice.axis[a] == work.reduceFactor) reduceShards *= axisSize(m_mesh, a);
    }
    const auto wantsGradient = [&](TensorId t) { return t != kNoTensor && m_gradient[t]; };
    const int gradients = static_cast<int>(std::ranges::count_if(graphOp.inputs, wantsGradient));
    const DType dtype = view.inputs.empty() ? view.outputs.at(0).dtype : view.inputs[0].dtype;
    const OpTime time = m_cost->compute(work, dtype, shards, reduceShards, gradients);
    price.compute = {quantised(time.forward), quantised(time.backward)};

    const auto exchanges = [&](std::size_t a) {
        return choice.axis[a] >= 0 &&
               op.rule.factors[static_cast<std::size_t>(choice.axis[a])].exchanges;
    };
    double rowShards = 1; // the axes that split the rows
    for (std::size_t a = 0; a < m_mesh.axes.size(); ++a)
        if (choice.axis[a] >= 0 && !exchanges(a)) rowShards *= axisSize(m_mesh, a);
    for (std::size_t a = 0; a < m_mesh.axes.size(); ++a) {
        if (!exchanges(a)) continue;
        const auto add = [&](const Statistic& statistic, Phase phase) {
            price.statistics.push_back(
                phased({CollectiveKind::AllReduce, static_cast<std::uint8_t>(a),
                        statistic.bytes() / rowShards},
                       phase));
        };
        for (const Statistic& s : op.rule.forwardStatistics) add(s, Phase::Forward);
        if (gradients > 0)
            for (const Statistic& s : op.rule.backwardStatistics) add(s, Phase::Backward);
    }

    if (!m_training || !std::ranges::any_of(graphOp.outputs, wantsGradient)) return price;
    const SavedTensors& saved = m_saved[m_folding->classOf[id]];
    const auto isCheap = [&](TensorId t) { return m_cheap[t]; };
    double kept = saved.extraBytes / shards, cheap = isCheap(graphOp.outputs[0]) ? kept : 0;
    const auto keep = [&](TensorId t, const Layout& layout) {
        const double bytes = localBytes(t, layout);
        kept += bytes;
        if (isCheap(t)) cheap += bytes;
    };
    for (std::size_t i = 0; i < graphOp.inputs.size(); ++i) {
        const TensorId t = graphOp.inputs[i];
        if (t == kNoTensor || !saved.operands[i] || m_hasHandover[t]) continue;
        const OpKind producer = m_graph->op(m_graph->tensor(t).producer).kind;
        if (producer == OpKind::Parameter || producer == OpKind::Constant) continue;
        keep(t, operandLayout(choice, op.rule, i, m_mesh));
    }
    for (std::size_t r = 0; r < graphOp.outputs.size(); ++r) {
        const TensorId t = graphOp.outputs[r];
        if (!saved.results[r] || m_hasHandover[t]) continue;
        const auto uses = m_graph->uses(t);
        if (!uses.empty() && readerSaves(uses.front())) continue; // kept there
        keep(t, resultLayout(choice, op.rule, r, m_mesh));
    }
    price.memory.activations = std::ceil(kept);
    price.recomputable = std::floor(cheap);
    return price;
}

NodePrice Pricing::priceParameter(OpId id, const Choice& choice) const {
    NodePrice price;
    const TensorSpec& spec = m_graph->tensor(m_graph->op(id).outputs[0]).spec;
    double valueShards = 1, stateShards = 1;
    for (std::size_t a = 0; a < m_mesh.axes.size(); ++a) {
        if (choice.axis[a] >= 0) valueShards *= axisSize(m_mesh, a);
        if (choice.axis[a] == kStateSharded) stateShards *= axisSize(m_mesh, a);
    }
    const double local = elementsOf(spec.shape) / valueShards;
    const ParameterBytes each = bytesFor(spec.dtype, m_cost->parameterBytes());
    price.memory.parameters = std::ceil(
        local * (m_training || spec.dtype == DType::F32 ? each.value : bitsOf(spec.dtype) / 8.0));
    if (!m_gradient[m_graph->op(id).outputs[0]]) return price;
    price.memory.gradients = std::ceil(local / stateShards * each.gradient);
    price.memory.optimizer = std::ceil(local / stateShards * each.optimizer);

    OpWork update;
    update.compute = ComputeClass::Vector;
    update.bytes = kOptimizerTraffic * local / stateShards;
    price.compute.backward = quantised(m_cost->compute(update, spec.dtype, 1, 1, 0).forward);
    // The updated values are gathered from the state's shards, innermost axis first.
    double bytes = bytesOf(spec) / valueShards / stateShards;
    for (std::size_t a = m_mesh.axes.size(); a-- > 0;)
        if (choice.axis[a] == kStateSharded) {
            bytes *= axisSize(m_mesh, a);
            price.statistics.push_back(phased(
                {CollectiveKind::AllGather, static_cast<std::uint8_t>(a), bytes}, Phase::Step));
        }
    return price;
}

// --- hand-overs ---------------------------------------------------------------------------------

void Pricing::priceHandover(TensorId id) {
    const Tensor& tensor = m_graph->tensor(id);
    // The layouts are those of an identity op on the tensor, and value replicated/gradient partial.
    FactorRule identity;
    identity.operands = identity.results = {std::vector<DimFactors>(tensor.spec.shape.size())};
    for (std::size_t d = 0; d < tensor.spec.shape.size(); ++d)
        identity.results[0][d] = identity.operands[0][d] = {
            identity.addFactor(fmt::format("d{}", d), tensor.spec.shape[d])};
    // A factor that only a second operand carries makes the gradient of the first partial.
    if (m_gradient[id]) identity.operands.push_back({{identity.addFactor("partial", kAnySize)}});
    PricedHandover priced;
    const auto& ops = m_folding->classOf;
    const bool kept = m_gradient[id] && m_graph->op(tensor.producer).kind != OpKind::Parameter &&
                      (m_saved[ops[tensor.producer]].results[tensor.producerPort] ||
                       std::ranges::any_of(m_graph->uses(id), [&](const Graph::Use& use) {
                           return readerSaves(use);
                       }));
    std::vector<Choice> choices = enumerateChoices(identity, m_mesh, m_cost->divisibility()).legal;
    std::vector<Layout> layouts;
    for (const Choice& choice : choices)
        layouts.push_back(operandLayout(choice, identity, 0, m_mesh));
    const auto keeps = [&](const Layout& layout) { return m_filter->keeps(id, layout); };
    if (m_filter && std::ranges::any_of(layouts, keeps))
        std::erase_if(layouts, [&](const Layout& layout) { return !keeps(layout); });
    for (const Layout& layout : layouts) {
        priced.layouts.push_back(layout);
        NodePrice price;
        if (kept) price.memory.activations = localBytes(id, priced.layouts.back());
        if (m_cheap[id]) price.recomputable = price.memory.activations;
        priced.prices.push_back(price);
    }
    m_handovers[ops[tensor.producer]][tensor.producerPort] = std::move(priced);
}

} // namespace shardlens
