// SPDX-License-Identifier: Apache-2.0
// Zero-bubble schedules (Qi et al. 2024, "Zero Bubble Pipeline Parallelism"): the backward is
// split, so that weight gradients, which nobody waits for, fill what would be idle time.
#include "core/schedule/generators/generators.h"

#include <algorithm>

namespace shardlens::schedule {

/// As much memory as 1F1B: stage k may be k weight gradients behind.
Orders makeZbH1(const ScheduleSpec& spec) {
    demandPlain(spec);
    const std::uint32_t p = spec.devices, m = spec.microBatches;
    ListWriter out(spec, p, loops(p));
    for (std::uint32_t k = 0; k < p; ++k) {
        const std::uint32_t warmUp = std::min(p - 1 - k, m);
        std::uint32_t weights = 0;
        for (std::uint32_t i = 0; i < warmUp; ++i) out.add(k, Pass::Forward, i);
        for (std::uint32_t i = 0; i < m; ++i) {
            if (warmUp + i < m) out.add(k, Pass::Forward, warmUp + i);
            out.add(k, Pass::InputGrad, i);
            if (i >= k) out.add(k, Pass::WeightGrad, weights++);
        }
        while (weights < m) out.add(k, Pass::WeightGrad, weights++);
    }
    return out.finish();
}

/// Any limit: what is ready decides. 2p−1 in flight leave no bubble between a device's first and
/// last task when F = I = W.
Orders makeZbH2(const ScheduleSpec& spec) {
    demandPlain(spec);
    const std::uint32_t p = spec.devices, m = spec.microBatches;
    ListWriter out(spec, p, loops(p));
    for (std::uint32_t k = 0; k < p; ++k) {
        for (const Pass pass : {Pass::Forward, Pass::InputGrad, Pass::WeightGrad}) {
            for (std::uint32_t i = 0; i < m; ++i) out.add(k, pass, i);
        }
    }
    const double limit = spec.limit > 0 ? spec.limit : 2 * p - 1;
    demand(limit >= 1, spec, "the limit is below one micro-batch", "allow at least 1 in flight");
    out.orders().rule = Rule{{Pass::InputGrad, Pass::Forward, Pass::WeightGrad},
                             std::vector<double>(p, limit),
                             kUnlimited};
    return out.finish();
}

} // namespace shardlens::schedule
