// SPDX-License-Identifier: Apache-2.0
// What one rank does in a step. It follows the plan as evaluate() prices it: a tensor with several
// readers is converted once into its hand-over's layout and from there for each reader; gradients
// go the same way back; a reader that had gathered an operand which the backward pass needs gathers
// it again there.
#include "core/error.h"
#include "core/execute/rank_kernel.h"
#include "core/execute/sharded_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace shardlens {

namespace {

/// The end of a conversion that a tensor comes from: its hand-over, or what its producer makes.
struct Origin {
    ProducerSide side;
    bool handedOver = false;
};

class RankProgram {
public:
    RankProgram(const Plan& plan, const Feeds& feeds, Communicator& communicator)
        : m_plan(plan), m_pricing(*plan.context->pricing), m_graph(m_pricing.graph()),
          m_mesh(m_pricing.mesh()), m_rules(m_pricing.cost().conversionRules(m_mesh)),
          m_feeds(feeds), m_communicator(communicator) {
        const std::size_t tensors = m_graph.tensors().size();
        for (auto* arrays :
             {&m_step.local.values, &m_step.local.gradients, &m_handover, &m_handoverGradient})
            arrays->resize(tensors);
        m_step.gradientSides.resize(tensors);
        for (TensorId t = 0; t < tensors; ++t)
            m_step.gradientSides[t] = gradientSide(producedAs(t).layout);
        m_operands.resize(m_graph.ops().size());
        m_kept.resize(m_graph.ops().size());
    }

    RankStep run() {
        for (OpId id = 0; id < m_graph.ops().size(); ++id) forward(id);
        if (!m_pricing.training()) return std::move(m_step);
        for (std::size_t i = 0; i < m_graph.outputs().size(); ++i) seed(i);
        for (OpId id = static_cast<OpId>(m_graph.ops().size()); id-- > 0;) backward(id);
        for (OpId id = 0; id < m_graph.ops().size(); ++id) update(id);
        return std::move(m_step);
    }

private:
    const Choice& choiceOf(OpId id) const { return m_plan.decisions.op[id]; }

    ProducerSide producedAs(TensorId tensor) const {
        const Tensor& t = m_graph.tensor(tensor);
        const PricedOp& priced = m_pricing.op(t.producer);
        const int choice = priced.choiceIndex(choiceOf(t.producer));
        return priced.resultSides[t.producerPort][static_cast<std::size_t>(choice)];
    }

    Origin originOf(TensorId tensor) const {
        if (m_pricing.hasHandover(tensor)) return {{m_plan.decisions.handover[tensor], 0}, true};
        return {producedAs(tensor), false};
    }

    Layout wantedBy(const Graph::Use& use) const {
        return operandLayout(choiceOf(use.op), m_pricing.op(use.op).rule, use.port, m_mesh);
    }

    EdgeTraits traitsOf(TensorId tensor, const Graph::Use& use) const {
        return m_pricing.hasHandover(tensor) ? m_pricing.readerEdge(tensor, use)
                                             : m_pricing.producerEdge(tensor, &use);
    }

    // --- conversions ---------------------------------------------------------------------------

    /// What is noted down of the collectives that follow.
    struct Tag {
        Phase phase;
        TensorId tensor;
        OpId from, to;
    };

    double bytesOfElements(TensorId tensor, std::size_t elements) const {
        const DType dtype = m_graph.tensor(tensor).spec.dtype;
        const double each = bitsOf(dtype) / 8.0;
        return static_cast<double>(elements) * (isComplex(dtype) ? each / 2 : each);
    }

    void note(const Tag& tag, CollectiveKind kind, std::size_t axis, double bytes) {
        m_step.collectives.push_back({{kind, static_cast<std::uint8_t>(axis), bytes},
                                      tag.phase,
                                      tag.tensor,
                                      tag.from,
                                      tag.to});
    }

    Array convert(Array array, const SideLayout& from, const SideLayout& to, const Tag& tag) {
        const double whole = bytesOf(m_graph.tensor(tag.tensor).spec);
        for (const LayoutMove& move : planMoves(from, to, whole, m_mesh, m_rules))
            array = moved(std::move(array), move, tag);
        return array;
    }

