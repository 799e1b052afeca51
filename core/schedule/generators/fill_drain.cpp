// SPDX-License-Identifier: Apache-2.0
// Schedules that go through all forwards before the first backward: GPipe (Huang et al. 2019),
// TeraPipe's slices of sequences (Li et al. 2021), and forward alone.
#include "core/schedule/generators/generators.h"

namespace shardlens::schedule {

Orders makeGPipe(const ScheduleSpec& spec) {
    demandPlain(spec);
    ListWriter out(spec, spec.devices, loops(spec.devices));
    for (std::uint32_t d = 0; d < spec.devices; ++d) {
        for (std::uint32_t i = 0; i < spec.microBatches; ++i) out.add(d, Pass::Forward, i);
        for (std::uint32_t i = 0; i < spec.microBatches; ++i) out.add(d, Pass::Backward, i);
    }
    return out.finish();
}

Orders makeInference(const ScheduleSpec& spec) {
    demandPlain(spec);
    ListWriter out(spec, spec.devices, loops(spec.devices));
    for (std::uint32_t d = 0; d < spec.devices; ++d) {
        for (std::uint32_t i = 0; i < spec.microBatches; ++i) out.add(d, Pass::Forward, i);
    }
    return out.finish();
}

/// A slice needs the slices before it (keys and values), their gradients need the slices after it.
Orders makeTeraPipe(const ScheduleSpec& spec) {
    demand(spec.chunks == 1, spec, "there is more than one chunk on a device", "set v = 1");
    ListWriter out(spec, spec.devices, loops(spec.devices));
    const std::uint32_t slices = out.orders().slices;
    for (std::uint32_t d = 0; d < spec.devices; ++d) {
        const std::uint32_t steps = spec.microBatches * slices;
        for (std::uint32_t n = 0; n < 2 * steps; ++n) {
            const bool forward = n < steps;
            const std::uint32_t i = forward ? n : 2 * steps - 1 - n;
            out.add(d, forward ? Pass::Forward : Pass::Backward, i / slices);
            out.orders().lists[d].back().slice = static_cast<std::uint16_t>(i % slices);
        }
    }
    return out.finish();
}

} // namespace shardlens::schedule
