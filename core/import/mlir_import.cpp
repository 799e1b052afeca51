// SPDX-License-Identifier: Apache-2.0
// Parse, find the symbols, build; then build once more with the arguments that turned out to be
// parameters. Text of other dialects is refused by name.
#include "core/import/mlir_import.h"

#include "core/error.h"
#include "core/import/mlir_builder.h"
#include "core/import/mlir_roles.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace shardlens {

namespace {

using namespace mlir;

void countDialects(const std::vector<Operation>& operations,
                   std::map<std::string_view, std::size_t>& counts) {
    for (const Operation& op : operations) {
        const auto dot = op.name.find('.');
        if (dot != std::string_view::npos) ++counts[op.name.substr(0, dot)];
        for (const Region& region : op.regions)
            for (const Block& block : region.blocks) countDialects(block.operations, counts);
    }
}

/// Refuses programs without a single operation of the dialects that are understood.
void checkDialects(const Module& module, const std::string& where) {
    std::map<std::string_view, std::size_t> counts;
    countDialects(module.operations, counts);
    for (const std::string_view known : {"stablehlo", "mhlo", "chlo"})
        if (counts.contains(known)) return;
    for (const std::string_view frame : {"func", "builtin", "sdy"}) counts.erase(frame);
    if (counts.contains("torch"))
        throw InputError("this is MLIR of the torch dialect, which is not read", where,
                         "lower it with torch-mlir-opt "
                         "--torch-backend-to-stablehlo-backend-pipeline, or open the exported "
                         "program or ONNX file");
    if (counts.contains("vhlo"))
        throw InputError("this is MLIR of the versioned dialect vhlo", where,
                         "write it as StableHLO (stablehlo-opt --vhlo-to-version=target=current "
                         "--vhlo-legalize-to-stablehlo)");
    const auto most =
        std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
    throw InputError(most == counts.end()
                         ? std::string("the MLIR text holds no StableHLO operation")
                         : fmt::format("this is MLIR of the dialect {}, which is not read",
                                       shardlens::inQuotes(most->first)),
                     where, "write the program as StableHLO (as_text() in JAX and torch-xla)");
}

Graph finished(Graph graph, const Program& program, std::string_view text) {
    // JAX writes where an op comes from: transposed derivatives are a backward pass.
    graph.backwardIncluded = text.find("transpose(jvp(") != std::string_view::npos;
    graph.name = cleaned(program.name);
    return graph;
}

} // namespace

Graph importMlir(std::string_view text, const std::string& where, const ImportOptions& options) {
    const Module module = parseModule(text, where, options.stop);
    checkDialects(module, where);
    const Program program = programOf(module, text, where);
    std::set<std::size_t> trained;
    {
        Builder first(module, program, where, options, {});
        Graph graph = first.build();
        trained = parameterArguments(graph, first.arguments());
        if (trained.empty()) return finished(std::move(graph), program, text);
    } // two graphs at once would be too much of a large program
    return finished(Builder(module, program, where, options, trained).build(), program, text);
}

} // namespace shardlens
