// SPDX-License-Identifier: Apache-2.0
// 3F1B (SuperScaler, Lin et al. 2024), for models that recycle their output, such as AlphaFold 2:
// every micro-batch passes the whole pipeline some rounds without gradient and once with. What is
// ready decides, later passes first; a window keeps recycled outputs few.
#include "core/schedule/generators/generators.h"

namespace shardlens::schedule {

Orders make3F1B(const ScheduleSpec& spec) {
    demandPlain(spec);
    const std::uint32_t p = spec.devices, m = spec.microBatches;
    const std::uint32_t rounds = spec.rounds > 0 ? spec.rounds : 2; // AlphaFold 2's, in the mean
    ListWriter out(spec, p, loops(p));
    const auto add = [&](std::uint32_t device, Pass pass, std::uint32_t i, std::uint32_t round) {
        out.add(device, pass, i);
        out.orders().lists[device].back().round = static_cast<std::uint8_t>(round);
    };
    std::vector<double> limit;
    for (std::uint32_t d = 0; d < p; ++d) {
        for (std::uint32_t i = 0; i < m; ++i) {
            add(d, Pass::Backward, i, rounds);
            add(d, Pass::Forward, i, rounds);
            for (std::uint32_t r = rounds; r-- > 0;) add(d, Pass::ForwardNoGrad, i, r);
        }
        limit.push_back(p - d);
    }
    out.orders().rule =
        Rule{{Pass::Backward, Pass::Forward, Pass::ForwardNoGrad}, std::move(limit), 3.0 * p};
    return out.finish();
}

} // namespace shardlens::schedule
