// SPDX-License-Identifier: Apache-2.0
// Shrinks a model for the truth oracle and carries a plan's choices over to it by the names of ops.
#include "core/execute/verify_model.h"

#include "core/error.h"
#include "core/model/canonical.h"
#include "core/plan/planner.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <map>

namespace shardlens {

namespace {

constexpr int kMostRanks = 64;
constexpr double kMostFlops = 2e10; ///< forward, of the whole model; a minute or so of plain loops

double forwardFlopsOf(const Graph& graph) {
    double sum = 0;
    for (OpId id = 0; id < graph.ops().size(); ++id) {
        const OpView view = viewOf(graph, id);
        sum += forwardWork(view, factorRule(view)).flops;
    }
    return sum;
}

} // namespace

PlanRequest onAsManyDevices(PlanRequest request) {
    int devices = 1;
    for (const AxisSize& axis : request.mesh) devices *= axis.size;
    const Cluster whole = clusterByName(request.cluster, request.nodes);
    if (request.mesh.empty() || devices >= whole.devices() || devices > whole.devicesPerNode)
        return request;
    request.nodes = 1;
    request.devicesPerNode = devices;
    return request;
}

Decisions carriedOver(const Plan& plan, const PlanContext& small) {
    const Graph& from = *plan.context->graph;
    const Graph& to = *small.graph;
    std::map<std::string_view, TensorId> tensors;
    for (TensorId id = 0; id < from.tensors().size(); ++id) tensors[from.tensor(id).name] = id;
    Decisions decisions;
    for (const Op& op : to.ops()) {
        const auto id = from.findOp(op.name);
        if (!id) throw PlanError("the plan does not know this op", op.name);
        decisions.op.push_back(plan.decisions.op[*id]);
    }
    for (TensorId id = 0; id < to.tensors().size(); ++id) {
        const bool handedOver = small.pricing->hasHandover(id);
        const auto found = tensors.find(to.tensor(id).name);
        const bool known = found != tensors.end() && plan.decisions.hasHandover[found->second];
        decisions.hasHandover.push_back(handedOver);
        decisions.handover.push_back(handedOver && known ? plan.decisions.handover[found->second]
                                                         : Layout{});
    }
    return decisions;
}

SmallModel shrinkForVerification(const Graph& graph, const Folding& folding,
                                 const PlanRequest& request) {
    ShrinkOptions options;
    for (const AxisSize& axis : request.mesh) options.divisor *= axis.size;
    if (options.divisor > kMostRanks)
        throw PlanError(
            fmt::format("a mesh of {} devices is too large to be run here", options.divisor),
            "--mesh", fmt::format("use one of {} devices or fewer", kMostRanks));
    auto small = std::make_shared<const Graph>(canonicalise(shrink(graph, folding, options)));
    SmallModel result;
    result.forwardFlops = forwardFlopsOf(*small);
    if (result.forwardFlops > kMostFlops)
        throw PlanError(
            fmt::format("even shrunk, a forward pass takes {:.3g} FLOPs, too many for the "
                        "reference kernels (at most {:.3g})",
                        result.forwardFlops, kMostFlops),
            graph.name, "open the model with a smaller batch or image (--batch, --seq, --bind)");
    result.opsBefore = graph.ops().size();
    result.parametersBefore = graph.parameterCount();
    result.context =
        makeContext(small, std::make_shared<const Folding>(fold(*small)), onAsManyDevices(request));
    return result;
}

std::vector<Pin> pinsOfPlan(const std::string& json, const Graph& graph, const Mesh& mesh) {
    const auto document = nlohmann::json::parse(json, nullptr, false);
    if (!document.is_object() || document.value("format", "") != "shardlens-plan" ||
        !document.contains("ops") || !document["ops"].is_array())
        throw InputError("this is no plan", "--plan", "write one with `shardlens plan … --json`");
    std::string axes;
    for (const auto& axis : document.value("mesh", nlohmann::json::array()))
        axes += fmt::format("{}{}={}", axes.empty() ? "" : ",", axis.value("name", ""),
                            axis.value("size", 0));
    if (axes != mesh.toString())
        throw InputError(fmt::format("the plan is for the mesh {}, not {}", axes, mesh.toString()),
                         "--plan", fmt::format("give --mesh {}", axes));
    std::vector<Pin> pins;
    for (const auto& op : document["ops"]) {
        if (!op.is_object() || !op.contains("name") || !op["name"].is_string() ||
            !op.contains("choice") || !op["choice"].is_string())
            throw InputError("an op of the plan has no name or choice", "--plan");
        if (graph.findOp(op["name"].get<std::string>()))
            pins.push_back({op["name"].get<std::string>(), op["choice"].get<std::string>()});
    }
    if (pins.empty()) throw InputError("the plan names no op of this model", "--plan");
    return pins;
}

} // namespace shardlens