    Array moved(Array array, const LayoutMove& move, const Tag& tag) {
        const std::size_t axis = move.axis;
        const auto from = static_cast<std::size_t>(move.from),
                   to = static_cast<std::size_t>(move.to);
        if (move.kind == LayoutMove::Kind::MakePartial)
            return m_communicator.coordinate(axis) == 0 ? array : Array::like(array, array.shape);
        if (move.kind == LayoutMove::Kind::Slice) {
            const std::int64_t size = array.shape[to] / m_mesh.axes[axis].size;
            return sliceOf(array, to, size * m_communicator.coordinate(axis), size);
        }
        double bytes = bytesOfElements(tag.tensor, array.size());
        switch (move.step.kind) {
        case CollectiveKind::AllReduce:
            m_communicator.allReduce(axis, array, ReduceOp::Sum);
            break;
        case CollectiveKind::AllGather:
            array = m_communicator.allGather(axis, array, from);
            bytes = bytesOfElements(tag.tensor, array.size());
            break;
        case CollectiveKind::ReduceScatter:
            array = m_communicator.reduceScatter(axis, array, to);
            break;
        case CollectiveKind::AllToAll:
            array = m_communicator.allToAll(axis, array, to, from);
            bytes *= m_mesh.axes[axis].size;
            break;
        }
        note(tag, move.step.kind, axis, bytes);
        return array;
    }

    // --- kernels -------------------------------------------------------------------------------

    /// Runs `call` with the surroundings of the op here; notes its statistics.
    template <typename Call>
    Arrays inContext(OpId id, Phase phase, Call call) {
        const OpView view = viewOf(m_graph, id);
        const FactorRule& rule = m_pricing.op(id).rule;
        const auto& statistics =
            phase == Phase::Forward ? rule.forwardStatistics : rule.backwardStatistics;
        std::size_t noted = 0, axes = 0;
        for (std::size_t a = 0; a < m_mesh.axes.size(); ++a) {
            const AxisChoice f = choiceOf(id).axis[a];
            axes += f >= 0 && rule.factors[static_cast<std::size_t>(f)].exchanges;
        }
        const auto observe = [&](std::size_t axis, double numbers) {
            const std::size_t index = noted++ / axes;
            if (index >= statistics.size())
                throw Error("the kernel exchanges more than its rule says",
                            fmt::format("op '{}'", view.op.name));
            note({phase, kNoTensor, id, id}, CollectiveKind::AllReduce, axis,
                 numbers * statistics[index].bytesEach);
        };
        return call(RankContext(view, rule, choiceOf(id), m_communicator, observe));
    }

    std::vector<const Array*> pointers(OpId id) const {
        const Op& op = m_graph.op(id);
        std::vector<const Array*> operands;
        for (std::size_t port = 0; port < op.inputs.size(); ++port)
            operands.push_back(op.inputs[port] == kNoTensor ? nullptr : &m_operands[id][port]);
        return operands;
    }

    // --- forward -------------------------------------------------------------------------------

    Array operandValue(OpId id, std::uint32_t port, Phase phase) {
        const TensorId tensor = m_graph.op(id).inputs[port];
        const Origin origin = originOf(tensor);
        const Array& value = origin.handedOver ? m_handover[tensor] : m_step.local.values[tensor];
        return convert(value, valueSide(origin.side.layout), valueSide(wantedBy({id, port})),
                       {phase, tensor, m_graph.tensor(tensor).producer, id});
    }

    void forward(OpId id) {
        const Op& op = m_graph.op(id);
        for (std::uint32_t port = 0; port < op.inputs.size(); ++port)
            m_operands[id].push_back(
                op.inputs[port] == kNoTensor ? Array{} : operandValue(id, port, Phase::Forward));
        if (const auto feed = m_feeds.find(id); feed != m_feeds.end()) {
            const TensorId out = op.outputs.front();
            m_step.local.values[out] =
                localPart(feed->second, valueSide(producedAs(out).layout), m_communicator);
        } else {
            Arrays results = inContext(id, Phase::Forward, [&](const KernelContext& context) {
                return executableKernel(m_graph, id).forward(context, pointers(id));
            });
            m_kept[id] = keptBehind(results, op.outputs.size());
            for (std::size_t r = 0; r < op.outputs.size(); ++r)
                m_step.local.values[op.outputs[r]] = std::move(results[r]);
        }
        for (const TensorId out : op.outputs)
            if (m_pricing.hasHandover(out))
                m_handover[out] = convert(
                    m_step.local.values[out], valueSide(producedAs(out).layout),
                    valueSide(m_plan.decisions.handover[out]), {Phase::Forward, out, id, kNoOp});
    }

