// SPDX-License-Identifier: Apache-2.0
// Quantisation in blocks (opset 21), shared by QuantizeLinear and DequantizeLinear.
#pragma once

#include "core/import/onnx_translation.h"

namespace shardlens::onnx {

/// Translates the node if it has a scale for each block of its axis. False, and nothing done, if it
/// has not. @param function "quantize" or "dequantize" @param dtype of the result
bool blockwise(Translation& t, std::string_view function, DType dtype);

/// Unsigned weights of a few bits around the middle of their range, [.., K], times scales: one for
/// each block of K, [.., blocks], or for all of it, [..]. @pre the scales fit
TensorId dequantised(Translation& t, TensorId weights, TensorId scales, std::int64_t bits,
                     DType dtype);

} // namespace shardlens::onnx
