// SPDX-License-Identifier: Apache-2.0
// What the subcommands work on: a file, model or session, and the options given with it.
#pragma once

#include "app/options.h"
#include "core/plan/model_bundle.h"

namespace shardlens::app {

struct ModelFile {
    ModelBundle bundle; ///< sized for `request`
    PlanRequest request;
    std::filesystem::path file; ///< of the model, also where a session was given
};

/// The options change a session's own request, or what is proposed for a model. A session is only
/// read. @throws InputError, StoreError: one sentence
ModelFile openModelFile(const std::string& path, const RequestOptions& options);

} // namespace shardlens::app
