// SPDX-License-Identifier: Apache-2.0
// Small MLIR programs for tests: a body in a main function, and looking things up in what comes
// out.
#pragma once

#include "core/error.h"
#include "core/import/mlir_import.h"

#include <fmt/format.h>

#include <QString>

#include <algorithm>
#include <string>
#include <vector>

namespace shardlens::test::mlir {

inline Graph importText(const std::string& text, const ImportOptions& options = {}) {
    return importMlir(text, "test.mlir", options);
}

/// A module with "main(arguments) -> results { body }".
inline std::string program(const std::string& arguments, const std::string& results,
                           const std::string& body, const std::string& before = {}) {
    return "module @m {\n" + before + "  func.func public @main(" + arguments + ") -> (" + results +
           ") {\n" + body + "  }\n}\n";
}

inline Graph importMain(const std::string& arguments, const std::string& results,
                        const std::string& body, const std::string& before = {}) {
    return importText(program(arguments, results, body, before));
}

inline QString refusalOf(const std::string& text, const ImportOptions& options = {}) {
    try {
        importText(text, options);
    } catch (const InputError& error) {
        return QString(error.what());
    }
    return QString("accepted");
}

/// "Einsum f32[2,3]" of every op, sources left out.
inline QString kindsOf(const Graph& graph) {
    std::vector<std::string> parts;
    for (const Op& op : graph.ops()) {
        if (op.kind == OpKind::Input || op.kind == OpKind::Parameter) continue;
        const TensorSpec& spec = graph.tensor(op.outputs.front()).spec;
        parts.push_back(
            fmt::format("{} {}{}", nameOf(op.kind), nameOf(spec.dtype), toString(spec.shape)));
    }
    return QString::fromStdString(fmt::format("{}", fmt::join(parts, ", ")));
}

inline const Op& lastOp(const Graph& graph) {
    return graph.op(graph.tensor(graph.outputs().front()).producer);
}

inline std::size_t countOf(const Graph& graph, OpKind kind) {
    return static_cast<std::size_t>(std::ranges::count(graph.ops(), kind, &Op::kind));
}

} // namespace shardlens::test::mlir
