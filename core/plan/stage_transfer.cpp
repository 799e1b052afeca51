// SPDX-License-Identifier: Apache-2.0
// See stage_transfer.h.
#include "core/plan/stage_transfer.h"

#include "core/error.h"
#include "core/model/graph_algorithms.h"
#include "core/solve/monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shardlens {

namespace {

constexpr double kLargestTable = 1 << 22; // entries

/// The layouts that cut a tensor over as many devices of the mesh as its dimensions allow.
std::vector<Layout> wireLayouts(const TensorSpec& spec, const Mesh& mesh) {
    std::vector<Layout> found{Layout{}};
    for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
        if (mesh.axes[a].size == 1) continue;
        std::vector<Layout> next;
        for (const Layout& layout : found)
            for (std::size_t d = 0; d < spec.shape.size(); ++d) {
                std::int64_t parts = mesh.axes[a].size;
                for (std::size_t b = 0; b < a; ++b)
                    if (layout.axis[b] == static_cast<AxisLayout>(d)) parts *= mesh.axes[b].size;
                if (spec.shape[d] % parts != 0) continue;
                next.push_back(layout);
                next.back().axis[a] = static_cast<AxisLayout>(d);
            }
        if (!next.empty()) found = std::move(next);
    }
    return found;
}

std::vector<ProducerSide> asSides(const std::vector<Layout>& layouts) {
    std::vector<ProducerSide> sides;
    for (const Layout& layout : layouts) sides.push_back({layout, 0});
    return sides;
}

/// By class: the share of the backward pass that is the gradient of what no input reaches.
std::vector<double> weightShares(const Graph& graph, const Folding& folding) {
    const std::vector<bool> gradient = needsGradient(graph);
    std::vector<bool> fromData(graph.tensors().size(), false);
    std::vector<double> share(folding.classes.size(), 0);
    for (OpId id = 0; id < graph.ops().size(); ++id) {
        const Op& op = graph.op(id);
        const auto reached = [&](TensorId t) { return t != kNoTensor && fromData[t]; };
        const bool data = op.kind == OpKind::Input || std::ranges::any_of(op.inputs, reached);
        for (const TensorId out : op.outputs) fromData[out] = data;
        const ClassId c = folding.classOf[id];
        if (folding.classes[c].representative != id || op.inputs.empty()) continue;
        const OpView view = viewOf(graph, id);
        if (forwardWork(view, factorRule(view)).compute != ComputeClass::Contraction) continue;
        int all = 0, inputs = 0;
        for (const TensorId in : op.inputs) {
            if (in == kNoTensor || !gradient[in]) continue;
            ++all;
            inputs += fromData[in];
        }
        const int products = std::min(all, 2); // as the cost model counts them
        if (products > 0) share[c] = double(products - std::min(inputs, products)) / products;
    }
    return share;
}

} // namespace

std::shared_ptr<const StagedModel> stagedModel(std::shared_ptr<const Graph> graph,
                                               std::shared_ptr<const Folding> folding) {
    auto model = std::make_shared<StagedModel>();
    model->units = cutIntoUnits(*graph, *folding);
    model->weightShare = weightShares(*graph, *folding);
    model->labels = std::make_shared<DimLabels>(*graph, *folding, model->units);
    model->graph = std::move(graph);
    model->folding = std::move(folding);
    return model;
}

double StageWeights::of(const StageFigures& f) const {
    return time * (f.forward + f.inputGrad + weightGrad * f.weightGrad) +
           sync * (f.sync + f.optimizer) +
           memory * (f.kept + f.parameters + f.gradients + f.optimizerState);
}

// --- conversions --------------------------------------------------------------------------------

PhasedConversions::Times PhasedConversions::times(const ProducerSide& from, const Layout& to,
                                                  const EdgeTraits& traits) const {
    Times sum;
    const int data = m_pricing.filter() ? m_pricing.filter()->dataAxes() : 0;
    for (const PhasedStep& step : m_pricing.convert(from, to, traits)) {
        if (step.phase == Phase::Step && (data >> step.step.axis & 1) != 0) continue;
        (step.phase == Phase::Forward    ? sum.forward
         : step.phase == Phase::Backward ? sum.backward
                                         : sum.step) += step.time;
    }
    return sum;
}

