// SPDX-License-Identifier: Apache-2.0
// A new schema version is one more entry of kMigrations; entries that were released never change.
#include "core/store/session_schema.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <tuple>
#include <vector>

namespace shardlens {

namespace {

// session.done is the undo pointer: steps 1 .. done are done, the later ones can be redone.
// plan.name is NULL while the step that keeps the plan is undone, or after one that puts it away.
constexpr std::array kMigrations{SqliteMigration{1, R"sql(
PRAGMA application_id = 0x53484c4e;
CREATE TABLE session (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    written_by TEXT NOT NULL,
    created INTEGER NOT NULL,
    request TEXT NOT NULL,
    done INTEGER NOT NULL CHECK (done >= 0)
) STRICT;
CREATE TABLE model (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    path TEXT NOT NULL,
    absolute_path TEXT NOT NULL,
    format TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    hash TEXT NOT NULL,
    graph BLOB NOT NULL,
    graph_bytes INTEGER NOT NULL
) STRICT;
CREATE TABLE plan (
    id INTEGER PRIMARY KEY,
    name TEXT UNIQUE,
    made_by TEXT NOT NULL,
    provenance TEXT NOT NULL,
    created INTEGER NOT NULL,
    body BLOB NOT NULL,
    body_bytes INTEGER NOT NULL
) STRICT;
CREATE TABLE step (
    number INTEGER PRIMARY KEY,
    label TEXT NOT NULL,
    kind TEXT NOT NULL,
    before TEXT NOT NULL,
    after TEXT NOT NULL,
    created INTEGER NOT NULL
) STRICT;
CREATE TABLE step_plan (
    step INTEGER NOT NULL REFERENCES step (number) ON DELETE CASCADE,
    plan INTEGER NOT NULL REFERENCES plan (id),
    name_before TEXT,
    name_after TEXT,
    PRIMARY KEY (step, plan)
) STRICT, WITHOUT ROWID;
CREATE INDEX step_plan_plan ON step_plan (plan);
CREATE TABLE view_state (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
)sql"}};

using SchemaEntry = std::tuple<std::string, std::string, std::string>;

std::vector<SchemaEntry> schemaOf(const SqliteDatabase& database) {
    std::vector<SchemaEntry> entries;
    SqliteStatement query =
        database.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name");
    while (query.step()) entries.emplace_back(query.text(0), query.text(1), query.text(2));
    return entries;
}

[[noreturn]] void refuseDamaged(const SqliteDatabase& database, const std::string& finding) {
    throw StoreError(fmt::format("the session is damaged ({})", finding), database.where(),
                     "go back to a copy of it; the file was not changed");
}

void checkOwner(const SqliteDatabase& database) {
    const std::int64_t id = database.integer("PRAGMA application_id");
    if (id == kSessionApplicationId) return;
    throw StoreError(fmt::format("the file is not a Shardlens session but a database of another "
                                 "program (application id {:#010x})",
                                 static_cast<std::uint32_t>(id)),
                     database.where(), "choose a session (*.shardlens) or a model file");
}

void checkVersion(const SqliteDatabase& database) {
    const int version = schemaVersion(database);
    if (version < 1) refuseDamaged(database, fmt::format("version {}", version));
    if (version <= sessionVersion()) return;
    throw StoreError(fmt::format("the session was written by a newer Shardlens (session version "
                                 "{}, this program reads up to {})",
                                 version, sessionVersion()),
                     database.where(), "update Shardlens to open it");
}

void checkContent(const SqliteDatabase& database) {
    const std::string finding = database.text("PRAGMA integrity_check(1)");
    if (finding != "ok") refuseDamaged(database, finding);
    if (database.prepare("PRAGMA foreign_key_check").step())
        refuseDamaged(database, "a reference leads nowhere");

    const auto steps = sessionMigrations();
    const SqliteDatabase model = SqliteDatabase::inMemory("session schema");
    migrate(model, steps.first(static_cast<std::size_t>(schemaVersion(database))));
    if (schemaOf(database) != schemaOf(model))
        refuseDamaged(database, "its tables are not as they were made");
}

} // namespace

std::span<const SqliteMigration> sessionMigrations() {
    return kMigrations;
}

int sessionVersion() {
    return kMigrations.back().version;
}

void examineSession(const SqliteDatabase& database) {
    try {
        checkOwner(database);
        checkVersion(database);
        checkContent(database);
    } catch (const SqliteError& error) {
        if (!error.damaged()) throw;
        refuseDamaged(database, "its pages do not fit together");
    }
}

} // namespace shardlens
