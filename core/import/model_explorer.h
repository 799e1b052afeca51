// SPDX-License-Identifier: Apache-2.0
// Graphs of Model Explorer in JSON (https://github.com/google-ai-edge/model-explorer, "API guide"):
// nodes with labels, namespaces and edges; shapes only as text among the attributes. Good for
// looking at a model and for folding it; most ops stay opaque, so that its costs are not to be
// trusted, and a warning says so.
#pragma once

#include "core/import/importer.h"

#include <string>
#include <string_view>

namespace shardlens {

/// @throws InputError for malformed JSON, nodes without or with equal ids, cycles; Cancelled
Graph importModelExplorer(std::string_view json, const std::string& where,
                          const ImportOptions& options);

/// Shape and type in text such as "float32[1,224,224,3]", "tensor<1x2xf32>" or "(1, 2)"; an open
/// size ('?', -1) becomes 1. std::nullopt where there is none.
std::optional<TensorSpec> specFromText(std::string_view text);

} // namespace shardlens