PhasedConversions::Matrix PhasedConversions::matrix(const std::vector<ProducerSide>& from,
                                                    const std::vector<Layout>& to,
                                                    const EdgeTraits& traits) {
    Matrix& known = m_known[{from, to, traits}];
    if (known) return known;
    std::map<std::pair<ProducerSide, Layout>, Times> distinct;
    std::vector<Times> values;
    values.reserve(from.size() * to.size());
    for (const ProducerSide& side : from)
        for (const Layout& layout : to) {
            const auto [at, isNew] = distinct.try_emplace({side, layout});
            if (isNew) at->second = times(side, layout, traits);
            values.push_back(at->second);
        }
    known = std::make_shared<const std::vector<Times>>(std::move(values));
    return known;
}

// --- the problem of a unit ----------------------------------------------------------------------

class UnitTransfer::Builder {
public:
    Builder(UnitTransfer& result, const StagedModel& model, PhasedConversions& conversions,
            std::size_t unit, bool starts, const StageWeights& weights)
        : m_result(result), m_model(model), m_graph(*model.graph), m_conversions(conversions),
          m_pricing(conversions.pricing()), m_units(model.units.units), m_unit(unit),
          m_starts(starts), m_weights(weights) {}

    void run() {
        for (const TensorId t : m_units[m_unit].enters) m_starts ? addWire(t) : addEntry(t);
        for (const TensorId t : m_units[m_unit].passes) addWire(t);
        for (const OpId id : m_units[m_unit].ops) addOp(id);
        for (const OpId id : m_units[m_unit].ops)
            for (std::uint32_t port = 0; port < m_graph.op(id).inputs.size(); ++port)
                addRead(id, port);
        for (std::size_t i = 0; i < m_result.m_unary.size(); ++i)
            m_result.m_dims.push_back(static_cast<std::uint32_t>(m_result.m_unary[i].size()));
        if (m_unit + 1 < m_units.size())
            for (const TensorId t : m_units[m_unit + 1].enters)
                m_result.m_exitScope.push_back(m_ends.at(t).variable);
        eliminate();
        addEndings();
    }

private:
    /// A variable that stands for the layouts of a tensor.
    struct End {
        solve::Var variable = 0;
        std::vector<ProducerSide> sides; ///< by choice
        bool handover = false;
    };

    solve::Var addVariable(std::vector<StageFigures> unary) {
        m_result.m_unary.push_back(std::move(unary));
        return static_cast<solve::Var>(m_result.m_unary.size() - 1);
    }

    double localBytes(TensorId t, const Layout& layout) const {
        return bytesOf(m_graph.tensor(t).spec) / shardCount(valueSide(layout), m_pricing.mesh());
    }

    std::vector<ProducerSide> sidesOf(TensorId t) const {
        if (m_pricing.hasHandover(t)) return asSides(m_pricing.handover(t).layouts);
        const Tensor& tensor = m_graph.tensor(t);
        return m_pricing.op(tensor.producer).resultSides[tensor.producerPort];
    }

    /// A tensor of the unit before, in the layouts that one leaves it in.
    void addEntry(TensorId t) {
        End end{0, sidesOf(t), m_pricing.hasHandover(t)};
        std::vector<StageFigures> unary(end.sides.size());
        for (std::size_t i = 0; i < unary.size(); ++i)
            unary[i].entry = localBytes(t, end.sides[i].layout);
        end.variable = addVariable(std::move(unary));
        m_result.m_entryScope.push_back(end.variable);
        m_ends[t] = std::move(end);
    }

