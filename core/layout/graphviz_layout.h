// SPDX-License-Identifier: Apache-2.0
// Graphviz's dot as a layout engine, through cgraph and gvc with the plugin linked in. It draws
// small graphs better than anything else, but it cannot be interrupted, may take minutes, and two
// layouts at once crash. It is therefore meant to be called in a helper process only (see
// layout_process.h), one layout at a time.
#pragma once

#include "core/layout/box_layout.h"

namespace shardlens {

/// Beyond this many boxes dot's time is not predictable.
inline constexpr std::size_t maxGraphvizBoxes = 250;

/// Same result form as layeredLayout(). Throws InputError for bad input and Error if Graphviz
/// refuses. Never call it from two threads of one process.
LayoutResult graphvizLayout(const LayoutInput& input);

} // namespace shardlens
