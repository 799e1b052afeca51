// SPDX-License-Identifier: Apache-2.0
// See choice_problem.h. Of a segment only one instance is looked at: the second, whose operands
// show what is carried from the instance before; the first instance's operands give the entry
// edges.
#include "core/plan/choice_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace shardlens {

namespace {

constexpr solve::NodeId kNoNode = static_cast<solve::NodeId>(-1);

std::vector<ProducerSide> sidesOf(const PricedHandover& handover) {
    std::vector<ProducerSide> sides;
    for (const Layout& layout : handover.layouts) sides.push_back({layout, 0});
    return sides;
}

} // namespace

ProblemBuilder::ProblemBuilder(const Pricing& pricing, FixedChoices fixed, OpId isolate)
    : m_pricing(pricing), m_fixed(std::move(fixed)) {
    cutRuns(isolate);
    addNodes();
    addReads();
}

// --- segments -----------------------------------------------------------------------------------

void ProblemBuilder::cutRuns(OpId isolate) {
    const Folding& folding = m_pricing.folding();
    const Graph& graph = m_pricing.graph();
    // A tensor that every block of a run reads must come from a node with one copy: if it comes
    // from another run, that run's last instance is cut off.
    std::set<std::size_t> lastAlone;
    for (std::size_t r = 0; r < folding.runs.size(); ++r) {
        const FoldRun& run = folding.runs[r];
        if (run.count == 1) continue;
        for (std::size_t local = 0; local < run.period; ++local)
            for (const TensorId in :
                 graph.op(folding.order[run.position(run.count - 1, local)]).inputs) {
                if (in == kNoTensor) continue;
                const int from = folding.classes[folding.classOf[graph.tensor(in).producer]].run;
                if (from >= 0 && static_cast<std::size_t>(from) != r)
                    lastAlone.insert(static_cast<std::size_t>(from));
            }
    }
    m_segmentAt.resize(folding.runs.size());
    for (std::size_t r = 0; r < folding.runs.size(); ++r) {
        const FoldRun& run = folding.runs[r];
        const auto fixedAt = [&](std::size_t instance) {
            std::vector<int> fixedChoices(run.period);
            for (std::size_t local = 0; local < run.period; ++local)
                fixedChoices[local] = m_fixed[folding.order[run.position(instance, local)]];
            return fixedChoices;
        };
        const bool isolated = isolate != kNoOp &&
                              folding.classes[folding.classOf[isolate]].run == static_cast<int>(r);
        std::vector<int> before;
        for (std::size_t i = 0; i < run.count; ++i) {
            const auto alone = [&](std::size_t instance) { // a linked run is no power
                return run.linked || (isolated && folding.instanceOf[isolate] == instance) ||
                       (instance + 1 == run.count && lastAlone.contains(r));
            };
            std::vector<int> now = fixedAt(i);
            if (i > 0 && now == before && !alone(i) && !alone(i - 1))
                ++m_segments.back().count;
            else
                m_segments.push_back({i, 1, r, -1, {}, {}});
            m_segmentAt[r].push_back(m_segments.size() - 1);
            before = std::move(now);
        }
    }
}

const ProblemBuilder::Segment* ProblemBuilder::segmentOf(OpId op) const {
    const Folding& folding = m_pricing.folding();
    const int run = folding.classes[folding.classOf[op]].run;
    if (run < 0) return nullptr;
    return &m_segments[m_segmentAt[static_cast<std::size_t>(run)][folding.instanceOf[op]]];
}

// --- nodes --------------------------------------------------------------------------------------

void ProblemBuilder::addNodes() {
    const Folding& folding = m_pricing.folding();
    for (Segment& segment : m_segments) {
        const FoldRun& run = folding.runs[segment.run];
        if (segment.count > 1) {
            segment.problemRun = static_cast<int>(m_problem.runs.size());
            m_problem.runs.push_back({{}, segment.count});
        }
        for (std::size_t local = 0; local < run.period; ++local)
            addOpNodes(folding.order[run.position(segment.first, local)], segment.problemRun,
                       segment.opNode, segment.handoverNode);
    }
    m_plainNode.assign(m_pricing.graph().ops().size(), kNoNode);
    m_plainHandover.resize(m_pricing.graph().ops().size());
    for (const OpId id : folding.order) {
        if (folding.classes[folding.classOf[id]].run >= 0) continue;
        std::vector<solve::NodeId> op;
        std::vector<std::vector<solve::NodeId>> handover;
        addOpNodes(id, -1, op, handover);
        m_plainNode[id] = op[0];
        m_plainHandover[id] = std::move(handover[0]);
    }
    for (const Segment& segment : m_segments)
        for (std::size_t local = 0; local < segment.opNode.size(); ++local)
            addInnerEdges(folding.order[folding.runs[segment.run].position(segment.first, local)]);
    for (const OpId id : folding.order)
        if (m_plainNode[id] != kNoNode) addInnerEdges(id);
}

