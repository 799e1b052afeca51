// SPDX-License-Identifier: Apache-2.0
// Local updates (Laskin et al. 2020, "Parallel Training of Deep Networks with Local Updates"):
// every device trains a block with a head and a loss of its own, or (overlapping) the next block's
// loss, for which it computes that block too. No gradient crosses to another device, so nobody
// waits for one; each micro-batch is a batch with its own update.
#include "core/schedule/generators/generators.h"

namespace shardlens::schedule {

Orders makeLocal(const ScheduleSpec& spec) {
    demandPlain(spec);
    const std::uint32_t p = spec.devices, m = spec.microBatches;
    ListWriter out(spec, p, loops(p));
    out.orders().cutGradients = true;
    out.orders().updates = m;
    out.orders().flushes = false;
    for (std::uint32_t d = 0; d < p; ++d) {
        const auto addNext = [&](Pass pass, std::uint32_t i) {
            if (!spec.overlapping || d + 1 == p) return;
            Task task;
            task.microBatch = i;
            task.stage = static_cast<std::uint16_t>(d + 1);
            task.device = static_cast<std::uint16_t>(d);
            task.chunk = 1;
            task.pass = pass;
            task.round = 1;
            out.add(task);
        };
        for (std::uint32_t i = 0; i < m; ++i) {
            out.add(d, Pass::Forward, i);
            addNext(Pass::Forward, i);
            addNext(Pass::Backward, i);
            out.add(d, Pass::Backward, i);
        }
    }
    return out.finish();
}

} // namespace shardlens::schedule
