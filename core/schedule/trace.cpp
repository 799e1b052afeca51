// SPDX-License-Identifier: Apache-2.0
// Events of one thread must nest or be apart, or viewers move them to tracks of their own. Joint
// tasks have the same times and so nest; the tasks of a stream, and of a link, never overlap.
#include "core/schedule/trace.h"

#include <fmt/ostream.h>

#include <cmath>
#include <string_view>

namespace shardlens::schedule {
namespace {

class TraceWriter {
public:
    TraceWriter(std::ostream& out, const Program& program, const Timeline& timeline,
                const TraceOptions& options)
        : m_out(out), m_program(program), m_timeline(timeline), m_options(options) {}

    void write(const Account& account) {
        m_out << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
        names();
        for (std::uint32_t q = 0; q < m_program.queues.size(); ++q) {
            if (m_program.queues[q].stream == Stream::None) continue;
            for (TaskId id = m_program.queues[q].begin; id < m_program.queues[q].end; ++id) {
                task(id, q);
            }
        }
        if (m_options.flows) flows();
        if (m_options.idle) {
            for (const Idle& idle : account.idle) {
                event("\"ph\":\"X\",\"cat\":\"idle\",\"name\":\"{}\",\"pid\":{},\"tid\":{},{}",
                      causeText(idle.cause), idle.device, kIdleThread, span(idle.begin, idle.end));
            }
        }
        for (std::uint32_t d = 0; m_options.memory && d < m_program.devices; ++d) {
            for (const MemoryPoint& point : memoryCurve(m_program, m_timeline, d)) {
                event("\"ph\":\"C\",\"name\":\"memory\",\"pid\":{},\"ts\":{},\"args\":{{\"memory\":"
                      "{}}}",
                      d, micro(nano(point.time)), point.memory);
            }
        }
        m_out << "\n]}\n";
    }

private:
    static constexpr std::uint32_t kComputeThread = 0, kCommunicationThread = 1, kIdleThread = 2;

    template <typename... Args>
    void event(fmt::format_string<Args...> text, Args&&... args) {
        m_out << (m_first ? "\n{" : ",\n{");
        m_first = false;
        fmt::print(m_out, text, std::forward<Args>(args)...);
        m_out << '}';
    }

    std::int64_t nano(double time) const {
        return std::llround(time * m_options.secondsPerUnit * 1e9);
    }
    static std::string micro(std::int64_t nanoseconds) {
        return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
    }
    std::string span(double begin, double end) const {
        const std::int64_t from = nano(begin);
        return fmt::format("\"ts\":{},\"dur\":{}", micro(from), micro(nano(end) - from));
    }

    /// Links come after the devices.
    std::uint32_t process(std::uint32_t queue) const {
        const Queue& q = m_program.queues[queue];
        return q.device == Queue::kLink ? m_program.devices + queue : q.device;
    }
    std::uint32_t thread(std::uint32_t queue) const {
        return m_program.queues[queue].stream == Stream::Compute ? kComputeThread
                                                                 : kCommunicationThread;
    }

    void name(const char* what, std::uint32_t process, std::uint32_t thread,
              std::string_view text) {
        event("\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":\"{}\"}}",
              what, process, thread, text);
    }
    void names() {
        for (std::uint32_t d = 0; d < m_program.devices; ++d) {
            name("process_name", d, 0, fmt::format("device {}", d));
            if (m_options.idle) name("thread_name", d, kIdleThread, "idle");
        }
        for (std::uint32_t q = 0; q < m_program.queues.size(); ++q) {
            const Queue& queue = m_program.queues[q];
            if (queue.stream == Stream::None) continue;
            if (queue.device == Queue::kLink) name("process_name", process(q), 0, "link");
            name("thread_name", process(q), thread(q),
                 queue.stream == Stream::Compute ? "compute" : "communication");
        }
    }

    void task(TaskId id, std::uint32_t queue) {
        const Task& task = m_program.tasks[id];
        event("\"ph\":\"X\",\"cat\":\"{}\",\"name\":\"{}\",\"pid\":{},\"tid\":{},{},\"args\":{{"
              "\"stage\":{},\"chunk\":{},\"microBatch\":{},\"slice\":{},\"round\":{}}}",
              passText(task.pass), taskName(task), process(queue), thread(queue),
              span(m_timeline.start[id], m_timeline.end[id]), task.stage, task.chunk,
              task.microBatch, task.slice, task.round);
    }

    void flows() {
        std::size_t flow = 0;
        std::vector<std::uint32_t> queueOf(m_program.tasks.size());
        for (std::uint32_t q = 0; q < m_program.queues.size(); ++q) {
            const Queue& queue = m_program.queues[q];
            std::fill(queueOf.begin() + queue.begin, queueOf.begin() + queue.end, q);
        }
        const auto end = [&](const char* phase, TaskId id, double time) {
            event(
                "{},\"cat\":\"dependency\",\"name\":\"dependency\",\"id\":{},\"pid\":{},\"tid\":{},"
                "\"ts\":{}",
                phase, flow, process(queueOf[id]), thread(queueOf[id]), micro(nano(time)));
        };
        for (TaskId id = 0; id < m_program.tasks.size(); ++id) {
            for (const Dependency& other : m_program.dependenciesOf(id)) {
                if (queueOf[other.task] == queueOf[id]) continue;
                const bool drawn = m_program.tasks[id].stream != Stream::None &&
                                   m_program.tasks[other.task].stream != Stream::None;
                if (!drawn) continue;
                // From within the task that has ended, so that viewers find it.
                end("\"ph\":\"s\"", other.task, m_timeline.start[other.task]);
                end("\"ph\":\"f\",\"bp\":\"e\"", id, m_timeline.start[id]);
                ++flow;
            }
        }
    }

    std::ostream& m_out;
    const Program& m_program;
    const Timeline& m_timeline;
    const TraceOptions& m_options;
    bool m_first = true;
};

} // namespace

void writeTrace(std::ostream& out, const Program& program, const Timeline& timeline,
                const Account& account, const TraceOptions& options) {
    TraceWriter(out, program, timeline, options).write(account);
}

} // namespace shardlens::schedule
