// SPDX-License-Identifier: Apache-2.0
// Opens a GGUF file as a model. GGUF holds hyper-parameters and weights but no graph: the values
// under its architecture's name become the equivalent Hugging Face config, and the template of
// that architecture builds the graph. How the weights are packed is kept as facts.
#pragma once

#include "core/import/importer.h"

#include <cstddef>
#include <span>
#include <string>

namespace shardlens {

/// @throws InputError for damaged files, and for architectures without a template; Cancelled
Graph importGguf(std::span<const std::byte> file, const std::string& where,
                 const ImportOptions& options);

} // namespace shardlens
