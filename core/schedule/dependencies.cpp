// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/dependencies.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace shardlens::schedule {
namespace {

class Rules {
public:
    Rules(const ScheduleSpec& spec, const Orders& orders, const Placement& placement,
          const TaskIndex& index, Program& program)
        : m_spec(spec), m_orders(orders), m_placement(placement), m_index(index), m_out(program) {}

    void apply() {
        m_out.lags = m_spec.transfer;
        m_out.lags.insert(m_out.lags.begin(), 0);
        findSends();
        collectGradients();
        m_out.firstDependency.reserve(m_out.tasks.size() + 1);
        m_out.firstDependency.assign(1, 0);
        m_out.dependencies.reserve(2 * m_out.tasks.size());
        for (TaskId id = 0; id < m_out.tasks.size(); ++id) {
            ask(id);
            m_out.firstDependency.push_back(static_cast<std::uint32_t>(m_out.dependencies.size()));
        }
        makeFollowers();
    }

private:
    using StageUpdate = std::pair<std::uint32_t, std::uint32_t>;

    void wait(TaskId other, std::uint32_t lag = 0) {
        if (other != kNoTask) m_out.dependencies.push_back({other, lag});
    }

    void ask(TaskId id) {
        const Task& task = m_out.tasks[id];
        switch (task.pass) {
        case Pass::Forward:
        case Pass::ForwardNoGrad:
            return forward(task);
        case Pass::Backward:
        case Pass::InputGrad:
            return gradient(task);
        case Pass::WeightGrad:
            return wait(m_index.find(Part::Gradient, task));
        case Pass::Recompute:
            return recompute(task);
        case Pass::Send:
            return wait(m_index.find(Part::Forward, task));
        case Pass::SendGrad:
            return wait(m_index.find(Part::Gradient, task));
        case Pass::Embed:
        case Pass::EmbedGrad:
            return shared(task);
        case Pass::AllReduce:
            return wait(m_barriers.at(keyOf(task, barrier::kReduce)));
        case Pass::Update:
            return update(task);
        case Pass::Barrier:
            return barrierOf(task);
        }
    }

    /// The result of another task, which may have to travel.
    void result(TaskId producer) {
        if (producer == kNoTask) return;
        if (!m_sends.empty() && m_sends[producer] != kNoTask) return wait(m_sends[producer]);
        const Travel travel = travelOf(m_out.tasks[producer], m_orders, m_placement);
        const auto entry = std::min<std::size_t>(travel.boundary, m_spec.transfer.size() - 1);
        wait(producer, travel.travels ? static_cast<std::uint32_t>(entry + 1) : 0);
    }

    void forward(const Task& task) {
        const auto find = [&](std::uint32_t stage, std::uint32_t slice, std::uint32_t round) {
            return m_index.find(Part::Forward, stage, task.microBatch, slice, round);
        };
        if (task.slice > 0) wait(find(task.stage, task.slice - 1u, task.round));
        if (m_orders.isCopy(task)) return;
        if (task.stage > 0) {
            result(find(task.stage - 1u, task.slice, task.round));
        } else if (task.round > 0) {
            result(find(m_orders.stages - 1u, task.slice, task.round - 1u));
        }
        for (std::uint32_t round = 0; round < m_embeds; ++round) {
            const TaskId embed = m_index.find(Part::Embed, task.device, task.microBatch, 0, round);
            if (embed != kNoTask && m_out.tasks[embed].stage == task.stage) wait(embed);
        }
    }

    /// The gradient of the stage after it.
    void nextGradient(const Task& task) {
        if (m_orders.cutGradients || task.stage + 1u >= m_orders.stages) return;
        result(
            m_index.find(Part::Gradient, task.stage + 1u, task.microBatch, task.slice, task.round));
    }
    void gradient(const Task& task) {
        const TaskId again = m_index.find(Part::Recompute, task);
        wait(again != kNoTask ? again : m_index.find(Part::Forward, task));
        if (task.slice + 1u < m_orders.slices) {
            wait(m_index.find(Part::Gradient, task.stage, task.microBatch, task.slice + 1u,
                              task.round));
        }
        nextGradient(task);
    }
    /// As frameworks do it: when the gradient that needs it has come.
    void recompute(const Task& task) {
        wait(m_index.find(Part::Forward, task));
        nextGradient(task);
    }

    void shared(const Task& task) {
        const bool forward = task.pass == Pass::Embed;
        wait(m_barriers.at(keyOf(task, forward ? barrier::kEmbed : barrier::kEmbedGrad)));
    }

