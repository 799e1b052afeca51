// SPDX-License-Identifier: Apache-2.0
// See critical_path.h.
#include "core/plan/planners/critical_path.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace shardlens {

namespace {

/// Passes of one chunk of a micro-batch, by device. In ZB-H1 a backward is the input gradient,
/// and the weight gradient that follows it is by itself.
struct StagePasses {
    std::vector<double> forward, backward, weight;
    std::vector<double> wire; ///< to the next device, and the same back; of the last one: to the
                              ///< first, where the next chunk is
    /// Seconds more than their average that a device's forwards before its first backward take, and
    /// its backwards after its last forward: at the ends of the model one chunk sends nothing.
    std::vector<double> early, late;
    /// What the very last chunk's forward, and the very first one's backward, do not send.
    double lastUnsent = 0, firstUnsent = 0;

    std::size_t size() const { return forward.size(); }
    double both(std::size_t i) const { return forward[i] + backward[i]; }
    /// Time runs backwards: the schedule in a mirror.
    StagePasses reversed() const {
        return {backward, forward, weight, wire, late, early, 0, lastUnsent};
    }
};

/// Transfers as parts of the passes that send: to the next device, and gradients to the one before.
void block(StagePasses& p, int chunks) {
    const std::size_t last = p.size() - 1;
    const double wrapped = p.wire[last] * (chunks - 1) / chunks;
    for (std::size_t i = 0; i <= last; ++i) {
        p.forward[i] += i < last ? p.wire[i] : wrapped;
        p.backward[i] += i > 0 ? p.wire[i - 1] : wrapped;
    }
    // The last chunk comes last: of the first forwards more than the average send, of the last
    // backwards fewer.
    p.early[last] = wrapped * static_cast<double>(last);
    p.late[0] = -wrapped * static_cast<double>(last);
    p.lastUnsent = wrapped;
    std::ranges::fill(p.wire, 0.0);
}

StagePasses passesOf(const ScheduleModel& schedule, const std::vector<StagePrice>& prices) {
    StagePasses passes;
    const bool split = schedule.kind == ScheduleKind::ZeroBubbleH1;
    for (const StagePrice& p : prices) {
        const double input = p.recompute + p.inputGrad;
        passes.forward.push_back(p.forward / schedule.chunks);
        passes.backward.push_back((input + (split ? 0 : p.weightGrad)) / schedule.chunks);
        passes.weight.push_back(split ? p.weightGrad : 0);
        passes.wire.push_back(p.send / 2);
    }
    passes.wire.back() = wrapSeconds(prices);
    passes.early.assign(prices.size(), 0.0);
    passes.late = passes.early;
    if (schedule.blocking) block(passes, schedule.chunks);
    return passes;
}

/// By device: forwards of the first micro-batch before it.
std::vector<double> before(const StagePasses& p) {
    std::vector<double> sums(p.size(), 0.0);
    for (std::size_t i = 1; i < p.size(); ++i)
        sums[i] = sums[i - 1] + p.forward[i - 1] + p.wire[i - 1] - (i == 1 ? p.firstUnsent : 0);
    return sums;
}

/// By device, and 0 after the last: both passes of the stages from it on, wires included.
std::vector<double> fromHereOn(const StagePasses& p) {
    std::vector<double> sums(p.size() + 1, 0.0);
    for (std::size_t i = p.size(); i-- > 0;)
        sums[i] = sums[i + 1] + p.both(i) + (i + 1 < p.size() ? 2 * p.wire[i] : 0);
    return sums;
}

/// Loops from a device over those behind it, each of as many micro-batches as stages.
class Loops {
public:
    Loops(const StagePasses& p, std::size_t device) {
        double seconds = p.weight[device];
        for (std::size_t last = device; last < p.size(); ++last) {
            seconds += p.both(last);
            m_seconds.push_back(seconds);
            const double length = static_cast<double>(m_seconds.size());
            if (seconds > pace() * length) m_slowest = m_seconds.size();
            seconds += 2 * p.wire[last];
        }
    }
    double pace() const { return m_seconds[m_slowest - 1] / static_cast<double>(m_slowest); }
    /// Of so many micro-batches: the slowest loop as often as it goes, and one of the rest.
    double seconds(double microBatches) const {
        const double rounds = std::floor(microBatches / static_cast<double>(m_slowest));
        const auto rest =
            static_cast<std::size_t>(microBatches - rounds * static_cast<double>(m_slowest));
        return rounds * m_seconds[m_slowest - 1] + (rest > 0 ? m_seconds[rest - 1] : 0);
    }

private:
    std::vector<double> m_seconds; ///< by length - 1
    std::size_t m_slowest = 1;     ///< its length
};

double gpipe(const StagePasses& p, double m) {
    return fromHereOn(p)[0] +
           (m - 1) * (std::ranges::max(p.forward) + std::ranges::max(p.backward));
}

double oneForwardOneBackward(const StagePasses& p, double m) {
    const std::vector<double> rest = fromHereOn(p);
    double longest = 0;
    for (std::size_t device = 0; device < p.size(); ++device) {
        const Loops loops(p, device);
        const auto warmUp = static_cast<double>(p.size() - 1 - device);
        const double pairs = std::max(m - 1 - warmUp, 0.0);
        // it waits for nothing that is behind it; or once, before the first backward or after the
        // last forward; or both times, in the loop or, coming from a stage before it, on the way
        const double once = rest[0] + loops.seconds(pairs) +
                            (m - 1 - pairs) * std::max(p.forward[device], p.backward[device]);
        longest = std::max({longest, rest[0] - rest[device] + m * p.both(device), once});
        for (std::size_t from = 0; from <= device; ++from) {
            const double times = m - 1 - static_cast<double>(p.size() - from);
            if (times >= 0)
                longest = std::max(longest, rest[0] + rest[from] + loops.seconds(times));
        }
    }
    return longest;
}

/// The weight gradients that a device has put off fill its last waiting time and the end.
double zeroBubble(const StagePasses& p, double m) {
    const std::vector<double> rest = fromHereOn(p), ahead = before(p), back = before(p.reversed());
    const double first = p.weight[0];
    double longest = 0;
    for (std::size_t device = 0; device < p.size(); ++device) {
        const double f = p.forward[device], w = p.weight[device];
        const auto warmUp = static_cast<double>(p.size() - 1 - device);
        const double behind = rest[device] - p.both(device);
        const double atFirst = std::max(behind - warmUp * f, 0.0),
                     atLast = std::max(behind - warmUp * (p.backward[device] + w), 0.0);
        const double waits = m - 1 > warmUp ? atFirst + atLast : std::max(atFirst, atLast);
        const double putOff = static_cast<double>(device + 1) * w;
        const double pace = Loops(p, device).pace() - p.both(device) - w;
        longest = std::max(longest, ahead[device] + m * (p.both(device) + w) + waits +
                                        std::max(m - 2 - warmUp, 0.0) * pace +
                                        std::max(back[device] + first - putOff, 0.0));
    }
    return longest;
}

/// Interleaved schedules: when the work of each device could begin if it did not wait again, as far
/// as the warm-up tells. @param warmUp forwards before the first backward
std::vector<double> starts(const StagePasses& p, int chunks, const std::vector<double>& warmUp,
                           double tasks) {
    const std::size_t last = p.size() - 1;
    const auto first = [&](std::size_t i) { // forwards up to the first backward
        return (warmUp[i] + 1) * p.forward[i] + p.early[i];
    };
    std::vector<double> found = before(p);
    const double through = found[last] + p.forward[last];
    const double slowest = std::ranges::max(p.forward);
    for (std::size_t i = 0, most = 0; i <= last; ++i) { // behind the slowest one before it
        if (p.forward[i] > p.forward[most]) most = i;
        const double own = first(i) - p.forward[i] + (i == last ? p.lastUnsent : 0);
        found[i] += std::max(warmUp[i] * p.forward[most] - own, 0.0);
    }
    // the first micro-batch through all chunks, and back to every device
    const double round = std::max(static_cast<double>(p.size()) * slowest, through + p.wire[last]);
    found[last] =
        std::max(found[last], through + (chunks - 1) * round - p.lastUnsent - first(last));
    for (std::size_t i = last; i-- > 0;)
        found[i] = std::max(found[i],
                            found[i + 1] + first(i + 1) + p.backward[i + 1] + p.wire[i] - first(i));
    // the first forward after a backward, to the devices behind
    for (std::size_t from = 0; from < last; ++from) {
        const double count = warmUp[from] + 2;
        if (count > tasks) continue;
        double arrives = found[from] + count * p.forward[from] + p.backward[from];
        for (std::size_t to = from + 1; to <= last; ++to) {
            arrives += p.forward[to] + p.wire[to - 1];
            found[to] = std::max(found[to], arrives - count * p.forward[to] -
                                                (count - 1 - warmUp[to]) * p.backward[to]);
        }
    }
    return found;
}

double interleaved(const StagePasses& p, int chunks, double m) {
    const double tasks = m * chunks;
    const auto stages = static_cast<double>(p.size());
    std::vector<double> warmUp;
    for (std::size_t i = 0; i < p.size(); ++i)
        warmUp.push_back(
            std::min((chunks - 1) * stages + 2 * (stages - 1 - static_cast<double>(i)), tasks - 1));
    const StagePasses mirror = p.reversed();
    const std::vector<double> begin = starts(p, chunks, warmUp, tasks),
                              end = starts(mirror, chunks, warmUp, tasks), ahead = before(p),
                              back = before(mirror);
    double longest = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        const double waits = tasks - 1 > warmUp[i]
                                 ? begin[i] + end[i]
                                 : std::max(begin[i] + back[i], ahead[i] + end[i]);
        longest = std::max(longest, waits + tasks * p.both(i));
    }
    return longest;
}

} // namespace

double criticalPath(const ScheduleModel& schedule, const std::vector<StagePrice>& prices,
                    double microBatches) {
    const StagePasses passes = passesOf(schedule, prices);
    switch (schedule.kind) {
    case ScheduleKind::GPipe:
        return gpipe(passes, microBatches);
    case ScheduleKind::OneFOneB:
        return oneForwardOneBackward(passes, microBatches);
    case ScheduleKind::Interleaved:
        return interleaved(passes, schedule.chunks, microBatches);
    case ScheduleKind::ZeroBubbleH1:
        return zeroBubble(passes, microBatches);
    }
    return 0;
}

} // namespace shardlens
