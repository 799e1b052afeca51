// SPDX-License-Identifier: Apache-2.0
// See pricing.h. Everything is computed once per op class; equal layers share it.
#include "core/plan/pricing.h"

#include "core/error.h"
#include "core/model/graph_algorithms.h"

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

/// The distinct values of a list, and for each entry which of them it is.
template <typename T>
struct Distinct {
    explicit Distinct(std::span<const T> list) : values(list.begin(), list.end()) {
        std::ranges::sort(values);
        values.erase(std::unique(values.begin(), values.end()), values.end());
        for (const T& value : list)
            index.push_back(
                static_cast<std::size_t>(std::ranges::lower_bound(values, value) - values.begin()));
    }

    std::vector<T> values;
    std::vector<std::size_t> index;
};

double axisSize(const Mesh& mesh, std::size_t axis) {
    return mesh.axes[axis].size;
}

} // namespace

double NodePrice::time() const {
    double sum = compute.forward + compute.backward;
    for (const PhasedStep& step : statistics) sum += step.time;
    return sum;
}

int PricedOp::choiceIndex(const Choice& choice) const {
    const auto at = std::ranges::find(choices, choice);
    return at == choices.end() ? -1 : static_cast<int>(at - choices.begin());
}

int PricedHandover::layoutIndex(const Layout& layout) const {
    const auto at = std::ranges::find(layouts, layout);
    return at == layouts.end() ? -1 : static_cast<int>(at - layouts.begin());
}

Pricing::Pricing(std::shared_ptr<const Graph> graph, std::shared_ptr<const Folding> folding,
                 Mode mode, Mesh mesh, std::shared_ptr<const CostModel> cost)
    : m_graph(std::move(graph)), m_folding(std::move(folding)), m_training(mode == Mode::Train),
      m_mesh(std::move(mesh)), m_cost(std::move(cost)) {
    m_gradient =
        m_training ? needsGradient(*m_graph) : std::vector<bool>(m_graph->tensors().size(), false);
    findHandovers();
    const std::size_t classes = m_folding->classes.size();
    for (const OpClass& c : m_folding->classes)
        m_saved.push_back(m_training ? savedForBackward(viewOf(*m_graph, c.representative))
                                     : SavedTensors{});
    m_ops.resize(classes);
    m_handovers.resize(classes);
    for (ClassId id = 0; id < classes; ++id) priceClass(id);
}

/// A tensor class has a hand-over when any of its members has several readers, so that equal blocks
/// stay equal although the last of them may be read less often.
void Pricing::findHandovers() {
    std::vector<std::vector<bool>> byClass(m_folding->classes.size());
    const auto eachResult = [&](auto&& visit) {
        for (OpId id = 0; id < m_graph->ops().size(); ++id) {
            const Op& op = m_graph->op(id);
            auto& flags = byClass[m_folding->classOf[id]];
            flags.resize(op.outputs.size(), false);
            for (std::size_t r = 0; r < op.outputs.size(); ++r) visit(op, r, flags);
        }
    };
    eachResult([&](const Op& op, std::size_t r, std::vector<bool>& flags) {
        if (op.kind != OpKind::Constant && m_graph->uses(op.outputs[r]).size() > 1) flags[r] = true;
    });
    m_hasHandover.assign(m_graph->tensors().size(), false);
    eachResult([&](const Op& op, std::size_t r, const std::vector<bool>& flags) {
        if (flags[r]) m_hasHandover[op.outputs[r]] = true;
    });
}

double Pricing::quantised(double time) const {
    const double quantum = m_cost->quantum();
    return std::round(time / quantum) * quantum;
}

PhasedStep Pricing::phased(CollectiveStep step, Phase phase) const {
    return {step, phase, quantised(m_cost->collective(step, m_mesh))};
}

bool Pricing::readerSaves(const Graph::Use& use) const {
    const SavedTensors& saved = m_saved[m_folding->classOf[use.op]];
    if (use.port >= saved.operands.size() || !saved.operands[use.port]) return false;
    return readerReturnsGradient(use);
}

bool Pricing::readerReturnsGradient(const Graph::Use& use) const {
    return std::ranges::any_of(m_graph->op(use.op).outputs,
                               [&](TensorId out) { return m_gradient[out]; });
}

double Pricing::localBytes(TensorId id, const Layout& layout) const {
    return std::ceil(bytesOf(m_graph->tensor(id).spec) / shardCount(valueSide(layout), m_mesh));
}

EdgeTraits Pricing::producerEdge(TensorId id, const Graph::Use* use) const {
    const Tensor& tensor = m_graph->tensor(id);
    EdgeTraits traits{bytesOf(tensor.spec), m_gradient[id] && (!use || readerReturnsGradient(*use)),
                      m_graph->op(tensor.producer).kind == OpKind::Parameter, false};
    // A parameter is stored anyway; who gathered it and needs it again gathers again.
    traits.regather = m_cost->regather() && traits.parameter && use && readerSaves(*use);
    return traits;
}

EdgeTraits Pricing::readerEdge(TensorId id, const Graph::Use& use) const {
    return {bytesOf(m_graph->tensor(id).spec), m_gradient[id] && readerReturnsGradient(use), false,
            m_cost->regather() && readerSaves(use)};
}

