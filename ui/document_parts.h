// SPDX-License-Identifier: Apache-2.0
// Parts of the document that its own files share.
#pragma once

#include "ui/document.h"

namespace shardlens {

/// What a load job brings home: either an error, or everything that is needed.
struct Document::Opened {
    std::string error;
    bool cancelled = false;
    std::unique_ptr<Session> session; ///< not for a reload
    bool temporary = false;
    ModelBundle bundle;
    PlanRequest request;
    std::vector<std::string> notes; ///< sentences for the user
    ModelReference reference;       ///< reload: of the file that was read
    std::string snapshot;           ///< reload: the graph as text
};

} // namespace shardlens
