// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/queues.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace shardlens::schedule {
namespace {

class QueueBuilder {
public:
    QueueBuilder(const ScheduleSpec& spec, const Orders& orders, const Placement& placement,
                 Program& program)
        : m_spec(spec), m_orders(orders), m_placement(placement), m_out(program),
          m_moved(orders.devices) {}

    void build() {
        m_reduces =
            std::ranges::any_of(m_spec.times, [](const StageTimes& t) { return t.allReduce > 0; });
        for (std::uint32_t d = 0; d < m_orders.devices; ++d) addComputeQueue(d);
        for (std::uint32_t d = 0; d < m_orders.devices; ++d) {
            if (!m_moved[d].empty()) {
                addQueue(static_cast<std::uint16_t>(d), Stream::Communication, !m_orders.rule,
                         m_moved[d]);
            }
        }
        for (const auto& [link, tasks] : m_linked) {
            addQueue(Queue::kLink, Stream::Communication, false, tasks);
        }
        addBarriers();
        if (!m_barriers.empty()) addQueue(Queue::kLink, Stream::None, true, m_barriers);
    }

private:
    void addQueue(std::uint16_t device, Stream stream, bool listed,
                  const std::vector<Task>& tasks) {
        Queue queue{device, stream, listed, static_cast<TaskId>(m_out.tasks.size()), 0};
        m_out.tasks.insert(m_out.tasks.end(), tasks.begin(), tasks.end());
        queue.end = static_cast<TaskId>(m_out.tasks.size());
        m_out.queues.push_back(queue);
    }

    void addComputeQueue(std::uint32_t device) {
        const auto& list = m_orders.lists[device];
        const auto last = lastOfStages(list);
        std::vector<Task> computed;
        computed.reserve(list.size());
        for (std::size_t i = 0; i < list.size(); ++i) {
            computed.push_back(list[i]);
            if (i + 1 < list.size() && list[i + 1].joined) continue; // after both
            for (std::size_t j = list[i].joined ? i - 1 : i; j <= i; ++j) {
                addSend(list[j], device, computed);
                if (m_reduces && last.contains(j)) addAllReduce(list[j], device);
            }
        }
        addQueue(static_cast<std::uint16_t>(device), Stream::Compute, !m_orders.rule, computed);
    }

    /// Positions of the last task of each stage and update that adds to weight gradients.
    std::set<std::size_t> lastOfStages(const std::vector<Task>& list) const {
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> last;
        for (std::size_t i = 0; m_reduces && i < list.size(); ++i) {
            if (m_orders.isCopy(list[i])) continue;
            if (list[i].pass == Pass::Backward || list[i].pass == Pass::WeightGrad) {
                last[{list[i].stage, updateOf(m_orders, list[i].microBatch)}] = i;
            }
        }
        std::set<std::size_t> out;
        for (const auto& [key, position] : last) out.insert(position);
        return out;
    }

    void addSend(const Task& task, std::uint32_t device, std::vector<Task>& computed) {
        if (m_spec.transfers == Transfers::Lag) return;
        const Travel travel = travelOf(task, m_orders, m_placement);
        if (!travel.travels || transferTime(m_spec, travel.boundary) == 0) return;
        Task send = task;
        send.pass = isGradient(task.pass) ? Pass::SendGrad : Pass::Send;
        send.joined = false;
        if (m_spec.transfers == Transfers::Blocking) {
            computed.push_back(send);
            return;
        }
        send.stream = Stream::Communication;
        if (travel.boundary < m_spec.links.size()) {
            m_linked[m_spec.links[travel.boundary]].push_back(send);
        } else {
            m_moved[device].push_back(send);
        }
    }

    void addAllReduce(const Task& task, std::uint32_t device) {
        Task reduce = task;
        reduce.microBatch = updateOf(m_orders, task.microBatch);
        reduce.pass = Pass::AllReduce;
        reduce.stream = Stream::Communication;
        reduce.joined = false;
        reduce.round = 0;
        reduce.slice = 0;
        m_moved[device].push_back(reduce);
        m_reduced.insert({task.stage, reduce.microBatch});
    }

    /// One before each all-reduce and each flush, and one for each layer that all devices share.
    void addBarriers() {
        const auto barrier = [&](std::uint32_t microBatch, std::uint32_t stage, std::uint8_t round,
                                 std::uint8_t kind) {
            m_barriers.push_back({microBatch, static_cast<std::uint16_t>(stage), 0, 0, kind,
                                  Pass::Barrier, Stream::None, round, false});
        };
        for (const auto& [stage, update] : m_reduced) barrier(update, stage, 0, barrier::kReduce);
        std::set<std::uint32_t> flushed;
        std::set<std::tuple<std::uint32_t, std::uint16_t, std::uint8_t, std::uint8_t>> shared;
        for (const Task& task : m_out.tasks) {
            if (task.pass == Pass::Update && m_spec.flush && m_orders.flushes)
                flushed.insert(task.microBatch);
            if (task.pass == Pass::Embed || task.pass == Pass::EmbedGrad) {
                shared.insert({task.microBatch, task.stage, task.round,
                               task.pass == Pass::Embed ? barrier::kEmbed : barrier::kEmbedGrad});
            }
        }
        for (const std::uint32_t update : flushed) barrier(update, 0, 0, barrier::kFlush);
        for (const auto& [microBatch, stage, round, kind] : shared) {
            barrier(microBatch, stage, round, kind);
        }
    }

    const ScheduleSpec& m_spec;
    const Orders& m_orders;
    const Placement& m_placement;
    Program& m_out;
    bool m_reduces = false;
    std::vector<std::vector<Task>> m_moved; ///< by device: its communication stream
    std::map<std::uint32_t, std::vector<Task>> m_linked;
    std::set<std::pair<std::uint32_t, std::uint32_t>> m_reduced; ///< stage, update
    std::vector<Task> m_barriers;
};

} // namespace

double transferTime(const ScheduleSpec& spec, std::uint32_t boundary) {
    return spec.transfer[std::min<std::size_t>(boundary, spec.transfer.size() - 1)];
}

Travel travelOf(const Task& task, const Orders& orders, const Placement& placement) {
    const bool forward = task.pass == Pass::Forward || task.pass == Pass::ForwardNoGrad;
    if (orders.isCopy(task) || !(forward || isGradient(task.pass))) return {};
    std::uint32_t other = 0, boundary = task.stage;
    if (!forward) {
        if (task.stage == 0 || orders.cutGradients) return {};
        other = boundary = task.stage - 1u;
    } else if (task.stage + 1u < orders.stages) {
        other = task.stage + 1u;
    } else if (task.pass == Pass::Forward) {
        return {}; // the end; without gradient the next round begins
    }
    const bool travels = placement.deviceOf(other, task.microBatch) != task.device;
    return {travels, boundary};
}

std::uint32_t updateOf(const Orders& orders, std::uint32_t microBatch) {
    return microBatch / std::max(1u, orders.microBatches / orders.updates);
}

void layOut(const ScheduleSpec& spec, const Orders& orders, const Placement& placement,
            Program& program) {
    QueueBuilder(spec, orders, placement, program).build();
}

} // namespace shardlens::schedule
