// SPDX-License-Identifier: Apache-2.0
// See model_bundle.h.
#include "core/plan/model_bundle.h"

#include "core/fold/sections.h"
#include "core/model/canonical.h"

#include <fmt/format.h>

#include <utility>

namespace shardlens {

ImportOptions importOptions(const PlanRequest& request, std::stop_token stop) {
    ImportOptions options;
    options.batch = request.batch;
    options.sequence = request.sequence;
    options.bindings = request.bindings;
    options.training = request.mode == Mode::Train;
    options.stop = std::move(stop);
    return options;
}

std::string sizingOf(const PlanRequest& request) {
    std::string text = fmt::format("{} {} {}", request.batch, request.sequence,
                                   request.mode == Mode::Train ? "train" : "infer");
    for (const auto& [name, value] : request.bindings) text += fmt::format(" {}={}", name, value);
    return text;
}

ModelBundle loadModel(const std::filesystem::path& path, const ImportOptions& options) {
    return bundleOf(importModel(path, options), options.stop);
}

ModelBundle bundleOf(Graph source, std::stop_token stop) {
    ModelBundle bundle;
    bundle.source = std::make_shared<const Graph>(std::move(source));
    bundle.graph = std::make_shared<const Graph>(canonicalise(*bundle.source));
    bundle.folding = std::make_shared<const Folding>(
        withSections(*bundle.graph, fold(*bundle.graph, std::move(stop))));
    return bundle;
}

} // namespace shardlens
