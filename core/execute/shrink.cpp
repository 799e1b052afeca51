// SPDX-License-Identifier: Apache-2.0
// Shrinking in two steps: fewer blocks, then smaller sizes. The smaller graph is built op by op:
// the sources get their new sizes, attributes that hold sizes are written anew, and everything else
// follows from the catalogue's shape functions.
#include "core/execute/shrink.h"

#include "core/error.h"
#include "core/execute/array.h"
#include "core/execute/size_atoms.h"

#include <algorithm>
#include <numeric>

namespace shardlens {

namespace {

/// Builds the graph with smaller sizes.
class Smaller {
public:
    Smaller(const Graph& graph, const ShrinkOptions& options)
        : m_graph(graph), m_options(options), m_atoms(graph),
          m_moved(graph.tensors().size(), kNoTensor) {}

    Graph build() {
        m_result.name = m_graph.name;
        m_result.format = m_graph.format;
        m_result.backwardIncluded = m_graph.backwardIncluded;
        for (OpId id = 0; id < m_graph.ops().size(); ++id) add(id);
        for (const TensorId output : m_graph.outputs()) m_result.markOutput(m_moved[output]);
        return std::move(m_result);
    }

private:
    auto sizing() const {
        return [this](std::int64_t size) {
            return shrunkSize(size, m_options.divisor, m_options.smallest);
        };
    }

    Shape shapeOf(TensorId tensor) const {
        Shape shape;
        for (std::size_t d = 0; d < m_graph.tensor(tensor).spec.shape.size(); ++d)
            shape.push_back(m_atoms.dimension(tensor, d, sizing()));
        return shape;
    }

    /// Attributes that hold sizes, for the new ones.
    void resize(Op& op, OpId id) const {
        switch (op.kind) {
        case OpKind::Reshape:
        case OpKind::Expand:
        case OpKind::Generate:
            op.attributes.set("shape", shapeOf(m_graph.op(id).outputs.front()));
            break;
        case OpKind::Conv:
        case OpKind::ConvTranspose: {
            const FactorRule rule = factorRule(viewOf(m_graph, id));
            const auto g = std::ranges::find(rule.factors, "g", &Factor::name);
            const auto index = static_cast<std::size_t>(g - rule.factors.begin());
            op.attributes.set("group", m_atoms.factor(id, index, sizing()));
            break;
        }
        case OpKind::MoeDispatch:
        case OpKind::MoeCombine:
            if (op.attributes.has("top_k"))
                op.attributes.set("top_k",
                                  std::min(op.attributes.integer("top_k", 1),
                                           m_result.tensor(op.inputs[1]).spec.shape.back()));
            break;
        default:
            break;
        }
    }

    void add(OpId id) {
        Op op = m_graph.op(id);
        const std::vector<TensorId> results = op.outputs;
        for (TensorId& input : op.inputs)
            if (input != kNoTensor) input = m_moved[input];
        op.outputs.clear();
        std::vector<std::string> names;
        for (const TensorId result : results) names.push_back(m_graph.tensor(result).name);
        OpId added = kNoOp;
        if (op.inputs.empty() || op.kind == OpKind::Opaque) {
            resize(op, id);
            std::vector<TensorSpec> specs;
            for (const TensorId result : results)
                specs.push_back({m_graph.tensor(result).spec.dtype, shapeOf(result)});
            added = m_result.addOp(std::move(op), std::move(specs), std::move(names));
        } else {
            op.outputs.resize(results.size());
            resize(op, id);
            added = addInferred(m_result, std::move(op), std::move(names));
        }
        for (std::size_t r = 0; r < results.size(); ++r) {
            m_moved[results[r]] = m_result.op(added).outputs[r];
            copyKnown(results[r], m_moved[results[r]]);
        }
    }

    /// Known elements: the leading block of them.
    void copyKnown(TensorId from, TensorId to) {
        const Tensor& tensor = m_graph.tensor(from);
        const Shape& shape = m_result.tensor(to).spec.shape;
        const Shape origin(shape.size(), 0);
        if (tensor.value) {
            Array known = Array::integer(tensor.spec.shape);
            known.ints = *tensor.value;
            m_result.setKnownValue(to, block(known, origin, shape).ints);
        }
        if (tensor.reals) {
            Array known = Array::real(tensor.spec.shape);
            known.reals = *tensor.reals;
            m_result.setKnownReals(to, block(known, origin, shape).reals);
        }
    }

    const Graph& m_graph;
    const ShrinkOptions& m_options;
    SizeAtoms m_atoms;
    std::vector<TensorId> m_moved;
    Graph m_result;
};

} // namespace

std::int64_t shrunkSize(std::int64_t size, std::int64_t divisor, std::int64_t smallest) {
    const std::int64_t shared = std::gcd(size, divisor);
    for (std::int64_t candidate = shared; candidate < size; candidate += shared)
        if (candidate >= smallest && std::gcd(candidate, divisor) == shared) return candidate;
    return size;
}

Graph withFewerBlocks(const Graph& graph, const Folding& folding, std::size_t blocks) {
    Graph result;
    result.name = graph.name;
    result.format = graph.format;
    result.backwardIncluded = graph.backwardIncluded;
    std::vector<TensorId> moved(graph.tensors().size(), kNoTensor);
    // What stands for a tensor: itself, or its like in the last instance that remains.
    const auto standIn = [&](TensorId tensor) {
        const Tensor& t = graph.tensor(tensor);
        const OpClass& c = folding.classes[folding.classOf[t.producer]];
        if (c.run < 0 || folding.instanceOf[t.producer] < blocks) return tensor;
        const OpId like = folding.member(folding.classOf[t.producer], blocks - 1);
        return graph.op(like).outputs[t.producerPort];
    };
    for (const OpId id : folding.order) {
        if (folding.classes[folding.classOf[id]].run >= 0 && folding.instanceOf[id] >= blocks)
            continue;
        Op op = graph.op(id);
        const std::vector<TensorId> from = std::move(op.outputs);
        op.outputs.clear();
        for (TensorId& input : op.inputs)
            if (input != kNoTensor) input = moved[standIn(input)];
        std::vector<TensorSpec> specs;
        std::vector<std::string> names;
        for (const TensorId tensor : from) {
            specs.push_back(graph.tensor(tensor).spec);
            names.push_back(graph.tensor(tensor).name);
        }
        const OpId added = result.addOp(std::move(op), std::move(specs), std::move(names));
        for (std::size_t r = 0; r < from.size(); ++r) {
            moved[from[r]] = result.op(added).outputs[r];
            if (const auto& value = graph.tensor(from[r]).value)
                result.setKnownValue(moved[from[r]], *value);
            if (const auto& reals = graph.tensor(from[r]).reals)
                result.setKnownReals(moved[from[r]], *reals);
        }
    }
    for (const TensorId output : graph.outputs()) result.markOutput(moved[standIn(output)]);
    return result;
}

Graph shrink(const Graph& graph, const Folding& folding, const ShrinkOptions& options) {
    return Smaller(withFewerBlocks(graph, folding, options.blocks), options).build();
}

} // namespace shardlens
