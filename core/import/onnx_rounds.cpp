// SPDX-License-Identifier: Apache-2.0
// Rounds of loops, in place. What a scan reads is cut by one split, and what it stacks is joined by
// one concatenation, so that the rounds in between are alike.
#include "core/import/onnx_rounds.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens::onnx {

namespace {

/// A body that is built round by round, in place. Its weights are made once.
class Rounds {
public:
    Rounds(Translation& t, const GraphData& body) : m_t(t), m_body(body) {
        m_shared.parent = &t.scope();
        m_shared.depth = t.scope().depth + 1;
        m_shared.opsets = t.scope().opsets;
        m_shared.repeated = true;
        m_shared.prefix = innerPrefix(t.scope(), t.node(), t.index());
        t.builder().enter(m_shared, body);
    }

    /// Few enough to be written out, so that folding finds them again.
    static bool areFew(const GraphData& body, std::int64_t count) {
        constexpr std::int64_t kMostNodes = 20'000;
        std::int64_t nodes = 1;
        for (const Node& node : body.nodes) nodes += 1 + static_cast<std::int64_t>(node.nested);
        return count > 0 && count <= kMostNodes && nodes <= kMostNodes / count;
    }

    /// @return the body's results, all of them present
    std::vector<TensorId> run(const std::vector<TensorId>& formals) {
        m_t.require(formals.size() <= m_body.inputs.size(),
                    "a body takes fewer operands than it is given");
        Scope inner;
        inner.parent = &m_shared;
        inner.depth = m_shared.depth;
        inner.opsets = m_shared.opsets;
        inner.repeated = true;
        inner.prefix = fmt::format("{}{}/", m_shared.prefix, m_round++);
        inner.declared = m_shared.declared;
        inner.roles = m_shared.roles;
        for (std::size_t i = 0; i < formals.size(); ++i)
            m_t.builder().define(inner, m_body.inputs[i].name, formals[i]);
        auto results = m_t.builder().inlineBody(inner, m_body);
        m_t.require(std::ranges::find(results, kNoTensor) == results.end(),
                    "a result of a body is absent");
        return results;
    }

private:
    Translation& m_t;
    const GraphData& m_body;
    Scope m_shared;
    int m_round = 0;
};

TensorId fixedNumber(Translation& t, DType dtype, std::int64_t value) {
    const TensorId tensor = t.step(OpKind::Generate,
                                   {{"function", std::string("constant")},
                                    {"shape", Shape{}},
                                    {"to", std::string(nameOf(dtype))},
                                    {"value", static_cast<double>(value)}},
                                   {});
    t.builder().known().setInts(tensor, {value});
    return tensor;
}

/// What each round gave, joined along a new dimension; opaque if the rounds differ in shape.
void stackRounds(Translation& t, const std::vector<TensorId>& rounds, std::int64_t axis,
                 std::size_t port) {
    if (!t.wants(port)) return;
    const TensorSpec each = t.specOf(rounds.front());
    const bool alike = each.dtype != DType::Unknown &&
                       std::ranges::all_of(rounds, [&](TensorId r) { return t.specOf(r) == each; });
    if (!alike) {
        t.alsoReads(rounds);
        return t.opaqueOutput(port);
    }
    axis = t.axis(axis, static_cast<std::int64_t>(each.shape.size()) + 1);
    Shape shape = each.shape;
    shape.insert(shape.begin() + axis, 1);
    std::vector<TensorId> parts;
    for (const TensorId round : rounds) parts.push_back(t.reshaped(round, shape));
    t.result(OpKind::Concat, {{"axis", axis}}, std::move(parts), DType::Unknown, port);
}

/// The body's condition is the one it was given, so that the loop runs its full count.
bool passesCondition(const GraphData& body) {
    if (body.outputs.empty() || body.inputs.size() < 2) return false;
    std::string_view name = body.outputs[0].name;
    for (std::size_t i = 0; i <= body.nodes.size() && name != body.inputs[1].name; ++i) {
        const auto producer = std::ranges::find_if(body.nodes, [&](const Node& node) {
            return node.type == "Identity" && node.outputs.size() == 1 && node.outputs[0] == name;
        });
        if (producer == body.nodes.end() || producer->inputs.size() != 1) return false;
        name = producer->inputs[0];
    }
    return name == body.inputs[1].name;
}

bool isTrue(const Translation& t, const GraphData& body) {
    const auto constant = std::ranges::find_if(body.nodes, [&](const Node& node) {
        return node.type == "Constant" && node.outputs.size() == 1 &&
               node.outputs[0] == body.outputs[0].name;
    });
    if (constant == body.nodes.end()) return false;
    const Attribute* value = constant->attribute("value");
    t.require(value != nullptr, "a constant has no value");
    return value->tensor && value->tensor->ints && value->tensor->ints->size() == 1 &&
           value->tensor->ints->front() != 0;
}

/// What is scanned, cut into rounds: one split, so that the rounds themselves are alike.
std::vector<TensorId> rounded(Translation& t, std::size_t i, std::int64_t axis, bool backwards) {
    Shape shape = t.shape(i);
    const std::int64_t count = shape[static_cast<std::size_t>(axis)];
    shape.erase(shape.begin() + axis);
    const OpId split = t.builder().add(
        {{},
         OpKind::Split,
         t.type(),
         {{"axis", axis}, {"sizes", Translation::Ints(static_cast<std::size_t>(count), 1)}},
         {t.input(i)},
         {}},
        {});
    std::vector<TensorId> parts;
    for (const TensorId part : std::vector(t.builder().graph().op(split).outputs))
        parts.push_back(t.reshaped(part, shape));
    if (backwards) std::ranges::reverse(parts);
    return parts;
}

} // namespace

