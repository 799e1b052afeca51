// SPDX-License-Identifier: Apache-2.0
// See twin_match.h. The layouts of the local program come from shapes alone; what is a partial sum
// follows from the choices, and is followed through the local program until a collective reduces
// it.
#include "core/plan/twin_match.h"

#include "core/error.h"
#include "core/model/canonical.h"
#include "core/plan/partial_values.h"
#include "core/plan/pricing.h"
#include "core/plan/twin_alignment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>

namespace shardlens {

namespace {

constexpr std::size_t kTensorAxis = 0; ///< of the mesh
constexpr const char* kAxisName = "tp";

/// The factor by which sizes of paired inputs and parameters differ; 1 if none does.
std::int64_t devicesOf(const Graph& whole, const Graph& local, const TwinAlignment& twins) {
    if (local.partition && local.partition->mesh.size() == 1) return local.partition->mesh[0].size;
    for (OpId id = 0; id < whole.ops().size(); ++id) {
        if (twins.partner[id] == kNoOp) continue;
        const Shape &a = whole.tensor(whole.op(id).outputs[0]).spec.shape,
                    &b = local.tensor(local.op(twins.partner[id]).outputs[0]).spec.shape;
        for (std::size_t d = 0; d < std::min(a.size(), b.size()); ++d)
            if (a[d] != b[d] && b[d] > 0 && a[d] % b[d] == 0) return a[d] / b[d];
    }
    return 1;
}

/// A mesh of one axis on devices of the usual cluster.
std::shared_ptr<const PlanContext> contextFor(std::shared_ptr<const Graph> graph,
                                              std::int64_t devices, Mode mode) {
    auto context = std::make_shared<PlanContext>();
    context->folding = std::make_shared<const Folding>(fold(*graph));
    context->graph = std::move(graph);
    context->request.mode = mode;
    context->request.mesh = {{kAxisName, static_cast<int>(devices)}};
    context->cluster = clusterByName(context->request.cluster, 1);
    const int inNode = context->cluster.devicesPerNode;
    const int n = static_cast<int>(devices);
    if (n % inNode == 0) {
        context->cluster.nodes = n / inNode;
    } else { // a part of a node, or nodes that are not full
        context->cluster.nodes = n < inNode ? 1 : n;
        context->cluster.devicesPerNode = n < inNode ? n : 1;
    }
    context->request.nodes = context->cluster.nodes;
    context->mesh = layMesh(context->cluster, context->request.mesh);
    context->cost = rooflineModel(context->cluster);
    context->memoryLimitBytes = context->cluster.device.memoryBytes;
    context->pricing = std::make_shared<Pricing>(context->graph, context->folding, mode,
                                                 context->mesh, context->cost);
    return context;
}

class Reader {
public:
    Reader(const Graph& whole, const Graph& local, Mode mode)
        : m_local(canonicalise(local)), m_localSource(local) {
        auto graph = std::make_shared<const Graph>(wholeForm(whole));
        m_twins = alignTwins(*graph, m_local, whole, local);
        m_result.devices = devicesOf(*graph, m_local, m_twins);
        constexpr std::int64_t kMostDevices = 1 << 16;
        if (m_result.devices > kMostDevices)
            throw InputError(
                fmt::format("a size is {} times as large in the whole graph", m_result.devices),
                local.name, "give the whole model and one device's program of it");
        m_context = contextFor(std::move(graph), m_result.devices, mode);
    }

    TwinPlan run() {
        const std::size_t ops = graph().ops().size();
        m_result.matched = static_cast<std::size_t>(
            std::ranges::count_if(m_twins.partner, [](OpId partner) { return partner != kNoOp; }));
        if (m_result.matched == 0)
            throw InputError("no op of the local program corresponds to one of the whole graph",
                             m_localSource.name, "give two graphs of the same model");
        m_result.mismatches = m_twins.problems;
        m_decisions.op.assign(ops, Choice{});
        for (OpId id = 0; id < ops; ++id) m_decisions.op[id] = choiceOf(id);
        chooseHandovers();
        m_result.plan = evaluate(m_context, m_decisions);
        m_result.plan.madeBy = "read from " + m_localSource.name;
        for (const OpId id : m_twins.localOnly) m_result.localOnly.push_back(m_local.op(id).name);
        followPartials();
        compareCollectives();
        m_result.recognised = recognised();
        return std::move(m_result);
    }

private:
    const Graph& graph() const { return *m_context->graph; }
    const PricedOp& priced(OpId id) const { return m_context->pricing->op(id); }

