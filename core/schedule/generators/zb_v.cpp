// SPDX-License-Identifier: Apache-2.0
// ZB-V (Qi et al. 2024, section 6): two stages in a V on each device, so that the last stage is
// where the first is and 1F1B's memory is enough for no bubble. The order follows the behaviour of
// the authors' generator (sail-sg/zero-bubble-pipeline-parallelism): rounds of one backward and one
// forward on every device, weight gradients where a device would wait or memory would overflow,
// repeated with the bubble that came out as the allowance of every device, as long as that helps.
//
// A micro-batch goes through four legs: forward down the devices (chunk 0) and up (chunk 1), input
// gradient down (chunk 1) and up (chunk 0).
#include "core/schedule/generators/generators.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>

namespace shardlens::schedule {
namespace {

enum Leg : std::uint32_t { kForwardDown, kForwardUp, kGradientDown, kGradientUp };
constexpr std::uint32_t kLegs = 4;

constexpr bool isForward(std::uint32_t leg) {
    return leg < kGradientDown;
}
constexpr std::uint32_t chunkOf(std::uint32_t leg) {
    return leg == kForwardDown || leg == kGradientUp ? 0 : 1;
}

struct Entry {
    Pass pass;
    std::uint32_t chunk, microBatch;
};

struct Attempt {
    std::vector<std::vector<Entry>> lists; ///< by device
    std::vector<double> bubbles;           ///< by device, after its first task
    double bubble() const { return *std::ranges::max_element(bubbles); }
};

/// Whether a device that would wait longer than its share computes weights first.
struct Fill {
    bool beforeForward, beforeGradientDown;
};

class Builder {
public:
    Builder(const ScheduleSpec& spec, Fill fill, const std::vector<double>& allowance)
        : m_spec(spec), m_fill(fill), m_allowance(allowance), m_p(spec.devices),
          m_m(spec.microBatches), m_devices(m_p) {
        m_limit = spec.limit > 0 ? 2 * spec.limit : 2.0 * m_p;
        m_mostAllowed = *std::ranges::max_element(allowance);
        for (Device& device : m_devices) {
            for (auto& ends : device.ends) ends.reserve(m_m);
        }
    }

    /// Nothing when the memory is not enough.
    std::optional<Attempt> run() {
        if (!start()) return std::nullopt;
        for (std::uint32_t round = 0; round < 2 * m_m; ++round) {
            if (!gradients() || !forwards()) return std::nullopt;
        }
        Attempt out;
        for (std::uint32_t d = 0; d < m_p; ++d) {
            while (!m_devices[d].pending.empty()) putWeight(d);
            out.lists.push_back(std::move(m_devices[d].list));
            out.bubbles.push_back(m_devices[d].bubble);
        }
        return out;
    }

private:
    struct Device {
        std::vector<Entry> list;
        std::array<std::vector<double>, kLegs> ends; ///< by micro-batch
        std::deque<Entry> pending;                   ///< weight gradients
        double now = 0, bubble = 0, memory = 0;
    };

    std::uint32_t count(std::uint32_t d, std::uint32_t leg) const {
        return static_cast<std::uint32_t>(m_devices[d].ends[leg].size());
    }
    const StageTimes& timesOf(std::uint32_t d, std::uint32_t chunk) const {
        if (m_spec.times.size() == 1) return m_spec.times.front();
        return m_spec.times[inV(m_p)(d, chunk)];
    }
    double scale() const { return m_spec.times.size() == 1 ? 0.5 : 1; }
    double timeOf(std::uint32_t d, std::uint32_t leg) const {
        const StageTimes& times = timesOf(d, chunkOf(leg));
        return scale() * (isForward(leg) ? times.forward : times.input);
    }
    /// In chunks; what a task adds to memory.
    double memoryOf(std::uint32_t leg) const { return isForward(leg) ? 1 : -m_spec.freedByInput; }
    double transfer(std::uint32_t d, std::uint32_t other) const {
        const std::uint32_t boundary = std::min(d, other);
        return m_spec.transfer[std::min<std::size_t>(boundary, m_spec.transfer.size() - 1)];
    }

