// SPDX-License-Identifier: Apache-2.0
// The tables of a session file, its versions, and the examination a file passes before anything of
// it is believed.
#pragma once

#include "core/store/sqlite_migration.h"

#include <cstdint>
#include <span>

namespace shardlens {

/// PRAGMA application_id of a session: "SHLN".
inline constexpr std::int32_t kSessionApplicationId = 0x53484c4e;

std::span<const SqliteMigration> sessionMigrations();

/// The schema version this program writes, and the highest it reads.
int sessionVersion();

/// Examines a database: whose it is, its version, integrity, references, and that its schema is to
/// the letter the one its version has.
/// @throws StoreError saying whether it is foreign, newer or damaged; reads only
void examineSession(const SqliteDatabase& database);

} // namespace shardlens
