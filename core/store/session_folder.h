// SPDX-License-Identifier: Apache-2.0
// Where sessions live that have no name yet, and which of them a crash has left.
#pragma once

#include "core/store/session_content.h"

#include <filesystem>
#include <string>
#include <vector>

namespace shardlens {

/// $XDG_STATE_HOME/shardlens/sessions, by default ~/.local/state/shardlens/sessions (XDG Base
/// Directory Specification 0.8). The folder need not exist. @throws StoreError without a home
std::filesystem::path unsavedSessionsFolder();

/// A session in that folder that no window has open.
struct RecoverableSession {
    std::filesystem::path path;
    std::int64_t modified = 0; ///< seconds since 1970, UTC
    std::string model;         ///< path of its model as the user gave it
    std::size_t steps = 0;     ///< done
    std::string problem;       ///< why it cannot be opened; else empty
};

/// Newest first. Sessions that are open in a window are left out; remains of files that were never
/// finished are removed. No folder means no sessions.
std::vector<RecoverableSession> recoverableSessions(const std::filesystem::path& folder);

} // namespace shardlens