void ProblemBuilder::addOpNodes(OpId op, int problemRun, std::vector<solve::NodeId>& opNode,
                                std::vector<std::vector<solve::NodeId>>& handoverNode) {
    const double quantum = m_pricing.cost().quantum();
    const auto add = [&](std::span<const NodePrice> prices, int fixed) {
        solve::Node node;
        node.run = problemRun;
        for (std::size_t i = 0; i < prices.size(); ++i) {
            const bool barred = fixed >= 0 && static_cast<int>(i) != fixed;
            node.cost.push_back(barred ? solve::kInfinite : std::round(prices[i].time() / quantum));
            node.usage.push_back(prices[i].memory.total());
        }
        const auto id = static_cast<solve::NodeId>(m_problem.nodes.size());
        m_problem.nodes.push_back(std::move(node));
        if (problemRun >= 0)
            m_problem.runs[static_cast<std::size_t>(problemRun)].body.push_back(id);
        return id;
    };
    opNode.push_back(add(m_pricing.op(op).prices, m_fixed[op]));
    auto& handovers = handoverNode.emplace_back();
    for (const TensorId out : m_pricing.graph().op(op).outputs)
        handovers.push_back(m_pricing.hasHandover(out) ? add(m_pricing.handover(out).prices, -1)
                                                       : kNoNode);
}

/// Producer to its own hand-overs: the same instance.
void ProblemBuilder::addInnerEdges(OpId op) {
    const Graph& graph = m_pricing.graph();
    for (std::size_t r = 0; r < graph.op(op).outputs.size(); ++r) {
        const TensorId out = graph.op(op).outputs[r];
        if (!m_pricing.hasHandover(out)) continue;
        const solve::MatrixPtr cost = m_pricing.conversionMatrix(
            m_pricing.op(op).resultSides[r], m_pricing.handover(out).layouts,
            m_pricing.producerEdge(out, nullptr));
        if (cost)
            m_problem.edges.push_back({placeOf(op).node, placeOfHandover(out).node, cost,
                                       solve::At::Each, solve::At::Each, false});
    }
}

// --- edges --------------------------------------------------------------------------------------

ProblemBuilder::Place ProblemBuilder::placeOf(OpId op) const {
    const Segment* segment = segmentOf(op);
    if (!segment) return {m_plainNode[op], 0};
    const Folding& folding = m_pricing.folding();
    return {segment->opNode[folding.classes[folding.classOf[op]].local],
            folding.instanceOf[op] - segment->first};
}

ProblemBuilder::Place ProblemBuilder::placeOfHandover(TensorId tensor) const {
    const Tensor& t = m_pricing.graph().tensor(tensor);
    const Segment* segment = segmentOf(t.producer);
    if (!segment) return {m_plainHandover[t.producer][t.producerPort], 0};
    const Folding& folding = m_pricing.folding();
    return {
        segment->handoverNode[folding.classes[folding.classOf[t.producer]].local][t.producerPort],
        folding.instanceOf[t.producer] - segment->first};
}

ProblemBuilder::End ProblemBuilder::sourceEnd(TensorId tensor) const {
    const Place place = m_pricing.hasHandover(tensor)
                            ? placeOfHandover(tensor)
                            : placeOf(m_pricing.graph().tensor(tensor).producer);
    if (m_problem.nodes[place.node].run < 0) return {place.node, solve::At::Each};
    return {place.node, solve::At::Last}; // only the last block of a run is read from outside
}

solve::MatrixPtr ProblemBuilder::readMatrix(TensorId tensor, const Graph::Use& use) const {
    const auto& layouts = m_pricing.op(use.op).operandLayouts[use.port];
    if (m_pricing.hasHandover(tensor))
        return m_pricing.conversionMatrix(sidesOf(m_pricing.handover(tensor)), layouts,
                                          m_pricing.readerEdge(tensor, use));
    const Tensor& t = m_pricing.graph().tensor(tensor);
    return m_pricing.conversionMatrix(m_pricing.op(t.producer).resultSides[t.producerPort], layouts,
                                      m_pricing.producerEdge(tensor, &use));
}

void ProblemBuilder::addReads() {
    const Folding& folding = m_pricing.folding();
    const Graph& graph = m_pricing.graph();
    for (const Segment& segment : m_segments)
        for (std::size_t local = 0; local < segment.opNode.size(); ++local) {
            const OpId op = folding.order[folding.runs[segment.run].position(segment.first, local)];
            for (std::uint32_t port = 0; port < graph.op(op).inputs.size(); ++port)
                segment.count > 1 ? addRepeatedRead(segment, local, port) : addRead(op, port);
        }
    for (const OpId id : folding.order)
        if (m_plainNode[id] != kNoNode)
            for (std::uint32_t port = 0; port < graph.op(id).inputs.size(); ++port)
                addRead(id, port);
}

