// SPDX-License-Identifier: Apache-2.0
// What pins mean: which ops they name and which choice they fix there. A pin that cannot hold is
// refused with its name and the reason; it is never dropped.
#pragma once

#include "core/plan/choice_problem.h"

namespace shardlens {

/// Shell-style match: * any characters, ? one character.
bool matchesGlob(std::string_view pattern, std::string_view text);

/// "layers.57.q_proj=b@dp,n@tp" -> Pin. @throws PlanError without a '='
Pin parsePin(std::string_view text);
std::string toString(const Pin& pin);

/// Choice index per op, -1 where free. @throws PlanError: a pin names no op, its choice is illegal
/// at an op (with the reason), or two pins clash at an op (both named)
FixedChoices fixedChoices(const PlanContext& context, const std::vector<Pin>& pins);

/// Why a choice is not among the legal ones of an op.
std::string whyIllegal(const PricedOp& op, const Choice& choice, const Mesh& mesh);

} // namespace shardlens
