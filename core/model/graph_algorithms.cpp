// SPDX-License-Identifier: Apache-2.0
// Orders and reachability. The model graph is seen by Boost.Graph as "op -> producers of its
// operands, in port order", so a depth-first post-order is a topological order of the computation.
#include "core/model/graph_algorithms.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/depth_first_search.hpp>

#include <algorithm>
#include <numeric>

namespace shardlens {

namespace {

using ProducerGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
using Colors = std::vector<boost::default_color_type>;

ProducerGraph producerGraph(const Graph& graph) {
    ProducerGraph result(graph.ops().size());
    for (OpId id = 0; id < graph.ops().size(); ++id)
        for (const TensorId input : graph.op(id).inputs)
            if (input != kNoTensor) add_edge(id, graph.tensor(input).producer, result);
    return result;
}

/// Writes ops as the search leaves them, each preceded by the sources it is the first to read.
class OrderWriter : public boost::default_dfs_visitor {
public:
    OrderWriter(const Graph& graph, std::vector<bool>& written, std::vector<OpId>& order)
        : m_graph(&graph), m_written(&written), m_order(&order) {}

    void finish_vertex(ProducerGraph::vertex_descriptor vertex, const ProducerGraph&) {
        const auto id = static_cast<OpId>(vertex);
        const std::vector<TensorId>& operands = m_graph->op(id).inputs;
        if (operands.empty()) return; // waits for its first reader
        for (const TensorId operand : operands)
            if (operand != kNoTensor) writeSource(m_graph->tensor(operand).producer);
        write(id);
    }

    void writeSource(OpId id) {
        if (m_graph->op(id).inputs.empty()) write(id);
    }

private:
    void write(OpId id) {
        if ((*m_written)[id]) return;
        (*m_written)[id] = true;
        m_order->push_back(id);
    }

    const Graph* m_graph;
    std::vector<bool>* m_written;
    std::vector<OpId>* m_order;
};

} // namespace

std::vector<OpId> topologicalOrder(const Graph& graph) {
    // Graph::addOp takes existing operands only: the ids are the order.
    std::vector<OpId> order(graph.ops().size());
    std::iota(order.begin(), order.end(), OpId{0});
    return order;
}

std::vector<OpId> structuralOrder(const Graph& graph) {
    const ProducerGraph producers = producerGraph(graph);
    Colors colors(graph.ops().size(), boost::white_color);
    const auto colorMap =
        boost::make_iterator_property_map(colors.begin(), get(boost::vertex_index, producers));
    std::vector<bool> written(graph.ops().size(), false);
    std::vector<OpId> order;
    order.reserve(graph.ops().size());
    OrderWriter writer(graph, written, order);
    const auto visit = [&](OpId root) {
        if (colors[root] == boost::white_color)
            depth_first_visit(producers, root, writer, colorMap);
        writer.writeSource(root);
    };
    for (const TensorId output : graph.outputs()) visit(graph.tensor(output).producer);
    for (const OpId id : topologicalOrder(graph)) visit(id);
    return order;
}

std::vector<bool> reachesOutput(const Graph& graph) {
    const ProducerGraph producers = producerGraph(graph);
    Colors colors(graph.ops().size(), boost::white_color);
    const auto colorMap =
        boost::make_iterator_property_map(colors.begin(), get(boost::vertex_index, producers));
    for (const TensorId output : graph.outputs()) {
        const OpId root = graph.tensor(output).producer;
        if (colors[root] == boost::white_color)
            depth_first_visit(producers, root, boost::default_dfs_visitor(), colorMap);
    }
    std::vector<bool> reached(colors.size());
    std::transform(colors.begin(), colors.end(), reached.begin(),
                   [](auto color) { return color != boost::white_color; });
    return reached;
}

std::vector<bool> needsGradient(const Graph& graph) {
    if (graph.backwardIncluded) return std::vector<bool>(graph.tensors().size(), false);
    std::vector<bool> needs(graph.tensors().size(), false);
    for (const Op& op : graph.ops()) {
        const bool depends =
            op.kind == OpKind::Parameter || std::ranges::any_of(op.inputs, [&](TensorId input) {
                return input != kNoTensor && needs[input];
            });
        for (const TensorId output : op.outputs)
            needs[output] = depends && isFloat(graph.tensor(output).spec.dtype);
    }
    // Gradients arrive from the outputs of the graph and from readers that have one themselves.
    std::vector<bool> arrives(needs.size(), false);
    for (const TensorId output : graph.outputs()) arrives[output] = true;
    for (OpId id = static_cast<OpId>(graph.ops().size()); id-- > 0;) {
        const Op& op = graph.op(id);
        for (const TensorId output : op.outputs) needs[output] = needs[output] && arrives[output];
        if (!std::ranges::any_of(op.outputs, [&](TensorId output) { return needs[output]; }))
            continue;
        for (const TensorId input : op.inputs)
            if (input != kNoTensor) arrives[input] = true;
    }
    return needs;
}

} // namespace shardlens