    /// A tensor received from another stage, or sharded since it was made further back.
    void addWire(TensorId t) {
        const std::vector<Layout> wires = wireLayouts(m_graph.tensor(t).spec, m_pricing.mesh());
        End end{0, asSides(wires), false};
        std::vector<StageFigures> unary;
        if (m_pricing.hasHandover(t)) {
            const PricedHandover& handover = m_pricing.handover(t);
            end.sides = asSides(handover.layouts);
            end.handover = true;
            const EdgeTraits traits = m_pricing.producerEdge(t, nullptr);
            for (std::size_t i = 0; i < end.sides.size(); ++i) {
                StageFigures figures = quickest(asSides(wires), {&handover.layouts[i], 1}, traits);
                figures.kept = handover.prices[i].memory.activations;
                figures.recomputable = handover.prices[i].recomputable;
                figures.entry = localBytes(t, handover.layouts[i]);
                unary.push_back(figures);
            }
        } else {
            unary.resize(wires.size());
            for (std::size_t i = 0; i < wires.size(); ++i) unary[i].entry = localBytes(t, wires[i]);
        }
        end.variable = addVariable(std::move(unary));
        m_ends[t] = std::move(end);
    }

    static StageFigures asFigures(const PhasedConversions::Times& times) {
        StageFigures figures;
        figures.forward = times.forward;
        figures.inputGrad = times.backward;
        figures.sync = times.step;
        return figures;
    }

    StageFigures quickest(const std::vector<ProducerSide>& from, std::span<const Layout> to,
                          const EdgeTraits& traits) const {
        StageFigures best;
        bool first = true;
        for (const ProducerSide& side : from)
            for (const Layout& layout : to) {
                const StageFigures now = asFigures(m_conversions.times(side, layout, traits));
                if (first || m_weights.of(now) < m_weights.of(best)) best = now;
                first = false;
            }
        return best;
    }

    StageFigures opFigures(OpId id, const NodePrice& price) const {
        StageFigures f;
        const Op& op = m_graph.op(id);
        const double share = m_model.weightShare[m_model.folding->classOf[id]];
        f.forward = price.compute.forward;
        if (!op.outputs.empty() && m_pricing.cheap(op.outputs[0])) f.cheapForward = f.forward;
        if (op.kind == OpKind::Parameter) {
            f.optimizer = price.compute.backward;
        } else {
            f.weightGrad = share * price.compute.backward;
            f.inputGrad = (1 - share) * price.compute.backward;
        }
        for (const PhasedStep& step : price.statistics)
            (step.phase == Phase::Forward    ? f.forward
             : step.phase == Phase::Backward ? f.inputGrad
                                             : f.sync) += step.time;
        f.parameters = price.memory.parameters;
        f.gradients = price.memory.gradients;
        f.optimizerState = price.memory.optimizer;
        if (op.kind == OpKind::Parameter && m_pricing.filter() && m_pricing.filter()->isExpert(id))
            f.experts = {f.parameters, f.gradients, f.optimizerState, f.optimizer};
        f.kept = price.memory.activations;
        f.recomputable = price.recomputable;
        return f;
    }

    void addOp(OpId id) {
        const PricedOp& priced = m_pricing.op(id);
        std::vector<StageFigures> unary;
        for (const NodePrice& price : priced.prices) unary.push_back(opFigures(id, price));
        const solve::Var variable = addVariable(std::move(unary));
        m_result.m_ops.push_back(variable);
        const Op& op = m_graph.op(id);
        for (std::size_t r = 0; r < op.outputs.size(); ++r) {
            const TensorId out = op.outputs[r];
            End end{variable, priced.resultSides[r], false};
            if (m_pricing.hasHandover(out)) {
                const PricedHandover& handover = m_pricing.handover(out);
                std::vector<StageFigures> kept(handover.prices.size());
                for (std::size_t i = 0; i < kept.size(); ++i) {
                    kept[i].kept = handover.prices[i].memory.activations;
                    kept[i].recomputable = handover.prices[i].recomputable;
                }
                const solve::Var node = addVariable(std::move(kept));
                m_result.m_edges.push_back(
                    {variable, node,
                     m_conversions.matrix(end.sides, handover.layouts,
                                          m_pricing.producerEdge(out, nullptr))});
                m_result.m_handovers.push_back({m_result.m_ops.size() - 1, r, node});
                end = {node, asSides(handover.layouts), true};
            }
            m_ends[out] = std::move(end);
        }
        m_variable[id] = variable;
    }