    // --- choices --------------------------------------------------------------------------------

    /// Whether a part of `whole` under a layout has the shape `local`.
    bool explains(const Layout& layout, TensorId whole, TensorId local) const {
        if (whole == kNoTensor || local == kNoTensor) return whole == local;
        const Shape &a = graph().tensor(whole).spec.shape, &b = m_local.tensor(local).spec.shape;
        if (a.size() != b.size()) return false;
        const AxisState cut = valueSide(layout)[kTensorAxis];
        for (std::size_t d = 0; d < a.size(); ++d) {
            const bool here = cut >= 0 && static_cast<std::size_t>(cut) == d;
            if (b[d] * (here ? m_result.devices : 1) != a[d]) return false;
        }
        return true;
    }

    bool explainsAll(const PricedOp& op, std::size_t choice, const Op& a, const Op& b) const {
        for (std::size_t i = 0; i < a.inputs.size(); ++i)
            if (!explains(op.operandLayouts[i][choice], a.inputs[i], b.inputs[i])) return false;
        for (std::size_t r = 0; r < a.outputs.size(); ++r)
            if (!explains(op.resultSides[r][choice].layout, a.outputs[r], b.outputs[r]))
                return false;
        return true;
    }

    Choice idle(const PricedOp& op) const {
        return op.choices.empty() ? Choice{} : op.choices.front();
    }

    Choice choiceOf(OpId id) {
        const PricedOp& op = priced(id);
        const OpId partner = m_twins.partner[id];
        if (partner == kNoOp) return idle(op);
        const Op &a = graph().op(id), &b = m_local.op(partner);
        for (std::size_t c = 0; c < op.choices.size(); ++c) {
            if (op.choices[c].axis[kTensorAxis] == kStateSharded) continue; // shapes do not tell
            if (explainsAll(op, c, a, b)) return op.choices[c];
        }
        m_result.mismatches.push_back(whyNone(op, a, b));
        return idle(op);
    }

    std::string whyNone(const PricedOp& op, const Op& a, const Op& b) const {
        std::vector<std::string> shapes;
        const auto compare = [&](TensorId x, TensorId y) {
            if (x == kNoTensor || y == kNoTensor) return;
            const Shape &whole = graph().tensor(x).spec.shape, &part = m_local.tensor(y).spec.shape;
            if (whole != part)
                shapes.push_back(fmt::format("{} of {}", toString(part), toString(whole)));
        };
        for (std::size_t i = 0; i < a.inputs.size(); ++i) compare(a.inputs[i], b.inputs[i]);
        for (std::size_t r = 0; r < a.outputs.size(); ++r) compare(a.outputs[r], b.outputs[r]);
        std::string text = fmt::format("No choice of op '{}' ({}) explains the parts {}", a.name,
                                       nameOf(a.kind), fmt::join(shapes, ", "));
        for (const auto& illegal : op.illegal) text += fmt::format("; {}", illegal.reason);
        return text + ".";
    }

    // --- hand-overs -----------------------------------------------------------------------------

    ProducerSide producedAs(TensorId tensor) const {
        const Tensor& t = graph().tensor(tensor);
        const PricedOp& op = priced(t.producer);
        const auto choice = static_cast<std::size_t>(op.choiceIndex(m_decisions.op[t.producer]));
        return op.resultSides[t.producerPort][choice];
    }

