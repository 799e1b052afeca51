// SPDX-License-Identifier: Apache-2.0
// Schedules with a pipeline in each direction, both on the same devices: Chimera (Li and Hoefler
// 2021) and DualPipe (DeepSeek-V3, 2024); and DualPipeV, which is DualPipe cut in half, so that one
// pipeline goes down and up again. Even micro-batches go down, odd ones up.
#include "core/schedule/generators/generators.h"

#include <algorithm>
#include <array>
#include <deque>

namespace shardlens::schedule {

/// What is ready decides, backwards first. With more micro-batches than stages this is the plain
/// concatenation of units, without the paper's forward doubling or backward halving.
Orders makeChimera(const ScheduleSpec& spec) {
    demandPlain(spec);
    const std::uint32_t p = spec.devices, m = spec.microBatches;
    demand(p % 2 == 0, spec, "the number of devices is odd", "let p be even");
    demand(m % 2 == 0, spec, "the number of micro-batches is odd", "let m be even");
    ListWriter out(spec, p, bothWays(p));
    for (std::uint32_t d = 0; d < p; ++d) {
        for (const Pass pass : {Pass::Forward, Pass::Backward}) {
            for (std::uint32_t i = 0; i < m; ++i) out.add(d, pass, i, i % 2);
        }
    }
    const double limit = spec.limit > 0 ? spec.limit : p;
    demand(limit >= 2, spec, "the limit is below one micro-batch in each direction",
           "allow at least 2 in flight");
    out.orders().rule =
        Rule{{Pass::Backward, Pass::Forward}, std::vector<double>(p, limit), kUnlimited};
    return out.finish();
}

namespace {

/// The list of one device in DualPipe's eight steps. Near is the direction whose beginning is
/// closer (chunk 0 of the published code), far the other one.
class DualPipeList {
public:
    /// @param rank distance from the closer end of the pipeline
    /// @param half number of ranks from an end to the middle
    /// @param chunks near and far
    DualPipeList(ListWriter& out, std::uint32_t device, std::uint32_t rank, std::uint32_t half,
                 std::array<std::uint32_t, 2> chunks, bool bothWays)
        : m_out(out), m_device(device), m_rank(rank), m_half(half), m_chunks(chunks),
          m_bothWays(bothWays) {}

    /// @param each micro-batches of a direction
    void write(std::uint32_t each) {
        const std::uint32_t q = m_rank, toMiddle = m_half - q - 1;
        for (std::uint32_t i = 0; i < 2 * toMiddle; ++i) forward(kNear);
        for (std::uint32_t i = 0; i <= q; ++i) {
            forward(kNear);
            forward(kFar);
        }
        for (std::uint32_t i = 0; i < toMiddle; ++i) {
            backward(kFar, true);
            weight();
            forward(kFar);
        }
        for (std::uint32_t i = 0; i < each + q + 1 - 2 * m_half; ++i) {
            const bool apart = i == 0 && toMiddle == 0; // shortens the middle ranks' bubble
            both(kNear, kFar, !apart);
            both(kFar, kNear, true);
        }
        for (std::uint32_t i = 0; i < toMiddle; ++i) {
            backward(kFar, false);
            both(kFar, kNear, true);
        }
        bool split = false;
        for (std::uint32_t i = 0; i <= q; ++i) {
            const bool turn = i == (q + 1) / 2;
            split = split || (turn && q % 2 == 1);
            backward(kFar, split);
            split = split || turn;
            backward(kNear, split);
        }
        for (std::uint32_t i = 0; i < toMiddle; ++i) {
            weight();
            backward(kNear, true);
        }
        while (!m_weights.empty()) weight();
    }

private:
    static constexpr std::uint32_t kNear = 0, kFar = 1;
    struct Weight {
        std::uint32_t microBatch, chunk;
    };

    std::uint32_t next(std::array<std::uint32_t, 2>& counts, std::uint32_t direction) const {
        const std::uint32_t i = counts[direction]++;
        return m_bothWays ? 2 * i + m_chunks[direction] : i;
    }
    void forward(std::uint32_t direction) {
        m_out.add(m_device, Pass::Forward, next(m_forwards, direction), m_chunks[direction]);
    }
    void backward(std::uint32_t direction, bool split) {
        const std::uint32_t i = next(m_backwards, direction), chunk = m_chunks[direction];
        m_out.add(m_device, split ? Pass::InputGrad : Pass::Backward, i, chunk);
        if (split) m_weights.push_back({i, chunk});
    }
    void both(std::uint32_t forwards, std::uint32_t backwards, bool joined) {
        forward(forwards);
        if (!joined) return backward(backwards, false);
        const std::uint32_t i = next(m_backwards, backwards);
        m_out.join(m_device, Pass::Backward, i, m_chunks[backwards]);
    }
    void weight() {
        const Weight oldest = m_weights.front();
        m_weights.pop_front();
        m_out.add(m_device, Pass::WeightGrad, oldest.microBatch, oldest.chunk);
    }

    ListWriter& m_out;
    std::uint32_t m_device, m_rank, m_half;
    std::array<std::uint32_t, 2> m_chunks;
    bool m_bothWays;
    std::array<std::uint32_t, 2> m_forwards{}, m_backwards{};
    std::deque<Weight> m_weights;
};

} // namespace

Orders makeDualPipe(const ScheduleSpec& spec) {
    demandPlain(spec);
    const std::uint32_t p = spec.devices, m = spec.microBatches;
    demand(p % 2 == 0, spec, "the number of devices is odd", "let p be even");
    demand(m % 2 == 0, spec, "the number of micro-batches is odd", "let m be even");
    demand(m >= 2 * p, spec, "there are fewer micro-batches than twice the devices",
           "let m be at least 2p");
    ListWriter out(spec, p, bothWays(p));
    for (std::uint32_t d = 0; d < p; ++d) {
        const std::uint32_t near = d < p / 2 ? 0 : 1;
        DualPipeList(out, d, std::min(d, p - 1 - d), p / 2, {near, 1 - near}, true).write(m / 2);
    }
    return out.finish();
}

Orders makeDualPipeV(const ScheduleSpec& spec) {
    demand(spec.slices.empty(), spec, "micro-batches are cut into slices",
           "choose the schedule terapipe, or no slices");
    const std::uint32_t p = spec.devices, m = spec.microBatches;
    demand(m >= 2 * p, spec, "there are fewer micro-batches than stages, two on each device",
           "let m be at least 2p");
    ListWriter out(spec, 2 * p, inV(p));
    for (std::uint32_t d = 0; d < p; ++d) DualPipeList(out, d, d, p, {0, 1}, false).write(m);
    return out.finish();
}

} // namespace shardlens::schedule