    void addRead(OpId id, std::uint32_t port) {
        const TensorId t = m_graph.op(id).inputs[port];
        if (t == kNoTensor) return;
        const End& end = m_ends.at(t);
        const Graph::Use use{id, port};
        m_result.m_edges.push_back(
            {end.variable, m_variable.at(id),
             m_conversions.matrix(end.sides, m_pricing.op(id).operandLayouts[port],
                                  end.handover ? m_pricing.readerEdge(t, use)
                                               : m_pricing.producerEdge(t, &use))});
    }

    // --- elimination ----------------------------------------------------------------------------

    solve::Values unaryTable(std::size_t variable) const {
        const auto& unary = m_result.m_unary[variable];
        auto values = std::make_shared_for_overwrite<double[]>(unary.size());
        std::ranges::transform(unary, values.get(),
                               [&](const StageFigures& f) { return m_weights.of(f); });
        return values;
    }

    solve::Values pairTable(const Edge& edge) const {
        const std::size_t size = edge.times->size();
        if (edge.u == edge.v) throw PlanError("an op reads its own result", "pipeline stages");
        auto values = std::make_shared_for_overwrite<double[]>(size);
        for (std::size_t i = 0; i < size; ++i) {
            const auto& t = (*edge.times)[i];
            values.get()[i] = m_weights.time * (t.forward + t.backward) + m_weights.sync * t.step;
        }
        return values;
    }

    void eliminate() {
        solve::Options options;
        solve::Monitor monitor(options);
        solve::Scope kept = m_result.m_entryScope;
        for (const solve::Var v : m_result.m_exitScope)
            if (!solve::contains(kept, v)) kept.push_back(v);
        std::vector<solve::Scope> scopes;
        for (solve::Var v = 0; v < m_result.m_dims.size(); ++v) scopes.push_back({v});
        for (const Edge& edge : m_result.m_edges) scopes.push_back({edge.u, edge.v});
        const solve::EliminationOrder order = solve::eliminationOrder(
            m_result.m_dims, scopes, kept, {.table = kLargestTable}, monitor);
        if (!order.complete || solve::jointSizeEstimate(m_result.m_dims, kept) > kLargestTable)
            throw PlanError(fmt::format("the mesh {} has too many layouts for unit '{}'",
                                        m_pricing.mesh().toString(), m_units[m_unit].name),
                            "pipeline stages", "use fewer mesh axes inside a stage");
        m_result.m_tree =
            std::make_unique<solve::BucketTree>(m_result.m_dims, scopes, order.order, monitor);
        std::size_t factor = 0;
        for (std::size_t v = 0; v < m_result.m_dims.size(); ++v)
            m_result.m_tree->setFactor(factor++, unaryTable(v));
        std::map<const void*, solve::Values> tables; // edges share matrices
        for (const Edge& edge : m_result.m_edges) {
            solve::Values& table = tables[edge.times.get()];
            if (!table) table = pairTable(edge);
            m_result.m_tree->setFactor(factor++, table);
        }
        m_result.m_tree->eliminate(monitor);
        readMatrix(monitor);
    }

    void readMatrix(solve::Monitor& monitor) {
        UnitTransfer& r = m_result;
        r.m_entries = solve::jointSize(r.m_dims, r.m_entryScope);
        r.m_exits = solve::jointSize(r.m_dims, r.m_exitScope);
        solve::Scope both = r.m_entryScope;
        both.insert(both.end(), r.m_exitScope.begin(), r.m_exitScope.end());
        r.m_cost.assign(r.m_entries * r.m_exits, r.m_tree->constant());
        for (const solve::Table* table : r.m_tree->remaining())
            solve::addTable(r.m_dims, r.m_cost.data(), both, table->values.get(), table->scope,
                            monitor);
        r.m_known.resize(r.m_cost.size());
    }

