// SPDX-License-Identifier: Apache-2.0
// PyTorch execution traces (torch.profiler.ExecutionTraceObserver): every operator that one rank
// ran, forward and backward, with the types of its operands and results. Schema 1.0.1 has them in
// lists of the node, 1.0.3 and later under "inputs", "outputs" and "attrs"
// (github.com/facebookresearch/param, et_replay).
//
// Operators that call others are taken whole where that loses nothing, else what they call is
// taken. Edges follow the ids of tensors and storages; writing into a view is not seen in its base.
// Tensors that nothing makes are inputs, or parameters where a layer reads them as its weights.
// What nothing reads is a result: the trace does not say which ones the user wanted.
#pragma once

#include "core/import/importer.h"

#include <string>
#include <string_view>

namespace shardlens {

/// @throws InputError naming the byte or the node
Graph importExecutionTrace(std::string_view json, const std::string& where,
                           const ImportOptions& options);

} // namespace shardlens
