// SPDX-License-Identifier: Apache-2.0
// MLIR text as structs: operations with operands, attributes (still text), types and regions. The
// generic form "dialect.op"(…) and the pretty forms end up alike, as far as a form without a
// grammar of its own can be read: keys with values, bracketed groups, values, a signature.
#pragma once

#include "core/model/tensor.h"

#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardlens::mlir {

inline constexpr std::int64_t kDynamic = -1; ///< a dimension written '?'

struct Type {
    enum class Kind : std::uint8_t { Tensor, Tuple, Other };
    Kind kind = Kind::Other;
    TensorSpec spec; ///< of a tensor; scalars are tensors of rank 0
    std::vector<Type> elements;
    std::string_view text;

    bool isTensor() const { return kind == Kind::Tensor; }
};

struct Attribute {
    std::string_view name; ///< empty for what stands alone in a pretty form
    std::string_view value;
};

/// A use "%0#1" of a value: its name, and which result of a group.
struct ValueUse {
    std::string_view name;
    std::uint32_t index = 0;
};

struct ResultName {
    std::string_view name;
    std::uint32_t count = 1; ///< "%0:3"
};

struct BlockArgument {
    std::string_view name;
    Type type;
    std::vector<Attribute> attributes;
    std::string_view location; ///< inside loc(…)
};

struct Operation;

struct Block {
    std::vector<BlockArgument> arguments;
    std::vector<Operation> operations;
};

struct Region {
    std::vector<Block> blocks;
};

struct Operation {
    std::string_view name;   ///< "stablehlo.add"
    std::string_view symbol; ///< "@main" with its '@', if one is named
    std::vector<ResultName> results;
    std::vector<ValueUse> operands;
    std::vector<Attribute> attributes;
    std::vector<Type> operandTypes; ///< empty where the form leaves them out
    std::vector<Type> resultTypes;
    std::vector<Region> regions;
    std::vector<std::string_view> loopNames; ///< of "(%iterArg = %0, …)", one an operand
    std::string_view location;
    std::size_t offset = 0; ///< in the file, for messages

    std::size_t resultCount() const;
    /// Value of the first attribute that has one of the names; empty if there is none.
    std::string_view attribute(std::string_view first, std::string_view second = {}) const;
    bool hasAttribute(std::string_view wanted) const;
    /// The n-th thing that stands alone in a pretty form ("LT", "dense<0>", "[0:1]").
    std::string_view positional(std::size_t n) const;
};

struct Module {
    std::vector<Operation> operations; ///< at the top, mostly one "module"
    std::unordered_map<std::string_view, std::string_view> aliases; ///< "#loc1" and its text
    std::unordered_map<std::string_view, Type> typeAliases;         ///< "!t"
    std::size_t count = 0; ///< operations in all, at every depth
};

/// "a" of @a and of @"a".
std::string_view symbolName(std::string_view symbol);

/// @throws InputError with line and column; Cancelled
Module parseModule(std::string_view text, const std::string& where, const std::stop_token& stop);

} // namespace shardlens::mlir
