// SPDX-License-Identifier: Apache-2.0
// Builds the training graph of a model from its Hugging Face config.json: hyper-parameters in,
// forward pass and loss out. Large models have no graph file; this is how most users hold them.
// Architectures: docs of `transformers` (one class per model_type), see importers' README.
#pragma once

#include "core/import/importer.h"

#include <string>
#include <string_view>
#include <vector>

namespace shardlens {

/// Whether the beginning of a file looks like a model config: a JSON object (leading blanks and a
/// byte-order mark allowed) with "model_type" or "architectures", or with the key names of
/// DeepSeek's own config. `head` may be cut off anywhere. Never throws.
bool looksLikeHfConfig(std::string_view head);

/// Builds the graph. `where` names the file in messages.
/// @throws InputError for malformed JSON (with the byte offset), unknown architectures (listing the
/// known ones), missing or impossible hyper-parameters (naming the key)
/// @throws Cancelled
Graph importHfConfig(std::string_view json, const std::string& where, const ImportOptions& options);

/// The values of "model_type" that can be read, ascending.
std::vector<std::string> knownHfModelTypes();

} // namespace shardlens
