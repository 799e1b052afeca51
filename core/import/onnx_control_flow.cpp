// SPDX-License-Identifier: Apache-2.0
// Functions, branches and loops. Functions are inlined, and branches: both of them, with a choice
// between their results, if the condition is not known. Loops whose count is known are written out
// round by round if that is not too long, so that folding finds the rounds; others become one
// opaque op whose result shapes come from running the body on the side. Everything a body reads
// from around it is an operand of that op, its weights included.
#include "core/error.h"
#include "core/import/onnx_rounds.h"
#include "core/import/onnx_translation.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shardlens::onnx {

// --- in place -----------------------------------------------------------------------------------

void Builder::inlineFunction(Scope& scope, const Node& node, std::size_t index,
                             const Function& function) {
    Scope inner;
    inner.closed = true;
    inner.repeated = scope.repeated;
    inner.depth = scope.depth + 1;
    inner.prefix = innerPrefix(scope, node, index);
    inner.opsets = function.opsets.empty() ? scope.opsets : function.opsets;
    inner.roles = m_import.rolesOf(function);
    for (const ValueInfo& value : function.values) inner.declared.try_emplace(value.name, &value);
    for (const Attribute& attribute : function.defaults)
        inner.attributes[attribute.name] = &attribute;
    for (const Attribute& attribute : node.attributes) {
        const Attribute* given = attribute.reference.empty()
                                     ? &attribute
                                     : functionAttribute(scope, attribute.reference);
        if (given != nullptr) inner.attributes[attribute.name] = given;
    }
    if (node.inputs.size() > function.inputs.size() ||
        node.outputs.size() > function.outputs.size())
        throw InputError(fmt::format("the call passes {} operands and takes {} results, but the "
                                     "function has {} and {}",
                                     node.inputs.size(), node.outputs.size(),
                                     function.inputs.size(), function.outputs.size()));
    for (std::size_t i = 0; i < function.inputs.size(); ++i) {
        const bool given = i < node.inputs.size() && !node.inputs[i].empty();
        define(inner, function.inputs[i], given ? read(scope, node.inputs[i]) : kNoTensor);
    }
    run(inner, function.nodes);
    m_nodeDepends = false;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i].empty()) continue;
        const TensorId result = read(inner, function.outputs[i]);
        if (result == kNoTensor)
            throw InputError(fmt::format("result {} of the function is absent", i));
        Op identity{scope.prefix + cleaned(node.name.empty() ? node.type : node.name),
                    OpKind::Elementwise,
                    std::string("Identity"),
                    {{"function", std::string("identity")}},
                    {result},
                    {}};
        const OpId op = addAs(std::move(identity), {m_graph.tensor(result).spec},
                              {scope.prefix + cleaned(node.outputs[i])});
        define(scope, node.outputs[i], m_graph.op(op).outputs[0]);
    }
}

std::vector<TensorId> Builder::inlineBranch(Scope& scope, const std::string& prefix,
                                            const GraphData& branch) {
    Scope inner;
    inner.parent = &scope;
    inner.repeated = scope.repeated;
    inner.depth = scope.depth + 1;
    inner.prefix = prefix;
    inner.opsets = scope.opsets;
    enter(inner, branch);
    return inlineBody(inner, branch);
}

std::vector<TensorId> Builder::inlineBody(Scope& scope, const GraphData& body) {
    run(scope, body.nodes);
    std::vector<TensorId> results;
    for (const ValueInfo& output : body.outputs) results.push_back(read(scope, output.name));
    return results;
}

namespace {

using Specs = std::vector<std::optional<TensorSpec>>;

// --- on the side --------------------------------------------------------------------------------

/// Runs a body in a graph of its own. Afterwards the node reads what the body reads.
class Body {
public:
    Body(Translation& t, const GraphData& graph)
        : m_t(t), m_graph(graph), m_builder(t.builder(), t.scope()) {
        m_scope.depth = t.scope().depth + 1;
        m_scope.opsets = t.scope().opsets;
    }

