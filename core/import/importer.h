// SPDX-License-Identifier: Apache-2.0
// Opens a model file of any supported kind; the kind is told from content, never from the suffix.
// Nothing a file names is opened except weight indexes beside it, and nothing is half-loaded.
#pragma once

#include "core/model/graph.h"

#include <filesystem>
#include <map>
#include <span>
#include <stop_token>
#include <string>

namespace shardlens {

struct ImportOptions {
    std::int64_t batch = 8; ///< for config templates, and for dimensions that look like a batch
    std::int64_t sequence = 2048;                 ///< likewise for sequence lengths
    std::map<std::string, std::int64_t> bindings; ///< symbolic dimensions by name, take precedence
    bool training = true;                         ///< templates: end in the loss
    std::stop_token stop;
};

enum class FileKind : std::uint8_t {
    HfConfig,
    Onnx,
    Safetensors,
    SafetensorsIndex,
    Gguf,
    HloText,
    MlirText,
    FxText,
    TorchExport, ///< .pt2 archives and their JSON
    ExecutionTrace,
    ModelExplorer,
    Session, ///< Session is not a model: the caller opens it
    Unsupported,
};

struct Recognised {
    FileKind kind = FileKind::Unsupported;
    std::string name; ///< "ONNX", "HLO text", …
    std::string hint; ///< for Unsupported: how to convert, or when it will be read
};

/// Tells the kind from the first bytes (up to 64 KiB) and, for ONNX, a wire walk.
Recognised recognise(std::span<const std::byte> head, std::uint64_t fileSize);

/// Reads a model. @throws InputError: one clear sentence (what, where in the file, what to do)
Graph importModel(const std::filesystem::path& path, const ImportOptions& options = {});

} // namespace shardlens
