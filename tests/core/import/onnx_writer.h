// SPDX-License-Identifier: Apache-2.0
// Writes small ONNX files for tests, field by field, so that they can be wrong on purpose.
#pragma once

#include "core/error.h"
#include "core/import/onnx_import.h"

#include <QString>

#include <bit>
#include <string>
#include <vector>

namespace shardlens::test {

/// A protobuf message being written.
class Message {
public:
    Message& varint(unsigned field, std::uint64_t value) {
        number(field << 3);
        number(value);
        return *this;
    }
    Message& integer(unsigned field, std::int64_t value) {
        return varint(field, static_cast<std::uint64_t>(value));
    }
    Message& text(unsigned field, const std::string& value) {
        number(field << 3 | 2);
        number(value.size());
        m_bytes += value;
        return *this;
    }
    Message& message(unsigned field, const Message& value) { return text(field, value.m_bytes); }
    Message& single(unsigned field, float value) {
        number(field << 3 | 5);
        const auto bits = std::bit_cast<std::uint32_t>(value);
        for (unsigned shift = 0; shift < 32; shift += 8)
            m_bytes.push_back(static_cast<char>(bits >> shift & 0xff));
        return *this;
    }
    Message& packed(unsigned field, const std::vector<std::int64_t>& values) {
        Message inner;
        for (const std::int64_t value : values) inner.number(static_cast<std::uint64_t>(value));
        return text(field, inner.m_bytes);
    }
    Message& raw(const std::string& bytes) {
        m_bytes += bytes;
        return *this;
    }
    const std::string& bytes() const { return m_bytes; }

private:
    void number(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) m_bytes.push_back(static_cast<char>(value | 0x80));
        m_bytes.push_back(static_cast<char>(value));
    }
    std::string m_bytes;
};

using Ints = std::vector<std::int64_t>;
using Names = std::vector<std::string>;
enum : int { kF32 = 1, kU8 = 2, kI8 = 3, kI32 = 6, kI64 = 7, kBool = 9, kF16 = 10 };

inline Message attribute(const std::string& name, int type) {
    return Message().text(1, name).integer(20, type);
}
inline Message intAttribute(const std::string& name, std::int64_t value) {
    return attribute(name, 2).integer(3, value);
}
inline Message intsAttribute(const std::string& name, const Ints& values) {
    return attribute(name, 7).packed(8, values);
}
inline Message floatAttribute(const std::string& name, float value) {
    return attribute(name, 1).single(2, value);
}
inline Message textAttribute(const std::string& name, const std::string& value) {
    return attribute(name, 3).text(4, value);
}
inline Message tensorAttribute(const std::string& name, const Message& tensor) {
    return attribute(name, 4).message(5, tensor);
}
inline Message graphAttribute(const std::string& name, const Message& graph) {
    return attribute(name, 5).message(6, graph);
}
inline Message referenceAttribute(const std::string& name, const std::string& outer, int type) {
    return attribute(name, type).text(21, outer);
}

inline Message node(const std::string& type, const Names& inputs, const Names& outputs,
                    const std::vector<Message>& attributes = {}, const std::string& name = {},
                    const std::string& domain = {}) {
    Message message;
    for (const auto& input : inputs) message.text(1, input);
    for (const auto& output : outputs) message.text(2, output);
    if (!name.empty()) message.text(3, name);
    message.text(4, type);
    for (const auto& a : attributes) message.message(5, a);
    if (!domain.empty()) message.text(7, domain);
    return message;
}

/// A tensor without data, as stripped files have them.
inline Message tensor(const std::string& name, int dtype, const Ints& dims) {
    Message message;
    message.packed(1, dims);
    return message.integer(2, dtype).text(8, name);
}
/// An int64 tensor with its elements.
inline Message ints(const std::string& name, const Ints& dims, const Ints& values,
                    int dtype = kI64) {
    return tensor(name, dtype, dims).packed(dtype == kI64 ? 7 : 5, values);
}
inline Message vectorOf(const std::string& name, const Ints& values) {
    return ints(name, {static_cast<std::int64_t>(values.size())}, values);
}
inline Message floats(const std::string& name, const Ints& dims, const std::vector<float>& values) {
    Message message = tensor(name, kF32, dims);
    for (const float value : values) message.single(4, value);
    return message;
}

/// A declared value; dims are numbers, names, or "" for one that is not known.
inline Message value(const std::string& name, int dtype, const Names& dims) {
    Message shape;
    for (const auto& dim : dims) {
        Message d;
        const bool number =
            !dim.empty() && dim.find_first_not_of("-0123456789") == std::string::npos;
        if (number)
            d.integer(1, std::stoll(dim));
        else if (!dim.empty())
            d.text(2, dim);
        shape.message(1, d);
    }
    const Message type = Message().integer(1, dtype).message(2, shape);
    return Message().text(1, name).message(2, Message().message(1, type));
}

/// A GraphProto.
struct GraphParts {
    std::vector<Message> nodes, inputs, outputs, initializers, values;

    Message message() const {
        Message graph;
        for (const auto& m : nodes) graph.message(1, m);
        graph.text(2, "graph");
        for (const auto& m : initializers) graph.message(5, m);
        for (const auto& m : inputs) graph.message(11, m);
        for (const auto& m : outputs) graph.message(12, m);
        for (const auto& m : values) graph.message(13, m);
        return graph;
    }
};

inline Message opset(std::int64_t version, const std::string& domain = {}) {
    return Message().text(1, domain).integer(2, version);
}

/// A ModelProto.
inline std::string onnxFile(const GraphParts& graph, std::int64_t version = 17,
                            const std::vector<Message>& functions = {}) {
    Message model;
    model.integer(1, 8).message(7, graph.message()).message(8, opset(version));
    for (const auto& function : functions) model.message(25, function);
    return model.bytes();
}

inline Graph importBytes(const std::string& file, const ImportOptions& options = {}) {
    return importOnnx(std::as_bytes(std::span(file)), "model.onnx", options);
}

/// The message of the InputError that importing gives, "accepted" when there is none.
inline QString refusalOf(const std::string& file, const ImportOptions& options = {}) {
    try {
        importBytes(file, options);
    } catch (const InputError& error) {
        return QString::fromUtf8(error.what());
    }
    return "accepted";
}

inline const Tensor* findTensor(const Graph& graph, const std::string& name) {
    for (const Tensor& tensor : graph.tensors())
        if (tensor.name == name) return &tensor;
    return nullptr;
}
inline const Op& producerOf(const Graph& graph, const std::string& name) {
    return graph.op(findTensor(graph, name)->producer);
}
/// "f32[2,3]" of a value, "missing" if there is none.
inline QString specText(const Graph& graph, const std::string& name) {
    const Tensor* found = findTensor(graph, name);
    if (found == nullptr) return "missing";
    return QString::fromStdString(std::string(nameOf(found->spec.dtype)) +
                                  toString(found->spec.shape));
}

} // namespace shardlens::test
