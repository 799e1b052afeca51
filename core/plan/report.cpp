// SPDX-License-Identifier: Apache-2.0
// The plan as JSON (for programs) and as text (for the terminal). Both deterministic but for the
// measured solver time.
#include "core/plan/plan.h"
#include "core/plan/pricing.h"
#include "core/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace shardlens {

namespace {

using Json = nlohmann::ordered_json;

Json memoryJson(const MemorySplit& memory) {
    return {{"parameters", memory.parameters}, {"gradients", memory.gradients},
            {"optimizer", memory.optimizer},   {"activations", memory.activations},
            {"workspace", memory.workspace},   {"total", memory.total()}};
}

std::string choiceText(const Plan& plan, OpId id) {
    return toString(plan.decisions.op[id], plan.context->pricing->op(id).rule, plan.context->mesh);
}

Json localShapes(const Plan& plan, OpId id, bool results) {
    const PlanContext& context = *plan.context;
    const Op& op = context.graph->op(id);
    const FactorRule& rule = context.pricing->op(id).rule;
    Json shapes = Json::array();
    const auto& tensors = results ? op.outputs : op.inputs;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i] == kNoTensor) {
            shapes.push_back(nullptr);
            continue;
        }
        const Layout layout = results ? resultLayout(plan.decisions.op[id], rule, i, context.mesh)
                                      : operandLayout(plan.decisions.op[id], rule, i, context.mesh);
        shapes.push_back(localShape(context.graph->tensor(tensors[i]).spec.shape, valueSide(layout),
                                    context.mesh));
    }
    return shapes;
}

Json opJson(const Plan& plan, OpId id) {
    const PlanContext& context = *plan.context;
    const Op& op = context.graph->op(id);
    const OpFigures& figures = plan.figures[id];
    return {
        {"name", op.name},
        {"kind", nameOf(op.kind)},
        {"class",
         context.graph->op(context.folding->classes[context.folding->classOf[id]].representative)
             .name},
        {"instance", context.folding->instanceOf[id]},
        {"choice", choiceText(plan, id)},
        {"pinned", static_cast<bool>(plan.pinned[id])},
        {"local_operands", localShapes(plan, id, false)},
        {"local_results", localShapes(plan, id, true)},
        {"compute_forward_s", figures.compute.forward},
        {"compute_backward_s", figures.compute.backward},
        {"communication_s", figures.communication},
        {"memory_bytes", figures.memory.total()}};
}

Json collectiveJson(const Plan& plan, const PlannedCollective& c) {
    const PlanContext& context = *plan.context;
    Json json{{"kind", nameOf(c.step.kind)},
              {"axis", context.mesh.axes[c.step.axis].name},
              {"bytes", c.step.bytes},
              {"time_s", c.seconds},
              {"phase", nameOf(c.phase)}};
    json["tensor"] =
        c.tensor == kNoTensor ? Json(nullptr) : Json(context.graph->tensor(c.tensor).name);
    json["from"] = context.graph->op(c.from).name;
    json["to"] = c.to == kNoOp ? Json(nullptr) : Json(context.graph->op(c.to).name);
    return json;
}

Json meshJson(const Mesh& mesh) {
    Json axes = Json::array();
    for (const MeshAxis& axis : mesh.axes)
        axes.push_back({{"name", axis.name}, {"size", axis.size}, {"link", axis.link.name}});
    return axes;
}

} // namespace

std::string toJson(const Plan& plan) {
    const PlanContext& context = *plan.context;
    Json json{{"format", "shardlens-plan"},
              {"version", 1},
              {"model", context.graph->name},
              {"made_by", plan.madeBy},
              {"cost_model", context.cost->name()},
              {"unit", context.cost->unit()},
              {"provenance", nameOf(plan.provenance)},
              {"cluster", context.cluster.name},
              {"mesh", meshJson(context.mesh)},
              {"time_s", plan.totals.time},
              {"compute_s", plan.totals.compute},
              {"communication_s", plan.totals.communication},
              {"bound_s", plan.bound},
              {"gap", std::isfinite(plan.gap) ? Json(plan.gap) : Json(nullptr)},
              {"optimal", plan.optimal},
              {"untied_time_s", plan.untiedTime ? Json(*plan.untiedTime) : Json(nullptr)},
              {"memory_bytes", plan.totals.memory.total()},
              {"memory", memoryJson(plan.totals.memory)},
              {"memory_limit_bytes", std::isfinite(context.memoryLimitBytes)
                                         ? Json(context.memoryLimitBytes)
                                         : Json(nullptr)},
              {"fits_memory", plan.fitsMemory},
              {"notes", plan.notes},
              {"model_flops", plan.totals.modelFlops},
              {"build_ms", plan.buildMilliseconds},
              {"solve_ms", plan.solveMilliseconds},
              {"method", plan.method},
              {"classes", context.folding->classes.size()}};
    json["ops"] = Json::array();
    for (const OpId id : context.folding->order) json["ops"].push_back(opJson(plan, id));
    json["collectives"] = Json::array();
    for (const PlannedCollective& c : plan.collectives)
        json["collectives"].push_back(collectiveJson(plan, c));
    return json.dump(2);
}

