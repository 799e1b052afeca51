// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/task.h"

#include <fmt/format.h>

#include <array>

namespace shardlens::schedule {

std::string_view passText(Pass pass) {
    static constexpr std::array<std::string_view, kPasses> kText = {
        "F", "Fng", "B", "I", "W", "R", "E", "EB", "SEND_F", "SEND_B", "A", "U", "BARRIER"};
    return kText[static_cast<std::size_t>(pass)];
}

std::string taskName(const Task& task) {
    std::string name = fmt::format("{}{}{}", task.stage, passText(task.pass), task.microBatch);
    if (task.slice > 0) name += fmt::format(".{}", task.slice);
    if (task.round > 0) name += fmt::format("r{}", task.round);
    return name;
}

} // namespace shardlens::schedule
