// SPDX-License-Identifier: Apache-2.0
// Loops that are written out round by round: those whose count is known and small, so that folding
// finds the rounds again and each is planned like any other part of the model.
#pragma once

#include "core/import/onnx_translation.h"

namespace shardlens::onnx {

/// Entry i of an optional list, 0 where it has none.
std::int64_t entry(const std::optional<Translation::Ints>& values, std::size_t i);

/// A Loop whose count is known and which cannot end before. False, and nothing done, for others.
bool unrolledLoop(Translation& t, const GraphData& body);
/// A Scan; its first `states` operands are carried from round to round.
bool unrolledScan(Translation& t, const GraphData& body, std::size_t states);

} // namespace shardlens::onnx
