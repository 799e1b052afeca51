// SPDX-License-Identifier: Apache-2.0
// Quantisation in blocks (opset 21), shared by QuantizeLinear and DequantizeLinear.
#pragma once

#include "core/import/onnx_translation.h"

namespace shardlens::onnx {

/// Translates the node if it has a scale for each block of its axis. False, and nothing done, if it
/// has not. @param function "quantize" or "dequantize" @param dtype of the result
bool blockwise(Translation& t, std::string_view function, DType dtype);

} // namespace shardlens::onnx
