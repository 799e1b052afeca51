// SPDX-License-Identifier: Apache-2.0
// See pins.h.
#include "core/plan/pins.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens {

bool matchesGlob(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') { // the star may also be met by a literal one
            star = p++;
            mark = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++mark;
        } else {
            return false;
        }
    }
    return std::ranges::all_of(pattern.substr(p), [](char c) { return c == '*'; });
}

Pin parsePin(std::string_view text) {
    const std::size_t at = text.rfind('=');
    if (at == std::string_view::npos || at == 0 || at + 1 == text.size())
        throw PlanError(fmt::format("'{}' is not a pin", text), "--pin",
                        "write PATTERN=CHOICE, for example 'model.layers.57.mlp.*_proj=n@tp'");
    return {std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
}

std::string toString(const Pin& pin) {
    return pin.target + "=" + pin.choice;
}

std::vector<OpId> pinnedOps(const PlanContext& context, const Pin& pin) {
    constexpr std::string_view kClass = "class:";
    const Graph& graph = *context.graph;
    const Folding& folding = *context.folding;
    std::vector<OpId> ops;
    if (pin.target.starts_with(kClass)) {
        const std::optional<OpId> representative =
            graph.findOp(std::string_view(pin.target).substr(kClass.size()));
        if (!representative) return ops;
        const ClassId id = folding.classOf[*representative];
        for (std::size_t i = 0; i < folding.classes[id].multiplicity; ++i)
            ops.push_back(folding.member(id, i));
        return ops;
    }
    if (const std::optional<OpId> exact = graph.findOp(pin.target))
        return {*exact}; // names may hold * or ?
    for (OpId id = 0; id < graph.ops().size(); ++id)
        if (matchesGlob(pin.target, graph.op(id).name)) ops.push_back(id);
    return ops;
}

std::string whyIllegal(const PricedOp& op, const Choice& choice, const Mesh& mesh) {
    for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
        if (choice.axis[a] == kIdle) continue;
        for (const auto& illegal : op.illegal)
            if (illegal.choice.axis[a] == choice.axis[a]) return illegal.reason;
        if (choice.axis[a] == kStateSharded)
            return "only parameters in training have state to shard";
    }
    return "the axes together do not divide the factor";
}

FixedChoices fixedChoices(const PlanContext& context, const std::vector<Pin>& pins) {
    const Graph& graph = *context.graph;
    FixedChoices fixed(graph.ops().size(), -1);
    std::vector<std::size_t> by(graph.ops().size());
    for (std::size_t p = 0; p < pins.size(); ++p) {
        const Pin& pin = pins[p];
        const std::vector<OpId> ops = pinnedOps(context, pin);
        if (ops.empty())
            throw PlanError("it names no op", fmt::format("pin '{}'", toString(pin)),
                            "use an op's name, a pattern such as '*.q_proj', or class:NAME");
        for (const OpId id : ops) {
            const PricedOp& op = context.pricing->op(id);
            const std::string where =
                fmt::format("pin '{}' at op '{}'", toString(pin), graph.op(id).name);
            Choice choice;
            try {
                choice = choiceFromString(pin.choice, op.rule, context.mesh);
            } catch (const PlanError& error) {
                throw PlanError(error.problem(), where, error.hint());
            }
            const int index = op.choiceIndex(choice);
            if (index < 0)
                throw PlanError(whyIllegal(op, choice, context.mesh), where,
                                "unpin it or choose another factor");
            if (fixed[id] >= 0 && fixed[id] != index)
                throw PlanError(
                    fmt::format("pins '{}' and '{}' clash", toString(pins[by[id]]), toString(pin)),
                    fmt::format("op '{}'", graph.op(id).name), "remove one of the two");
            fixed[id] = index;
            by[id] = p;
        }
    }
    return fixed;
}

} // namespace shardlens
