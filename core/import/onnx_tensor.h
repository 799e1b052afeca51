// SPDX-License-Identifier: Apache-2.0
// Reading of one TensorProto: its name, type and shape, and the few elements that are wanted.
#pragma once

#include "core/import/onnx_model.h"
#include "core/import/protobuf_wire.h"

namespace shardlens::onnx {

inline constexpr std::size_t kMaxRank = 64;
/// Bound of a single dimension; leaves head room for sums and products of a few in 64 bits.
inline constexpr std::int64_t kMaxDim = std::int64_t{1} << 40;
/// Bound of the elements of a tensor: where doubles stop being exact.
inline constexpr double kMaxElements = 9007199254740992.0;

/// @throws InputError when the rank, a dimension or their product is out of bounds
void checkDims(const wire::Reader& reader, const Shape& dims, std::string_view name);

/// @throws InputError with the byte offset; also for external data outside the model's folder
TensorData parseTensor(wire::Reader reader);

} // namespace shardlens::onnx