    double handoverCost(TensorId tensor, const Layout& layout) const {
        const Pricing& pricing = *m_context->pricing;
        double cost =
            pricing.convertTime(producedAs(tensor), layout, pricing.producerEdge(tensor, nullptr));
        for (const Graph::Use& use : graph().uses(tensor)) {
            const PricedOp& reader = priced(use.op);
            const auto choice =
                static_cast<std::size_t>(reader.choiceIndex(m_decisions.op[use.op]));
            cost += pricing.convertTime({layout, 0}, reader.operandLayouts[use.port][choice],
                                        pricing.readerEdge(tensor, use));
        }
        return cost;
    }

    /// Where several ops read a tensor, it is handed over as is cheapest for them.
    void chooseHandovers() {
        const std::size_t tensors = graph().tensors().size();
        m_decisions.handover.assign(tensors, Layout{});
        m_decisions.hasHandover.assign(tensors, false);
        for (TensorId tensor = 0; tensor < tensors; ++tensor) {
            if (!m_context->pricing->hasHandover(tensor)) continue;
            m_decisions.hasHandover[tensor] = true;
            double best = std::numeric_limits<double>::infinity();
            for (const Layout& layout : m_context->pricing->handover(tensor).layouts) {
                const double cost = handoverCost(tensor, layout);
                if (cost >= best) continue;
                best = cost;
                m_decisions.handover[tensor] = layout;
            }
        }
    }

    // --- partial values and collectives ---------------------------------------------------------

    void followPartials() {
        std::vector<TensorId> starts;
        for (OpId id = 0; id < m_local.ops().size(); ++id) {
            const OpId whole = m_twins.partnerOf[id];
            if (whole == kNoOp) continue;
            const PricedOp& op = priced(whole);
            for (std::size_t r = 0; r < graph().op(whole).outputs.size(); ++r) {
                const Layout layout =
                    resultLayout(m_decisions.op[whole], op.rule, r, m_context->mesh);
                if (layout.axis[kTensorAxis] == kPartialReplicated)
                    starts.push_back(m_local.op(id).outputs[r]);
            }
        }
        m_flow = followPartialValues(m_local, starts);
        m_result.unreduced = m_flow.unreduced;
        std::ranges::copy(m_flow.overReduced, std::back_inserter(m_result.mismatches));
    }

    static std::optional<CollectiveKind> kindOf(const Op& op) {
        const std::string function = op.attributes.text("function");
        for (const CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::AllGather,
                                          CollectiveKind::ReduceScatter, CollectiveKind::AllToAll})
            if (function == nameOf(kind)) return kind;
        return std::nullopt;
    }

    /// Both sides' collectives by what they move: the tensor of the whole graph that is gathered,
    /// or in which the partial value arose.
    using Moves = std::multiset<std::pair<TensorId, CollectiveKind>>;

    Moves localMoves() const {
        Moves moves;
        for (OpId id = 0; id < m_local.ops().size(); ++id) {
            const Op& op = m_local.op(id);
            if (op.kind != OpKind::Collective) continue;
            const auto kind = kindOf(op);
            if (!kind) continue;
            for (const TensorId in : op.inputs) {
                if (in == kNoTensor) continue;
                const TensorId origin = m_flow.origin[in] == kNoTensor ? in : m_flow.origin[in];
                moves.emplace(m_twins.image[origin], *kind);
            }
        }
        return moves;
    }

    Moves plannedMoves() const {
        Moves moves;
        for (const PlannedCollective& c : m_result.plan.collectives)
            if (c.phase == Phase::Forward)
                moves.emplace(c.tensor == kNoTensor ? graph().op(c.from).outputs[0] : c.tensor,
                              c.step.kind);
        return moves;
    }

    std::string tensorName(TensorId tensor) const {
        return tensor == kNoTensor ? "a value without a counterpart"
                                   : fmt::format("'{}'", graph().tensor(tensor).name);
    }

