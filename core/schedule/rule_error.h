// SPDX-License-Identifier: Apache-2.0
// Which of the rules that every schedule must obey is broken. The numbers are those of the plan's
// validator, which has one more (4: shards fill the mesh) that is not about schedules.
#pragma once

#include "core/error.h"

namespace shardlens::schedule {

enum class BrokenRule : std::uint8_t {
    Complete = 1, ///< every micro-batch and slice passes every stage once per declared pass
    Acyclic = 2,  ///< dependencies and orders do not contradict each other
    Placed = 3,   ///< a task is on its stage's device
    Memory = 5,   ///< at no time above the capacity, or below nothing
    Sizes = 6,    ///< what a schedule demands of p, m and v
};

class RuleError : public PlanError {
public:
    RuleError(BrokenRule rule, std::string problem, std::string where, std::string hint)
        : PlanError(std::move(problem), std::move(where), std::move(hint)), m_rule(rule) {}

    BrokenRule rule() const noexcept { return m_rule; }

private:
    BrokenRule m_rule;
};

} // namespace shardlens::schedule