const PricedHandover& Pricing::handover(TensorId id) const {
    const Tensor& tensor = m_graph->tensor(id);
    return m_handovers[m_folding->classOf[tensor.producer]][tensor.producerPort];
}

GradientWay gradientWay(const ProducerSide& producer, const Layout& reader) {
    GradientWay way{gradientSide(reader), gradientSide(producer.layout), {}};
    for (std::size_t a = 0; a < kMaxMeshAxes; ++a) {
        if (!(producer.stateAxes >> a & 1)) continue;
        way.scattered[a] = way.from[a] == kStatePartial;
        if (way.from[a] < 0) way.from[a] = way.to[a] = kStateReplicated;
    }
    return way;
}

std::vector<PhasedStep> Pricing::convert(const ProducerSide& from, const Layout& to,
                                         const EdgeTraits& traits) const {
    std::vector<PhasedStep> steps;
    const ConversionRules rules = m_cost->conversionRules(m_mesh);
    const auto value =
        planConversion(valueSide(from.layout), valueSide(to), traits.bytes, m_mesh, rules);
    for (const CollectiveStep& step : value) steps.push_back(phased(step, Phase::Forward));
    if (traits.regather)
        for (const CollectiveStep& step : value) steps.push_back(phased(step, Phase::Backward));
    if (!traits.gradient) return steps;

    const Phase phase = traits.parameter ? Phase::Step : Phase::Backward;
    const GradientWay way = gradientWay(from, to);
    for (const CollectiveStep& step : planConversion(way.from, way.to, traits.bytes, m_mesh, rules))
        steps.push_back(phased(step, phase));
    double local = traits.bytes / shardCount(way.to, m_mesh);
    for (std::size_t a = 0; a < m_mesh.axes.size(); ++a) {
        if (!(from.stateAxes >> a & 1)) continue;
        if (way.scattered[a])
            steps.push_back(phased(
                {CollectiveKind::ReduceScatter, static_cast<std::uint8_t>(a), local}, phase));
        local /= axisSize(m_mesh, a);
    }
    return steps;
}

double Pricing::convertTime(const ProducerSide& from, const Layout& to,
                            const EdgeTraits& traits) const {
    double sum = 0;
    for (const PhasedStep& step : convert(from, to, traits)) sum += step.time;
    return sum;
}

solve::MatrixPtr Pricing::conversionMatrix(std::span<const ProducerSide> from,
                                           std::span<const Layout> to,
                                           const EdgeTraits& traits) const {
    MatrixKey key{{from.begin(), from.end()}, {to.begin(), to.end()}, traits};
    {
        const std::scoped_lock lock(m_matrixGuard);
        if (const auto at = m_matrices.find(key); at != m_matrices.end()) return at->second;
    }
    // Few of the layouts differ: price each pair of distinct ones once.
    const double quantum = m_cost->quantum();
    const Distinct<ProducerSide> rows(from);
    const Distinct<Layout> columns(to);
    std::vector<double> priced;
    for (const ProducerSide& side : rows.values)
        for (const Layout& layout : columns.values)
            priced.push_back(std::round(convertTime(side, layout, traits) / quantum));
    auto result = std::make_shared<solve::Matrix>();
    result->rows = static_cast<std::uint32_t>(from.size());
    result->cols = static_cast<std::uint32_t>(to.size());
    result->values.reserve(from.size() * to.size());
    for (const std::size_t row : rows.index)
        for (const std::size_t column : columns.index)
            result->values.push_back(priced[row * columns.values.size() + column]);
    const bool any = std::ranges::any_of(priced, [](double cost) { return cost != 0; });
    const std::scoped_lock lock(m_matrixGuard);
    return m_matrices.emplace(std::move(key), any ? std::move(result) : nullptr).first->second;
}

// --- ops ----------------------------------------------------------------------------------------

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
    double kept = saved.extraBytes / shards;
    for (std::size_t i = 0; i < graphOp.inputs.size(); ++i) {
        const TensorId t = graphOp.inputs[i];
        if (t == kNoTensor || !saved.operands[i] || m_hasHandover[t]) continue;
        const OpKind producer = m_graph->op(m_graph->tensor(t).producer).kind;
        if (producer == OpKind::Parameter || producer == OpKind::Constant) continue;
        kept += localBytes(t, operandLayout(choice, op.rule, i, m_mesh));
    }
    for (std::size_t r = 0; r < graphOp.outputs.size(); ++r) {
        const TensorId t = graphOp.outputs[r];
        if (!saved.results[r] || m_hasHandover[t]) continue;
        const auto uses = m_graph->uses(t);
        if (!uses.empty() && readerSaves(uses.front())) continue; // kept there
        kept += localBytes(t, resultLayout(choice, op.rule, r, m_mesh));
    }
    price.memory.activations = std::ceil(kept);
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
    for (const Choice& choice : choices) {
        priced.layouts.push_back(operandLayout(choice, identity, 0, m_mesh));
        NodePrice price;
        if (kept) price.memory.activations = localBytes(id, priced.layouts.back());
        priced.prices.push_back(price);
    }
    m_handovers[ops[tensor.producer]][tensor.producerPort] = std::move(priced);
}

} // namespace shardlens