    // --- backward ------------------------------------------------------------------------------

    void accumulate(Array& sum, Array gradient) {
        if (sum.empty())
            sum = std::move(gradient);
        else
            add(sum, gradient);
    }

    void seed(std::size_t output) {
        const TensorId tensor = m_graph.outputs()[output];
        if (!m_pricing.hasGradient(tensor)) return;
        const Array whole = seedGradient(m_graph, output);
        if (whole.empty()) return;
        accumulate(m_step.local.gradients[tensor],
                   localPart(whole, gradientSide(producedAs(tensor).layout), m_communicator));
    }

    /// Takes a gradient from a reader (or the hand-over) to the layout the producer wants it in.
    /// State axes of a parameter are left for update(): they cut the flattened tensor.
    void returnGradient(TensorId tensor, Array gradient, const Layout& reader, const Tag& tag) {
        const GradientWay way = gradientWay(producedAs(tensor), reader);
        gradient = convert(std::move(gradient), way.from, way.to, tag);
        for (std::size_t a = 0; a < m_mesh.axes.size(); ++a)
            m_step.gradientSides[tensor][a] = way.scattered[a] ? kStatePartial : way.to[a];
        accumulate(m_step.local.gradients[tensor], std::move(gradient));
    }

    void backwardHandover(TensorId tensor) {
        if (!m_pricing.hasHandover(tensor) || !m_pricing.hasGradient(tensor)) return;
        const EdgeTraits traits = m_pricing.producerEdge(tensor, nullptr);
        const Layout& layout = m_plan.decisions.handover[tensor];
        Array& gradient = m_handoverGradient[tensor];
        if (gradient.empty()) // nobody returned one
            gradient = Array::zeros(
                m_graph.tensor(tensor).spec,
                localShape(m_graph.tensor(tensor).spec.shape, gradientSide(layout), m_mesh));
        returnGradient(tensor, std::move(gradient), layout,
                       {traits.parameter ? Phase::Step : Phase::Backward, tensor,
                        m_graph.tensor(tensor).producer, kNoOp});
    }

    void returnOperand(OpId id, std::uint32_t port, Array gradient) {
        const TensorId tensor = m_graph.op(id).inputs[port];
        const EdgeTraits traits = traitsOf(tensor, {id, port});
        if (!traits.gradient) return;
        const Layout layout = wantedBy({id, port});
        if (gradient.empty()) // the op passes none to this operand
            gradient = Array::zeros(
                m_graph.tensor(tensor).spec,
                localShape(m_graph.tensor(tensor).spec.shape, gradientSide(layout), m_mesh));
        const Tag tag{traits.parameter ? Phase::Step : Phase::Backward, tensor,
                      m_graph.tensor(tensor).producer, id};
        const Origin origin = originOf(tensor);
        if (origin.handedOver)
            accumulate(m_handoverGradient[tensor],
                       convert(std::move(gradient), gradientSide(layout),
                               gradientSide(origin.side.layout), tag));
        else
            returnGradient(tensor, std::move(gradient), layout, tag);
    }

    void backward(OpId id) {
        const Op& op = m_graph.op(id);
        for (const TensorId out : op.outputs) backwardHandover(out);
        if (op.inputs.empty()) return;
        for (std::uint32_t port = 0; port < op.inputs.size(); ++port)
            if (op.inputs[port] != kNoTensor && traitsOf(op.inputs[port], {id, port}).regather)
                m_operands[id][port] = operandValue(id, port, Phase::Backward);
        Arrays results, gradients;
        bool any = false;
        for (const TensorId out : op.outputs) {
            results.push_back(m_step.local.values[out]);
            gradients.push_back(m_step.local.gradients[out]);
            any = any || !gradients.back().empty();
        }
        std::ranges::move(m_kept[id], std::back_inserter(results));
        const Kernel& kernel = executableKernel(m_graph, id);
        Arrays back(op.inputs.size());
        if (any && kernel.backward)
            back = inContext(id, Phase::Backward, [&](const KernelContext& context) {
                return kernel.backward(context, pointers(id), results, gradients);
            });
        for (std::uint32_t port = 0; port < op.inputs.size(); ++port)
            if (op.inputs[port] != kNoTensor) returnOperand(id, port, std::move(back[port]));
    }

