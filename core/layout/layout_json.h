// SPDX-License-Identifier: Apache-2.0
// The text form of layout problems and drawings, one line of JSON each, as the window and its
// layout helper exchange them. Numbers survive the round trip to the last bit.
#pragma once

#include "core/layout/box_layout.h"

#include <string_view>

namespace shardlens {

/// {"boxes": [[width, height]...], "edges": [[from, to]...], "rank_gap", "node_gap",
///  "left_to_right"}
std::string layoutInputToJson(const LayoutInput& input);

/// Throws InputError for anything but a well-formed problem.
LayoutInput layoutInputFromJson(std::string_view text);

/// {"centres": [[x, y]...], "routes": [[x, y, x, y...]...], "side_channels": [edge...], "width",
///  "height", "engine", "note"}
std::string layoutResultToJson(const LayoutResult& result);

/// Throws InputError for anything but a well-formed drawing, and for {"error": "..."} with that
/// text. Compare it with its problem by checkLayoutResult().
LayoutResult layoutResultFromJson(std::string_view text);

} // namespace shardlens
