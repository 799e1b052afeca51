// SPDX-License-Identifier: Apache-2.0
// From orders to a program: queues, then dependencies, then what each task takes of time and
// memory.
#include "core/schedule/program.h"

#include "core/schedule/dependencies.h"
#include "core/schedule/rule_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shardlens::schedule {
namespace {

void oneOrEach(std::size_t entries, std::size_t each, const char* what, const char* of) {
    if (entries == 1 || entries == each) return;
    throw PlanError(fmt::format("there are {} entries of {} for {} {}", entries, what, each, of),
                    "schedule", "give one entry for all, or one for each");
}

void checkOrders(const ScheduleSpec& spec, const Orders& orders) {
    if (orders.lists.size() != orders.devices || orders.devices == 0 || orders.stages == 0 ||
        orders.microBatches == 0 || orders.slices == 0 || orders.updates == 0) {
        throw PlanError("the orders name no device, stage or micro-batch", "schedule",
                        "give every device a list of tasks");
    }
    oneOrEach(spec.times.size(), orders.stages, "times", "stages");
    oneOrEach(spec.activation.size(), orders.stages, "activation memory", "stages");
    oneOrEach(spec.staticMemory.size(), orders.devices, "static memory", "devices");
    oneOrEach(spec.capacity.size(), orders.devices, "capacity", "devices");
    if (orders.stages > 1)
        oneOrEach(spec.transfer.size(), orders.stages - 1, "transfer", "boundaries");
    if (!spec.slices.empty() && spec.slices.size() != orders.slices) {
        throw PlanError(
            fmt::format("there are {} shares for {} slices", spec.slices.size(), orders.slices),
            "schedule", "give one share for each slice");
    }
    for (std::uint32_t d = 0; d < orders.devices; ++d) {
        const auto& list = orders.lists[d];
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (!list[i].joined || (i > 0 && !list[i - 1].joined && !orders.rule)) continue;
            throw PlanError(fmt::format("{} has nothing to join", taskName(list[i])),
                            fmt::format("device {}", d), "join exactly two tasks of a list");
        }
    }
}

/// Time and memory of tasks.
class Measures {
public:
    Measures(const ScheduleSpec& spec, const Orders& orders, const Placement& placement,
             const TaskIndex& index, Program& program)
        : m_spec(spec), m_orders(orders), m_placement(placement), m_index(index), m_out(program),
          m_inSeries(std::max(1.0, double(orders.stages) / orders.devices)) {}

    void apply() {
        const std::size_t n = m_out.tasks.size();
        m_out.duration.resize(n);
        m_out.allocated.assign(n, 0);
        m_out.freed.assign(n, 0);
        m_out.tokens.assign(n, 0);
        for (TaskId id = 0; id < n; ++id) {
            m_out.duration[id] = durationOf(m_out.tasks[id]);
            keep(id);
            setTokens(id);
        }
        for (TaskId id = 1; id < n; ++id) {
            if (!m_out.tasks[id].joined) continue;
            m_out.duration[id] += m_out.duration[id - 1];
            m_out.duration[id] *= m_spec.jointFactor;
            m_out.duration[id - 1] = m_out.duration[id];
        }
        for (std::uint32_t d = 0; d < m_orders.devices; ++d) {
            m_out.staticMemory.push_back(entry(m_spec.staticMemory, d));
            m_out.capacity.push_back(entry(m_spec.capacity, d));
        }
    }

private:
    /// One entry stands for a device's whole share, which its stages share.
    const StageTimes& timesOf(std::uint32_t stage) const {
        return m_spec.times[m_spec.times.size() == 1 ? 0 : stage];
    }
    double part(std::size_t entries) const { return entries == 1 ? 1 / m_inSeries : 1; }
    double share(const Task& task) const {
        return m_spec.slices.empty() ? 1 : m_spec.slices[task.slice];
    }

    double durationOf(const Task& task) const {
        const StageTimes& times = timesOf(task.stage);
        const double scale = share(task) * part(m_spec.times.size());
        const double aux = m_orders.cutGradients && !m_orders.isCopy(task) ? m_spec.auxTime : 0;
        switch (task.pass) {
        case Pass::Forward:
        case Pass::ForwardNoGrad:
            return times.forward * scale;
        case Pass::Backward:
            return times.backward() * scale + aux;
        case Pass::InputGrad:
            return times.input * scale + aux;
        case Pass::WeightGrad:
            return times.weight * scale;
        case Pass::Recompute:
            return times.recompute * scale;
        case Pass::Embed:
            return m_spec.embedTime / m_orders.devices + m_spec.embedSync / 2;
        case Pass::EmbedGrad:
            return 2 * m_spec.embedTime / m_orders.devices + m_spec.embedSync / 2;
        case Pass::Send:
        case Pass::SendGrad:
            return transferTime(m_spec,
                                travelOf(producerOf(task), m_orders, m_placement).boundary) *
                   share(task);
        case Pass::AllReduce:
            return times.allReduce * part(m_spec.times.size());
        case Pass::Update:
            return updateTime(task);
        case Pass::Barrier:
            return 0;
        }
        return 0;
    }
    const Task& producerOf(const Task& send) const {
        const Part part = send.pass == Pass::Send ? Part::Forward : Part::Gradient;
        return m_out.tasks[m_index.find(part, send)];
    }
    /// Of all stages of the device.
    double updateTime(const Task& task) const {
        double sum = 0;
        for (std::uint32_t s = 0; s < m_orders.stages; ++s) {
            std::uint32_t last = m_orders.microBatches - 1;
            const bool here = m_placement.deviceOf(s, 0) == task.device ||
                              m_placement.deviceOf(s, last) == task.device;
            if (here) sum += timesOf(s).update * part(m_spec.times.size());
        }
        return sum;
    }

