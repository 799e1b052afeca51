// SPDX-License-Identifier: Apache-2.0
// The rules that a schedule obeys, whoever made it: those of the plan's validator that are about
// schedules.
#pragma once

#include "core/schedule/catalogue.h"
#include "core/schedule/rule_error.h"

#include <optional>

namespace shardlens::schedule {

struct Violation {
    BrokenRule rule = BrokenRule::Complete;
    std::string problem, where, hint;
};

/// The first rule that is broken, if any; rule 5 is looked at only when the others hold. Orders
/// come from anywhere; the name of the spec does not matter.
std::optional<Violation> findViolation(const ScheduleSpec& spec, const Orders& orders);

/// @throws RuleError when a device's memory passes its capacity, naming the task that takes it
/// there
void checkMemory(const Program& program, const Timeline& timeline);

} // namespace shardlens::schedule
