// SPDX-License-Identifier: Apache-2.0
// An HLO module as it is written: computations of instructions with types, operands and attributes
// that are still text. Nothing is copied out of the text, which must outlive the module.
// The grammar is that of XLA's hlo_parser.cc (openxla/xla, xla/hlo/parser).
#pragma once

#include "core/model/tensor.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardlens::hlo {

/// The type of a value: an array, a tuple of types, or a token (which orders effects and holds
/// nothing). Layouts are dropped.
struct Type {
    enum class Kind : std::uint8_t { Array, Tuple, Token };
    Kind kind = Kind::Array;
    TensorSpec spec;         ///< of an array
    std::vector<Type> parts; ///< of a tuple
    std::size_t leaves = 1;  ///< arrays and tokens, counted through nested tuples
    std::size_t before = 0;  ///< leaves of the parts before this one in its tuple
};

/// Leaves of a type from left to right; nullptr stands for a token.
void appendLeaves(const Type& type, std::vector<const TensorSpec*>& leaves);

struct Attribute {
    std::string_view key;
    std::string_view value; ///< with its braces, brackets or quotes
};

struct Instruction {
    std::string_view name;
    std::string_view opcode;
    std::string_view literal; ///< the text between the parentheses
    Type type;
    std::vector<std::uint32_t> operands; ///< indices of instructions of the same computation
    std::vector<Attribute> attributes;
    std::uint32_t parameterNumber = 0; ///< of a parameter

    std::string_view attribute(std::string_view key) const; ///< empty if absent
    bool has(std::string_view key) const;
};

struct Computation {
    std::string_view name;
    std::vector<Instruction> instructions; ///< operands before their readers
    std::uint32_t root = 0;
    std::vector<std::uint32_t> parameters; ///< instruction of parameter(i)
};

struct Module {
    std::string_view text;
    std::string where; ///< the file, for errors
    std::string_view name;
    std::vector<Attribute> attributes;
    std::vector<Computation> computations;
    std::uint32_t entry = 0;
    std::unordered_map<std::string_view, std::uint32_t> byName;

    std::string_view attribute(std::string_view key) const; ///< empty if absent
    /// The computation an attribute such as `to_apply=%sum` names. @throws InputError if there is
    /// none of that name
    const Computation* callee(const Instruction& instruction, std::string_view key) const;
    const Computation* computation(std::string_view name) const; ///< with or without its '%'
    std::size_t indexOf(const Computation& computation) const;
    /// "file, line 12": where a piece of the text is.
    std::string place(std::string_view piece) const;
};

/// @throws InputError: what, where, and what to do; a text that is cut off is "truncated"
Module parseModule(std::string_view text, const std::string& where);

} // namespace shardlens::hlo
