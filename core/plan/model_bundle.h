// SPDX-License-Identifier: Apache-2.0
// A model from a file, ready to be planned: read, made canonical and folded. The command line and
// the window open models through this and nothing else, so that both see the same graph.
#pragma once

#include "core/fold/folding.h"
#include "core/import/importer.h"
#include "core/plan/request.h"

#include <filesystem>
#include <memory>

namespace shardlens {

struct ModelBundle {
    std::shared_ptr<const Graph> source;    ///< as the file has it
    std::shared_ptr<const Graph> graph;     ///< canonical; what is folded and planned
    std::shared_ptr<const Folding> folding; ///< of `graph`, with sections
};

/// How a request's workload sizes the model: batch, sequence, bindings, training or not.
ImportOptions importOptions(const PlanRequest& request, std::stop_token stop = {});

/// What of a request sizes the model, as text: requests with equal texts have equal graphs.
std::string sizingOf(const PlanRequest& request);

/// @throws InputError one clear sentence; Cancelled
ModelBundle loadModel(const std::filesystem::path& path, const ImportOptions& options = {});

/// The same for a graph that is there already, such as a session's snapshot. @throws Cancelled
ModelBundle bundleOf(Graph source, std::stop_token stop = {});

} // namespace shardlens
