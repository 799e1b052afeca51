// SPDX-License-Identifier: Apache-2.0
// The model of a session, ready to be planned; and telling sessions from models.
#pragma once

#include "core/plan/model_bundle.h"
#include "core/store/session.h"

namespace shardlens {

/// The view state that says, as sizingOf() writes it, what the snapshot in a session is sized for.
inline constexpr const char* kSnapshotSizing = "model.workload";

/// Whether a file is a session, told from its content. False for what cannot be read.
bool isSessionFile(const std::filesystem::path& path);

/// From the session's snapshot. Where that is sized for another workload than the session's
/// request (the program ended between a step and the reading it asked for), from the model's file.
/// @throws StoreError, InputError; Cancelled
ModelBundle bundleOf(const Session& session, std::stop_token stop = {});

} // namespace shardlens
