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
                 Mode mode, Mesh mesh, std::shared_ptr<const CostModel> cost,
                 std::shared_ptr<const ChoiceFilter> filter)
    : m_graph(std::move(graph)), m_folding(std::move(folding)), m_training(mode == Mode::Train),
      m_mesh(std::move(mesh)), m_cost(std::move(cost)), m_filter(std::move(filter)) {
    m_gradient =
        m_training ? needsGradient(*m_graph) : std::vector<bool>(m_graph->tensors().size(), false);
    findHandovers();
    const std::size_t classes = m_folding->classes.size();
    for (const OpClass& c : m_folding->classes)
        m_saved.push_back(m_training ? savedForBackward(viewOf(*m_graph, c.representative))
                                     : SavedTensors{});
    m_ops.resize(classes);
    m_handovers.resize(classes);
    findCheap();
    for (ClassId id = 0; id < classes; ++id) priceClass(id);
}

/// Results of memory-bound ops, and views of them.
void Pricing::findCheap() {
    std::vector<ComputeClass> computed;
    for (const OpClass& c : m_folding->classes) {
        const OpView view = viewOf(*m_graph, c.representative);
        computed.push_back(forwardWork(view, factorRule(view)).compute);
    }
    m_cheap.assign(m_graph->tensors().size(), false);
    for (OpId id = 0; id < m_graph->ops().size(); ++id) {
        const Op& op = m_graph->op(id);
        const ComputeClass compute = computed[m_folding->classOf[id]];
        const bool view = compute == ComputeClass::None && !op.inputs.empty() &&
                          op.inputs[0] != kNoTensor && m_cheap[op.inputs[0]];
        for (const TensorId out : op.outputs)
            m_cheap[out] = view || compute == ComputeClass::Vector;
    }
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
        if (m_filter && m_filter->handsOver(op.outputs[r])) flags[r] = true;
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
        local /= m_mesh.axes[a].size;
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

} // namespace shardlens