    void formal(std::size_t i, TensorSpec spec) {
        m_t.require(i < m_graph.inputs.size(), "a body takes fewer operands than it is given");
        m_builder.addFormal(m_scope, m_graph.inputs[i].name, std::move(spec));
    }

    void run() {
        m_builder.enter(m_scope, m_graph);
        m_builder.run(m_scope, m_graph.nodes);
        for (const ValueInfo& output : m_graph.outputs) {
            const TensorId tensor = m_builder.read(m_scope, output.name);
            m_t.require(tensor != kNoTensor, "a result of a body is absent");
            m_results.push_back(m_builder.graph().tensor(tensor).spec);
        }
        m_t.alsoReads(m_builder.captures());
        m_t.alsoReads(ownParameters());
    }

    /// std::nullopt where the body does not tell.
    std::optional<TensorSpec> result(std::size_t i) const {
        if (i >= m_results.size() || m_results[i].dtype == DType::Unknown) return std::nullopt;
        return m_results[i];
    }
    std::size_t resultCount() const { return m_results.size(); }

private:
    /// Weights that the body itself holds, moved out into the graph.
    std::vector<TensorId> ownParameters() {
        std::vector<TensorId> parameters;
        for (const Op& op : m_builder.graph().ops()) {
            if (op.kind != OpKind::Parameter) continue;
            Op copy{m_t.scope().prefix + op.name, op.kind, op.type, {}, {}, {}};
            Builder& outer = m_t.builder();
            const OpId id =
                outer.addAs(std::move(copy), {m_builder.graph().tensor(op.outputs[0]).spec}, {});
            parameters.push_back(outer.graph().op(id).outputs[0]);
            outer.setDependsOnInput(parameters.back(), false);
        }
        return parameters;
    }

