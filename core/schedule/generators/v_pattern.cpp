// SPDX-License-Identifier: Apache-2.0
// V-Half and V-Min (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory"): two stages in
// a V on each device and a pattern of six time slots for each micro-batch, whose gaps set how long
// activations live. The patterns overlap for all micro-batches; weight gradients take free slots.
// Then, as in the authors' generator (sail-sg/zero-bubble-pipeline-parallelism), tasks outside the
// steady part are pulled to earlier slots where the pattern's memory is not exceeded: first with
// weight gradients as tasks, then again without them. Only the order that comes out is used.
//
// Time is counted in slots; lane 0 … 3 are forward down and up, input gradient down and up, lane 4
// (and 5) the weight gradients.
#include "core/schedule/generators/generators.h"

#include <algorithm>
#include <array>

namespace shardlens::schedule {
namespace {

using Slot = std::int64_t;
constexpr std::size_t kPatternLegs = 4, kWeights = 4;
constexpr Slot kPeriod = 6;

/// By lane: the slots of micro-batch 0, 1, … on one device.
using Lanes = std::vector<std::vector<Slot>>;

struct Element {
    Slot slot;
    std::size_t device, lane, index;

    friend auto operator<=>(const Element&, const Element&) = default;
};

Slot lastSlot(const Lanes& lanes) {
    Slot last = 0;
    for (const auto& lane : lanes) last = std::max(last, lane.back());
    return last;
}

/// What runs in each slot of a device; kFree where nothing does.
constexpr std::int8_t kFree = -1;
std::vector<std::int8_t> occupation(const Lanes& lanes) {
    std::vector<std::int8_t> out(static_cast<std::size_t>(lastSlot(lanes)) + 1, kFree);
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        for (const Slot slot : lanes[lane]) {
            out[static_cast<std::size_t>(slot)] = static_cast<std::int8_t>(lane);
        }
    }
    return out;
}

/// Adds lanes for weight gradients, in free slots after their input gradients: one, or one for each
/// chunk.
void placeWeights(Lanes& lanes, bool split) {
    const std::vector<std::int8_t> taken = occupation(lanes);
    lanes.resize(kWeights + (split ? 2 : 1));
    std::array<std::size_t, 2> waiting{};
    const auto place = [&](std::size_t which, Slot slot) {
        lanes[kWeights + which].push_back(slot);
        --waiting[which];
    };
    for (std::size_t slot = 0; slot < taken.size(); ++slot) {
        if (taken[slot] >= 2) {
            ++waiting[split && taken[slot] == 3 ? 1 : 0];
        } else if (taken[slot] == kFree && waiting[0] + waiting[1] > 0) {
            place(waiting[0] > 0 ? 0 : 1, static_cast<Slot>(slot));
        }
    }
    auto slot = static_cast<Slot>(taken.size());
    for (const std::size_t which : {0u, 1u}) {
        while (waiting[which] > 0) place(which, slot++);
    }
}

/// Most chunks in memory, when weight gradients are lanes or else take every free slot they can.
std::int64_t peak(const std::vector<std::int8_t>& taken, bool weightsAreLanes) {
    std::int64_t memory = 0, most = 0, waiting = 0;
    for (const std::int8_t lane : taken) {
        if (lane == 0 || lane == 1) most = std::max(most, ++memory);
        if (lane == 2 || lane == 3) ++waiting;
        if (lane == 4) --memory;
        if (lane == kFree && !weightsAreLanes && waiting > 0) {
            --memory;
            --waiting;
        }
    }
    return most;
}

std::vector<Element> inOrder(const std::vector<Lanes>& devices) {
    std::vector<Element> out;
    for (std::size_t d = 0; d < devices.size(); ++d) {
        for (std::size_t lane = 0; lane < devices[d].size(); ++lane) {
            for (std::size_t i = 0; i < devices[d][lane].size(); ++i) {
                out.push_back({devices[d][lane][i], d, lane, i});
            }
        }
    }
    std::ranges::sort(out);
    return out;
}

/// The last slot among what the element waits for, −1 if nothing.
Slot dependencyOf(const std::vector<Lanes>& devices, const Element& e) {
    Slot last = -1;
    const bool down = e.lane == 0 || e.lane == 2;
    if (e.lane < kPatternLegs && down && e.device > 0) {
        last = std::max(last, devices[e.device - 1][e.lane][e.index]);
    }
    if (e.lane < kPatternLegs && !down && e.device + 1 < devices.size()) {
        last = std::max(last, devices[e.device + 1][e.lane][e.index]);
    }
    const Lanes& own = devices[e.device];
    if (e.lane > 0 && e.lane < kPatternLegs) last = std::max(last, own[e.lane - 1][e.index]);
    if (e.index > 0) last = std::max(last, own[e.lane][e.index - 1]);
    return last;
}

/// Slots as early as order and dependencies allow when every task takes one.
void squeeze(std::vector<Lanes>& devices) {
    std::vector<Slot> free(devices.size(), 0);
    for (const Element& e : inOrder(devices)) {
        Slot& slot = devices[e.device][e.lane][e.index];
        slot = std::max(free[e.device], dependencyOf(devices, e) + 1);
        free[e.device] = slot + 1;
    }
}

/// Moves tasks to earlier free slots, one after the other in the order of time.
class Pull {
public:
    Pull(std::vector<Lanes>& devices, bool weightsAreLanes)
        : m_devices(devices), m_weightsAreLanes(weightsAreLanes), m_gradients(devices.size()) {
        for (const Lanes& lanes : devices) {
            m_taken.push_back(occupation(lanes));
            m_limit = std::max(m_limit, peak(m_taken.back(), weightsAreLanes));
        }
    }

