// SPDX-License-Identifier: Apache-2.0
// The plan that was read from a partitioned program, for people and for programs. Layers that do
// alike are one line.
#include "core/plan/pricing.h"
#include "core/plan/twin_match.h"
#include "core/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>

namespace shardlens {

namespace {

/// Members of one class with the same choice.
struct ChoiceLine {
    std::string op, kind, choice;
    std::size_t times = 0;
};

std::vector<ChoiceLine> choiceLines(const Plan& plan) {
    const PlanContext& context = *plan.context;
    std::vector<ChoiceLine> lines;
    for (ClassId id = 0; id < context.folding->classes.size(); ++id) {
        const OpClass& c = context.folding->classes[id];
        const std::size_t first = lines.size();
        for (std::size_t i = 0; i < c.multiplicity; ++i) {
            const OpId op = context.folding->member(id, i);
            const std::string choice =
                toString(plan.decisions.op[op], context.pricing->op(op).rule, context.mesh);
            const auto same =
                std::find_if(lines.begin() + static_cast<std::ptrdiff_t>(first), lines.end(),
                             [&](const ChoiceLine& line) { return line.choice == choice; });
            if (same != lines.end())
                ++same->times;
            else
                lines.push_back({context.graph->op(op).name,
                                 std::string(nameOf(context.graph->op(op).kind)), choice, 1});
        }
    }
    return lines;
}

void appendList(std::string& text, std::string_view title, const std::vector<std::string>& lines) {
    constexpr std::size_t kShown = 40;
    for (std::size_t i = 0; i < std::min(kShown, lines.size()); ++i)
        fmt::format_to(std::back_inserter(text), "  {}: {}\n", title, lines[i]);
    if (lines.size() > kShown)
        fmt::format_to(std::back_inserter(text), "  {}: {} more\n", title, lines.size() - kShown);
}

} // namespace

std::string toText(const TwinPlan& twin) {
    const PlanContext& context = *twin.plan.context;
    std::string text;
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "{}\n", twin.plan.madeBy);
    fmt::format_to(out, "  recognised     {}\n",
                   twin.recognised.empty() ? "nothing is cut" : twin.recognised);
    fmt::format_to(out, "  mesh           {}\n", context.mesh.toString());
    fmt::format_to(out, "  matched        {} of {} ops\n", twin.matched,
                   context.graph->ops().size());
    for (const TwinCollectives& c : twin.collectives)
        fmt::format_to(out, "  {:<14} {} in the program, {} in the plan\n", nameOf(c.kind), c.local,
                       c.plan);
    appendList(text, "missing reduction", twin.unreduced);
    appendList(text, "mismatch", twin.mismatches);
    appendList(text, "collective", twin.unexplained);
    appendList(text, "only in the parts", twin.localOnly);
    fmt::format_to(out, "\n{:>6}  {:<12}  {:<14}  {}\n", "times", "kind", "choice", "first op");
    for (const ChoiceLine& line : choiceLines(twin.plan))
        fmt::format_to(out, "{:>6}  {:<12}  {:<14}  {}\n", line.times, line.kind, line.choice,
                       line.op);
    return text;
}

std::string toJson(const TwinPlan& twin) {
    nlohmann::ordered_json json;
    json["made_by"] = twin.plan.madeBy;
    json["recognised"] = twin.recognised;
    json["devices"] = twin.devices;
    json["mesh"] = twin.plan.context->mesh.toString();
    json["ops"] = twin.plan.context->graph->ops().size();
    json["matched"] = twin.matched;
    json["collectives"] = nlohmann::ordered_json::array();
    for (const TwinCollectives& c : twin.collectives)
        json["collectives"].push_back(
            {{"kind", nameOf(c.kind)}, {"local", c.local}, {"plan", c.plan}});
    json["missing_reductions"] = twin.unreduced;
    json["mismatches"] = twin.mismatches;
    json["unexplained_collectives"] = twin.unexplained;
    json["only_in_the_parts"] = twin.localOnly;
    json["choices"] = nlohmann::ordered_json::array();
    for (const ChoiceLine& line : choiceLines(twin.plan))
        json["choices"].push_back(
            {{"op", line.op}, {"kind", line.kind}, {"choice", line.choice}, {"times", line.times}});
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace shardlens
