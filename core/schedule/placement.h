// SPDX-License-Identifier: Apache-2.0
// Which device has which stage, and that nothing is missing, twice, or in a wrong place: what a
// program takes for granted.
#pragma once

#include "core/schedule/orders.h"

namespace shardlens::schedule {

/// Which device has a stage, for each micro-batch, since pipelines may go both ways.
class Placement {
public:
    /// @throws RuleError when a micro-batch misses a stage or a pass that others have, has one
    /// twice,
    ///         a pass is on another device than its forward, or something is outside of the
    ///         schedule
    explicit Placement(const Orders& orders);

    std::uint32_t deviceOf(std::uint32_t stage, std::uint32_t microBatch) const {
        return m_device[std::size_t{stage} * m_microBatches + microBatch];
    }

private:
    std::uint32_t m_microBatches;
    std::vector<std::uint16_t> m_device;
};

} // namespace shardlens::schedule
