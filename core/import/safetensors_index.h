// SPDX-License-Identifier: Apache-2.0
// model.safetensors.index.json: which file holds which tensor of a model whose weights are in
// several files. Opens like a weights file: the graph comes from the config beside it, and the
// headers of those files that lie there too are checked against it.
#pragma once

#include "core/import/importer.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace shardlens {

struct SafetensorsIndex {
    std::map<std::string, std::string> files; ///< tensor -> name of its file, a plain one
    std::optional<std::uint64_t> totalSize;   ///< bytes, "metadata.total_size"
};

/// @throws InputError for malformed JSON, and for names of files that lead elsewhere
SafetensorsIndex parseSafetensorsIndex(std::string_view json, const std::string& where);

/// @throws InputError when no config lies beside the index; Cancelled
Graph importSafetensorsIndex(std::string_view json, const std::filesystem::path& path,
                             const ImportOptions& options);

} // namespace shardlens
