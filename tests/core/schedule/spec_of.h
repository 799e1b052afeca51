// SPDX-License-Identifier: Apache-2.0
// What most tests of schedules start from.
#pragma once

#include "core/schedule/spec.h"

#include <string_view>

namespace shardlens::test {

inline schedule::ScheduleSpec specOf(std::string_view name, std::uint32_t p, std::uint32_t m) {
    schedule::ScheduleSpec spec;
    spec.name = name;
    spec.devices = p;
    spec.microBatches = m;
    return spec;
}

} // namespace shardlens::test
