// SPDX-License-Identifier: Apache-2.0
// An ONNX file as plain structs that point into the mapped bytes (field numbers: onnx.proto3 of
// github.com/onnx/onnx, IR 1 to 13). Weights are never read: of a tensor's data only small integer
// tensors (shapes, axes) and a few floats (scales) are decoded. External data is noted, not opened.
#pragma once

#include "core/model/tensor.h"

#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shardlens::onnx {

/// Largest integer tensor whose elements are read.
inline constexpr std::size_t kMaxKnownInts = 4096;
/// Likewise for floats: scales and scalars, never weights.
inline constexpr std::size_t kMaxKnownFloats = 64;
/// Graphs in attributes of ops, and functions in functions: deeper ones are refused.
inline constexpr int kMaxDepth = 64;

struct TensorData {
    std::string_view name;
    DType dtype = DType::Unknown;
    Shape dims;
    bool external = false;
    std::optional<KnownInts> ints;             ///< integers and bools
    std::optional<std::vector<double>> floats; ///< floating point
    std::uint64_t offset = 0;

    TensorSpec spec() const { return {dtype, dims}; }
};

struct GraphData;

struct Attribute {
    enum class Type : std::uint8_t {
        Undefined,
        Float,
        Int,
        String,
        Tensor,
        Graph,
        Floats,
        Ints,
        Strings,
        Other,
    };
    std::string_view name;
    std::string_view reference; ///< in a function: the function's attribute that is meant
    Type type = Type::Undefined;
    double number = 0;
    std::int64_t integer = 0;
    std::string_view text;
    std::vector<double> numbers;
    std::vector<std::int64_t> integers;
    std::vector<std::string_view> texts;
    std::unique_ptr<TensorData> tensor;
    std::unique_ptr<GraphData> graph;
};

struct Node {
    std::string_view name, type, domain, overload;
    std::vector<std::string_view> inputs, outputs; ///< "" is an absent optional
    std::vector<Attribute> attributes;
    std::uint64_t offset = 0;
    std::size_t nested = 0; ///< nodes of the graphs in its attributes, at all depths

    const Attribute* attribute(std::string_view wanted) const;
};

/// A dimension as declared: a size, a name, or nothing.
using Dimension = std::variant<std::monostate, std::int64_t, std::string_view>;

struct ValueInfo {
    std::string_view name;
    DType dtype = DType::Unknown; ///< Unknown also for what is no tensor
    std::optional<std::vector<Dimension>> dims;
    std::uint64_t offset = 0;
};

struct GraphData {
    std::string_view name;
    std::vector<Node> nodes;
    std::vector<TensorData> initializers; ///< sparse ones too, with their dense shape
    std::vector<ValueInfo> inputs, outputs, values;
};

struct OpsetImport {
    std::string_view domain; ///< "" is ai.onnx
    std::int64_t version = 0;
};

struct Function {
    std::string_view name, domain, overload;
    std::vector<std::string_view> inputs, outputs;
    std::vector<Attribute> defaults;
    std::vector<Node> nodes;
    std::vector<OpsetImport> opsets;
    std::vector<ValueInfo> values;
};

struct Model {
    std::int64_t irVersion = 0;
    std::string_view producer, producerVersion;
    GraphData graph;
    std::vector<OpsetImport> opsets;
    std::vector<Function> functions;
    std::size_t nodeCount = 0; ///< nodes at all depths, functions included
};

/// Reads the structure of an ONNX file. The result points into `file`.
/// @param where names the file in messages
/// @throws InputError with the byte offset; Cancelled
Model parseModel(std::span<const std::byte> file, const std::string& where,
                 const std::stop_token& stop = {});

/// ONNX's TensorProto.DataType. Types this program has no name for map to one of equal width
/// (uint2 and int2 to the 4-bit types). std::nullopt for numbers that are not assigned.
std::optional<DType> dtypeFromOnnx(std::int64_t number);

/// "ai.onnx" and "" are the same domain.
std::string_view normalDomain(std::string_view domain);

} // namespace shardlens::onnx
