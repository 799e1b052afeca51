// SPDX-License-Identifier: Apache-2.0
// Which model file a session was made from, precisely enough to notice that it has changed since.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace shardlens {

struct ModelReference {
    std::string path;         ///< as the user gave it
    std::string absolutePath; ///< the same from any working folder
    std::string format;       ///< "ONNX", "HF config", …
    std::uint64_t bytes = 0;
    std::int64_t modified = 0; ///< nanoseconds since 1970, UTC
    /// "sha1:…" of all bytes, or "sha1-head:…" of the first 64 MiB of a longer file (then `bytes`
    /// belongs to the identity). It tells files apart; it is no protection against forgery.
    std::string hash;
    friend bool operator==(const ModelReference&, const ModelReference&) = default;
};

/// Reads the file's facts. @throws StoreError if it cannot be read
ModelReference describeModelFile(const std::filesystem::path& path, std::string format);

enum class ModelFileState : std::uint8_t { Same, Changed, Missing };

/// Looks at the file again; reads it only if its time changed and its size did not.
ModelFileState checkModelFile(const ModelReference& reference);

} // namespace shardlens
