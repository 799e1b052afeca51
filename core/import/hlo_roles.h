// SPDX-License-Identifier: Apache-2.0
// What the inputs of a module are. HLO does not say; a train step gives itself away by returning
// what it was given, updated, and by the names JAX leaves in the metadata.
#pragma once

#include "core/import/hlo_module.h"

namespace shardlens::hlo {

enum class Role : std::uint8_t {
    Data,      ///< fed each step, or a counter
    Weight,    ///< trained
    Optimizer, ///< state of the optimizer: floats that come back updated and are no weights
};

struct Roles {
    std::vector<Role> leaves; ///< of the ENTRY parameters, one parameter after the other
    bool backward = false;    ///< the module holds its own backward pass
};

Roles rolesOf(const Module& module);

/// Where an instruction belongs, by the op_name JAX gave it.
enum class Phase : std::uint8_t { Unnamed, Forward, Backward, Recompute, Other };
Phase phaseOf(const Instruction& instruction);

/// `metadata={op_name="…"}`, empty if there is none; escapes are kept.
std::string_view opNameOf(const Instruction& instruction);

} // namespace shardlens::hlo
