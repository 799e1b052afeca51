// SPDX-License-Identifier: Apache-2.0
// See graph_overlay.h.
#include "ui/views/graph_overlay.h"

#include "core/error.h"
#include "core/model/catalogue.h"
#include "ui/format.h"

#include <QCoreApplication>

#include <algorithm>

namespace shardlens {

namespace {

class OverlayBuilder {
public:
    OverlayBuilder(GraphOverlay& overlay, const std::stop_token& stop)
        : m_overlay(overlay), m_scene(*overlay.scene),
          m_graph(overlay.plan ? *overlay.plan->context->graph : *overlay.scene->graph),
          m_stop(stop) {}

    void build();

private:
    std::size_t repeatOf(int run) const {
        return run < 0 ? 0 : m_overlay.repeats[static_cast<std::size_t>(run)];
    }
    /// Whether the plan says something of an op.
    bool decides(OpId op) const {
        return m_overlay.plan && (!m_overlay.inside || m_overlay.inside->decided[op]);
    }
    void indexCollectives();
    void markOp(const SceneItem& item, ItemMark& mark) const;
    void markBlock(const SceneItem& item, ItemMark& mark) const;
    void markEdge(const SceneEdge& edge, EdgeMark& mark) const;
    void markRead(const SceneEdge& edge, TensorId tensor, OpId consumer, EdgeMark& mark) const;
    TensorMark resultMark(OpId op, std::uint32_t port) const;
    TensorMark operandMark(OpId op, std::uint32_t port) const;
    bool inside(OpId op, int item) const;
    static void add(std::vector<Lozenge>& list, const PlannedCollective& collective);
    static Heat heatOf(const OpFigures& figures);