    /// When the next micro-batch of the leg arrives at the device; nothing if that is not known
    /// yet. The first device of a leg goes on with what it has itself.
    std::optional<double> arrival(std::uint32_t d, std::uint32_t leg) const {
        const bool down = leg == kForwardDown || leg == kGradientDown;
        const std::uint32_t i = count(d, leg);
        if (d == (down ? 0 : m_p - 1)) {
            if (leg == kForwardDown) return 0;
            if (count(d, leg - 1) <= i) return std::nullopt;
            return m_devices[d].ends[leg - 1][i];
        }
        const std::uint32_t other = down ? d - 1 : d + 1;
        if (count(other, leg) <= i) return std::nullopt;
        return m_devices[other].ends[leg][i] + transfer(d, other);
    }

    /// False when it cannot be done: memory, or what it waits for is not there.
    bool put(std::uint32_t d, std::uint32_t leg) {
        Device& device = m_devices[d];
        const std::uint32_t i = count(d, leg);
        const auto arrives = arrival(d, leg);
        if (i >= m_m || !arrives || device.memory + memoryOf(leg) > m_limit + kSlack) return false;
        const double begin = std::max(device.now, *arrives);
        if (!device.list.empty()) device.bubble += begin - device.now;
        device.now = begin + timeOf(d, leg);
        device.ends[leg].push_back(device.now);
        device.memory += memoryOf(leg);
        const Pass pass = isForward(leg) ? Pass::Forward : Pass::InputGrad;
        device.list.push_back({pass, chunkOf(leg), i});
        if (!isForward(leg)) device.pending.push_back({Pass::WeightGrad, chunkOf(leg), i});
        return true;
    }
    void putWeight(std::uint32_t d) {
        Device& device = m_devices[d];
        const Entry weight = device.pending.front();
        device.pending.pop_front();
        device.now += scale() * timesOf(d, weight.chunk).weight;
        device.memory -= 1 - m_spec.freedByInput;
        device.list.push_back(weight);
    }
    double weightTime(std::uint32_t d) const {
        return scale() * timesOf(d, m_devices[d].pending.front().chunk).weight;
    }

    /// Forwards until the first backward.
    bool start() {
        for (std::uint32_t d = 0; d < m_p; ++d) {
            if (!put(d, kForwardDown)) return false;
        }
        for (std::uint32_t d = m_p; d-- > 0;) {
            if (d + 1 < m_p && !pad(d)) return false;
            if (!put(d, kForwardUp)) return false;
        }
        for (std::uint32_t d = 1; d < m_p; ++d) {
            std::uint32_t leg = kForwardDown;
            while (forwardsOf(d) < forwardsOf(d - 1) ||
                   (count(d, kForwardUp) <= count(d - 1, kForwardUp) &&
                    count(d - 1, kForwardUp) < m_m)) {
                for (std::uint32_t j = m_p; j-- > d;) {
                    if (count(j, leg) < m_m && !put(j, leg)) return false;
                }
                leg = leg == kForwardDown ? kForwardUp : kForwardDown;
            }
        }
        return true;
    }
    std::uint32_t forwardsOf(std::uint32_t d) const {
        return count(d, kForwardDown) + count(d, kForwardUp);
    }
    /// More forwards on the devices up to d, while d waits for its first micro-batch to come back.
    bool pad(std::uint32_t d) {
        const double until = m_devices[d + 1].ends[kForwardUp].front() + transfer(d, d + 1);
        const auto fits = [&] {
            const Device& device = m_devices[d];
            return device.memory + 2 + 2 * d <= m_limit + kSlack &&
                   device.now + timeOf(d, kForwardDown) <= until + kSlack &&
                   count(d, kForwardDown) < m_m;
        };
        while (fits()) {
            for (std::uint32_t j = 0; j <= d; ++j) {
                if (count(j, kForwardDown) < m_m && !put(j, kForwardDown)) return false;
            }
        }
        return true;
    }

