// SPDX-License-Identifier: Apache-2.0
// Levels of detail: the finest cells are filled from bars and idle times once, coarser ones are
// means (of colours) or maxima (of memory) of two each. A strip of pixel columns is then read from
// the level whose cells are just finer than a pixel; from the bars where these are few; and where
// many bars crowd below the finest cell, one bar a column stands for its neighbours.
#include "core/error.h"
#include "ui/views/timeline_picture.h"

#include <algorithm>
#include <cmath>

namespace shardlens {

using namespace schedule;

namespace {

constexpr std::size_t kBarsPerColumn = 3; ///< up to here a strip is made from the bars themselves

/// A sum of colours over time, and how much of it there is.
struct Mixture {
    float red = 0, green = 0, blue = 0, weight = 0;

    void add(QRgb colour, float amount) {
        red += amount * static_cast<float>(qRed(colour));
        green += amount * static_cast<float>(qGreen(colour));
        blue += amount * static_cast<float>(qBlue(colour));
        weight += amount;
    }
    QRgb over(QRgb ground) const {
        const float rest = std::max(0.0F, 1 - weight);
        const auto mixed = [&](float sum, int under) {
            const float all = sum + rest * static_cast<float>(under);
            return static_cast<int>(std::lrint(std::clamp(all, 0.0F, 255.0F)));
        };
        return qRgb(mixed(red, qRed(ground)), mixed(green, qGreen(ground)),
                    mixed(blue, qBlue(ground)));
    }
};

/// Adds what is there in [begin, end) to equal cells from `origin` on.
void spread(std::span<Mixture> cells, double origin, double width, double begin, double end,
            QRgb colour, float share) {
    const double from = std::max(0.0, (begin - origin) / width);
    const double to = std::min(static_cast<double>(cells.size()), (end - origin) / width);
    if (!(to > from)) return;
    auto cell = static_cast<std::size_t>(from);
    for (double at = from; at < to && cell < cells.size(); ++cell) {
        const double until = std::min(to, static_cast<double>(cell + 1));
        cells[cell].add(colour, share * static_cast<float>(until - at));
        at = until;
    }
}

QRgb meanOf(QRgb a, QRgb b) {
    return qRgb((qRed(a) + qRed(b) + 1) / 2, (qGreen(a) + qGreen(b) + 1) / 2,
                (qBlue(a) + qBlue(b) + 1) / 2);
}

/// The level whose cells are just not wider than a pixel, if there is one.
int levelFor(double cell, double perPixel, std::size_t levels) {
    if (cell > perPixel) return -1;
    const int level = static_cast<int>(std::floor(std::log2(perPixel / cell)));
    return std::min(level, static_cast<int>(levels) - 1);
}

} // namespace

void TimelinePicture::buildLevels(TimelineLane& lane) {
    if (!(makespan() > 0)) return;
    std::vector<Mixture> cells(m_cells);
    const double width = makespan() / static_cast<double>(m_cells);
    for (const TaskId id : lane.order) {
        const float share = isUpperHalf(id) || isLowerHalf(id) ? 0.5F : 1.0F;
        spread(cells, 0, width, start(id), end(id), colourOf(id), share);
    }
    if (lane.compute) {
        for (const Idle& gap : idle(m_rows[lane.row].device)) {
            spread(cells, 0, width, gap.begin, gap.end,
                   m_causes[static_cast<std::size_t>(gap.cause)], 1);
        }
    }
    std::vector<QRgb> finest(m_cells);
    std::ranges::transform(cells, finest.begin(),
                           [this](const Mixture& cell) { return cell.over(m_canvas); });
    lane.levels = {std::move(finest)};
    while (lane.levels.back().size() > 1) {
        const auto& fine = lane.levels.back();
        std::vector<QRgb> coarse(fine.size() / 2);
        for (std::size_t i = 0; i < coarse.size(); ++i) {
            coarse[i] = meanOf(fine[2 * i], fine[2 * i + 1]);
        }
        lane.levels.push_back(std::move(coarse));
    }
}

void TimelinePicture::strip(const TimelineLane& lane, double begin, double perPixel,
                            std::span<QRgb> columns) const {
    const Range range = seen(lane, begin, begin + perPixel * static_cast<double>(columns.size()));
    const double cell = makespan() / static_cast<double>(m_cells);
    if (range.count() <= kBarsPerColumn * columns.size()) {
        stripFromBars(lane, range, begin, perPixel, columns);
    } else if (cell <= perPixel) {
        stripFromCells(lane, begin, perPixel, columns);
    } else {
        stripOfSamples(lane, begin, perPixel, columns);
    }
}

void TimelinePicture::stripFromBars(const TimelineLane& lane, Range range, double begin,
                                    double perPixel, std::span<QRgb> columns) const {
    std::vector<Mixture> cells(columns.size());
    for (std::size_t i = range.first; i < range.last; ++i) {
        const TaskId id = lane.order[i];
        const float share = isUpperHalf(id) || isLowerHalf(id) ? 0.5F : 1.0F;
        spread(cells, begin, perPixel, start(id), end(id), colourOf(id), share);
    }
    if (lane.compute) {
        const auto gaps = idle(m_rows[lane.row].device);
        const double last = begin + perPixel * static_cast<double>(columns.size());
        auto gap = std::ranges::upper_bound(gaps, begin, {}, &Idle::end);
        for (; gap != gaps.end() && gap->begin < last; ++gap) {
            spread(cells, begin, perPixel, gap->begin, gap->end,
                   m_causes[static_cast<std::size_t>(gap->cause)], 1);
        }
    }
    std::ranges::transform(cells, columns.begin(),
                           [this](const Mixture& cell) { return cell.over(m_canvas); });
}

void TimelinePicture::stripFromCells(const TimelineLane& lane, double begin, double perPixel,
                                     std::span<QRgb> columns) const {
    const double finest = makespan() / static_cast<double>(m_cells);
    const int level = levelFor(finest, perPixel, lane.levels.size());
    const auto& cells = lane.levels[static_cast<std::size_t>(level)];
    const double width = finest * std::exp2(level);
    for (std::size_t x = 0; x < columns.size(); ++x) {
        const double from = (begin + perPixel * static_cast<double>(x)) / width;
        const double to = from + perPixel / width;
        Mixture mixture;
        const auto first = static_cast<std::ptrdiff_t>(std::floor(from));
        const auto last = static_cast<std::ptrdiff_t>(std::ceil(to));
        for (std::ptrdiff_t c = std::max<std::ptrdiff_t>(0, first);
             c < std::min(last, std::ssize(cells)); ++c) {
            const double covered =
                std::min(to, static_cast<double>(c + 1)) - std::max(from, static_cast<double>(c));
            mixture.add(cells[static_cast<std::size_t>(c)],
                        static_cast<float>(covered / (to - from)));
        }
        columns[x] = mixture.over(m_canvas);
    }
}

void TimelinePicture::stripOfSamples(const TimelineLane& lane, double begin, double perPixel,
                                     std::span<QRgb> columns) const {
    for (std::size_t x = 0; x < columns.size(); ++x) {
        const TaskId id = taskAt(lane, begin + perPixel * (static_cast<double>(x) + 0.5));
        columns[x] = id == kNoTask ? m_canvas : colourOf(id);
    }
}

void TimelinePicture::buildMemory(const std::stop_token& stop) {
    const Program& program = m_schedule->program;
    m_memory.resize(program.devices + 1);
    std::vector<float> highest(m_cells, 0);
    const double width = makespan() / static_cast<double>(m_cells);
    for (std::uint32_t d = 0; d < program.devices; ++d) {
        if (stop.stop_requested()) throw Cancelled();
        m_curves.push_back(memoryCurve(program, m_schedule->timeline, d));
        std::vector<float> cells(m_cells, 0);
        if (makespan() > 0) memoryFromPoints(static_cast<int>(d), 0, width, cells);
        std::ranges::transform(highest, cells, highest.begin(),
                               [](float a, float b) { return std::max(a, b); });
        m_memory[d].levels = {std::move(cells)};
    }
    m_memory.back().levels = {std::move(highest)};
    for (MemoryLevels& memory : m_memory) {
        while (memory.levels.back().size() > 1) {
            const auto& fine = memory.levels.back();
            std::vector<float> coarse(fine.size() / 2);
            for (std::size_t i = 0; i < coarse.size(); ++i) {
                coarse[i] = std::max(fine[2 * i], fine[2 * i + 1]);
            }
            memory.levels.push_back(std::move(coarse));
        }
    }
}

void TimelinePicture::memoryFromPoints(int device, double begin, double perPixel,
                                       std::span<float> columns) const {
    const auto& curve = m_curves[static_cast<std::size_t>(device)];
    auto at = std::ranges::upper_bound(curve, begin, {}, &MemoryPoint::time);
    float now = at == curve.begin() ? 0 : static_cast<float>((at - 1)->memory);
    for (std::size_t x = 0; x < columns.size(); ++x) {
        const double until = begin + perPixel * static_cast<double>(x + 1);
        float most = now;
        for (; at != curve.end() && at->time < until; ++at) {
            now = static_cast<float>(at->memory);
            most = std::max(most, now);
        }
        columns[x] = std::max(columns[x], most);
    }
}

void TimelinePicture::memory(int device, double begin, double perPixel,
                             std::span<float> columns) const {
    std::ranges::fill(columns, 0.0F);
    const double finest = makespan() / static_cast<double>(m_cells);
    const auto index = device < 0 ? m_memory.size() - 1 : static_cast<std::size_t>(device);
    const auto& levels = m_memory[index].levels;
    const int level = levelFor(finest, perPixel, levels.size());
    if (level < 0) {
        const int first = std::max(0, device), last = device < 0 ? devices() - 1 : device;
        for (int d = first; d <= last; ++d) memoryFromPoints(d, begin, perPixel, columns);
        return;
    }
    const auto& cells = levels[static_cast<std::size_t>(level)];
    const double width = finest * std::exp2(level);
    for (std::size_t x = 0; x < columns.size(); ++x) {
        const double from = (begin + perPixel * static_cast<double>(x)) / width;
        const auto first = std::max<std::ptrdiff_t>(0, std::lround(std::floor(from)));
        const auto last =
            std::min(std::ssize(cells), std::lround(std::ceil(from + perPixel / width)));
        for (std::ptrdiff_t c = first; c < last; ++c) {
            columns[x] = std::max(columns[x], cells[static_cast<std::size_t>(c)]);
        }
    }
}

double TimelinePicture::memoryAt(int device, double time) const {
    const auto at = [time](const std::vector<MemoryPoint>& curve) {
        const auto after = std::ranges::upper_bound(curve, time, {}, &MemoryPoint::time);
        return after == curve.begin() ? 0.0 : (after - 1)->memory;
    };
    if (device >= 0) return at(m_curves[static_cast<std::size_t>(device)]);
    double most = 0;
    for (const auto& curve : m_curves) most = std::max(most, at(curve));
    return most;
}

} // namespace shardlens
