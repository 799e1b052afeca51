// SPDX-License-Identifier: Apache-2.0
// Our own layered drawing (Sugiyama, Tagawa, Toda 1981): ranks, order within ranks, horizontal
// placement, curves. It exists because dot takes minutes beyond a few hundred boxes with long edges
// and cannot be interrupted; this one is near-linear (100,000 boxes in about a second) and stops
// within milliseconds.
#pragma once

#include "core/layout/box_layout.h"

namespace shardlens {

/// Draws the input: no two boxes overlap, edges cross no box and run downwards (to the right if
/// leftToRight; edges that close a cycle run back), components lie side by side, and the longest
/// chain of each component is exactly straight. Edges over more than 40 ranks are led around the
/// drawing. Deterministic: ties fall in input order. Throws InputError for bad input, Cancelled
/// once stop is requested.
LayoutResult layeredLayout(const LayoutInput& input, const std::stop_token& stop = {});

} // namespace shardlens
