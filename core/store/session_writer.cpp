// SPDX-License-Identifier: Apache-2.0
// Plain inserts and updates; the meaning of each column is in session_schema.cpp.
#include "core/store/session_writer.h"

#include "core/store/compression.h"
#include "core/store/session_schema.h"

#include <chrono>

namespace shardlens {

void writeNewSession(const SqliteDatabase& database, const NewSession& content) {
    migrate(database, sessionMigrations());
    SqliteTransaction transaction(database);
    database
        .prepare("INSERT INTO session (id, written_by, created, request, done) "
                 "VALUES (1, ?, ?, ?, 0)")
        .bind(1, programVersion())
        .bind(2, secondsNow())
        .bind(3, toJson(content.request))
        .run();
    writeModel(database, content.model, content.graph);
    writeViewState(database, content.viewState);
    transaction.commit();
}

void writeModel(const SqliteDatabase& database, const ModelReference& model,
                const std::string& graph) {
    database
        .prepare("INSERT OR REPLACE INTO model (id, path, absolute_path, format, bytes, modified, "
                 "hash, graph, graph_bytes) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)")
        .bind(1, model.path)
        .bind(2, model.absolutePath)
        .bind(3, model.format)
        .bind(4, model.bytes)
        .bind(5, model.modified)
        .bind(6, model.hash)
        .bind(7, compress(graph))
        .bind(8, graph.size())
        .run();
}

void writeViewState(const SqliteDatabase& database,
                    const std::map<std::string, std::string>& values) {
    SqliteStatement set =
        database.prepare("INSERT OR REPLACE INTO view_state (key, value) VALUES (?, ?)");
    SqliteStatement remove = database.prepare("DELETE FROM view_state WHERE key = ?");
    for (const auto& [key, value] : values) {
        if (value.empty())
            remove.bind(1, key).run();
        else
            set.bind(1, key).bind(2, value).run();
    }
}

void writePosition(const SqliteDatabase& database, const PlanRequest& request, std::size_t done) {
    database.prepare("UPDATE session SET request = ?, done = ?, written_by = ?")
        .bind(1, toJson(request))
        .bind(2, done)
        .bind(3, programVersion())
        .run();
}

void writeStep(const SqliteDatabase& database, std::size_t number, const Step& step) {
    database
        .prepare("INSERT INTO step (number, label, kind, before, after, created) "
                 "VALUES (?, ?, ?, ?, ?, ?)")
        .bind(1, number)
        .bind(2, step.label)
        .bind(3, step.kind)
        .bind(4, step.before)
        .bind(5, step.after)
        .bind(6, step.created)
        .run();
    SqliteStatement change = database.prepare(
        "INSERT INTO step_plan (step, plan, name_before, name_after) VALUES (?, ?, ?, ?)");
    for (const Step::PlanChange& plan : step.plans)
        change.bind(1, number)
            .bind(2, plan.plan)
            .bindOptional(3, plan.nameBefore)
            .bindOptional(4, plan.nameAfter)
            .run();
}

void forgetSteps(const SqliteDatabase& database, std::size_t kept) {
    database.prepare("DELETE FROM step WHERE number > ?").bind(1, kept).run();
    database
        .prepare("DELETE FROM plan WHERE name IS NULL AND id NOT IN (SELECT plan FROM step_plan)")
        .run();
}

PlanId writePlan(const SqliteDatabase& database, const NewPlan& plan) {
    SqliteStatement insert =
        database.prepare("INSERT INTO plan (name, made_by, provenance, created, body, body_bytes) "
                         "VALUES (?, ?, ?, ?, ?, ?) RETURNING id");
    insert.bind(1, plan.name)
        .bind(2, plan.madeBy)
        .bind(3, plan.provenance)
        .bind(4, secondsNow())
        .bind(5, compress(plan.json))
        .bind(6, plan.json.size());
    insert.step();
    const PlanId id = insert.integer(0);
    insert.run();
    return id;
}

void writePlanName(const SqliteDatabase& database, PlanId plan,
                   const std::optional<std::string>& name) {
    database.prepare("UPDATE plan SET name = ? WHERE id = ?")
        .bindOptional(1, name)
        .bind(2, plan)
        .run();
}

std::string programVersion() {
    return SHARDLENS_VERSION;
}

std::int64_t secondsNow() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

} // namespace shardlens
