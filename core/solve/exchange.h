// SPDX-License-Identifier: Apache-2.0
// Local search under the limit on usage. A move changes one copy of a node, or two that an edge
// joins. Moves that pay for themselves are made while the limit holds; then pairs of moves, one of
// which frees the usage that the other needs.
#pragma once

#include "core/solve/moves.h"

namespace shardlens::solve {

/// @param start  within the limit
/// @param price  of usage, to tell promising moves from the many that are not
/// @return an assignment within the limit that costs no more
Assignment exchange(const Problem& problem, Assignment start, double price, Monitor& monitor);

} // namespace shardlens::solve