    void addEndings() {
        m_result.m_endings.resize(m_result.m_exits);
        if (m_result.m_exitScope.empty()) return;
        const std::vector<TensorId>& leaving = m_units[m_unit + 1].enters;
        std::size_t inner = m_result.m_exits, i = 0;
        for (const TensorId t : leaving) {
            const End& end = m_ends.at(t);
            const std::vector<Layout> wires = wireLayouts(m_graph.tensor(t).spec, m_pricing.mesh());
            const EdgeTraits traits{bytesOf(m_graph.tensor(t).spec), m_pricing.hasGradient(t)};
            std::vector<StageFigures> byState;
            for (const ProducerSide& side : end.sides)
                byState.push_back(quickest({side}, wires, traits));
            inner /= m_result.m_dims[m_result.m_exitScope[i++]];
            for (std::size_t state = 0; state < m_result.m_exits; ++state)
                m_result.m_endings[state] += byState[state / inner % byState.size()];
        }
    }

    UnitTransfer& m_result;
    const StagedModel& m_model;
    const Graph& m_graph;
    PhasedConversions& m_conversions;
    const Pricing& m_pricing;
    const std::vector<StageUnit>& m_units;
    std::size_t m_unit;
    bool m_starts;
    StageWeights m_weights;
    std::map<TensorId, End> m_ends;
    std::map<OpId, solve::Var> m_variable;
};

UnitTransfer::UnitTransfer(const StagedModel& model, PhasedConversions& conversions,
                           std::size_t unit, bool starts, const StageWeights& weights) {
    Builder(*this, model, conversions, unit, starts, weights).run();
}

UnitTransfer::~UnitTransfer() = default;

std::vector<std::uint32_t> UnitTransfer::decode(std::size_t entry, std::size_t exit) const {
    std::vector<std::uint32_t> value(m_dims.size(), 0);
    const auto set = [&](const solve::Scope& scope, std::size_t joint) {
        for (std::size_t i = scope.size(); i-- > 0;) {
            value[scope[i]] = static_cast<std::uint32_t>(joint % m_dims[scope[i]]);
            joint /= m_dims[scope[i]];
        }
    };
    set(m_entryScope, entry);
    set(m_exitScope, exit);
    m_tree->decode(value);
    return value;
}

const StageFigures& UnitTransfer::figures(std::size_t entry, std::size_t exit) const {
    std::optional<StageFigures>& known = m_known[entry * m_exits + exit];
    if (known) return *known;
    const std::vector<std::uint32_t> value = decode(entry, exit);
    StageFigures sum;
    for (std::size_t v = 0; v < m_dims.size(); ++v) sum += m_unary[v][value[v]];
    for (const Edge& edge : m_edges) {
        const auto& times = (*edge.times)[value[edge.u] * m_dims[edge.v] + value[edge.v]];
        sum.forward += times.forward;
        sum.inputGrad += times.backward;
        sum.sync += times.step;
    }
    return known.emplace(sum);
}

void UnitTransfer::decide(const StageUnit& unit, const Pricing& pricing, std::size_t entry,
                          std::size_t exit, PartialDecisions& result) const {
    const std::vector<std::uint32_t> value = decode(entry, exit);
    const auto isFree = [&](std::size_t op) { return !result.decided[unit.ops[op]]; };
    for (std::size_t i = 0; i < m_ops.size(); ++i) {
        const OpId id = unit.ops[i];
        if (isFree(i)) result.decisions.op[id] = pricing.op(id).choices[value[m_ops[i]]];
    }
    for (const Result& r : m_handovers) {
        const TensorId out = pricing.graph().op(unit.ops[r.op]).outputs[r.port];
        if (isFree(r.op))
            result.decisions.handover[out] = pricing.handover(out).layouts[value[r.handover]];
    }
    for (const OpId id : unit.ops) result.decided[id] = true;
}

PartialDecisions::PartialDecisions(const Pricing& pricing)
    : decided(pricing.graph().ops().size(), false) {
    const std::size_t tensors = pricing.graph().tensors().size();
    decisions.handover.resize(tensors);
    for (OpId id = 0; id < decided.size(); ++id)
        decisions.op.push_back(pricing.op(id).choices.front());
    for (TensorId id = 0; id < tensors; ++id) {
        decisions.hasHandover.push_back(pricing.hasHandover(id));
        if (pricing.hasHandover(id)) decisions.handover[id] = pricing.handover(id).layouts.front();
    }
}

} // namespace shardlens
