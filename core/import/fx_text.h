// SPDX-License-Identifier: Apache-2.0
// FX graphs as PyTorch 2 prints them: `print_readable` and tlparse (`mm: "f32[8, 768]" =
// torch.ops.aten.mm.default(a, b)`), and `fx_graph_runnable`, where only the arguments have shapes,
// in `load_args`. The text is read, never executed.
// Formats: torch/fx/graph.py (CodeGen), torch/_inductor/debug.py, torch/_dynamo/repro/after_aot.py.
#pragma once

#include "core/import/importer.h"

#include <string>
#include <string_view>

namespace shardlens {

/// Reads the first graph of the text. Names of ops are the FX names after the place in the user's
/// program ("attention.forward/mm_3"). A forward graph of a training step (it has `primals_…`)
/// returns its outputs first and then what it keeps for the backward pass, from the first returned
/// placeholder on; those are no outputs here. A backward graph (it has `tangents_…`) is a graph of
/// its own with backwardIncluded.
/// @throws InputError with the line
Graph importFx(std::string_view text, const std::string& where, const ImportOptions& options);

} // namespace shardlens
