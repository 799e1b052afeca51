// SPDX-License-Identifier: Apache-2.0
// The schedules that Shardlens can make, by name.
#pragma once

#include "core/schedule/orders.h"
#include "core/schedule/timeline.h"

#include <span>
#include <string_view>

namespace shardlens::schedule {

/// What the weights of an update have seen.
enum class Exactness : std::uint8_t { Synchronous, Stale, Local };

struct Generator {
    std::string_view name;  ///< "zb-h1"
    std::string_view title; ///< "ZB-H1"
    std::string_view rule;  ///< how it goes, in a line
    std::string_view source;
    double weightCopies = 1; ///< of a device's share
    Exactness exactness = Exactness::Synchronous;
    Orders (*make)(const ScheduleSpec& spec) = nullptr;
};

std::span<const Generator> generators();
/// @throws PlanError naming the known ones
const Generator& generator(std::string_view name);

/// Checks the spec and what the schedule demands of it (m a multiple of p and the like).
/// @throws RuleError saying which rule is broken
Orders makeOrders(const ScheduleSpec& spec);

/// The whole way from spec to timeline.
struct Schedule {
    Orders orders;
    Program program;
    Timeline timeline;
    Account account;
};
Schedule makeSchedule(const ScheduleSpec& spec);
Schedule makeSchedule(const ScheduleSpec& spec, Orders orders);

/// The orders in which a program that went by rule has run, as lists.
Orders asLists(const Orders& orders, const Program& program, const Timeline& timeline);

} // namespace shardlens::schedule
