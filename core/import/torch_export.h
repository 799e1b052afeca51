// SPDX-License-Identifier: Apache-2.0
// Programs of torch.export: the JSON of an ExportedProgram (torch/_export/serde/schema.py, schema
// versions 1 to 8), alone or in a .pt2 archive of either layout: `NAME/models/model.json` since
// PyTorch 2.8, `serialized_exported_program.json` before. Weights are never read: every value has
// its type in the JSON.
#pragma once

#include "core/import/importer.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace shardlens {

/// @throws InputError naming the member, node or byte
Graph importTorchExport(std::string_view json, const std::string& where,
                        const ImportOptions& options);
Graph importTorchArchive(std::span<const std::byte> file, const std::string& where,
                         const ImportOptions& options);

} // namespace shardlens