    Translation& m_t;
    const GraphData& m_graph;
    Builder m_builder;
    Scope m_scope;
    std::vector<TensorSpec> m_results;
};

const GraphData& bodyOf(const Translation& t, std::string_view name) {
    const GraphData* body = t.graph(name);
    t.require(body != nullptr, fmt::format("attribute {} is missing", name));
    return *body;
}

// --- branches -----------------------------------------------------------------------------------

std::vector<TensorId> branchResults(Translation& t, const GraphData& graph, const char* name) {
    auto results = t.builder().inlineBranch(
        t.scope(), innerPrefix(t.scope(), t.node(), t.index()) + name, graph);
    t.require(results.size() >= t.outputCount(), "a branch has fewer results than the node");
    for (std::size_t i = 0; i < t.outputCount(); ++i)
        t.require(!t.wants(i) || results[i] != kNoTensor, "a result of a branch is absent");
    return results;
}

/// What decides at run time: both branches are computed and the condition chooses, so that operands
/// and results are laid out alike in both. Results whose shapes differ are opaque.
void bothBranches(Translation& t, const GraphData& yes, const GraphData& no) {
    t.require(t.dtype(0) == DType::Unknown || elementsOf(t.shape(0)) == 1,
              "the condition must be one value");
    const auto first = branchResults(t, yes, "then/"), second = branchResults(t, no, "else/");
    TensorId condition = t.input(0);
    if (!t.shape(0).empty()) condition = t.reshaped(condition, {});
    for (std::size_t i = 0; i < t.outputCount(); ++i) {
        if (!t.wants(i)) continue;
        const TensorSpec spec = t.specOf(first[i]);
        if (first[i] == second[i]) {
            t.alias(first[i], i);
        } else if (spec.dtype != DType::Unknown && spec == t.specOf(second[i])) {
            t.result(OpKind::Elementwise, {{"function", std::string("where")}},
                     {condition, first[i], second[i]}, DType::Unknown, i);
        } else {
            t.alsoReads(std::array{first[i], second[i]});
            t.opaqueOutput(i);
        }
    }
}

void branch(Translation& t, std::string_view) {
    const GraphData &yes = bodyOf(t, "then_branch"), &no = bodyOf(t, "else_branch");
    const auto condition = t.scalar(0);
    if (!condition) return bothBranches(t, yes, no);
    const auto results = branchResults(t, *condition != 0 ? yes : no, "");
    for (std::size_t i = 0; i < t.outputCount(); ++i)
        if (t.wants(i)) t.alias(results[i], i);
}

/// A carried value keeps its shape from one round to the next, or its shape is not known.
std::optional<TensorSpec> carried(const TensorSpec& before,
                                  const std::optional<TensorSpec>& after) {
    return after && *after == before ? after : std::nullopt;
}

std::optional<TensorSpec> stacked(std::optional<TensorSpec> each, std::optional<std::int64_t> count,
                                  std::int64_t axis) {
    if (!each || !count) return std::nullopt;
    const auto rank = static_cast<std::int64_t>(each->shape.size()) + 1;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return std::nullopt;
    each->shape.insert(each->shape.begin() + axis, *count);
    return each;
}

/// Trip count, condition, carried values -> carried values, stacked results.
void loop(Translation& t, std::string_view) {
    const GraphData& graph = bodyOf(t, "body");
    if (unrolledLoop(t, graph)) return;
    const std::size_t carriedCount = t.inputCount() < 2 ? 0 : t.inputCount() - 2;
    std::vector<TensorSpec> before;
    for (std::size_t i = 0; i < carriedCount; ++i) before.push_back(t.spec(i + 2));
    auto trips = t.scalar(0);
    if (trips && *trips < 0) trips = std::nullopt;
    Body body(t, graph);
    body.formal(0, {DType::I64, {}});
    body.formal(1, {DType::Bool, {}});
    for (std::size_t i = 0; i < carriedCount; ++i) body.formal(i + 2, before[i]);
    body.run();
    Specs specs(t.outputCount());
    for (std::size_t i = 0; i < specs.size(); ++i)
        specs[i] = i < carriedCount ? carried(before[i], body.result(i + 1))
                                    : stacked(body.result(i + 1), trips, 0);
    t.opaque(std::move(specs));
}

/// Carried values, then scanned ones -> carried values, stacked results. Opset 8 has a batch
/// dimension and lengths before all that, and was soon given up.
void scan(Translation& t, std::string_view) {
    if (t.opset() < 9) return t.opaque();
    const GraphData& graph = bodyOf(t, "body");
    const std::int64_t scanned = t.integer("num_scan_inputs", 0);
    t.require(scanned > 0 && scanned <= static_cast<std::int64_t>(t.inputCount()),
              "num_scan_inputs does not fit the operands");
    const std::size_t states = t.inputCount() - static_cast<std::size_t>(scanned);
    if (unrolledScan(t, graph, states)) return;
    const auto inAxes = t.integers("scan_input_axes"), outAxes = t.integers("scan_output_axes");
    std::vector<TensorSpec> before;
    for (std::size_t i = 0; i < t.inputCount(); ++i) before.push_back(t.spec(i));
    std::optional<std::int64_t> trips;
    Body body(t, graph);
    for (std::size_t i = 0; i < before.size(); ++i) {
        TensorSpec spec = before[i];
        if (i >= states && spec.dtype != DType::Unknown) {
            const std::int64_t axis =
                t.axis(entry(inAxes, i - states), static_cast<std::int64_t>(spec.shape.size()));
            trips = spec.shape[static_cast<std::size_t>(axis)];
            spec.shape.erase(spec.shape.begin() + axis);
        }
        body.formal(i, std::move(spec));
    }
    body.run();
    Specs specs(t.outputCount());
    for (std::size_t i = 0; i < specs.size(); ++i)
        specs[i] = i < states ? carried(before[i], body.result(i))
                              : stacked(body.result(i), trips, entry(outAxes, i - states));
    t.opaque(std::move(specs));
}

} // namespace

std::vector<Rule> controlRules() {
    return {
        {"If", branch, {}, true},
        {"Loop", loop, {}, true},
        {"Scan", scan, {}, true},
    };
}

} // namespace shardlens::onnx
