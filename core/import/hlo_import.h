// SPDX-License-Identifier: Apache-2.0
// HLO text (XLA's dumps): before partitioning, with sharding annotations, or after it, as one
// device's program with collectives.
#pragma once

#include "core/import/importer.h"

#include <string_view>

namespace shardlens {

/// Facts of the result: instructions, computations, entry parameters with their elements and bytes,
/// loops and how often they run, dots, sharding annotations, collectives by kind, phases of
/// instructions where JAX names them; all as the text has them, before anything is written out.
/// @param where the file, for errors
/// @throws InputError: what, where, and what to do; Cancelled
Graph importHlo(std::string_view text, const std::string& where, const ImportOptions& options);

} // namespace shardlens
