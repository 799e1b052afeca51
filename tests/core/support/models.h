// SPDX-License-Identifier: Apache-2.0
// The sample models, with another depth if wanted.
#pragma once

#include "core/plan/model_bundle.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>

namespace shardlens::test {

/// A sample of samples/ sized for a request. @param layers 0 = as published
inline ModelBundle sample(const std::string& name, const PlanRequest& request, int layers = 0) {
    const std::filesystem::path path =
        std::filesystem::path(SHARDLENS_SOURCE) / "samples" / (name + ".json");
    if (layers == 0) return loadModel(path, importOptions(request));
    std::ifstream in(path);
    auto config = nlohmann::json::parse(in);
    for (const char* key : {"num_hidden_layers", "n_layer", "num_layers", "num_decoder_layers"})
        if (config.contains(key)) config[key] = layers;
    const auto copy =
        std::filesystem::temp_directory_path() / (name + "-" + std::to_string(layers) + ".json");
    std::ofstream(copy) << config.dump();
    ModelBundle bundle = loadModel(copy, importOptions(request));
    std::filesystem::remove(copy);
    return bundle;
}

inline PlanRequest onCluster(std::string cluster, int nodes, std::string_view mesh,
                             std::int64_t batch, std::int64_t sequence) {
    PlanRequest request;
    request.cluster = std::move(cluster);
    request.nodes = nodes;
    request.mesh = parseMesh(mesh);
    request.batch = batch;
    request.sequence = sequence;
    return request;
}

} // namespace shardlens::test
