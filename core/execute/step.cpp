// SPDX-License-Identifier: Apache-2.0
// The whole step on one device: ops in order, then in reverse order, then the optimizer.
#include "core/execute/step.h"

#include "core/error.h"
#include "core/model/graph_algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace shardlens {

namespace {

constexpr double kOpaqueWeight = 0.25;

/// Element i of a result takes element (i modulo size) of every real operand.
Arrays opaqueForward(const KernelContext& context, Operands operands) {
    Arrays results;
    for (std::size_t r = 0; r < context.whole().outputs.size(); ++r) {
        Array result = Array::zeros(context.whole().outputs[r], context.resultShape(r));
        for (const Array* operand : operands)
            if (operand && countOf(operand->shape) > 0)
                for (std::size_t i = 0; i < result.reals.size(); ++i)
                    result.reals[i] += kOpaqueWeight * operand->at(i % operand->size());
        results.push_back(std::move(result));
    }
    return results;
}

Arrays opaqueBackward(const KernelContext&, Operands operands, std::span<const Array>,
                      std::span<const Array> gradients) {
    Arrays result(operands.size());
    for (std::size_t port = 0; port < operands.size(); ++port) {
        if (!operands[port] || operands[port]->integral || countOf(operands[port]->shape) == 0)
            continue;
        result[port] = Array::like(*operands[port], operands[port]->shape);
        for (const Array& gradient : gradients)
            for (std::size_t i = 0; i < gradient.reals.size(); ++i)
                result[port].reals[i % result[port].size()] += kOpaqueWeight * gradient.reals[i];
    }
    return result;
}

class WholeRun {
public:
    WholeRun(const Graph& graph, const Feeds& feeds, bool training)
        : m_graph(graph), m_feeds(feeds),
          m_needs(training ? needsGradient(graph) : std::vector<bool>(graph.tensors().size())) {
        m_step.values.resize(graph.tensors().size());
        m_step.gradients.resize(graph.tensors().size());
        m_kept.resize(graph.ops().size());
    }

    StepValues run(bool training) {
        for (OpId id = 0; id < m_graph.ops().size(); ++id) forward(id);
        if (!training) return std::move(m_step);
        for (std::size_t i = 0; i < m_graph.outputs().size(); ++i)
            accumulate(m_graph.outputs()[i], seedGradient(m_graph, i));
        for (OpId id = static_cast<OpId>(m_graph.ops().size()); id-- > 0;) backward(id);
        for (OpId id = 0; id < m_graph.ops().size(); ++id) update(id);
        return std::move(m_step);
    }

private:
    std::vector<const Array*> operandsOf(const Op& op) const {
        std::vector<const Array*> operands;
        for (const TensorId input : op.inputs)
            operands.push_back(input == kNoTensor ? nullptr : &m_step.values[input]);
        return operands;
    }

    void forward(OpId id) {
        const Op& op = m_graph.op(id);
        if (const auto feed = m_feeds.find(id); feed != m_feeds.end()) {
            m_step.values[op.outputs.front()] = feed->second;
            return;
        }
        const OpView view = viewOf(m_graph, id);
        const FactorRule rule = factorRule(view);
        Arrays results =
            executableKernel(m_graph, id).forward(KernelContext(view, rule), operandsOf(op));
        m_kept[id] = keptBehind(results, op.outputs.size());
        for (std::size_t r = 0; r < op.outputs.size(); ++r)
            m_step.values[op.outputs[r]] = std::move(results[r]);
    }

    void accumulate(TensorId tensor, Array gradient) {
        if (gradient.empty() || !m_needs[tensor]) return;
        if (m_step.gradients[tensor].empty())
            m_step.gradients[tensor] = std::move(gradient);
        else
            add(m_step.gradients[tensor], gradient);
    }

    void backward(OpId id) {
        const Op& op = m_graph.op(id);
        if (op.inputs.empty()) return;
        Arrays results, gradients;
        bool any = false;
        for (const TensorId out : op.outputs) {
            results.push_back(m_step.values[out]);
            gradients.push_back(m_step.gradients[out]);
            any = any || !gradients.back().empty();
        }
        const Kernel& kernel = executableKernel(m_graph, id);
        if (!any || !kernel.backward) return;
        std::ranges::move(m_kept[id], std::back_inserter(results));
        const OpView view = viewOf(m_graph, id);
        const FactorRule rule = factorRule(view);
        Arrays back =
            kernel.backward(KernelContext(view, rule), operandsOf(op), results, gradients);
        for (std::size_t port = 0; port < op.inputs.size(); ++port)
            if (op.inputs[port] != kNoTensor) accumulate(op.inputs[port], std::move(back[port]));
    }

    void update(OpId id) {
        const Op& op = m_graph.op(id);
        if (op.kind != OpKind::Parameter || m_step.gradients[op.outputs.front()].empty()) return;
        Array value = m_step.values[op.outputs.front()];
        adamStep(value, m_step.gradients[op.outputs.front()]);
        m_step.updated.emplace(id, std::move(value));
    }

    const Graph& m_graph;
    const Feeds& m_feeds;
    std::vector<bool> m_needs;
    StepValues m_step;
    std::vector<Arrays> m_kept; ///< by op
};

} // namespace

Arrays keptBehind(Arrays& results, std::size_t count) {
    const auto first = results.begin() + static_cast<std::ptrdiff_t>(count);
    Arrays kept(std::make_move_iterator(first), std::make_move_iterator(results.end()));
    results.erase(first, results.end());
    return kept;
}

const Kernel& executableKernel(const Graph& graph, OpId id) {
    static const Kernel opaque{OpKind::Opaque, opaqueForward, opaqueBackward};
    const Op& op = graph.op(id);
    if (op.kind == OpKind::Opaque) return opaque;
    const auto isComplexTensor = [&](TensorId tensor) {
        return tensor != kNoTensor && isComplex(graph.tensor(tensor).spec.dtype);
    };
    if (op.kind != OpKind::Fourier && (std::ranges::any_of(op.inputs, isComplexTensor) ||
                                       std::ranges::any_of(op.outputs, isComplexTensor)))
        throw Error(fmt::format("{} of complex numbers cannot be executed", nameOf(op.kind)),
                    fmt::format("op '{}'", op.name));
    if (!hasKernel(op.kind))
        throw Error(fmt::format("an op of kind {} cannot be executed", nameOf(op.kind)),
                    fmt::format("op '{}'", op.name));
    return kernelOf(op.kind);
}

Array seedGradient(const Graph& graph, std::size_t output) {
    const TensorSpec& spec = graph.tensor(graph.outputs()[output]).spec;
    if (!isFloat(spec.dtype) || isComplex(spec.dtype)) return {};
    Array seed = Array::real(spec.shape, 1);
    if (seed.size() > 1)
        for (std::size_t i = 0; i < seed.size(); ++i)
            seed.reals[i] = 2 * uniformAt(output + 1, i) - 1;
    return seed;
}

void adamStep(Array& parameter, const Array& gradient) {
    constexpr double kRate = 1e-2, kEpsilon = 1e-8;
    for (std::size_t i = 0; i < parameter.size(); ++i) {
        const double g = gradient.reals[i];
        parameter.reals[i] -= kRate * g / (std::sqrt(g * g) + kEpsilon);
    }
}

StepValues runWhole(const Graph& graph, const Feeds& feeds, bool training) {
    return WholeRun(graph, feeds, training).run(training);
}

} // namespace shardlens