namespace {

std::string timeText(double time, const std::string& unit) {
    if (unit != "s") return fmt::format("{:.2f} {}", time, unit);
    if (time >= 1) return fmt::format("{:.3f} s", time);
    if (time >= 1e-3) return fmt::format("{:.3f} ms", time * 1e3);
    return fmt::format("{:.1f} us", time * 1e6);
}

std::string totalsText(const Plan& plan) {
    const PlanContext& context = *plan.context;
    const std::string unit = context.cost->unit();
    const MemorySplit& memory = plan.totals.memory;
    std::string text =
        fmt::format("{}: {} on {} ({})\n", context.graph->name, plan.madeBy,
                    context.cluster.name.empty()
                        ? "bare mesh"
                        : fmt::format("{} x {}", context.cluster.nodes, context.cluster.name),
                    context.mesh.toString());
    text += fmt::format("  step     {}  =  compute {}  +  communication {}   [{}, {}]\n",
                        timeText(plan.totals.time, unit), timeText(plan.totals.compute, unit),
                        timeText(plan.totals.communication, unit), nameOf(plan.provenance),
                        context.cost->name());
    text += fmt::format("  bound    {}  gap {:.4f} %  {}\n", timeText(plan.bound, unit),
                        plan.gap * 100, plan.optimal ? "proven optimal" : "not proven optimal");
    if (plan.untiedTime)
        text += fmt::format("  tie      one plan for all layers costs {} more: {} without the tie, "
                            "{:.4f} times as much with it\n",
                            timeText(plan.totals.time - *plan.untiedTime, unit),
                            timeText(*plan.untiedTime, unit), plan.totals.time / *plan.untiedTime);
    text +=
        fmt::format("  memory   {:.2f} GiB a device  =  parameters {:.2f} + gradients {:.2f} + "
                    "optimizer {:.2f} + activations {:.2f} + workspace {:.2f}\n",
                    memory.total() / kGiB, memory.parameters / kGiB, memory.gradients / kGiB,
                    memory.optimizer / kGiB, memory.activations / kGiB, memory.workspace / kGiB);
    text += fmt::format("  solver   {:.1f} ms to build, {:.1f} ms to solve: {}\n",
                        plan.buildMilliseconds, plan.solveMilliseconds, plan.method);
    return text;
}

/// One line for each op class and for each stretch of instances with the same choice.
std::string choicesText(const Plan& plan) {
    const Folding& folding = *plan.context->folding;
    const Graph& graph = *plan.context->graph;
    std::string text = fmt::format("  {:<44} {:<13} {:>9}  {}\n", "op", "kind", "layers", "choice");
    for (ClassId id = 0; id < folding.classes.size(); ++id) {
        const OpClass& c = folding.classes[id];
        for (std::size_t i = 0; i < c.multiplicity;) {
            const OpId op = folding.member(id, i);
            std::size_t end = i + 1;
            while (end < c.multiplicity &&
                   plan.decisions.op[folding.member(id, end)] == plan.decisions.op[op])
                ++end;
            const std::string layers = c.multiplicity == 1 ? ""
                                       : end - i == c.multiplicity
                                           ? fmt::format("x{}", end - i)
                                           : fmt::format("{}..{}", i, end - 1);
            text += fmt::format("  {:<44} {:<13} {:>9}  {}{}\n", graph.op(op).name,
                                nameOf(graph.op(op).kind), layers, choiceText(plan, op),
                                plan.pinned[op] ? "  [pinned]" : "");
            i = end;
        }
    }
    return text;
}

struct CollectiveSum {
    std::size_t count = 0;
    double bytes = 0, time = 0;
};

std::string collectivesText(const Plan& plan) {
    std::map<std::tuple<Phase, CollectiveKind, std::uint8_t>, CollectiveSum> sums;
    for (const PlannedCollective& c : plan.collectives) {
        CollectiveSum& sum = sums[{c.phase, c.step.kind, c.step.axis}];
        ++sum.count;
        sum.bytes += c.step.bytes;
        sum.time += c.seconds;
    }
    std::string text = fmt::format("  {:<10} {:<15} {:<6} {:>7} {:>12} {:>12}\n", "phase",
                                   "collective", "axis", "count", "GiB", "time");
    for (const auto& [key, sum] : sums)
        text += fmt::format("  {:<10} {:<15} {:<6} {:>7} {:>12.3f} {:>12}\n",
                            nameOf(std::get<0>(key)), nameOf(std::get<1>(key)),
                            plan.context->mesh.axes[std::get<2>(key)].name, sum.count,
                            sum.bytes / kGiB, timeText(sum.time, plan.context->cost->unit()));
    return text;
}

} // namespace

std::string toText(const Plan& plan) {
    std::string text = totalsText(plan);
    for (const std::string& note : plan.notes) text += fmt::format("  note     {}\n", note);
    text += "\nCollectives\n" + collectivesText(plan);
    text += "\nChoices\n" + choicesText(plan);
    for (const std::string& warning : plan.context->graph->warnings)
        text += "warning: " + warning + "\n";
    return text;
}

} // namespace shardlens
