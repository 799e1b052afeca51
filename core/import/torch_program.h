// SPDX-License-Identifier: Apache-2.0
// What every PyTorch form of a graph boils down to: placeholders, calls of operators by name, and
// outputs. Printed FX text, torch.export files and execution traces are read into this, and one
// translation (torch_translation.h) turns it into ops. Values refer to earlier results by name.
#pragma once

#include "core/model/graph.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shardlens::torch {

/// An argument of a call, or what a name stands for once the calls before it have been translated.
struct Value {
    enum class Kind : std::uint8_t { None, Boolean, Integer, Real, Text, Name, Tensor, List };
    Kind kind = Kind::None;
    std::int64_t integer = 0; ///< Boolean, Integer
    double real = 0;
    std::string text;            ///< Text ("torch.float32", "gelu"), Name
    TensorId tensor = kNoTensor; ///< Tensor
    std::vector<Value> items;    ///< List

    static Value ofBoolean(bool value);
    static Value ofInteger(std::int64_t value);
    static Value ofReal(double value);
    static Value ofText(std::string value);
    static Value ofName(std::string value);
    static Value ofTensor(TensorId value);
    static Value ofList(std::vector<Value> values);

    bool isNumber() const { return kind == Kind::Integer || kind == Kind::Real; }
    double number() const { return kind == Kind::Real ? real : static_cast<double>(integer); }
};

struct Argument {
    std::string name; ///< empty: known by its place only
    Value value;
};

/// One result of a call; the file may state what it is.
struct Result {
    std::string name;
    std::optional<TensorSpec> spec;
    bool wanted = false; ///< something reads it
};

struct Call {
    std::string target; ///< "aten.mm.default", "operator.mul", "get_attr"
    std::vector<Argument> arguments;
    std::string name;            ///< of the result as a whole
    std::string label;           ///< for the op's name; empty: like `name`
    std::vector<Result> results; ///< by place
    bool tuple = false;          ///< several results, taken apart by operator.getitem
    std::string scope;           ///< where in the user's program: module path or function
    std::size_t line = 0;        ///< in the file, or the node's number
};

enum class Role : std::uint8_t { Unknown, Parameter, Buffer, Input };

struct Placeholder {
    std::string name;
    std::optional<TensorSpec> spec;
    std::optional<std::int64_t> number; ///< a size, not a tensor
    Role role = Role::Unknown;
    std::size_t line = 0;
};

struct Program {
    std::vector<Placeholder> placeholders;
    std::vector<Call> calls;
    std::vector<Value> outputs; ///< Name, List, or what is not a tensor
    std::string where;          ///< the file, for messages
    std::string_view lineWord = "line";
    std::vector<std::string> warnings;
    std::map<std::string, std::int64_t> bindings;
    std::map<std::string, std::string> facts;
    bool backward = false; ///< it holds (a part of) a backward pass
};

/// "f32", "bf16", "i64", "b8" … as FX prints element types.
std::optional<DType> dtypeFromFx(std::string_view name);
/// "torch.float32", "torch.bfloat16", …
std::optional<DType> dtypeFromTorch(std::string_view name);
/// c10::ScalarType as a number (c10/core/ScalarType.h).
std::optional<DType> dtypeFromScalarType(std::int64_t code);

/// "aten.mm.default" of "aten::mm", "aten.mm" → namespace "aten", base "mm".
struct Target {
    std::string_view space, base, overload;
};
Target split(std::string_view target);

/// Decides for each placeholder without a role whether it is a parameter or an input.
///
/// A name may say it (`p_…`, `b_…` of torch.export, `…parameters…`, `…buffers…`, `…weight`,
/// `tangents_…`). Otherwise whole numbers, booleans and tensors of rank 0 are inputs, and a tensor
/// of floats is a parameter unless it is like a batch: its leading dimensions are those of an input
/// of whole numbers (the first two where both have two, or one where the float tensor has four or
/// more), or what reads it uses it as data (the first operand of a product, convolution or norm).
/// In a graph with `tangents_…` only `primals_…` can be parameters: the rest was kept by the
/// forward pass.
void assignRoles(Program& program);

} // namespace shardlens::torch
