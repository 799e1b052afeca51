// SPDX-License-Identifier: Apache-2.0
// Rows, lanes and look-ups of a timeline picture; its levels of detail are in timeline_levels.cpp.
#include "ui/views/timeline_picture.h"

#include "core/error.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace shardlens {

using namespace schedule;

namespace {

constexpr std::uint32_t kMicroBatchShades = 256;
constexpr std::size_t kBarsPerCell = 4;
constexpr std::size_t kMostCells = std::size_t{1} << 20;

/// Which of the colours of its pass a task has.
std::size_t colourIndex(TimelineColour mode, const Task& task, const Program& program) {
    switch (mode) {
    case TimelineColour::Pass:
        return 0;
    case TimelineColour::Stage:
        return task.stage;
    case TimelineColour::MicroBatch:
        return std::size_t{task.microBatch} * (kMicroBatchShades - 1) /
               std::max(1u, program.microBatches - 1);
    case TimelineColour::Chunk:
        return task.chunk;
    }
    return 0;
}

/// All colours of a mode, by pass.
std::vector<std::vector<QRgb>> coloursOf(const Palette& palette, TimelineColour mode,
                                         const Program& program) {
    std::vector<std::vector<QRgb>> colours(kPasses);
    const std::size_t count = mode == TimelineColour::Pass         ? 1
                              : mode == TimelineColour::Stage      ? program.stages
                              : mode == TimelineColour::MicroBatch ? kMicroBatchShades
                                                                   : 256;
    for (std::size_t p = 0; p < kPasses; ++p) {
        for (std::size_t i = 0; i < count; ++i) {
            Task task;
            task.pass = static_cast<Pass>(p);
            task.stage = static_cast<std::uint16_t>(i);
            task.chunk = static_cast<std::uint8_t>(i);
            task.microBatch = static_cast<std::uint32_t>(
                i * std::max(1u, program.microBatches - 1) / (kMicroBatchShades - 1));
            colours[p].push_back(barColour(palette, mode, task, program).rgb());
        }
    }
    return colours;
}

} // namespace

TimelinePicture::TimelinePicture(std::shared_ptr<const Schedule> schedule, TimelineStyle style,
                                 const std::stop_token& stop)
    : m_schedule(std::move(schedule)), m_style(style) {
    const Program& program = m_schedule->program;
    m_canvas = palette().canvas.rgb();
    m_colours = coloursOf(palette(), style.colour, program);
    for (std::size_t c = 0; c < kCauses; ++c) {
        m_causes[c] = causeTint(palette(), static_cast<Cause>(c)).rgb();
    }
    m_keys = timelineKeys(palette(), style.colour, program, m_schedule->account);
    addIdle();
    addLanes();
    std::size_t most = 1;
    for (const TimelineLane& lane : m_lanes) most = std::max(most, lane.order.size());
    m_cells = std::clamp(std::bit_ceil(most / kBarsPerCell + 1), std::size_t{64}, kMostCells);
    for (TimelineLane& lane : m_lanes) {
        if (stop.stop_requested()) throw Cancelled();
        buildLevels(lane);
    }
    buildMemory(stop);
}

void TimelinePicture::addIdle() {
    const auto& idle = m_schedule->account.idle;
    for (std::uint32_t d = 0; d <= m_schedule->program.devices; ++d) {
        const auto first = std::ranges::lower_bound(idle, d, {}, &Idle::device);
        m_firstIdle.push_back(static_cast<std::size_t>(first - idle.begin()));
    }
}

void TimelinePicture::addLanes() {
    const Program& program = m_schedule->program;
    for (std::uint32_t d = 0; d < program.devices; ++d) {
        m_rows.push_back({timelineText("device %1").arg(d), static_cast<int>(d), 0, 0});
    }
    std::vector<std::pair<std::uint32_t, std::size_t>> placed; // row, queue
    for (std::size_t q = 0; q < program.queues.size(); ++q) {
        const Queue& queue = program.queues[q];
        if (queue.stream == Stream::None || queue.begin == queue.end) continue;
        std::uint32_t row = queue.device;
        if (queue.device == Queue::kLink) {
            row = static_cast<std::uint32_t>(m_rows.size());
            m_rows.push_back({timelineText("link %1").arg(row - program.devices), -1, 0, 0});
        }
        placed.emplace_back(row, q);
    }
    std::ranges::stable_sort(placed, {}, &std::pair<std::uint32_t, std::size_t>::first);
    for (const auto& [row, q] : placed) {
        const Queue& queue = program.queues[q];
        TimelineLane lane;
        lane.row = row;
        lane.compute = queue.stream == Stream::Compute;
        lane.order.reserve(queue.end - queue.begin);
        for (TaskId id = queue.begin; id < queue.end; ++id) {
            if (end(id) > start(id)) lane.order.push_back(id);
        }
        if (!queue.listed) {
            std::ranges::stable_sort(lane.order, {}, [this](TaskId id) { return start(id); });
        }
        TimelineRow& shown = m_rows[row];
        if (shown.lanes++ == 0) shown.firstLane = static_cast<std::uint32_t>(m_lanes.size());
        m_lanes.push_back(std::move(lane));
    }
    std::erase_if(m_rows, [](const TimelineRow& row) { return row.lanes == 0 && row.device < 0; });
}