    /// Computes weights while the device would have to wait at least as long for `arrives`, and one
    /// more if it may not wait that long.
    void fillUntil(std::uint32_t d, std::optional<double> arrives, bool fill) {
        Device& device = m_devices[d];
        while (!device.pending.empty() && arrives &&
               *arrives + kSlack >= device.now + weightTime(d)) {
            putWeight(d);
        }
        if (device.pending.empty() || !fill) return;
        double allowed = 0;
        for (const Device& each : m_devices) allowed = std::max(allowed, each.bubble);
        allowed = std::max(allowed, m_mostAllowed - m_allowance[d]);
        const double wait = arrives.value_or(0) - device.now;
        if (wait > allowed - device.bubble + kSlack) putWeight(d);
    }
    bool makeRoom(std::uint32_t d, std::uint32_t leg) {
        Device& device = m_devices[d];
        while (device.memory + memoryOf(leg) > m_limit + kSlack) {
            if (device.pending.empty()) return false;
            putWeight(d);
        }
        return true;
    }
    /// Where a leg begins it is a device's own matter when it goes on.
    std::optional<double> fromOther(std::uint32_t d, std::uint32_t leg) const {
        const bool down = leg == kForwardDown || leg == kGradientDown;
        return d == (down ? 0 : m_p - 1) ? std::nullopt : arrival(d, leg);
    }

    bool gradients() {
        std::vector<std::uint32_t> up, down;
        for (std::uint32_t d = 0; d < m_p; ++d) {
            const bool ahead = count(d, kGradientDown) > count(d, kGradientUp);
            const bool arrived = d + 1 == m_p || count(d + 1, kGradientUp) > count(d, kGradientUp);
            (ahead && (arrived || count(d, kGradientDown) >= m_m) ? up : down).push_back(d);
        }
        std::ranges::reverse(up);
        for (const std::uint32_t d : up) {
            fillUntil(d, fromOther(d, kGradientUp), true);
            if (!put(d, kGradientUp)) return false;
        }
        for (const std::uint32_t d : down) {
            fillUntil(d, fromOther(d, kGradientDown), m_fill.beforeGradientDown);
            if (!put(d, kGradientDown)) return false;
        }
        return true;
    }

    bool forwards() {
        for (std::uint32_t d = 0; d < m_p; ++d) {
            if (count(d, kForwardUp) >= m_m) continue;
            std::uint32_t leg = kForwardUp;
            if (count(d, kForwardUp) >= count(d, kForwardDown)) {
                leg = kForwardDown;
            } else if (!arrival(d, kForwardUp)) {
                if (count(d, kForwardDown) >= m_m || !arrival(d, kForwardDown)) continue;
                leg = kForwardDown;
            }
            if (!makeRoom(d, leg)) return false;
            fillUntil(d, fromOther(d, leg), m_fill.beforeForward);
            if (!put(d, leg)) return false;
        }
        return true;
    }

    static constexpr double kSlack = 1e-12;

    const ScheduleSpec& m_spec;
    Fill m_fill;
    const std::vector<double>& m_allowance;
    std::uint32_t m_p, m_m;
    std::vector<Device> m_devices;
    double m_limit = 0, m_mostAllowed = 0;
};

/// Again with the bubbles that came out as allowances, as long as the largest one shrinks.
std::optional<Attempt> improve(const ScheduleSpec& spec, Fill fill) {
    std::vector<double> allowance(spec.devices, -1);
    std::optional<Attempt> best = Builder(spec, fill, allowance).run();
    while (best) {
        allowance = best->bubbles;
        auto next = Builder(spec, fill, allowance).run();
        if (!next || next->bubble() >= best->bubble()) break;
        best = std::move(next);
    }
    return best;
}

} // namespace

Orders makeZbV(const ScheduleSpec& spec) {
    demand(spec.slices.empty(), spec, "micro-batches are cut into slices",
           "choose the schedule terapipe, or no slices");
    std::optional<Attempt> best;
    for (const bool beforeGradient : {true, false}) {
        for (const bool beforeForward : {true, false}) {
            auto attempt = improve(spec, {beforeForward, beforeGradient});
            if (attempt && (!best || attempt->bubble() < best->bubble())) best = std::move(attempt);
        }
    }
    demand(best.has_value(), spec, "the limit is too small for this schedule",
           "allow more micro-batches in flight, or choose v-half or v-min");
    ListWriter out(spec, 2 * spec.devices, inV(spec.devices));
    for (std::uint32_t d = 0; d < spec.devices; ++d) {
        for (const Entry& entry : best->lists[d]) {
            out.add(d, entry.pass, entry.microBatch, entry.chunk);
        }
    }
    return out.finish();
}

} // namespace shardlens::schedule