    void update(const Task& task) {
        if (m_spec.flush && m_orders.flushes)
            return wait(m_barriers.at({task.microBatch, 0, 0, barrier::kFlush}));
        waitForGradients(task.microBatch, task.device);
    }
    /// All gradients of an update, of one device or (kEvery) of all.
    static constexpr std::uint32_t kEvery = ~0u;
    void waitForGradients(std::uint32_t update, std::uint32_t device) {
        for (const TaskId id : m_gradients[update]) {
            if (device == kEvery || m_out.tasks[id].device == device) wait(id);
        }
    }

    void barrierOf(const Task& task) {
        switch (task.chunk) {
        case barrier::kReduce:
            for (const TaskId id : m_unreduced[{task.stage, task.microBatch}]) wait(id);
            return;
        case barrier::kFlush:
            return waitForGradients(task.microBatch, kEvery);
        default:
            break;
        }
        const bool grad = task.chunk == barrier::kEmbedGrad;
        for (std::uint32_t d = 0; d < m_orders.devices; ++d) {
            const TaskId member = m_index.find(grad ? Part::EmbedGrad : Part::Embed, d,
                                               task.microBatch, 0, task.round);
            if (member != kNoTask && member > m_out.queues[d].begin) wait(member - 1);
        }
        if (grad) wait(m_index.find(Part::Gradient, task.stage, task.microBatch, 0));
    }

    using BarrierKey = std::array<std::uint32_t, 4>; ///< micro-batch or update, stage, round, kind
    static BarrierKey keyOf(const Task& task, std::uint8_t kind) {
        return {task.microBatch, task.stage, task.round, kind};
    }

    void findSends() {
        for (TaskId id = 0; id < m_out.tasks.size(); ++id) {
            const Task& task = m_out.tasks[id];
            if (task.pass == Pass::Barrier) m_barriers[keyOf(task, task.chunk)] = id;
            if (task.pass == Pass::Embed) m_embeds = std::max(m_embeds, task.round + 1u);
            if (!isSend(task.pass)) continue;
            if (m_sends.empty()) m_sends.assign(m_out.tasks.size(), kNoTask);
            const Part part = task.pass == Pass::Send ? Part::Forward : Part::Gradient;
            m_sends[m_index.find(part, task)] = id;
        }
    }

    /// What updates and all-reduces wait for.
    void collectGradients() {
        const auto of = [&](Pass pass) {
            return std::ranges::any_of(m_out.tasks, [&](const Task& t) { return t.pass == pass; });
        };
        const bool reduces = of(Pass::AllReduce);
        if (!reduces && !of(Pass::Update)) return;
        m_gradients.resize(m_orders.updates);
        for (TaskId id = 0; id < m_out.tasks.size(); ++id) {
            const Task& task = m_out.tasks[id];
            if (m_orders.isCopy(task)) continue;
            const bool last = task.pass == Pass::Backward || task.pass == Pass::WeightGrad;
            if (reduces ? task.pass == Pass::AllReduce : last) {
                m_gradients[reduces ? task.microBatch : updateOf(m_orders, task.microBatch)]
                    .push_back(id);
            }
            if (reduces && last) {
                m_unreduced[{task.stage, updateOf(m_orders, task.microBatch)}].push_back(id);
            }
        }
    }

    void makeFollowers() {
        auto& first = m_out.firstFollower;
        first.assign(m_out.tasks.size() + 1, 0);
        for (const Dependency& dependency : m_out.dependencies) ++first[dependency.task + 1];
        std::partial_sum(first.begin(), first.end(), first.begin());
        std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
        m_out.followers.resize(m_out.dependencies.size());
        for (TaskId id = 0; id < m_out.tasks.size(); ++id) {
            for (const Dependency& dependency : m_out.dependenciesOf(id)) {
                m_out.followers[next[dependency.task]++] = {id, dependency.lag};
            }
        }
    }

    const ScheduleSpec& m_spec;
    const Orders& m_orders;
    const Placement& m_placement;
    const TaskIndex& m_index;
    Program& m_out;
    std::vector<TaskId> m_sends; ///< by producer; empty when nothing is sent
    std::map<BarrierKey, TaskId> m_barriers;
    std::uint32_t m_embeds = 0;
    std::vector<std::vector<TaskId>> m_gradients;           ///< by update
    std::map<StageUpdate, std::vector<TaskId>> m_unreduced; ///< weight gradients
};

} // namespace

void addDependencies(const ScheduleSpec& spec, const Orders& orders, const Placement& placement,
                     const TaskIndex& index, Program& program) {
    Rules(spec, orders, placement, index, program).apply();
}

} // namespace shardlens::schedule
