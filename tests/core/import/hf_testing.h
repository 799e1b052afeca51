// SPDX-License-Identifier: Apache-2.0
// Reading sample and shared configs in tests, with some keys replaced.
#pragma once

#include "core/error.h"
#include "core/import/hf_config.h"

#include <nlohmann/json.hpp>

#include <QString>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace shardlens::test {

inline std::string readFile(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

inline std::filesystem::path samplePath(const std::string& name) {
    return std::filesystem::path(SHARDLENS_SOURCE) / "samples" / (name + ".json");
}

inline std::filesystem::path sharedPath(const std::string& name) {
    return std::filesystem::path(SHARDLENS_SHARED) / "data" / "models" / "hf" / name;
}

/// The sample's JSON with the members of `patch` replaced; a null removes a member.
inline std::string patched(const std::string& sample, const std::string& patch) {
    nlohmann::json json = nlohmann::json::parse(readFile(samplePath(sample)));
    json.merge_patch(nlohmann::json::parse(patch));
    return json.dump();
}

inline ImportOptions smallWorkload() {
    ImportOptions options;
    options.batch = 2;
    options.sequence = 64;
    return options;
}

inline Graph importSample(const std::string& sample, const std::string& patch = "{}",
                          const ImportOptions& options = smallWorkload()) {
    return importHfConfig(patched(sample, patch), sample + ".json", options);
}

/// The message of the InputError that importing gives, "accepted" when there is none.
inline QString refusal(const std::string& json, const ImportOptions& options = smallWorkload()) {
    try {
        importHfConfig(json, "model.json", options);
    } catch (const InputError& error) {
        return QString::fromUtf8(error.what());
    }
    return "accepted";
}

} // namespace shardlens::test
