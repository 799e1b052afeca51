// SPDX-License-Identifier: Apache-2.0
// Prices decisions on the unfolded graph, op by op and tensor by tensor. Knows nothing of the
// solver, so that the solver's answer can be checked against it.
#include "core/error.h"
#include "core/plan/plan.h"
#include "core/plan/pricing.h"

#include <fmt/format.h>

namespace shardlens {

namespace {

class Evaluation {
public:
    Evaluation(Plan& plan)
        : m_plan(plan), m_pricing(*plan.context->pricing), m_graph(m_pricing.graph()) {}

    void run() {
        m_plan.figures.resize(m_graph.ops().size());
        for (const OpId id : m_pricing.folding().order) {
            addOperands(id);
            addOp(id);
            addHandovers(id);
        }
        m_plan.totals.memory.workspace = m_pricing.cost().workspaceBytes();
        m_plan.totals.time = m_plan.totals.compute + m_plan.totals.communication;
    }

private:
    std::size_t choiceOf(OpId id) const {
        const int index = m_pricing.op(id).choiceIndex(m_plan.decisions.op[id]);
        if (index < 0)
            throw PlanError("the choice is not legal here",
                            fmt::format("op '{}'", m_graph.op(id).name));
        return static_cast<std::size_t>(index);
    }

    std::size_t layoutOf(TensorId id) const {
        const int index = m_pricing.handover(id).layoutIndex(m_plan.decisions.handover[id]);
        if (index < 0)
            throw PlanError("the hand-over layout is not legal",
                            fmt::format("tensor '{}'", m_graph.tensor(id).name));
        return static_cast<std::size_t>(index);
    }

    void addSteps(const std::vector<PhasedStep>& steps, TensorId tensor, OpId from, OpId to,
                  OpFigures& figures) {
        for (const PhasedStep& s : steps) {
            m_plan.collectives.push_back({s.step, s.phase, s.time, tensor, from, to});
            m_plan.totals.communication += s.time;
            figures.communication += s.time;
        }
    }

    void addMemory(const MemorySplit& memory, OpFigures& figures) {
        for (MemorySplit* sum : {&m_plan.totals.memory, &figures.memory}) {
            sum->parameters += memory.parameters;
            sum->gradients += memory.gradients;
            sum->optimizer += memory.optimizer;
            sum->activations += memory.activations;
        }
    }

    void addOp(OpId id) {
        const NodePrice& price = m_pricing.op(id).prices[choiceOf(id)];
        OpFigures& figures = m_plan.figures[id];
        figures.compute = price.compute;
        m_plan.totals.compute += price.compute.forward + price.compute.backward;
        addSteps(price.statistics, kNoTensor, id, id, figures);
        addMemory(price.memory, figures);
    }

    ProducerSide producedAs(TensorId id) const {
        const Tensor& t = m_graph.tensor(id);
        return m_pricing.op(t.producer).resultSides[t.producerPort][choiceOf(t.producer)];
    }

    void addHandovers(OpId id) {
        for (const TensorId out : m_graph.op(id).outputs) {
            if (!m_pricing.hasHandover(out)) continue;
            const std::size_t layout = layoutOf(out);
            const PricedHandover& handover = m_pricing.handover(out);
            addSteps(m_pricing.convert(producedAs(out), handover.layouts[layout],
                                       m_pricing.producerEdge(out, nullptr)),
                     out, id, kNoOp, m_plan.figures[id]);
            addMemory(handover.prices[layout].memory, m_plan.figures[id]);
        }
    }

    void addOperands(OpId id) {
        const Op& op = m_graph.op(id);
        for (std::uint32_t port = 0; port < op.inputs.size(); ++port) {
            const TensorId in = op.inputs[port];
            if (in == kNoTensor) continue;
            const Layout& wanted = m_pricing.op(id).operandLayouts[port][choiceOf(id)];
            const Graph::Use use{id, port};
            const bool handed = m_pricing.hasHandover(in);
            const ProducerSide from =
                handed ? ProducerSide{m_plan.decisions.handover[in], 0} : producedAs(in);
            const EdgeTraits traits =
                handed ? m_pricing.readerEdge(in, use) : m_pricing.producerEdge(in, &use);
            addSteps(m_pricing.convert(from, wanted, traits), in, m_graph.tensor(in).producer, id,
                     m_plan.figures[id]);
        }
    }

    Plan& m_plan;
    const Pricing& m_pricing;
    const Graph& m_graph;
};

/// FLOPs of a step by the rules: forward, and in training one more product per operand with a
/// gradient; recomputation inside kernels is not counted.
double modelFlops(const Pricing& pricing, bool training) {
    double sum = 0;
    for (const OpClass& c : pricing.folding().classes) {
        const OpView view = viewOf(pricing.graph(), c.representative);
        const OpWork work = forwardWork(view, pricing.op(c.representative).rule);
        if (work.compute != ComputeClass::Contraction && work.compute != ComputeClass::Attention)
            continue;
        sum += work.flops * static_cast<double>(c.multiplicity) * (training ? 3 : 1);
    }
    return sum;
}

} // namespace

Plan evaluate(std::shared_ptr<const PlanContext> context, Decisions decisions) {
    Plan plan;
    plan.context = std::move(context);
    plan.decisions = std::move(decisions);
    plan.pinned.assign(plan.context->graph->ops().size(), false);
    Evaluation(plan).run();
    plan.totals.modelFlops =
        modelFlops(*plan.context->pricing, plan.context->request.mode == Mode::Train);
    return plan;
}

} // namespace shardlens
