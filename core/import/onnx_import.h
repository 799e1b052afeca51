// SPDX-License-Identifier: Apache-2.0
// ONNX files to graphs. See onnx_model.h for the file, onnx_translation.h for the ops.
#pragma once

#include "core/import/importer.h"

#include <cstddef>
#include <span>
#include <string>

namespace shardlens {

/// Builds the graph of an ONNX model. Every node result keeps its name; sources stand right before
/// their first reader. facts: ir_version, opset, producer, nodes, initializers, inputs (real ones),
/// inputs_listed (with those that are initializers), functions.
/// @param where names the file in messages
/// @throws InputError with the byte offset or the node; Cancelled
Graph importOnnx(std::span<const std::byte> file, const std::string& where,
                 const ImportOptions& options = {});

} // namespace shardlens