    // --- optimizer -----------------------------------------------------------------------------

    Array flattened(const Array& array) const {
        Array flat = array;
        flat.shape = {static_cast<std::int64_t>(array.size())};
        return flat;
    }

    /// Pads a flat array with zeros to a multiple of the axis, so that every rank has as much.
    void pad(Array& flat, std::size_t axis) const {
        const std::int64_t n = m_mesh.axes[axis].size;
        flat.shape[0] = (flat.shape[0] + n - 1) / n * n;
        flat.reals.resize(static_cast<std::size_t>(flat.shape[0]), 0);
    }

    Array own(const Array& flat, std::size_t axis) const {
        const std::int64_t size = flat.shape[0] / m_mesh.axes[axis].size;
        return sliceOf(flat, 0, size * m_communicator.coordinate(axis), size);
    }

    void update(OpId id) {
        if (m_graph.op(id).kind != OpKind::Parameter) return;
        const TensorId tensor = m_graph.op(id).outputs.front();
        if (m_step.local.gradients[tensor].empty()) return;
        const std::uint8_t state = producedAs(tensor).stateAxes;
        Array value = flattened(m_step.local.values[tensor]);
        Array gradient = flattened(m_step.local.gradients[tensor]);
        std::vector<std::int64_t> sizes;                      // before each cut, without padding
        double bytes = bytesOfElements(tensor, value.size()); // likewise
        for (std::size_t a = 0; a < m_mesh.axes.size(); ++a) {
            if (!(state >> a & 1)) continue;
            sizes.push_back(gradient.shape[0]);
            pad(gradient, a);
            pad(value, a);
            value = own(value, a);
            if (m_step.gradientSides[tensor][a] == kStatePartial) {
                gradient = m_communicator.reduceScatter(a, gradient, 0);
                note({Phase::Step, tensor, id, readerOf(tensor)}, CollectiveKind::ReduceScatter, a,
                     bytes);
            } else {
                gradient = own(gradient, a);
            }
            bytes /= m_mesh.axes[a].size;
        }
        adamStep(value, gradient);
        for (std::size_t a = m_mesh.axes.size(); a-- > 0;) {
            if (!(state >> a & 1)) continue;
            value = m_communicator.allGather(a, value, 0);
            value = sliceOf(value, 0, 0, sizes.back());
            sizes.pop_back();
            bytes *= m_mesh.axes[a].size;
            note({Phase::Step, kNoTensor, id, id}, CollectiveKind::AllGather, a, bytes);
        }
        value.shape = m_step.local.values[tensor].shape;
        m_step.local.updated.emplace(id, std::move(value));
    }

    /// Who the gradient of a parameter comes from: its one reader, or the hand-over.
    OpId readerOf(TensorId tensor) const {
        if (m_pricing.hasHandover(tensor)) return kNoOp;
        return m_graph.uses(tensor).front().op;
    }

    const Plan& m_plan;
    const Pricing& m_pricing;
    const Graph& m_graph;
    const Mesh& m_mesh;
    ConversionRules m_rules;
    const Feeds& m_feeds;
    Communicator& m_communicator;
    RankStep m_step;
    std::vector<Array> m_handover, m_handoverGradient; ///< by tensor
    std::vector<std::vector<Array>> m_operands;        ///< by op: as its kernel reads them
    std::vector<Arrays> m_kept; ///< by op: what its forward kernel keeps for the backward one
};

} // namespace

RankStep runRank(const Plan& plan, const Feeds& feeds, Communicator& communicator) {
    return RankProgram(plan, feeds, communicator).run();
}

} // namespace shardlens
