// SPDX-License-Identifier: Apache-2.0
// Model structs to a graph: inputs, the main graph's nodes, outputs, and what the file says about
// itself.
#include "core/import/onnx_import.h"

#include "core/error.h"
#include "core/import/onnx_builder.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens {

namespace {

using namespace onnx;

void addFacts(const Model& model, const Import& import, Graph& graph) {
    const auto count = [](std::size_t n) { return fmt::format("{}", n); };
    graph.facts["ir_version"] = fmt::format("{}", model.irVersion);
    for (const OpsetImport& opset : model.opsets)
        graph.facts[opset.domain.empty() ? "opset" : "opset " + cleaned(opset.domain)] =
            fmt::format("{}", opset.version);
    if (!model.producer.empty())
        graph.facts["producer"] =
            cleaned(model.producer) +
            (model.producerVersion.empty() ? "" : " " + cleaned(model.producerVersion));
    graph.facts["nodes"] = count(model.graph.nodes.size());
    graph.facts["initializers"] = count(model.graph.initializers.size());
    graph.facts["inputs"] = count(import.realInputs().size());
    graph.facts["inputs_listed"] = count(model.graph.inputs.size());
    graph.facts["functions"] = count(model.functions.size());
}

/// Declared output shapes are hints only; where they contradict the graph the user is told.
void checkOutput(const ValueInfo& output, const Tensor& tensor, Import& import) {
    const auto declared = import.symbols().declared(output);
    if (!declared || tensor.spec.dtype == DType::Unknown || *declared == tensor.spec) return;
    import.report.say(fmt::format("Output {} is declared as {}{} but the graph gives {}{}.",
                                  inQuotes(output.name), nameOf(declared->dtype),
                                  toString(declared->shape), nameOf(tensor.spec.dtype),
                                  toString(tensor.spec.shape)));
}

void finishOutputs(const Model& model, Builder& builder, Scope& scope) {
    for (const ValueInfo* input : builder.import().realInputs())
        builder.read(scope, input->name); // those that nothing reads
    for (const ValueInfo& output : model.graph.outputs) {
        const TensorId tensor = builder.read(scope, output.name);
        if (tensor == kNoTensor) continue;
        builder.graph().markOutput(tensor);
        checkOutput(output, builder.graph().tensor(tensor), builder.import());
    }
}

/// Enters what the main graph is given from outside.
void enterInputs(Import& import, Scope& scope) {
    for (const ValueInfo* input : import.realInputs()) {
        if (!scope.names.try_emplace(input->name, Binding{.input = input}).second)
            throw InputError(fmt::format("the input {} exists twice, the second time at byte {}",
                                         inQuotes(input->name), input->offset),
                             import.where(), "a name may be defined once: export the model again");
    }
    if (import.isTraining())
        import.report.say("The graph holds its own backward pass; plan it as inference, or export "
                          "the forward pass alone.");
}

Graph build(Import& import) {
    const Model& model = import.model();
    for (const std::string& warning : import.symbols().warnings()) import.report.say(warning);
    Builder builder(import);
    Scope scope;
    scope.opsets = model.opsets;
    builder.enter(scope, model.graph);
    enterInputs(import, scope);
    builder.run(scope, model.graph.nodes);
    finishOutputs(model, builder, scope);

    Graph graph = std::move(builder.graph());
    graph.name = cleaned(model.graph.name);
    graph.format = "ONNX";
    graph.warnings = import.report.sentences();
    graph.bindings = import.symbols().bindings();
    addFacts(model, import, graph);
    return graph;
}

/// Many models hold tables for a longest sequence, and a file does not say how long that is. When
/// the default length fits nowhere, shorter ones are tried: half of it, a quarter …
Graph buildShorter(const Model& model, ImportOptions options, const std::string& where,
                   const NodeError& reason) {
    const std::int64_t wanted = options.sequence;
    while (options.sequence > 1) {
        options.sequence /= 2;
        try {
            Import import(model, options, where);
            Graph graph = build(import);
            graph.warnings.insert(
                graph.warnings.begin(),
                fmt::format("The model does not take a sequence of {} ({}); {} is used. Set "
                            "another with --bind.",
                            wanted, reason.problem(), options.sequence));
            return graph;
        } catch (const NodeError&) { // still too long, or something else is wrong
        }
    }
    throw reason;
}

} // namespace

Graph importOnnx(std::span<const std::byte> file, const std::string& where,
                 const ImportOptions& options) {
    const Model model = parseModel(file, where, options.stop);
    Import import(model, options, where);
    try {
        return build(import);
    } catch (const NodeError& error) {
        if (!import.symbols().sequenceGuessed()) throw;
        return buildShorter(model, options, where, error);
    }
}

} // namespace shardlens
