// SPDX-License-Identifier: Apache-2.0
// Runs the missing steps. PRAGMA user_version writes the header page, so it belongs to the
// transaction like any row.
#include "core/store/sqlite_migration.h"

#include <fmt/format.h>

namespace shardlens {

int schemaVersion(const SqliteDatabase& database) {
    return static_cast<int>(database.integer("PRAGMA user_version"));
}

void migrate(const SqliteDatabase& database, std::span<const SqliteMigration> steps) {
    for (const SqliteMigration& step : steps) {
        if (schemaVersion(database) >= step.version) continue;
        SqliteTransaction transaction(database);
        database.execute(step.sql);
        database.execute(fmt::format("PRAGMA user_version = {}", step.version));
        transaction.commit();
    }
}

} // namespace shardlens
