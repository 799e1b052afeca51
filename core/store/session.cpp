// SPDX-License-Identifier: Apache-2.0
// Each change follows one pattern: write inside a transaction, commit, and only then change the
// values in memory, with operations that cannot fail. How files are opened is in session_open.cpp.
#include "core/store/session.h"

#include "core/store/request_change.h"
#include "core/store/session_file.h"
#include "core/store/session_reader.h"
#include "core/store/session_state.h"
#include "core/store/session_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shardlens {

const SessionContent& Session::content() const {
    return m_state->content;
}
const std::filesystem::path& Session::path() const {
    return m_state->file;
}
bool Session::readOnly() const {
    return !m_state->lock;
}
const std::string& Session::readOnlyReason() const {
    return m_state->reason;
}

std::string Session::graph() const {
    return readPackedText(m_state->database, "SELECT graph, graph_bytes FROM model WHERE id = ?",
                          1);
}

std::string Session::planText(PlanId plan) const {
    return readPackedText(m_state->database,
                          "SELECT body, body_bytes FROM plan WHERE id = ? AND name IS NOT NULL",
                          plan);
}

bool Session::applyStep(const StepText& text, const PlanRequest& request, Merge merge) {
    State& state = m_state->writable();
    SessionContent& content = state.content;
    RequestChange change = changeBetween(content.request, request);
    if (change.empty()) return false;

    const bool join = merge == Merge::WithLast && state.endsWith(text.kind);
    const std::size_t kept = content.done - (join ? 1 : 0);
    if (join)
        change = changeBetween(withFields(content.request, content.steps.back().before), request);
    std::vector<Step> added; // none if a merged step leads back to where it began
    if (!change.empty())
        added.push_back({text.label, text.kind, change.before, change.after, {}, secondsNow()});

    SqliteTransaction transaction(state.database);
    forgetSteps(state.database, kept);
    for (const Step& step : added) writeStep(state.database, kept + 1, step);
    writePosition(state.database, request, kept + added.size());
    transaction.commit();

    content.request = request;
    content.steps.resize(kept);
    std::ranges::move(added, std::back_inserter(content.steps));
    content.done = content.steps.size();
    return true;
}

PlanId Session::savePlan(const StepText& text, const NewPlan& plan) {
    State& state = m_state->writable();
    state.requireFreeName(plan.name);
    SqliteTransaction transaction(state.database);
    forgetSteps(state.database, state.content.done);
    const PlanId id = writePlan(state.database, plan);
    state.finishPlanStep(transaction, text, {id, std::nullopt, plan.name});
    return id;
}

void Session::renamePlan(const StepText& text, PlanId plan, const std::string& name) {
    State& state = m_state->writable();
    const std::string old = state.plan(plan).name;
    if (name == old) return;
    state.requireFreeName(name);
    SqliteTransaction transaction(state.database);
    forgetSteps(state.database, state.content.done);
    state.finishPlanStep(transaction, text, {plan, old, name});
}

void Session::removePlan(const StepText& text, PlanId plan) {
    State& state = m_state->writable();
    const std::string old = state.plan(plan).name;
    SqliteTransaction transaction(state.database);
    forgetSteps(state.database, state.content.done);
    state.finishPlanStep(transaction, text, {plan, old, std::nullopt});
}

bool Session::undo() {
    State& state = m_state->writable();
    if (state.content.done == 0) return false;
    const Step& step = state.content.steps[state.content.done - 1];
    std::vector<State::PlanName> names;
    for (const Step::PlanChange& change : step.plans)
        names.emplace_back(change.plan, change.nameBefore);
    state.moveTo(state.content.done - 1, step.before, names);
    return true;
}

bool Session::redo() {
    State& state = m_state->writable();
    if (state.content.done == state.content.steps.size()) return false;
    const Step& step = state.content.steps[state.content.done];
    std::vector<State::PlanName> names;
    for (const Step::PlanChange& change : step.plans)
        names.emplace_back(change.plan, change.nameAfter);
    state.moveTo(state.content.done + 1, step.after, names);
    return true;
}

void Session::setViewState(const std::string& key, const std::string& json) {
    setViewState({{key, json}});
}

void Session::setViewState(const std::map<std::string, std::string>& values) {
    State& state = m_state->writable();
    std::map<std::string, std::string> next = state.content.viewState;
    for (const auto& [key, value] : values) {
        if (value.empty())
            next.erase(key);
        else
            next[key] = value;
    }
    if (next == state.content.viewState) return;
    SqliteTransaction transaction(state.database);
    writeViewState(state.database, values);
    transaction.commit();
    state.content.viewState = std::move(next);
}

void Session::setModel(const ModelReference& model, const std::string& graph) {
    State& state = m_state->writable();
    SqliteTransaction transaction(state.database);
    writeModel(state.database, model, graph);
    transaction.commit();
    state.content.model = model;
}

Session::State& Session::State::writable() {
    if (!lock)
        throw StoreError(fmt::format("the session is read-only: {}", reason), file.string(),
                         "save it under another name to change it");
    if (database.hasMoved())
        throw StoreError("the session's file was moved, replaced or deleted by another program",
                         file.string(), "save it under another name to go on");
    return *this;
}

bool Session::State::endsWith(const std::string& kind) const {
    return content.done > 0 && content.done == content.steps.size() &&
           content.steps.back().kind == kind && content.steps.back().plans.empty();
}

const KeptPlan& Session::State::plan(PlanId id) const {
    const auto found = std::ranges::find(content.plans, id, &KeptPlan::id);
    if (found == content.plans.end())
        throw StoreError(fmt::format("the session keeps no plan {}", id), file.string());
    return *found;
}

void Session::State::requireFreeName(const std::string& name) const {
    if (name.empty()) throw StoreError("a plan needs a name", file.string(), "give it one");
    if (std::ranges::find(content.plans, name, &KeptPlan::name) != content.plans.end())
        throw StoreError(fmt::format("a plan named '{}' is kept already", name), file.string(),
                         "choose another name");
}

void Session::State::finishPlanStep(SqliteTransaction& transaction, const StepText& text,
                                    const Step::PlanChange& change) {
    Step step{text.label, text.kind, "{}", "{}", {change}, secondsNow()};
    const std::size_t number = content.done + 1;
    writePlanName(database, change.plan, change.nameAfter);
    writeStep(database, number, step);
    writePosition(database, content.request, number);
    std::vector<KeptPlan> plans = readPlans(database);
    transaction.commit();

    content.plans = std::move(plans);
    content.steps.resize(content.done);
    content.steps.push_back(std::move(step));
    content.done = number;
}

void Session::State::moveTo(std::size_t done, const std::string& fields,
                            const std::vector<PlanName>& names) {
    PlanRequest request = withFields(content.request, fields);
    SqliteTransaction transaction(database);
    for (const auto& [plan, name] : names) writePlanName(database, plan, name);
    writePosition(database, request, done);
    std::vector<KeptPlan> plans = names.empty() ? content.plans : readPlans(database);
    transaction.commit();

    content.request = std::move(request);
    content.plans = std::move(plans);
    content.done = done;
}

} // namespace shardlens