    void compareCollectives() {
        const Moves ours = plannedMoves(), theirs = localMoves();
        for (const CollectiveKind kind :
             {CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
              CollectiveKind::AllToAll}) {
            const auto counted = [kind](const Moves& moves) {
                return static_cast<std::size_t>(std::ranges::count_if(
                    moves, [kind](const auto& move) { return move.second == kind; }));
            };
            if (counted(ours) + counted(theirs) > 0)
                m_result.collectives.push_back({kind, counted(theirs), counted(ours)});
        }
        const auto report = [&](const Moves& from, const Moves& without, const char* text) {
            std::vector<std::pair<TensorId, CollectiveKind>> left;
            std::ranges::set_difference(from, without, std::back_inserter(left));
            for (const auto& [tensor, kind] : left)
                m_result.unexplained.push_back(
                    fmt::format(fmt::runtime(text), nameOf(kind), tensorName(tensor)));
        };
        report(theirs, ours, "The local program has an {} of {} that the plan does not need.");
        report(ours, theirs, "The plan needs an {} of {} that the local program does not have.");
    }

    // --- what it is -----------------------------------------------------------------------------

    bool anyChoice(auto&& says) const {
        for (OpId id = 0; id < graph().ops().size(); ++id) {
            const AxisChoice factor = m_decisions.op[id].axis[kTensorAxis];
            if (factor >= 0 && says(graph().op(id), id, static_cast<std::size_t>(factor)))
                return true;
        }
        return false;
    }

    bool readsParameter(const Op& op, std::size_t port) const {
        if (port >= op.inputs.size() || op.inputs[port] == kNoTensor) return false;
        const Op* producer = &graph().op(graph().tensor(op.inputs[port]).producer);
        while (producer->kind == OpKind::Transpose || producer->kind == OpKind::Reshape)
            producer = &graph().op(graph().tensor(producer->inputs[0]).producer);
        return producer->kind == OpKind::Parameter;
    }

    std::string recognised() const {
        const auto factorName = [&](OpId id, std::size_t factor) {
            return std::string_view(priced(id).rule.factors[factor].name);
        };
        const bool tensor = anyChoice([&](const Op& op, OpId id, std::size_t factor) {
            const std::string_view name = factorName(id, factor);
            return op.kind == OpKind::MatMul && readsParameter(op, 1) &&
                   (name == "n" || name == "k");
        });
        // Inputs are cut by data and context parallelism, by tensor parallelism they are not.
        const bool batch = anyChoice([&](const Op& op, OpId, std::size_t factor) {
            return op.kind == OpKind::Input && factor == 0;
        });
        const bool context = anyChoice([&](const Op& op, OpId, std::size_t factor) {
            return op.kind == OpKind::Input && factor > 0;
        });
        const bool rows = anyChoice([&](const Op& op, OpId id, std::size_t factor) {
            return op.kind == OpKind::Norm &&
                   priced(id).rule.factors[factor].kind == FactorKind::Parallel;
        });
        const bool vocabulary = anyChoice([&](const Op& op, OpId id, std::size_t factor) {
            return op.kind == OpKind::Gather && readsParameter(op, 0) &&
                   factorName(id, factor) == "v";
        });
        std::vector<std::string> parts;
        if (tensor) parts.push_back(fmt::format("tensor parallel {}", m_result.devices));
        if (batch) parts.push_back(fmt::format("data parallel {}", m_result.devices));
        if (context) parts.push_back(fmt::format("context parallel {}", m_result.devices));
        if (tensor && rows && !batch && !context)
            parts.push_back(fmt::format("sequence parallel {}", m_result.devices));
        if (vocabulary) parts.push_back(fmt::format("vocabulary parallel {}", m_result.devices));
        return fmt::format("{}", fmt::join(parts, ", "));
    }

    Graph m_local; ///< canonical
    const Graph& m_localSource;
    TwinAlignment m_twins;
    std::shared_ptr<const PlanContext> m_context;
    Decisions m_decisions;
    PartialFlow m_flow;
    TwinPlan m_result;
};

} // namespace

TwinPlan readTwinPlan(const Graph& whole, const Graph& local, Mode mode) {
    return Reader(whole, local, mode).run();
}

} // namespace shardlens