bool TimelinePicture::isUpperHalf(TaskId id) const {
    const auto& tasks = m_schedule->program.tasks;
    return id + 1 < tasks.size() && tasks[id + 1].joined &&
           tasks[id + 1].device == tasks[id].device;
}

TimelinePicture::Range TimelinePicture::seen(const TimelineLane& lane, double begin,
                                             double finish) const {
    const auto& order = lane.order;
    const auto first =
        std::ranges::upper_bound(order, begin, {}, [this](TaskId id) { return end(id); });
    const auto last =
        std::ranges::lower_bound(order, finish, {}, [this](TaskId id) { return start(id); });
    const auto from = static_cast<std::size_t>(first - order.begin());
    return {from, std::max(from, static_cast<std::size_t>(last - order.begin()))};
}

TaskId TimelinePicture::taskAt(const TimelineLane& lane, double time, bool lower) const {
    const auto& order = lane.order;
    const auto after =
        std::ranges::upper_bound(order, time, {}, [this](TaskId id) { return start(id); });
    if (after == order.begin()) return kNoTask;
    const TaskId id = *(after - 1);
    if (end(id) <= time) return kNoTask;
    return task(id).joined && !lower ? id - 1 : id;
}

int TimelinePicture::laneOf(TaskId id) const {
    const auto& queues = m_schedule->program.queues;
    const auto queue = std::ranges::upper_bound(queues, id, {}, &Queue::begin);
    if (queue == queues.begin() || end(id) <= start(id)) return -1;
    const Queue& its = *(queue - 1);
    for (std::size_t l = 0; l < m_lanes.size(); ++l) {
        const auto& order = m_lanes[l].order;
        if (!order.empty() && order.front() >= its.begin && order.front() < its.end) {
            return static_cast<int>(l);
        }
    }
    return -1;
}

std::size_t TimelinePicture::positionOf(const TimelineLane& lane, TaskId id) const {
    const auto at = std::ranges::lower_bound(lane.order, start(id), {},
                                             [this](TaskId other) { return start(other); });
    return static_cast<std::size_t>(std::find(at, lane.order.end(), id) - lane.order.begin());
}

std::span<const Idle> TimelinePicture::idle(int device) const {
    if (device < 0) return {};
    const auto d = static_cast<std::size_t>(device);
    return std::span(m_schedule->account.idle)
        .subspan(m_firstIdle[d], m_firstIdle[d + 1] - m_firstIdle[d]);
}

std::span<const Idle> TimelinePicture::waitBefore(TaskId id) const {
    if (task(id).stream != Stream::Compute) return {};
    const auto all = idle(task(id).device);
    const double moment = start(id), slack = 1e-12 * std::max(1.0, moment);
    const auto after = std::ranges::upper_bound(all, moment - slack, {}, &Idle::begin);
    auto first = after;
    double until = moment;
    while (first != all.begin() && std::abs((first - 1)->end - until) <= slack) {
        --first;
        until = first->begin;
    }
    return {first, after};
}

double TimelinePicture::nextEvent(double time) const {
    double next = makespan();
    for (const TimelineLane& lane : m_lanes) {
        for (std::size_t i = seen(lane, time, time).first; i < lane.order.size(); ++i) {
            const TaskId id = lane.order[i];
            if (start(id) > time) {
                next = std::min(next, start(id));
                break;
            }
            if (end(id) > time) next = std::min(next, end(id));
        }
    }
    return next;
}

double TimelinePicture::previousEvent(double time) const {
    double previous = 0;
    for (const TimelineLane& lane : m_lanes) {
        for (std::size_t i = seen(lane, 0, time).last; i-- > 0;) {
            const TaskId id = lane.order[i];
            if (end(id) < time) {
                previous = std::max(previous, end(id));
                break;
            }
            if (start(id) < time) previous = std::max(previous, start(id));
        }
    }
    return previous;
}

QRgb TimelinePicture::colourOf(TaskId id) const {
    const Task& its = task(id);
    return m_colours[static_cast<std::size_t>(its.pass)]
                    [colourIndex(m_style.colour, its, m_schedule->program)];
}

} // namespace shardlens