std::int64_t entry(const std::optional<Translation::Ints>& values, std::size_t i) {
    return values && i < values->size() ? (*values)[i] : 0;
}

bool unrolledLoop(Translation& t, const GraphData& body) {
    const auto count = t.scalar(0);
    const auto go = t.has(1) ? t.scalar(1) : std::optional<std::int64_t>(1);
    if (!count || !go || *go == 0 || !Rounds::areFew(body, *count)) return false;
    if (!passesCondition(body) && !isTrue(t, body)) return false;
    std::vector<TensorId> carried;
    for (std::size_t i = 2; i < t.inputCount(); ++i) {
        if (!t.has(i) || t.dtype(i) == DType::Unknown) return false;
        carried.push_back(t.input(i));
    }
    const std::size_t states = carried.size();
    if (body.outputs.size() < states + 1) return false;
    const TensorId goOn = fixedNumber(t, DType::Bool, 1);
    Rounds rounds(t, body);
    std::vector<std::vector<TensorId>> stacks(body.outputs.size() - 1 - states);
    for (std::int64_t i = 0; i < *count; ++i) {
        std::vector<TensorId> formals{fixedNumber(t, DType::I64, i), goOn};
        formals.insert(formals.end(), carried.begin(), carried.end());
        const auto results = rounds.run(formals);
        for (std::size_t k = 0; k < states; ++k) carried[k] = results[k + 1];
        for (std::size_t k = 0; k < stacks.size(); ++k)
            stacks[k].push_back(results[k + 1 + states]);
    }
    for (std::size_t k = 0; k < states; ++k)
        if (t.wants(k)) t.alias(carried[k], k);
    for (std::size_t k = 0; k < stacks.size(); ++k) stackRounds(t, stacks[k], 0, states + k);
    return true;
}

bool unrolledScan(Translation& t, const GraphData& body, std::size_t states) {
    const auto inAxes = t.integers("scan_input_axes"), outAxes = t.integers("scan_output_axes"),
               inWays = t.integers("scan_input_directions"),
               outWays = t.integers("scan_output_directions");
    for (std::size_t i = 0; i < t.inputCount(); ++i)
        if (!t.has(i) || t.dtype(i) == DType::Unknown) return false;
    const auto axisAt = [&](std::size_t i) { return t.axis(entry(inAxes, i - states), t.rank(i)); };
    const std::int64_t count = t.shape(states)[static_cast<std::size_t>(axisAt(states))];
    if (!Rounds::areFew(body, count) || body.outputs.size() < states) return false;
    std::vector<std::vector<TensorId>> scanned;
    for (std::size_t i = states; i < t.inputCount(); ++i) {
        t.require(t.shape(i)[static_cast<std::size_t>(axisAt(i))] == count,
                  "the scanned operands differ in length");
        scanned.push_back(rounded(t, i, axisAt(i), entry(inWays, i - states) != 0));
    }
    std::vector<TensorId> carried;
    for (std::size_t i = 0; i < states; ++i) carried.push_back(t.input(i));
    Rounds rounds(t, body);
    std::vector<std::vector<TensorId>> stacks(body.outputs.size() - states);
    for (std::size_t round = 0; round < static_cast<std::size_t>(count); ++round) {
        std::vector<TensorId> formals = carried;
        for (const auto& parts : scanned) formals.push_back(parts[round]);
        const auto results = rounds.run(formals);
        std::copy_n(results.begin(), states, carried.begin());
        for (std::size_t k = 0; k < stacks.size(); ++k) stacks[k].push_back(results[states + k]);
    }
    for (std::size_t k = 0; k < states; ++k)
        if (t.wants(k)) t.alias(carried[k], k);
    for (std::size_t k = 0; k < stacks.size(); ++k) {
        if (entry(outWays, k) != 0) std::ranges::reverse(stacks[k]);
        stackRounds(t, stacks[k], entry(outAxes, k), states + k);
    }
    return true;
}

} // namespace shardlens::onnx
