// SPDX-License-Identifier: Apache-2.0
// Where the time of each device goes. An idle time before a task is cut where its cause changes:
// the task's last dependency says what it was (still being computed, travelling, a barrier), and
// what the rule held back comes first. Imbalance is that part of waiting for others that would be
// gone if all stages took as long as the longest: a device earns it with every pass that is
// shorter.
#include "core/schedule/timeline.h"

#include <algorithm>
#include <ranges>

namespace shardlens::schedule {
namespace {

class Accountant {
public:
    Accountant(const Program& program, const Timeline& timeline)
        : m_program(program), m_timeline(timeline) {
        findLongest();
    }

    Account run() {
        m_out.devices.resize(m_program.devices);
        for (std::uint32_t d = 0; d < m_program.devices; ++d) device(d);
        for (const DeviceUse& use : m_out.devices) {
            m_out.work = std::max(m_out.work, use.busy);
            m_out.spanBubble = std::max(m_out.spanBubble, use.spanBubble());
            m_out.peakMemory = std::max(m_out.peakMemory, use.peakMemory);
        }
        m_out.bubble = m_timeline.makespan - m_out.work;
        return std::move(m_out);
    }

private:
    static constexpr std::size_t kJoined = kPasses; ///< a class of its own

    std::size_t classOf(TaskId leader) const {
        const bool joined =
            leader + 1 < m_program.tasks.size() && m_program.tasks[leader + 1].joined;
        const auto pass = static_cast<std::size_t>(m_program.tasks[leader].pass);
        return (joined ? kJoined : pass) * m_program.slices + m_program.tasks[leader].slice;
    }
    void findLongest() {
        m_longest.assign((kPasses + 1) * m_program.slices, 0);
        for (TaskId id = 0; id < m_program.tasks.size(); ++id) {
            if (m_program.tasks[id].joined) continue; // the first of the two stands for both
            double& longest = m_longest[classOf(id)];
            longest = std::max(longest, m_program.duration[id]);
        }
    }

    /// Tasks of the compute stream that start on their own, in the order of time.
    std::vector<TaskId> slotsOf(std::uint32_t device) const {
        std::vector<TaskId> slots = runOrder(m_timeline, m_program.queues[device]);
        std::erase_if(slots, [&](TaskId id) { return m_program.tasks[id].joined; });
        return slots;
    }

    void device(std::uint32_t device) {
        DeviceUse& use = m_out.devices[device];
        const std::vector<TaskId> slots = slotsOf(device);
        m_credit = 0;
        m_device = device;
        m_held = std::ranges::equal_range(m_timeline.held, device, {}, &Timeline::Held::queue);
        double free = 0;
        for (const TaskId id : slots) {
            const double start = m_timeline.start[id];
            if (start > free) {
                if (id == slots.front()) {
                    add(free, start, Cause::Fill);
                } else {
                    explain(id, free, start);
                }
            }
            free = m_timeline.end[id];
            use.busy += m_program.duration[id];
            m_credit += m_longest[classOf(id)] - m_program.duration[id];
        }
        use.first = slots.empty() ? 0 : m_timeline.start[slots.front()];
        use.last = free;
        if (m_timeline.makespan > free) add(free, m_timeline.makespan, Cause::Drain);
        use.peakMemory = peakMemory(device);
        use.peakInFlight = peakInFlight(slots);
    }

    void add(double begin, double end, Cause cause) {
        if (!(end > begin)) return;
        m_out.idle.push_back({begin, end, static_cast<std::uint16_t>(m_device), cause});
        m_out.devices[m_device].idle[static_cast<std::size_t>(cause)] += end - begin;
    }

    /// What the slot that starts at `end` waited for since `begin`.
    void explain(TaskId leader, double begin, double end) {
        const auto held = std::ranges::find_if(
            m_held, [&](const Timeline::Held& h) { return h.end > begin && h.begin < end; });
        if (held != m_held.end()) {
            const double from = std::max(begin, held->begin), to = std::min(end, held->end);
            waited(leader, begin, from);
            add(from, to, Cause::MemoryWait);
            begin = to;
        }
        waited(leader, begin, end);
    }

    struct Last {
        TaskId task = kNoTask;
        double ended = 0, arrived = 0;
    };
    Last lastDependency(TaskId leader) const {
        Last last;
        const auto look = [&](TaskId id) {
            for (const Dependency& dependency : m_program.dependenciesOf(id)) {
                const double ended = m_timeline.end[dependency.task];
                const double arrived = ended + m_program.lags[dependency.lag];
                if (last.task == kNoTask || arrived > last.arrived) {
                    last = {dependency.task, ended, arrived};
                }
            }
        };
        look(leader);
        if (leader + 1 < m_program.tasks.size() && m_program.tasks[leader + 1].joined) {
            look(leader + 1);
        }
        return last;
    }

    void waited(TaskId leader, double begin, double end) {
        if (!(end > begin)) return;
        const Last last = lastDependency(leader);
        if (last.task == kNoTask) return stalled(begin, end);
        const Pass pass = m_program.tasks[last.task].pass;
        if (pass == Pass::Barrier || pass == Pass::AllReduce || pass == Pass::Update) {
            return add(begin, end, Cause::Synchronization);
        }
        const double computed = isSend(pass) ? lastDependency(last.task).ended : last.ended;
        const double left = std::clamp(computed, begin, end);
        stalled(begin, left);
        add(left, end, Cause::Communication);
    }

    void stalled(double begin, double end) {
        const double imbalance = std::min(m_credit, end - begin);
        m_credit -= std::max(0.0, imbalance);
        add(begin, begin + imbalance, Cause::Imbalance);
        add(begin + imbalance, end, Cause::Dependency);
    }

    double peakMemory(std::uint32_t device) const {
        double peak = 0;
        for (const MemoryPoint& point : memoryCurve(m_program, m_timeline, device)) {
            peak = std::max(peak, point.memory);
        }
        return peak;
    }

    std::uint32_t peakInFlight(const std::vector<TaskId>& slots) const {
        std::uint32_t inFlight = 0, peak = 0;
        for (const TaskId leader : slots) {
            const bool joined =
                leader + 1 < m_program.tasks.size() && m_program.tasks[leader + 1].joined;
            std::uint32_t given = 0;
            for (TaskId id = leader; id <= leader + (joined ? 1 : 0); ++id) {
                if (m_program.tokens[id] & token::kTakesDevice) ++inFlight;
                if (m_program.tokens[id] & token::kGivesDevice) ++given;
            }
            peak = std::max(peak, inFlight);
            inFlight -= std::min(inFlight, given);
        }
        return peak;
    }

    const Program& m_program;
    const Timeline& m_timeline;
    Account m_out;
    std::vector<double> m_longest; ///< by class and slice
    std::uint32_t m_device = 0;
    double m_credit = 0; ///< time that longer stages would have taken
    std::ranges::subrange<std::vector<Timeline::Held>::const_iterator> m_held;
};

} // namespace

std::string_view causeText(Cause cause) {
    static constexpr std::array<std::string_view, kCauses> kText = {
        "fill",      "drain",       "dependency",     "exposed communication",
        "imbalance", "memory wait", "synchronisation"};
    return kText[static_cast<std::size_t>(cause)];
}

Account account(const Program& program, const Timeline& timeline) {
    return Accountant(program, timeline).run();
}

} // namespace shardlens::schedule