    void run() {
        const std::size_t last = m_devices.front().front().size() - 1;
        enum { Ramp, Steady, End } phase = Ramp;
        for (const Element& e : inOrder(m_devices)) {
            if (phase == Ramp && e.lane == 3 && e.device == 0) phase = Steady;
            if (phase == End || (phase == Ramp && m_weightsAreLanes)) move(e);
            if (phase == Steady && e.lane == 0 && e.index == last) phase = End;
            if (e.lane == 2 || e.lane == 3) passGradient(e);
        }
    }

private:
    void passGradient(const Element& e) {
        auto& passed = m_gradients[e.device];
        const Slot slot = m_devices[e.device][e.lane][e.index];
        passed.insert(std::ranges::upper_bound(passed, slot), slot);
    }

    void move(const Element& e) {
        Slot first = dependencyOf(m_devices, e);
        // Weight gradients follow input gradients one by one, whatever their chunk.
        if (e.lane == kWeights) first = std::max(first, m_gradients[e.device][e.index]);
        auto& taken = m_taken[e.device];
        std::int8_t& old = taken[static_cast<std::size_t>(e.slot)];
        for (Slot slot = first + 1; slot < e.slot; ++slot) {
            std::int8_t& earlier = taken[static_cast<std::size_t>(slot)];
            if (earlier != kFree) continue;
            std::swap(earlier, old);
            if (peak(taken, m_weightsAreLanes) <= m_limit) {
                m_devices[e.device][e.lane][e.index] = slot;
                return;
            }
            std::swap(earlier, old);
        }
    }

    std::vector<Lanes>& m_devices;
    bool m_weightsAreLanes;
    std::vector<std::vector<std::int8_t>> m_taken; ///< by device and slot
    std::vector<std::vector<Slot>> m_gradients;    ///< by device: slots of those passed, sorted
    std::int64_t m_limit = 0;
};

using Pattern = std::array<Slot, kPatternLegs>;

Orders fromPattern(const ScheduleSpec& spec, const std::vector<Pattern>& pattern) {
    std::vector<Lanes> devices;
    for (const Pattern& first : pattern) {
        Lanes lanes(kPatternLegs);
        for (std::size_t leg = 0; leg < kPatternLegs; ++leg) {
            for (std::uint32_t i = 0; i < spec.microBatches; ++i) {
                lanes[leg].push_back(first[leg] + kPeriod * i);
            }
        }
        devices.push_back(std::move(lanes));
    }
    for (const bool weightsAreLanes : {true, false}) {
        if (weightsAreLanes) {
            for (Lanes& lanes : devices) placeWeights(lanes, false);
        }
        Pull(devices, weightsAreLanes).run();
        if (!weightsAreLanes) {
            for (Lanes& lanes : devices) placeWeights(lanes, false);
        }
        squeeze(devices);
        for (Lanes& lanes : devices) lanes.resize(kPatternLegs);
    }
    for (Lanes& lanes : devices) placeWeights(lanes, true);

    static constexpr std::array kPass = {Pass::Forward,   Pass::Forward,    Pass::InputGrad,
                                         Pass::InputGrad, Pass::WeightGrad, Pass::WeightGrad};
    static constexpr std::array<std::uint32_t, 6> kChunk = {0, 1, 1, 0, 1, 0};
    ListWriter out(spec, 2 * spec.devices, inV(spec.devices));
    for (const Element& e : inOrder(devices)) {
        out.add(static_cast<std::uint32_t>(e.device), kPass[e.lane],
                static_cast<std::uint32_t>(e.index), kChunk[e.lane]);
    }
    return out.finish();
}

} // namespace

Orders makeVMin(const ScheduleSpec& spec) {
    demand(spec.slices.empty(), spec, "micro-batches are cut into slices",
           "choose the schedule terapipe, or no slices");
    const Slot p = spec.devices, wait = p % 3 == 0 ? 2 : 0;
    std::vector<Pattern> pattern;
    for (Slot i = 0; i < p; ++i) {
        pattern.push_back({i, 2 * p - 1 - i, 2 * p + wait + i, 4 * p + wait - 1 - i});
    }
    return fromPattern(spec, pattern);
}

Orders makeVHalf(const ScheduleSpec& spec) {
    demand(spec.slices.empty(), spec, "micro-batches are cut into slices",
           "choose the schedule terapipe, or no slices");
    const Slot p = spec.devices, wait = p % 2 == 0 ? 3 : 0;
    std::vector<Pattern> pattern;
    for (Slot i = 0; i < p; ++i) {
        pattern.push_back({2 * i, 3 * p - 2 - i, 3 * p + wait + 2 * i - 1, 6 * p + wait - 2 - i});
    }
    return fromPattern(spec, pattern);
}

} // namespace shardlens::schedule
