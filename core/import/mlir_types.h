// SPDX-License-Identifier: Apache-2.0
// Types of MLIR text: tensors, scalars and tuples are understood, all others are skipped.
#pragma once

#include "core/import/mlir_module.h"
#include "core/import/mlir_scanner.h"

namespace shardlens::mlir {

/// The largest dimension that is accepted, and the largest number of elements: products of shapes
/// stay within 64 bits.
inline constexpr std::int64_t kLargestDimension = std::int64_t{1} << 40;
inline constexpr double kMostElements = 4.0e18;

using TypeAliases = std::unordered_map<std::string_view, Type>;

/// Element type by its MLIR name ("bf16", "i1", "f8E4M3FN", "index").
std::optional<DType> elementType(std::string_view name);

/// Whether a type may begin here.
bool atType(Scanner& scanner);

/// @throws InputError for impossible sizes and unknown element types
Type parseType(Scanner& scanner, const TypeAliases& aliases);

/// "T, T" or "(T, T)", attributes after a type skipped.
std::vector<Type> parseTypes(Scanner& scanner, const TypeAliases& aliases);

} // namespace shardlens::mlir
