// SPDX-License-Identifier: Apache-2.0
// One query a table; the rows become the values of session_content.h.
#include "core/store/session_reader.h"

#include "core/store/compression.h"
#include "core/store/request_change.h"

#include <fmt/format.h>

namespace shardlens {

namespace {

[[noreturn]] void damaged(const SqliteDatabase& database, const std::string& finding) {
    throw StoreError(fmt::format("the session is damaged ({})", finding), database.where(),
                     "go back to a copy of it");
}

void readSessionRow(const SqliteDatabase& database, SessionContent& content) {
    SqliteStatement row =
        database.prepare("SELECT written_by, created, request, done FROM session");
    if (!row.step()) damaged(database, "it is empty");
    content.writtenBy = row.text(0);
    content.created = row.integer(1);
    try {
        content.request = requestFromJson(row.text(2));
    } catch (const InputError& error) {
        damaged(database, error.what());
    }
    content.done = static_cast<std::size_t>(row.integer(3));
}

void readModelRow(const SqliteDatabase& database, SessionContent& content) {
    SqliteStatement row =
        database.prepare("SELECT path, absolute_path, format, bytes, modified, hash FROM model");
    if (!row.step()) damaged(database, "it has no model");
    content.model = {row.text(0),    row.text(1),
                     row.text(2),    static_cast<std::uint64_t>(row.integer(3)),
                     row.integer(4), row.text(5)};
}

void readSteps(const SqliteDatabase& database, SessionContent& content) {
    SqliteStatement row = database.prepare(
        "SELECT number, label, kind, before, after, created FROM step ORDER BY number");
    while (row.step()) {
        Step step{row.text(1), row.text(2), row.text(3), row.text(4), {}, row.integer(5)};
        const auto number = static_cast<std::size_t>(row.integer(0));
        if (number != content.steps.size() + 1 || !isChange({step.before, step.after}))
            damaged(database, fmt::format("step {} of its history", number));
        content.steps.push_back(std::move(step));
    }
    if (content.done > content.steps.size()) damaged(database, "the length of its history");

    SqliteStatement change = database.prepare(
        "SELECT step, plan, name_before, name_after FROM step_plan ORDER BY step, plan");
    while (change.step())
        content.steps.at(static_cast<std::size_t>(change.integer(0) - 1))
            .plans.push_back({change.integer(1), change.optionalText(2), change.optionalText(3)});
}

} // namespace

SessionContent readContent(const SqliteDatabase& database) {
    SessionContent content;
    readSessionRow(database, content);
    readModelRow(database, content);
    content.plans = readPlans(database);
    readSteps(database, content);
    SqliteStatement view = database.prepare("SELECT key, value FROM view_state");
    while (view.step()) content.viewState[view.text(0)] = view.text(1);
    return content;
}

std::vector<KeptPlan> readPlans(const SqliteDatabase& database) {
    std::vector<KeptPlan> plans;
    SqliteStatement row = database.prepare("SELECT id, name, made_by, provenance, created "
                                           "FROM plan WHERE name IS NOT NULL ORDER BY id");
    while (row.step())
        plans.push_back({row.integer(0), row.text(1), row.text(2), row.text(3), row.integer(4)});
    return plans;
}

std::string readPackedText(const SqliteDatabase& database, std::string_view query,
                           std::int64_t id) {
    SqliteStatement row = database.prepare(query);
    row.bind(1, id);
    if (!row.step()) throw StoreError("the session holds no such text", database.where());
    try {
        return decompress(row.blob(0), static_cast<std::uint64_t>(row.integer(1)));
    } catch (const StoreError& error) {
        damaged(database, error.problem());
    }
}

} // namespace shardlens