    GraphOverlay& m_overlay;
    const GraphScene& m_scene;
    const Graph& m_graph;
    std::stop_token m_stop;
    // Collectives by tensor and, without one, by op.
    std::unordered_map<TensorId, std::vector<const PlannedCollective*>> m_byTensor;
    std::unordered_map<OpId, std::vector<const PlannedCollective*>> m_byOp;
};

void OverlayBuilder::add(std::vector<Lozenge>& list, const PlannedCollective& collective) {
    const auto same = std::find_if(list.begin(), list.end(), [&](const Lozenge& lozenge) {
        return lozenge.kind == collective.step.kind && lozenge.axis == collective.step.axis &&
               lozenge.phase == collective.phase;
    });
    if (same == list.end()) {
        list.push_back({collective.step.kind,
                        collective.step.axis,
                        collective.phase,
                        collective.seconds,
                        collective.step.bytes,
                        1,
                        {}});
        return;
    }
    same->cost += collective.seconds;
    same->bytes += collective.step.bytes;
    ++same->times;
}

Heat OverlayBuilder::heatOf(const OpFigures& figures) {
    return {figures.compute.forward + figures.compute.backward, figures.communication,
            figures.memory.total()};
}

void OverlayBuilder::indexCollectives() {
    for (const PlannedCollective& collective : m_overlay.plan->collectives) {
        if (collective.tensor != kNoTensor)
            m_byTensor[collective.tensor].push_back(&collective);
        else
            m_byOp[collective.from != kNoOp ? collective.from : collective.to].push_back(
                &collective);
    }
}

TensorMark OverlayBuilder::resultMark(OpId op, std::uint32_t port) const {
    const Shape& shape = m_graph.tensor(m_graph.op(op).outputs.at(port)).spec.shape;
    if (!decides(op)) return unshardedMark(shape);
    const Mesh& mesh = m_overlay.plan->context->mesh;
    const FactorRule rule = factorRule(viewOf(m_graph, op));
    return markOf(
        shape, valueSide(resultLayout(m_overlay.plan->decisions.op[op], rule, port, mesh)), mesh);
}

TensorMark OverlayBuilder::operandMark(OpId op, std::uint32_t port) const {
    const Shape& shape = m_graph.tensor(m_graph.op(op).inputs.at(port)).spec.shape;
    if (!decides(op)) return unshardedMark(shape);
    const Mesh& mesh = m_overlay.plan->context->mesh;
    const FactorRule rule = factorRule(viewOf(m_graph, op));
    return markOf(
        shape, valueSide(operandLayout(m_overlay.plan->decisions.op[op], rule, port, mesh)), mesh);
}

void OverlayBuilder::markOp(const SceneItem& item, ItemMark& mark) const {
    const OpId op = m_scene.inRepeat(item.op, item.run, repeatOf(item.run));
    if (!m_graph.op(op).outputs.empty()) mark.result = resultMark(op, 0);
    for (const ParameterChip& chip : item.chips) {
        const TensorId tensor = m_graph.op(op).inputs.at(chip.port);
        const Tensor& source = m_graph.tensor(tensor);
        ChipMark chipMark{resultMark(source.producer, source.producerPort), {}};
        if (const auto found = m_byTensor.find(tensor); found != m_byTensor.end())
            for (const PlannedCollective* collective : found->second)
                if (collective->to == op || collective->to == kNoOp)
                    add(chipMark.collectives, *collective);
        mark.chips.push_back(std::move(chipMark));
    }
    if (!decides(op)) return;
    const Plan& plan = *m_overlay.plan;
    const FactorRule rule = factorRule(viewOf(m_graph, op));
    mark.choice = text(toString(plan.decisions.op[op], rule, plan.context->mesh));
    mark.heat = heatOf(plan.figures[op]);
    // A parameter is drawn on its reader; so is what it costs.
    for (const ParameterChip& chip : item.chips) {
        const Heat heat =
            heatOf(plan.figures[m_graph.tensor(m_graph.op(op).inputs.at(chip.port)).producer]);
        mark.heat.time += heat.time;
        mark.heat.communication += heat.communication;
        mark.heat.memory += heat.memory;
    }
    mark.pinned = op < plan.pinned.size() && plan.pinned[op];
    if (const auto found = m_byOp.find(op); found != m_byOp.end())
        for (const PlannedCollective* collective : found->second) add(mark.own, *collective);
}

void OverlayBuilder::markBlock(const SceneItem& item, ItemMark& mark) const {
    if (!m_overlay.plan) return;
    const Plan& plan = *m_overlay.plan;
    const auto run = static_cast<std::size_t>(item.run);
    const FoldRun& fold = m_scene.folding->runs[run];
    mark.ranges = rangesOf(plan, run);
    for (std::size_t at = fold.first; at < fold.end(); ++at) {
        const OpId op = m_scene.folding->order[at];
        const Heat heat = heatOf(plan.figures[op]);
        mark.heat.time += heat.time;
        mark.heat.communication += heat.communication;
        mark.heat.memory += heat.memory;
        mark.pinned = mark.pinned || (op < plan.pinned.size() && plan.pinned[op]);
    }
}

bool OverlayBuilder::inside(OpId op, int item) const {
    const SceneItem& shown = m_scene.items[static_cast<std::size_t>(item)];
    if (shown.kind == ItemKind::Block || shown.kind == ItemKind::Frame)
        return m_scene.folding->classes[m_scene.folding->classOf[op]].run == shown.run;
    return m_scene.itemOfOp[op] == item;
}

void OverlayBuilder::markEdge(const SceneEdge& edge, EdgeMark& mark) const {
    const std::size_t repeat = repeatOf(edge.run);
    const TensorId tensor = m_scene.tensorInRepeat(edge, repeat);
    if (!edge.bundle.empty()) {
        for (const SceneRead& read : edge.bundle) markRead(edge, read.tensor, read.consumer, mark);
        return;
    }
    const Tensor& source = m_graph.tensor(tensor);
    const OpId consumer = m_scene.inRepeat(edge.consumer, edge.run, repeat);
    mark.consumed = consumer == kNoOp ? resultMark(source.producer, source.producerPort)
                                      : operandMark(consumer, edge.port);
    markRead(edge, tensor, consumer, mark);
}

/// The collectives of a tensor on its way along an edge, in the repeat that is looked at.
void OverlayBuilder::markRead(const SceneEdge& edge, TensorId tensor, OpId consumer,
                              EdgeMark& mark) const {
    const auto found = m_byTensor.find(tensor);
    if (found == m_byTensor.end()) return;
    const TensorId sample = edge.bundle.empty() ? edge.tensor : tensor;
    // What turns the tensor into its hand-over form happens once: on the first edge out.
    const auto& siblings = m_scene.items[static_cast<std::size_t>(edge.from)].edgesOut;
    const auto first = std::find_if(siblings.begin(), siblings.end(), [&](int id) {
        return m_scene.edges[static_cast<std::size_t>(id)].carries(sample);
    });
    const bool carriesHandover = &m_scene.edges[static_cast<std::size_t>(*first)] == &edge;
    for (const PlannedCollective* collective : found->second) {
        const bool here = collective->to == kNoOp ? carriesHandover
                          : edge.run >= 0         ? collective->to == consumer
                                                  : inside(collective->to, edge.to);
        if (here) add(mark.collectives, *collective);
    }
}

void OverlayBuilder::build() {
    if (m_overlay.plan) {
        indexCollectives();
        m_overlay.unit = m_overlay.plan->context->cost->unit();
        for (const MeshAxis& axis : m_overlay.plan->context->mesh.axes)
            m_overlay.axisNames.push_back(text(axis.name));
    }
    const auto& runs = m_scene.folding->runs;
    m_overlay.repeats.resize(runs.size(), 0);
    for (std::size_t r = 0; r < runs.size(); ++r)
        m_overlay.repeats[r] = std::min(m_overlay.repeats[r], runs[r].count - 1);
    m_overlay.items.resize(m_scene.items.size());
    m_overlay.edges.resize(m_scene.edges.size());
    for (std::size_t i = 0; i < m_scene.items.size(); ++i) {
        if (m_stop.stop_requested()) throw Cancelled();
        const SceneItem& item = m_scene.items[i];
        if (item.kind == ItemKind::Op) markOp(item, m_overlay.items[i]);
        if (item.kind == ItemKind::Block || item.kind == ItemKind::Frame)
            markBlock(item, m_overlay.items[i]);
        if (item.kind == ItemKind::Frame) continue; // its content is shown instead
        const Heat& heat = m_overlay.items[i].heat;
        m_overlay.most.time = std::max(m_overlay.most.time, heat.time);
        m_overlay.most.communication = std::max(m_overlay.most.communication, heat.communication);
        m_overlay.most.memory = std::max(m_overlay.most.memory, heat.memory);
    }
    for (std::size_t e = 0; e < m_scene.edges.size(); ++e)
        markEdge(m_scene.edges[e], m_overlay.edges[e]);
}

} // namespace

TensorMark markOf(const Shape& shape, const SideLayout& side, const Mesh& mesh) {
    TensorMark mark = unshardedMark(shape);
    mark.known = true;
    const Shape local = localShape(shape, side, mesh);
    for (std::size_t d = 0; d < shape.size(); ++d) mark.dims[d].local = local[d];
    for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
        if (side[a] == kStatePartial) mark.partial.push_back(static_cast<std::uint8_t>(a));
        if (side[a] >= 0 && static_cast<std::size_t>(side[a]) < shape.size())
            mark.dims[static_cast<std::size_t>(side[a])].axes.push_back(
                static_cast<std::uint8_t>(a));
    }
    return mark;
}

