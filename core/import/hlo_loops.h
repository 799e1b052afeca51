// SPDX-License-Identifier: Apache-2.0
// How often loops run, and how large a module is when its calls and loops are written out.
#pragma once

#include "core/import/hlo_module.h"

#include <optional>

namespace shardlens::hlo {

/// From `known_trip_count`, else from the counter: its first value, its step in the body, and the
/// constant the condition compares it with. std::nullopt if the count is not to be told.
std::optional<std::int64_t> tripCount(const Module& module, const Computation& caller,
                                      const Instruction& loop);

/// Whether the computations an instruction names are written out in its place.
bool inlines(const Instruction& instruction);

/// The computations an instruction runs in its place (of a loop, the body), each once.
/// @throws InputError if one is not in the file
std::vector<const Computation*> inlined(const Module& module, const Instruction& instruction);

/// Instructions of each computation with everything in it written out; loops whose count is known
/// count as often as they run, as long as that stays below `most`.
/// @throws InputError if computations call each other in a circle, or too deeply
std::vector<double> writtenOut(const Module& module, double most);

} // namespace shardlens::hlo
