// SPDX-License-Identifier: Apache-2.0
// A schedule made ready to be looked at, at any zoom: for each stream its tasks in the order of
// time, and a pyramid of what each stretch of time looks like from afar (the mean colour of its
// bars and idle times, as a box filter would make it; the highest memory). Painting a pixel column
// then costs the same whether it covers a part of a bar or ten thousand bars. Made in the
// background, never changed.
#pragma once

#include "core/schedule/catalogue.h"
#include "ui/views/timeline_colours.h"

#include <memory>
#include <span>
#include <stop_token>

namespace shardlens {

struct TimelineStyle {
    TimelineColour colour = TimelineColour::Pass;
    bool dark = false;
    double secondsPerUnit = 0; ///< of the schedule's times; 0 = plain numbers
};

/// Bars of one stream: of a device, or of a link that several share.
struct TimelineLane {
    std::uint32_t row = 0;
    bool compute = true;
    std::vector<schedule::TaskId> order;   ///< by start; without barriers and what takes no time
    std::vector<std::vector<QRgb>> levels; ///< finest first, each half as many cells
};

/// A device with its streams, or a shared link.
struct TimelineRow {
    QString name;
    int device = -1; ///< -1: a link
    std::uint32_t firstLane = 0, lanes = 1;
};

/// Level of detail of a memory curve: the highest of each cell.
struct MemoryLevels {
    std::vector<std::vector<float>> levels; ///< finest first
};

class TimelinePicture {
public:
    /// @throws Cancelled
    TimelinePicture(std::shared_ptr<const schedule::Schedule> schedule, TimelineStyle style,
                    const std::stop_token& stop = {});

    const schedule::Schedule& schedule() const { return *m_schedule; }
    const std::shared_ptr<const schedule::Schedule>& shared() const { return m_schedule; }
    const TimelineStyle& style() const { return m_style; }
    const Palette& palette() const { return m_style.dark ? Palette::dark() : Palette::light(); }
    const std::vector<TimelineRow>& rows() const { return m_rows; }
    const std::vector<TimelineLane>& lanes() const { return m_lanes; }
    const std::vector<TimelineKey>& keys() const { return m_keys; }
    double makespan() const { return m_schedule->timeline.makespan; }
    int devices() const { return static_cast<int>(m_schedule->program.devices); }

    double start(schedule::TaskId id) const { return m_schedule->timeline.start[id]; }
    double end(schedule::TaskId id) const { return m_schedule->timeline.end[id]; }
    const schedule::Task& task(schedule::TaskId id) const { return m_schedule->program.tasks[id]; }
    /// Whether it shares its time with the one before or after it in its lane.
    bool isUpperHalf(schedule::TaskId id) const;
    bool isLowerHalf(schedule::TaskId id) const { return task(id).joined; }

    /// Positions in TimelineLane::order of what is seen in [begin, end].
    struct Range {
        std::size_t first = 0, last = 0;
        std::size_t count() const { return last - first; }
    };
    Range seen(const TimelineLane& lane, double begin, double end) const;
    /// The bar at a time, or kNoTask. Of two joint ones the lower if asked for.
    schedule::TaskId taskAt(const TimelineLane& lane, double time, bool lower = false) const;
    int laneOf(schedule::TaskId id) const; ///< -1: not shown
    std::size_t positionOf(const TimelineLane& lane, schedule::TaskId id) const;
    /// Idle times of a device in the order of time.
    std::span<const schedule::Idle> idle(int device) const;
    /// Those that end where a task starts, in the order of time.
    std::span<const schedule::Idle> waitBefore(schedule::TaskId id) const;
    /// Earliest moment after a time (or latest before it) in which a bar starts or ends.
    double nextEvent(double time) const;
    double previousEvent(double time) const;

    QRgb colourOf(schedule::TaskId id) const;
    /// Pixel columns of a lane, the first beginning at `begin`.
    void strip(const TimelineLane& lane, double begin, double perPixel,
               std::span<QRgb> columns) const;
    /// Highest memory of each column, of a device or (device < 0) of any.
    void memory(int device, double begin, double perPixel, std::span<float> columns) const;
    double memoryAt(int device, double time) const;
    double peakMemory() const { return m_schedule->account.peakMemory; }

private:
    void addLanes();
    void addIdle();
    void buildLevels(TimelineLane& lane);
    void buildMemory(const std::stop_token& stop);
    QRgb ground(int device, double time) const;
    void stripFromCells(const TimelineLane& lane, double begin, double perPixel,
                        std::span<QRgb> columns) const;
    void stripFromBars(const TimelineLane& lane, Range range, double begin, double perPixel,
                       std::span<QRgb> columns) const;
    void stripOfSamples(const TimelineLane& lane, double begin, double perPixel,
                        std::span<QRgb> columns) const;
    void memoryFromPoints(int device, double begin, double perPixel,
                          std::span<float> columns) const;

    std::shared_ptr<const schedule::Schedule> m_schedule;
    TimelineStyle m_style;
    std::vector<TimelineRow> m_rows;
    std::vector<TimelineLane> m_lanes;
    std::vector<TimelineKey> m_keys;
    std::vector<std::size_t> m_firstIdle;     ///< by device, and one more
    std::vector<std::vector<QRgb>> m_colours; ///< by pass, then stage, micro-batch or chunk
    std::array<QRgb, schedule::kCauses> m_causes{};
    QRgb m_canvas = 0;
    std::size_t m_cells = 1;                                  ///< of the finest level
    std::vector<std::vector<schedule::MemoryPoint>> m_curves; ///< by device
    std::vector<MemoryLevels> m_memory;                       ///< by device, then of all
};

} // namespace shardlens
