// SPDX-License-Identifier: Apache-2.0
// Values of attributes in MLIR text, read when an op asks for them: lists of integers in their four
// spellings, small constants, and the fields of "#dialect.thing<a = [0], b = 1>".
#pragma once

#include "core/import/mlir_module.h"

#include <optional>
#include <vector>

namespace shardlens::mlir {

/// "[0, 1]", "dense<[0, 1]> : tensor<2xi64>", "dense<1> : tensor<2xi64>", "array<i64: 0, 1>",
/// "1 : i64", "true". Nested lists are read flat. std::nullopt for anything else, for more than
/// 2^16 numbers, and for numbers beyond 2^62.
std::optional<std::vector<std::int64_t>> readIntegers(std::string_view value);

/// Lists joined by 'x' or "->": "[1] x [0]" gives both texts.
std::vector<std::string_view> splitLists(std::string_view value);

/// Fields of "#stablehlo.gather<offset_dims = [1], index_vector_dim = 1>" or "{stride = [2, 2]}".
std::vector<Attribute> fieldsOf(std::string_view value);
std::string_view fieldOf(std::string_view value, std::string_view name); ///< empty if absent

/// Shape of the type behind "dense<…> : tensor<4x2xi64>"; std::nullopt where there is none.
std::optional<Shape> shapeOfDense(std::string_view value);

/// Elements of a constant "dense<…>". A splat gives one element.
struct Literal {
    bool splat = false;
    std::optional<KnownInts> ints;   ///< of integers and booleans
    std::optional<KnownReals> reals; ///< of floating-point numbers
};

/// Reads up to `most` elements; what is larger, or written in hexadecimal, stays unknown.
Literal readLiteral(std::string_view value, DType dtype, std::size_t most);

} // namespace shardlens::mlir