/// A read by an op with one copy.
void ProblemBuilder::addRead(OpId reader, std::uint32_t port) {
    const TensorId tensor = m_pricing.graph().op(reader).inputs[port];
    if (tensor == kNoTensor) return;
    const solve::MatrixPtr cost = readMatrix(tensor, {reader, port});
    if (!cost) return;
    const End end = sourceEnd(tensor);
    m_problem.edges.push_back(
        {end.node, placeOf(reader).node, cost, end.at, solve::At::Each, false});
}

/// A read by every instance of a segment.
void ProblemBuilder::addRepeatedRead(const Segment& segment, std::size_t local,
                                     std::uint32_t port) {
    const Folding& folding = m_pricing.folding();
    const Graph& graph = m_pricing.graph();
    const FoldRun& run = folding.runs[segment.run];
    const OpId first = folding.order[run.position(segment.first, local)];
    const OpId second = folding.order[run.position(segment.first + 1, local)];
    const TensorId entry = graph.op(first).inputs[port], repeated = graph.op(second).inputs[port];
    if (repeated == kNoTensor) return;
    const solve::NodeId node = segment.opNode[local];
    const OpId producer = graph.tensor(repeated).producer;
    const Segment* from = segmentOf(producer);
    const solve::MatrixPtr cost = readMatrix(repeated, {second, port});
    if (from != &segment) { // shared by all instances
        if (cost)
            m_problem.edges.push_back(
                {sourceEnd(repeated).node, node, cost, solve::At::Each, solve::At::Each, false});
        return;
    }
    const solve::NodeId source =
        (m_pricing.hasHandover(repeated) ? placeOfHandover(repeated) : placeOf(producer)).node;
    const bool carried = folding.instanceOf[producer] == segment.first;
    if (cost)
        m_problem.edges.push_back({source, node, cost, solve::At::Each, solve::At::Each, carried});
    if (!carried) return;
    const solve::MatrixPtr entryCost = readMatrix(entry, {first, port});
    const End end = sourceEnd(entry);
    if (entryCost)
        m_problem.edges.push_back({end.node, node, entryCost, end.at, solve::At::First, false});
}

std::vector<std::vector<solve::NodeId>> ProblemBuilder::layerGroups() const {
    std::map<std::pair<std::size_t, std::size_t>, std::vector<solve::NodeId>> ops; // run, local
    std::map<std::tuple<std::size_t, std::size_t, std::size_t>, std::vector<solve::NodeId>> others;
    for (const Segment& segment : m_segments)
        for (std::size_t local = 0; local < segment.opNode.size(); ++local) {
            ops[{segment.run, local}].push_back(segment.opNode[local]);
            const auto& handovers = segment.handoverNode[local];
            for (std::size_t result = 0; result < handovers.size(); ++result)
                if (handovers[result] != kNoNode)
                    others[{segment.run, local, result}].push_back(handovers[result]);
        }
    std::vector<std::vector<solve::NodeId>> groups;
    for (auto& [place, group] : ops) groups.push_back(std::move(group));
    for (auto& [place, group] : others) groups.push_back(std::move(group));
    return groups;
}

// --- back ---------------------------------------------------------------------------------------

Decisions ProblemBuilder::decisions(const solve::Assignment& assignment) const {
    const Graph& graph = m_pricing.graph();
    Decisions result;
    result.op.resize(graph.ops().size());
    result.handover.resize(graph.tensors().size());
    result.hasHandover.resize(graph.tensors().size());
    for (OpId id = 0; id < graph.ops().size(); ++id) {
        const Place place = placeOf(id);
        result.op[id] = m_pricing.op(id).choices[assignment.choice[place.node][place.copy]];
    }
    for (TensorId id = 0; id < graph.tensors().size(); ++id) {
        if (!(result.hasHandover[id] = m_pricing.hasHandover(id))) continue;
        const Place place = placeOfHandover(id);
        result.handover[id] =
            m_pricing.handover(id).layouts[assignment.choice[place.node][place.copy]];
    }
    return result;
}

std::vector<std::string> ProblemBuilder::nodeNames() const {
    std::vector<std::string> names(m_problem.nodes.size());
    const Graph& graph = m_pricing.graph();
    for (OpId id = static_cast<OpId>(graph.ops().size()); id-- > 0;)
        names[placeOf(id).node] = graph.op(id).name;
    for (TensorId id = static_cast<TensorId>(graph.tensors().size()); id-- > 0;)
        if (m_pricing.hasHandover(id))
            names[placeOfHandover(id).node] = "hand-over of " + graph.tensor(id).name;
    return names;
}

} // namespace shardlens
