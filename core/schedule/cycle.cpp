// SPDX-License-Identifier: Apache-2.0
// Tasks are taken away as long as one is left that waits for nothing. If some remain, each of them
// waits for another one that remains: going from one to the next must come back.
#include "core/schedule/cycle.h"

#include "core/schedule/rule_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shardlens::schedule {
namespace {

/// Tasks that start together are one: the first of them stands for both.
class Waits {
public:
    explicit Waits(const Program& program) : m_program(program) {
        m_before.assign(program.tasks.size(), kNoTask);
        for (const Queue& queue : program.queues) {
            if (!queue.listed || queue.stream == Stream::None) continue;
            for (TaskId id = queue.begin + 1; id < queue.end; ++id) m_before[id] = id - 1;
        }
    }

    TaskId leaderOf(TaskId id) const { return m_program.tasks[id].joined ? id - 1 : id; }

    /// The first task that this one waits for and that `open` says is still there.
    TaskId firstOpen(TaskId leader, const std::vector<char>& open) const {
        const TaskId end = std::min<TaskId>(leader + 2, TaskId(m_program.tasks.size()));
        for (TaskId id = leader; id < end && leaderOf(id) == leader; ++id) {
            for (const Dependency& other : m_program.dependenciesOf(id)) {
                if (open[leaderOf(other.task)]) return leaderOf(other.task);
            }
        }
        const TaskId before = m_before[leader];
        return before != kNoTask && open[leaderOf(before)] ? leaderOf(before) : kNoTask;
    }
    /// Whether it is a dependency, and not only the order of a list.
    bool needs(TaskId leader, TaskId other) const {
        const TaskId end = std::min<TaskId>(leader + 2, TaskId(m_program.tasks.size()));
        for (TaskId id = leader; id < end && leaderOf(id) == leader; ++id) {
            const auto found =
                std::ranges::find(m_program.dependenciesOf(id), other,
                                  [&](const Dependency& d) { return leaderOf(d.task); });
            if (found != m_program.dependenciesOf(id).end()) return true;
        }
        return false;
    }

    /// By task: 1 for leaders that can never start.
    std::vector<char> neverStarted() const {
        const std::size_t n = m_program.tasks.size();
        std::vector<char> open(n, 0);
        std::vector<TaskId> waiterOf(n, kNoTask), nextWaiter(n, kNoTask), free;
        for (TaskId id = 0; id < n; ++id) open[id] = !m_program.tasks[id].joined;
        const auto visit = [&](TaskId id) {
            const TaskId other = firstOpen(id, open);
            if (other == kNoTask) {
                open[id] = 0;
                free.push_back(id);
            } else { // looked at again when that one is gone
                nextWaiter[id] = waiterOf[other];
                waiterOf[other] = id;
            }
        };
        for (TaskId id = 0; id < n; ++id) {
            if (open[id]) visit(id);
            while (!free.empty()) {
                TaskId waiter = std::exchange(waiterOf[free.back()], kNoTask);
                free.pop_back();
                while (waiter != kNoTask) visit(std::exchange(waiter, nextWaiter[waiter]));
            }
        }
        return open;
    }

private:
    const Program& m_program;
    std::vector<TaskId> m_before; ///< in the list of its queue
};

} // namespace

std::vector<TaskId> findCycle(const Program& program) {
    const Waits waits(program);
    const std::vector<char> open = waits.neverStarted();
    const auto first = std::ranges::find(open, char{1});
    if (first == open.end()) return {};
    std::vector<TaskId> path;
    std::vector<char> seen(open.size(), 0);
    auto id = static_cast<TaskId>(first - open.begin());
    while (!seen[id]) {
        seen[id] = 1;
        path.push_back(id);
        id = waits.firstOpen(id, open);
    }
    path.erase(path.begin(), std::ranges::find(path, id));
    // What only stands between two others of a list says nothing.
    std::vector<TaskId> cycle;
    for (std::size_t i = 0; i < path.size(); ++i) {
        const TaskId before = path[(i + path.size() - 1) % path.size()];
        const TaskId next = path[(i + 1) % path.size()];
        if (waits.needs(before, path[i]) || waits.needs(path[i], next)) cycle.push_back(path[i]);
    }
    return cycle;
}

std::string cycleText(const Program& program, const std::vector<TaskId>& cycle) {
    constexpr std::size_t kMostNamed = 12;
    const Waits waits(program);
    const auto nameOf = [&](TaskId id) { return taskName(program.tasks[id]); };
    std::string text = nameOf(cycle.front());
    for (std::size_t i = 0; i < cycle.size(); ++i) {
        if (i == kMostNamed && cycle.size() > kMostNamed + 1) {
            text +=
                fmt::format(", and {} more back to {}", cycle.size() - i, nameOf(cycle.front()));
            break;
        }
        const TaskId id = cycle[i], other = cycle[(i + 1) % cycle.size()];
        const char* which = i == 0 ? "" : ", which";
        if (waits.needs(id, other)) {
            text += fmt::format("{} waits for {}", which, nameOf(other));
        } else {
            text += fmt::format("{} comes after {} on device {}", which, nameOf(other),
                                program.tasks[id].device);
        }
    }
    return text;
}

void throwStuck(const Program& program) {
    const std::vector<TaskId> cycle = findCycle(program);
    if (!cycle.empty()) {
        throw RuleError(
            BrokenRule::Acyclic,
            fmt::format("the orders contradict each other: {}", cycleText(program, cycle)),
            "schedule", "move one of these tasks");
    }
    throw RuleError(BrokenRule::Sizes,
                    "the limit of micro-batches in flight is too small: no task may start",
                    "schedule", "allow more of them");
}

} // namespace shardlens::schedule