    void keep(TaskId id) {
        const Task& task = m_out.tasks[id];
        const double all = activationOf(task);
        const bool again = m_index.find(Part::Recompute, task) != kNoTask;
        const double kept = again ? m_spec.keptShare * all : all;
        switch (task.pass) {
        case Pass::Forward:
            m_out.allocated[id] = kept;
            if (m_index.find(Part::Gradient, task) == kNoTask) m_out.freed[id] = kept;
            return;
        case Pass::Recompute:
            m_out.allocated[id] = all - kept;
            return;
        case Pass::Backward:
            m_out.freed[id] = all;
            return;
        case Pass::InputGrad:
            m_out.freed[id] = m_spec.freedByInput * all;
            return;
        case Pass::WeightGrad:
            m_out.freed[id] = all - m_spec.freedByInput * all;
            return;
        default:
            return;
        }
    }
    double activationOf(const Task& task) const {
        const std::size_t entries = m_spec.activation.size();
        return m_spec.activation[entries == 1 ? 0 : task.stage] * part(entries) * share(task);
    }

    void setTokens(TaskId id) {
        const Task& task = m_out.tasks[id];
        std::uint8_t& tokens = m_out.tokens[id];
        if (task.pass == Pass::Forward) tokens |= token::kTakesDevice;
        const bool begins = task.stage == 0 && task.round == 0 && task.slice == 0;
        if (task.pass == Pass::ForwardNoGrad && begins) tokens |= token::kTakesWindow;
        const bool ends = task.pass == Pass::Backward || task.pass == Pass::WeightGrad;
        if (!ends) return;
        tokens |= token::kGivesDevice;
        if (task.stage == 0 && task.slice == 0) tokens |= token::kGivesWindow;
    }

    const ScheduleSpec& m_spec;
    const Orders& m_orders;
    const Placement& m_placement;
    const TaskIndex& m_index;
    Program& m_out;
    double m_inSeries; ///< stages of a device that a micro-batch passes
};

/// Limits by device, and what each of a device's chunks may take of them: with less than all but
/// one for each other chunk, a pipeline could stop another one on the same devices for good.
void setLimits(const Rule& rule, Program& program) {
    program.deviceLimit = rule.limit;
    program.deviceLimit.resize(program.devices, kUnlimited);
    program.window = rule.window;
    for (const Task& task : program.tasks) {
        program.chunks = std::max(program.chunks, task.chunk + 1u);
    }
    for (const double limit : program.deviceLimit) {
        program.chunkLimit.push_back(std::max(1.0, limit - (program.chunks - 1)));
    }
}

void setRule(const Orders& orders, Program& program) {
    const bool linked =
        std::ranges::any_of(program.queues, [](const Queue& q) { return !q.listed; });
    if (!linked) return;
    const Rule rule = orders.rule.value_or(Rule{});
    program.rank.resize(program.tasks.size());
    for (TaskId id = 0; id < program.tasks.size(); ++id) {
        const Task& task = program.tasks[id];
        const auto found = std::ranges::find(rule.priority, task.pass);
        const auto place = static_cast<std::uint32_t>(found - rule.priority.begin());
        program.rank[id] = (std::min(place, 15u) << 28) | std::min(task.microBatch, (1u << 28) - 1);
    }
    setLimits(rule, program);
}

} // namespace

Program compile(const ScheduleSpec& spec, const Orders& orders) {
    checkOrders(spec, orders);
    Program program;
    program.devices = orders.devices;
    program.stages = orders.stages;
    program.microBatches = orders.microBatches;
    program.slices = orders.slices;
    const Placement placement(orders);
    layOut(spec, orders, placement, program);
    TaskIndex index(orders);
    for (TaskId id = 0; id < program.tasks.size(); ++id) {
        if (program.tasks[id].pass != Pass::Barrier) index.add(program.tasks[id], id);
    }
    addDependencies(spec, orders, placement, index, program);
    Measures(spec, orders, placement, index, program).apply();
    setRule(orders, program);
    return program;
}

} // namespace shardlens::schedule
