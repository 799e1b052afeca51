// SPDX-License-Identifier: Apache-2.0
// A discrete-event simulation. Queues with a fixed order need no clock: the next task starts when
// its queue is free and its dependencies have ended, all of which is known as soon as they have
// started, so such tasks are started ahead of time. Queues that go by rule have to decide with what
// is ready at that moment; only they cause events.
#include "core/error.h"
#include "core/schedule/cycle.h"
#include "core/schedule/timeline.h"

#include <fmt/format.h>

#include <queue>

#include <algorithm>
#include <functional>
#include <numeric>

namespace shardlens::schedule {
namespace {

/// Moments this close are one: sums of durations that should meet differ in their last digits.
constexpr double kSameTime = 1e-12;

struct Event {
    enum class Kind : std::uint8_t { Ready, Free, Given };

    double time;
    Kind kind;
    std::uint32_t subject; ///< task, queue or giving task

    bool operator>(const Event& other) const {
        if (time != other.time) return time > other.time;
        return kind != other.kind ? kind > other.kind : subject > other.subject;
    }
};

/// Ready tasks of a queue that goes by rule, by chunk and the tokens they take.
struct Lanes {
    static constexpr std::size_t kTokens = 4; ///< combinations of those that are taken
    using Heap = std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>>;

    std::vector<Heap> ready; ///< rank, then task; chunk after chunk
    double heldSince = -1;
};

class Engine {
public:
    explicit Engine(const Program& program);
    Timeline run();

private:
    /// The tasks that start together with this one are it and its neighbour.
    std::uint32_t slotSize(TaskId leader) const {
        return leader + 1 < m_tasks.size() && m_tasks[leader + 1].joined ? 2 : 1;
    }
    TaskId leaderOf(TaskId id) const { return m_tasks[id].joined ? id - 1 : id; }

    void start(TaskId leader, double time);
    void settle(TaskId ended);
    void becomesReady(TaskId leader);
    void advance(std::uint32_t queue);
    void drain();
    /// @returns the time of the last one
    double takeEvents(double until);
    void decide(std::uint32_t queue, double now, double until);
    std::size_t bestLane(std::uint32_t queue) const;
    bool admits(std::size_t lane, std::uint32_t device) const;
    double& inFlight(std::uint32_t device, std::size_t chunk) {
        return m_inFlight[device * m_program.chunks + chunk];
    }
    void take(TaskId id, double change);
    void touch(std::uint32_t queue);

    const Program& m_program;
    const std::vector<Task>& m_tasks;
    Timeline m_out;
    std::vector<std::uint32_t> m_pending; ///< by leader: dependencies that have not started
    std::vector<double> m_ready;          ///< by leader
    std::vector<std::uint32_t> m_queueOf; ///< by task, only if some queue goes by rule
    std::vector<TaskId> m_next;           ///< by queue
    std::vector<double> m_free;           ///< by queue
    std::vector<TaskId> m_started;        ///< whose followers have not been told
    std::size_t m_count = 0;              ///< tasks that have started

