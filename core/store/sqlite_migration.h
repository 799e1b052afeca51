// SPDX-License-Identifier: Apache-2.0
// Schema versions of a database, kept in its user_version. Each step runs in a transaction of its
// own together with the new version number, so that a killed migration continues where it stopped.
#pragma once

#include "core/store/sqlite_database.h"

#include <span>
#include <string_view>

namespace shardlens {

/// Leads from schema `version - 1` to `version`.
struct SqliteMigration {
    int version = 1;
    std::string_view sql;
};

int schemaVersion(const SqliteDatabase& database);

/// Brings a database up to the last step's version. @param steps versions 1, 2, 3, … in order
/// @throws SqliteError; the steps that succeeded stay
void migrate(const SqliteDatabase& database, std::span<const SqliteMigration> steps);

} // namespace shardlens