QString bundleText(const SceneEdge& edge) {
    return QCoreApplication::translate("GraphOverlay", "%1 tensors").arg(edge.bundle.size());
}

TensorMark unshardedMark(const Shape& shape) {
    TensorMark mark;
    for (const std::int64_t size : shape) mark.dims.push_back({size, size, {}});
    return mark;
}

std::vector<RepeatRange> rangesOf(const Plan& plan, std::size_t run) {
    const Folding& folding = *plan.context->folding;
    const Graph& graph = *plan.context->graph;
    const FoldRun& fold = folding.runs[run];
    const auto alike = [&](std::size_t a, std::size_t b) {
        for (std::size_t local = 0; local < fold.period; ++local) {
            const OpId first = folding.order[fold.position(a, local)];
            const OpId second = folding.order[fold.position(b, local)];
            if (plan.decisions.op[first] != plan.decisions.op[second]) return false;
            const auto& outs = graph.op(first).outputs;
            const auto& others = graph.op(second).outputs;
            for (std::size_t o = 0; o < outs.size(); ++o) {
                if (outs[o] >= plan.decisions.hasHandover.size()) continue;
                if (plan.decisions.hasHandover[outs[o]] && plan.decisions.hasHandover[others[o]] &&
                    plan.decisions.handover[outs[o]] != plan.decisions.handover[others[o]])
                    return false;
            }
        }
        return true;
    };
    std::vector<RepeatRange> ranges{{0, 0}};
    for (std::size_t repeat = 1; repeat < fold.count; ++repeat) {
        if (alike(repeat - 1, repeat))
            ranges.back().last = repeat;
        else
            ranges.push_back({repeat, repeat});
    }
    return ranges;
}

QString lozengeText(const Lozenge& lozenge, const GraphOverlay& overlay) {
    const QString axis =
        lozenge.axis < overlay.axisNames.size() ? overlay.axisNames[lozenge.axis] : QString();
    const QString phase = lozenge.phase == Phase::Backward ? QStringLiteral("◂ ")
                          : lozenge.phase == Phase::Step   ? QStringLiteral("↻ ")
                                                           : QString();
    return phase + shortName(lozenge.kind) + QLatin1Char(' ') + axis + QStringLiteral("  ") +
           formatCost(lozenge.cost, overlay.unit);
}

std::shared_ptr<const GraphOverlay>
buildOverlay(std::shared_ptr<const GraphScene> scene, std::shared_ptr<const Plan> plan,
             std::vector<std::size_t> repeats, const std::stop_token& stop,
             std::shared_ptr<const PipelinePlan> job, int stage) {
    auto overlay = std::make_shared<GraphOverlay>();
    overlay->scene = std::move(scene);
    if (job) overlay->inside = job->insideOf(stage);
    if (overlay->inside) {
        overlay->stage = stage;
        overlay->plan = overlay->inside->plan;
    } else {
        overlay->plan = std::move(plan);
    }
    overlay->repeats = std::move(repeats);
    OverlayBuilder(*overlay, stop).build();
    placeLabels(*overlay);
    overlay->stages = stageMarks(*overlay->scene, std::move(job));
    return overlay;
}

} // namespace shardlens
