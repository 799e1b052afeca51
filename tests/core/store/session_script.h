// SPDX-License-Identifier: Apache-2.0
// An endless scripted session: operation k of a seed is the same whenever it is asked for. It can
// be played on a Session (by the process that will be killed) and on a plain model of one (by the
// test), which knows nothing of databases: undo is an index into a list of snapshots.
#pragma once

#include "core/store/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace shardlens::test {

enum class Verb : std::uint8_t { Batch, Pin, Unpin, Nodes, Undo, Redo, View, Keep, Drop };

struct Operation {
    Verb verb = Verb::Batch;
    std::size_t number = 0;
    std::string text; ///< noise, so that sizes differ and nothing compresses away

    std::string label() const { return fmt::format("operation {}", number); }
    std::string kind() const { return fmt::format("kind {}", static_cast<int>(verb)); }
    std::string planName() const { return fmt::format("plan {:07}", number); }
};

inline Operation operationAt(unsigned seed, std::size_t number) {
    std::mt19937 random(seed * 1'000'003U + static_cast<unsigned>(number));
    static constexpr Verb verbs[] = {Verb::Batch, Verb::Batch, Verb::Pin,  Verb::Pin,  Verb::Unpin,
                                     Verb::Nodes, Verb::Nodes, Verb::Undo, Verb::Undo, Verb::Redo,
                                     Verb::View,  Verb::Keep,  Verb::Keep, Verb::Drop};
    Operation operation{verbs[random() % std::size(verbs)], number, {}};
    const std::size_t words = operation.verb == Verb::Keep ? random() % 4000 : random() % 20;
    for (std::size_t i = 0; i < words; ++i) operation.text += fmt::format("{:08x}", random());
    return operation;
}

/// The request an operation leads to.
inline PlanRequest changed(PlanRequest request, const Operation& operation) {
    if (operation.verb == Verb::Batch)
        request.batch = static_cast<std::int64_t>(operation.number) + 1;
    if (operation.verb == Verb::Pin) request.pins.push_back({operation.label(), operation.text});
    if (operation.verb == Verb::Unpin && !request.pins.empty())
        request.pins.erase(request.pins.begin());
    if (operation.verb == Verb::Nodes) request.nodes = 1 + static_cast<int>(operation.number % 3);
    return request;
}

inline void play(Session& session, const Operation& operation) {
    const StepText text{operation.label(), operation.kind()};
    switch (operation.verb) {
    case Verb::Undo:
        session.undo();
        return;
    case Verb::Redo:
        session.redo();
        return;
    case Verb::View:
        session.setViewState(operation.kind(), operation.text);
        return;
    case Verb::Keep:
        session.savePlan(text, {operation.planName(), "script", "modelled", operation.text});
        return;
    case Verb::Drop:
        if (!session.content().plans.empty())
            session.removePlan(text, session.content().plans.front().id);
        return;
    default:
        break;
    }
    session.applyStep(text, changed(session.content().request, operation),
                      operation.verb == Verb::Nodes ? Session::Merge::WithLast
                                                    : Session::Merge::No);
}

/// What the session must be, kept the simple way.
struct ScriptModel {
    struct Snapshot {
        std::string label, kind;
        PlanRequest request;
        std::map<std::string, std::string> plans; ///< name -> text
    };
    std::vector<Snapshot> history; ///< [0] is the beginning
    std::size_t now = 0;
    std::map<std::string, std::string> view;

    explicit ScriptModel(const NewSession& start)
        : history{{"", "", start.request, {}}}, view(start.viewState) {}

    void play(const Operation& operation) {
        if (operation.verb == Verb::Undo) now -= now > 0 ? 1 : 0;
        if (operation.verb == Verb::Redo) now += now + 1 < history.size() ? 1 : 0;
        if (operation.verb == Verb::View) {
            view[operation.kind()] = operation.text;
            if (operation.text.empty()) view.erase(operation.kind());
        }
        if (operation.verb < Verb::Undo || operation.verb > Verb::View) playStep(operation);
    }

    void playStep(const Operation& operation) {
        Snapshot next = history[now];
        next.request = changed(next.request, operation);
        if (operation.verb == Verb::Keep) next.plans[operation.planName()] = operation.text;
        if (operation.verb == Verb::Drop && !next.plans.empty())
            next.plans.erase(next.plans.begin());
        const auto same = [&next](const Snapshot& other) {
            return toJson(next.request) == toJson(other.request) && next.plans == other.plans;
        };
        if (same(history[now])) return;
        const bool joins = operation.verb == Verb::Nodes && now > 0 && now + 1 == history.size() &&
                           history[now].kind == operation.kind();
        if (joins) --now;
        history.resize(now + 1, history.front());
        if (same(history[now])) return;
        next.label = operation.label();
        next.kind = operation.kind();
        history.push_back(next);
        ++now;
    }
};

/// What differs between a session and its model; empty if nothing does.
inline std::string difference(const Session& session, const ScriptModel& model) {
    const SessionContent& content = session.content();
    const ScriptModel::Snapshot& now = model.history[model.now];
    if (content.done != model.now)
        return fmt::format("{} steps done, not {}", content.done, model.now);
    if (content.steps.size() + 1 != model.history.size())
        return fmt::format("{} steps, not {}", content.steps.size(), model.history.size() - 1);
    for (std::size_t i = 0; i < content.steps.size(); ++i)
        if (content.steps[i].label != model.history[i + 1].label)
            return fmt::format("step {} is '{}'", i, content.steps[i].label);
    if (toJson(content.request) != toJson(now.request)) return "the request";
    if (content.viewState != model.view) return "the view state";
    std::map<std::string, std::string> plans;
    for (const KeptPlan& plan : content.plans) plans[plan.name] = session.planText(plan.id);
    return plans == now.plans ? "" : "the plans";
}

} // namespace shardlens::test
