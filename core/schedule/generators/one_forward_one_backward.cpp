// SPDX-License-Identifier: Apache-2.0
// 1F1B (PipeDream-Flush, Narayanan et al. 2021), the interleaved schedule of Megatron-LM (same
// paper), and PipeDream-2BW, which is 1F1B without a flush.
#include "core/schedule/generators/generators.h"

#include <algorithm>

namespace shardlens::schedule {
namespace {

/// Warm-up, pairs, the rest: the list of one device.
void oneForwardOneBackward(ListWriter& out, std::uint32_t device, std::uint32_t microBatches,
                           std::uint32_t warmUp) {
    for (std::uint32_t i = 0; i < warmUp; ++i) out.add(device, Pass::Forward, i);
    for (std::uint32_t i = 0; i < microBatches; ++i) {
        if (warmUp + i < microBatches) out.add(device, Pass::Forward, warmUp + i);
        out.add(device, Pass::Backward, i);
    }
}

} // namespace

Orders make1F1B(const ScheduleSpec& spec) {
    demandPlain(spec);
    ListWriter out(spec, spec.devices, loops(spec.devices));
    for (std::uint32_t d = 0; d < spec.devices; ++d) {
        const std::uint32_t warmUp = std::min(spec.devices - 1 - d, spec.microBatches);
        oneForwardOneBackward(out, d, spec.microBatches, warmUp);
    }
    return out.finish();
}

/// Micro-batches use the weights from before the last update, so that none of them waits.
Orders make2BW(const ScheduleSpec& spec) {
    demandPlain(spec);
    demand(spec.microBatches >= spec.devices, spec, "there are fewer micro-batches than stages",
           "let every update have at least as many micro-batches as there are stages");
    ListWriter out(spec, spec.devices, loops(spec.devices));
    const std::uint32_t updates = spec.rounds > 0 ? spec.rounds : 3;
    const std::uint32_t all = spec.microBatches * updates;
    out.orders().microBatches = all;
    out.orders().updates = updates;
    out.orders().flushes = false;
    for (std::uint32_t d = 0; d < spec.devices; ++d) {
        oneForwardOneBackward(out, d, all, spec.devices - 1 - d);
    }
    return out.finish();
}

Orders makeInterleaved(const ScheduleSpec& spec) {
    const std::uint32_t p = spec.devices, m = spec.microBatches, v = spec.chunks;
    demand(spec.slices.empty(), spec, "micro-batches are cut into slices",
           "choose the schedule terapipe, or no slices");
    demand(m % p == 0, spec, "the number of micro-batches is no multiple of the number of devices",
           "let m be a multiple of p");
    ListWriter out(spec, p * v, loops(p));
    const std::uint32_t n = m * v;
    const auto microBatch = [&](std::uint32_t i) { return i / (p * v) * p + i % p; };
    for (std::uint32_t d = 0; d < p; ++d) {
        const auto forward = [&](std::uint32_t i) {
            out.add(d, Pass::Forward, microBatch(i), i / p % v);
        };
        const std::uint32_t warmUp = std::min((v - 1) * p + 2 * (p - 1 - d), n);
        for (std::uint32_t i = 0; i < warmUp; ++i) forward(i);
        for (std::uint32_t i = 0; i < n; ++i) {
            if (warmUp + i < n) forward(warmUp + i);
            out.add(d, Pass::Backward, microBatch(i), v - 1 - i / p % v);
        }
    }
    return out.finish();
}

} // namespace shardlens::schedule
