// SPDX-License-Identifier: Apache-2.0
// The header of a .safetensors file: 8 bytes little-endian length, then a JSON map from tensor name
// to dtype, shape and byte range (https://github.com/huggingface/safetensors, "Format"). Weights
// are never read. A weights file holds no graph, so opening one as a model goes through the
// config.json beside it.
#pragma once

#include "core/import/importer.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace shardlens {

struct SafetensorsEntry {
    std::string name;
    std::string dtype; ///< as written: "F32", "BF16", "F8_E4M3", …
    Shape shape;
    std::uint64_t begin = 0; ///< byte range in the data that follows the header
    std::uint64_t end = 0;
};

struct SafetensorsHeader {
    std::vector<SafetensorsEntry> tensors;       ///< in order of their byte ranges
    std::map<std::string, std::string> metadata; ///< "__metadata__"
    std::uint64_t headerBytes = 0;               ///< length of the JSON
};

/// Whether a file that begins with `head` and is `fileSize` bytes long is safetensors.
bool looksLikeSafetensors(std::span<const std::byte> head, std::uint64_t fileSize) noexcept;

/// Parses and checks a header.
/// @param head     at least the 8 length bytes and the whole JSON
/// @param fileSize of the whole file; byte ranges must tile it without holes or overlaps
/// @throws InputError naming the tensor or the byte offset
SafetensorsHeader parseSafetensorsHeader(std::span<const std::byte> head, std::uint64_t fileSize,
                                         const std::string& where);

/// The config of a weights file or index: "X_config.json" whose X begins its stem, else
/// "config.json", in the same folder. @throws InputError when there is none
std::filesystem::path configBesideWeights(const std::filesystem::path& weights);

/// Warns, in one sentence, of tensors whose shapes are not those of the graph's parameters of the
/// same name.
void compareWithWeights(Graph& graph, const std::vector<SafetensorsEntry>& tensors);

/// Opens a weights file as a model: reads the config in
/// the same folder, and checks the tensors that both know against each other.
/// @throws InputError when no config lies beside the file
Graph importSafetensors(const std::filesystem::path& path, const ImportOptions& options);

} // namespace shardlens