    std::vector<Lanes> m_lanes;             ///< by queue, only if some go by rule
    std::vector<double> m_inFlight;         ///< by device and chunk
    std::vector<double> m_inFlightOfDevice; ///< their sums
    double m_inWindow = 0;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> m_events;
    std::vector<std::uint32_t> m_touched; ///< queues that have to decide
    std::vector<char> m_isTouched;
};

Engine::Engine(const Program& program) : m_program(program), m_tasks(program.tasks) {
    const std::size_t n = m_tasks.size(), queues = program.queues.size();
    m_out.start.assign(n, 0);
    m_out.end.assign(n, 0);
    m_pending.assign(n, 0);
    m_ready.assign(n, 0);
    for (TaskId i = 0; i < n; ++i) {
        m_pending[leaderOf(i)] += program.firstDependency[i + 1] - program.firstDependency[i];
    }
    m_free.assign(queues, 0);
    m_queueOf.resize(n);
    for (std::uint32_t q = 0; q < queues; ++q) {
        m_next.push_back(program.queues[q].begin);
        std::fill(m_queueOf.begin() + program.queues[q].begin,
                  m_queueOf.begin() + program.queues[q].end, q);
    }
    if (std::ranges::any_of(program.queues, [](const Queue& q) { return !q.listed; })) {
        m_out.sequence.assign(n, 0);
        m_lanes.resize(queues);
        for (Lanes& lanes : m_lanes) lanes.ready.resize(Lanes::kTokens * program.chunks);
        m_isTouched.assign(queues, 0);
        m_inFlight.assign(std::size_t{program.devices} * program.chunks, 0);
        m_inFlightOfDevice.assign(program.devices, 0);
    }
}

void Engine::start(TaskId leader, double time) {
    const std::uint32_t queue = m_queueOf[leader];
    const double end = time + m_program.duration[leader];
    const std::uint32_t size = slotSize(leader);
    for (TaskId id = leader; id < leader + size; ++id) {
        m_out.start[id] = time;
        m_out.end[id] = end;
    }
    m_out.makespan = std::max(m_out.makespan, end);
    if (!m_lanes.empty()) {
        for (TaskId id = leader; id < leader + size; ++id) {
            m_out.sequence[id] = static_cast<std::uint32_t>(m_count) + id - leader;
        }
    }
    m_count += size;
    m_free[queue] = end;
    m_started.push_back(leader);
    if (m_lanes.empty()) return;
    for (TaskId id = leader; id < leader + size; ++id) {
        take(id, 1);
        if (m_program.tokens[id] & (token::kGivesDevice | token::kGivesWindow)) {
            m_events.push({end, Event::Kind::Given, id});
        }
    }
    if (!m_program.queues[queue].listed) m_events.push({end, Event::Kind::Free, queue});
}

/// +1 for what it takes at its start, −1 for what it gives at its end.
void Engine::take(TaskId id, double change) {
    const std::uint8_t tokens = m_program.tokens[id];
    const std::uint8_t device = change > 0 ? token::kTakesDevice : token::kGivesDevice;
    const std::uint8_t window = change > 0 ? token::kTakesWindow : token::kGivesWindow;
    if (tokens & device) {
        inFlight(m_tasks[id].device, m_tasks[id].chunk) += change;
        m_inFlightOfDevice[m_tasks[id].device] += change;
    }
    if (tokens & window) m_inWindow += change;
}

void Engine::settle(TaskId leader) {
    const std::uint32_t size = slotSize(leader);
    for (TaskId id = leader; id < leader + size; ++id) {
        for (const Dependency& follower : m_program.followersOf(id)) {
            const TaskId other = leaderOf(follower.task);
            const double ready = m_out.end[id] + m_program.lags[follower.lag];
            m_ready[other] = std::max(m_ready[other], ready);
            if (--m_pending[other] == 0) becomesReady(other);
        }
    }
}

void Engine::becomesReady(TaskId leader) {
    const std::uint32_t queue = m_queueOf[leader];
    if (!m_program.queues[queue].listed) {
        m_events.push({m_ready[leader], Event::Kind::Ready, leader});
    } else if (m_program.queues[queue].stream == Stream::None) {
        start(leader, m_ready[leader]);
    } else if (m_next[queue] == leader) {
        advance(queue);
    }
}

void Engine::advance(std::uint32_t queue) {
    TaskId& next = m_next[queue];
    while (next < m_program.queues[queue].end && m_pending[next] == 0) {
        const TaskId leader = next;
        next += slotSize(leader);
        start(leader, std::max(m_free[queue], m_ready[leader]));
    }
}

void Engine::drain() {
    while (!m_started.empty()) {
        const TaskId leader = m_started.back();
        m_started.pop_back();
        settle(leader);
    }
}

void Engine::touch(std::uint32_t queue) {
    if (m_isTouched[queue]) return;
    m_isTouched[queue] = 1;
    m_touched.push_back(queue);
}

double Engine::takeEvents(double until) {
    double now = 0;
    while (!m_events.empty() && m_events.top().time <= until) {
        const Event event = m_events.top();
        m_events.pop();
        now = event.time;
        if (event.kind == Event::Kind::Free) {
            touch(event.subject);
        } else if (event.kind == Event::Kind::Ready) {
            const std::uint32_t queue = m_queueOf[event.subject];
            const std::uint64_t rank = m_program.rank[event.subject];
            const std::size_t lane = m_tasks[event.subject].chunk * Lanes::kTokens +
                                     m_program.tokens[event.subject] % Lanes::kTokens;
            m_lanes[queue].ready[lane].push(rank << 32 | event.subject);
            touch(queue);
        } else {
            take(event.subject, -1);
            if (m_program.tokens[event.subject] & token::kGivesDevice) {
                touch(m_tasks[event.subject].device); // compute queues come first
            }
            if (m_program.tokens[event.subject] & token::kGivesWindow) {
                for (std::uint32_t d = 0; d < m_program.devices; ++d) touch(d);
            }
        }
    }
    return now;
}

bool Engine::admits(std::size_t lane, std::uint32_t device) const {
    const std::size_t tokens = lane % Lanes::kTokens, chunk = lane / Lanes::kTokens;
    if (tokens & token::kTakesDevice) {
        const double ofChunk = m_inFlight[device * m_program.chunks + chunk];
        if (m_inFlightOfDevice[device] + 1 > m_program.deviceLimit[device] ||
            ofChunk + 1 > m_program.chunkLimit[device]) {
            return false;
        }
    }
    return !(tokens & token::kTakesWindow) || m_inWindow + 1 <= m_program.window;
}

std::size_t Engine::bestLane(std::uint32_t queue) const {
    const std::uint32_t device = m_program.queues[queue].device;
    const auto& ready = m_lanes[queue].ready;
    std::size_t best = ready.size();
    for (std::size_t lane = 0; lane < ready.size(); ++lane) {
        if (ready[lane].empty() || !admits(lane, device)) continue;
        if (best == ready.size() || ready[lane].top() < ready[best].top()) best = lane;
    }
    return best;
}

void Engine::decide(std::uint32_t queue, double now, double until) {
    if (m_program.queues[queue].listed || m_free[queue] > until) return;
    Lanes& lanes = m_lanes[queue];
    const std::size_t best = bestLane(queue);
    if (best == lanes.ready.size()) {
        const bool waits = std::ranges::any_of(lanes.ready, [](auto& r) { return !r.empty(); });
        if (waits && lanes.heldSince < 0) lanes.heldSince = now;
        return;
    }
    const auto id = static_cast<TaskId>(lanes.ready[best].top());
    lanes.ready[best].pop();
    if (lanes.heldSince >= 0) m_out.held.push_back({queue, lanes.heldSince, now});
    lanes.heldSince = -1;
    start(id, std::max({now, m_free[queue], m_ready[id]}));
    drain();
}

Timeline Engine::run() {
    const std::size_t n = m_tasks.size();
    for (TaskId i = 0; i < n; ++i) {
        const bool waits = m_pending[i] > 0 || m_tasks[i].joined;
        if (!waits && (m_program.queues[m_queueOf[i]].stream == Stream::None ||
                       !m_program.queues[m_queueOf[i]].listed)) {
            becomesReady(i);
        }
    }
    for (std::uint32_t q = 0; q < m_program.queues.size(); ++q) {
        const Queue& queue = m_program.queues[q];
        if (queue.listed && queue.stream != Stream::None) advance(q);
    }
    drain();
    while (!m_events.empty()) {
        const double first = m_events.top().time;
        const double until = first + kSameTime * std::max(1.0, first);
        const double now = takeEvents(until);
        std::ranges::sort(m_touched);
        for (const std::uint32_t queue : m_touched) {
            m_isTouched[queue] = 0;
            decide(queue, now, until);
        }
        m_touched.clear();
    }
    if (m_count < n) throwStuck(m_program);
    std::ranges::stable_sort(m_out.held, {}, &Timeline::Held::queue);
    return std::move(m_out);
}

} // namespace

std::vector<TaskId> runOrder(const Timeline& timeline, const Queue& queue) {
    std::vector<TaskId> ids(queue.end - queue.begin);
    std::iota(ids.begin(), ids.end(), queue.begin);
    if (!queue.listed) {
        std::ranges::sort(ids, {}, [&](TaskId id) { return timeline.sequence[id]; });
    }
    return ids;
}

Timeline simulate(const Program& program) {
    return Engine(program).run();
}

} // namespace shardlens::schedule
