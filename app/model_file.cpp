// SPDX-License-Identifier: Apache-2.0
// See model_file.h.
#include "app/model_file.h"

#include "core/plan/proposal.h"
#include "core/store/session_bundle.h"

namespace shardlens::app {

namespace {

ModelFile openSession(const std::string& path, const RequestOptions& options) {
    const Session session = Session::open(path, OpenMode::ReadOnly);
    const PlanRequest& own = session.content().request;
    PlanRequest request = options.applied(own);
    const auto& model = session.content().model.absolutePath;
    if (sizingOf(request) == sizingOf(own)) return {bundleOf(session), std::move(request), model};
    return {loadModel(model, importOptions(request)), std::move(request), model};
}

} // namespace

ModelFile openModelFile(const std::string& path, const RequestOptions& options) {
    if (isSessionFile(path)) return openSession(path, options);
    if (options.placed) {
        PlanRequest request = options.applied({});
        return {loadModel(path, importOptions(request)), std::move(request), path};
    }
    ProposedModel model = loadWithProposal(path);
    PlanRequest request = options.applied(model.request);
    if (sizingOf(request) != sizingOf(model.request)) {
        model.bundle = loadModel(path, importOptions(request));
    }
    return {std::move(model.bundle), std::move(request), path};
}

} // namespace shardlens::app
