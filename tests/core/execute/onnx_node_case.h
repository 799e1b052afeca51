// SPDX-License-Identifier: Apache-2.0
// One case of ONNX's operator tests: a model of one op, its operands and the results that ONNX's
// own reference gives for them. Operands that a model file would usually hold (shapes, axes,
// bounds) are graph inputs there; they can be written into the model as initializers.
#pragma once

#include "core/execute/step.h"
#include "core/import/onnx_import.h"
#include "core/import/onnx_model.h"
#include "core/import/protobuf_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace shardlens::test {

using Bytes = std::vector<std::byte>;

inline Bytes bytesOfFile(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    Bytes bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    return bytes;
}

/// A TensorProto with all its elements.
struct FileTensor {
    std::string name;
    DType dtype = DType::Unknown;
    Array array;
    bool readable = false; ///< a tensor of numbers; strings, sequences and optionals are not
};

inline double halfFloat(std::uint32_t bits) {
    const double sign = (bits & 0x8000u) != 0 ? -1 : 1;
    const int exponent = static_cast<int>(bits >> 10 & 0x1fu);
    const double fraction = static_cast<double>(bits & 0x3ffu);
    if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
    return exponent == 0 ? sign * std::ldexp(fraction, -24)
                         : sign * std::ldexp(1024 + fraction, exponent - 25);
}

inline double floatOf(DType dtype, std::uint64_t bits) {
    const auto low = static_cast<std::uint32_t>(bits);
    if (dtype == DType::F64) return std::bit_cast<double>(bits);
    if (dtype == DType::F16) return halfFloat(low);
    return static_cast<double>(std::bit_cast<float>(dtype == DType::BF16 ? low << 16 : low));
}

inline std::int64_t integerOf(DType dtype, std::uint64_t bits) {
    switch (dtype) {
    case DType::I8:
        return static_cast<std::int8_t>(bits);
    case DType::I16:
        return static_cast<std::int16_t>(bits);
    case DType::I32:
        return static_cast<std::int32_t>(bits);
    default:
        return static_cast<std::int64_t>(bits);
    }
}

/// @param declared by the model: the files state bf16 as 16-bit integers
inline FileTensor readTensor(std::span<const std::byte> bytes, DType declared) {
    FileTensor tensor;
    Shape shape;
    std::vector<std::int64_t> ints;
    std::vector<double> numbers;
    std::span<const std::byte> raw;
    std::int64_t type = 0;
    constexpr std::size_t kAll = std::size_t{1} << 30;
    wire::Reader reader(bytes);
    for (wire::Field field; reader.next(field);) {
        if (field.number == 1) wire::appendIntegers(reader, field, shape, kAll);
        if (field.is(2, wire::Type::Varint)) type = field.integer();
        if (field.number == 4) wire::appendFloats(reader, field, numbers, kAll);
        if (field.number == 5 || field.number == 7 || field.number == 11)
            wire::appendIntegers(reader, field, ints, kAll);
        if (field.is(8, wire::Type::Bytes)) tensor.name = field.text();
        if (field.is(9, wire::Type::Bytes)) raw = field.bytes;
        if (field.number == 10) wire::appendDoubles(reader, field, numbers, kAll);
    }
    tensor.dtype = onnx::dtypeFromOnnx(type).value_or(DType::Unknown);
    if (declared == DType::BF16 && tensor.dtype == DType::U16) tensor.dtype = declared;
    const auto size = static_cast<std::size_t>(bitsOf(tensor.dtype) / 8);
    if (size == 0 || tensor.dtype == DType::C64 || tensor.dtype == DType::C128) return tensor;
    const double elements = elementsOf(shape);
    const bool complete = static_cast<double>(raw.size()) == elements * static_cast<double>(size) ||
                          static_cast<double>(std::max(ints.size(), numbers.size())) == elements;
    if (!complete || std::ranges::any_of(shape, [](auto d) { return d < 0; })) return tensor;
    tensor.array = Array::zeros({tensor.dtype, shape}, shape);
    const std::size_t count = countOf(shape);
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t bits = 0;
        if (raw.size() == count * size)
            std::memcpy(&bits, raw.data() + i * size, size);
        else if (i < ints.size())
            bits = static_cast<std::uint64_t>(ints[i]);
        const bool asNumber = raw.size() != count * size && i >= ints.size();
        if (tensor.array.integral)
            tensor.array.ints[i] = integerOf(tensor.dtype, bits);
        else
            tensor.array.reals[i] = asNumber ? numbers[i] : floatOf(tensor.dtype, bits);
    }
    tensor.readable = true;
    return tensor;
}

inline void appendVarint(Bytes& out, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::byte>(value | 0x80));
    out.push_back(static_cast<std::byte>(value));
}

inline void appendBytes(Bytes& out, std::uint32_t number, std::span<const std::byte> bytes) {
    appendVarint(out, number << 3 | 2u);
    appendVarint(out, bytes.size());
    out.insert(out.end(), bytes.begin(), bytes.end());
}

/// The model with these tensors, serialised TensorProtos that have names, as initializers.
inline Bytes withInitializers(std::span<const std::byte> model, const std::vector<Bytes>& tensors) {
    Bytes result;
    wire::Reader reader(model);
    for (wire::Field field; reader.next(field);) {
        if (field.type == wire::Type::Varint) {
            appendVarint(result, field.number << 3);
            appendVarint(result, field.value);
            continue;
        }
        Bytes inner(field.bytes.begin(), field.bytes.end());
        if (field.number == 7)
            for (const Bytes& tensor : tensors) appendBytes(inner, 5, tensor);
        appendBytes(result, field.number, inner);
    }
    return result;
}

struct NodeCase {
    std::string name;
    Bytes model;
    std::vector<std::string> inputs;  ///< names
    std::vector<Bytes> inputFiles;    ///< in that order
    std::vector<FileTensor> operands; ///< likewise
    std::vector<FileTensor> results;

    bool readable() const {
        const auto isReadable = [](const FileTensor& tensor) { return tensor.readable; };
        return std::ranges::all_of(operands, isReadable) &&
               std::ranges::all_of(results, isReadable);
    }
};

inline NodeCase readCase(const std::filesystem::path& folder) {
    NodeCase made;
    made.name = folder.filename().string().substr(5); // test_
    made.model = bytesOfFile(folder / "model.onnx");
    const onnx::Model model = onnx::parseModel(made.model, made.name);
    for (const onnx::ValueInfo& input : model.graph.inputs) made.inputs.emplace_back(input.name);
    const std::filesystem::path data = folder / "test_data_set_0";
    for (std::size_t i = 0;; ++i) {
        const auto file = data / fmt::format("input_{}.pb", i);
        if (!std::filesystem::exists(file)) break;
        made.inputFiles.push_back(bytesOfFile(file));
        made.operands.push_back({});
        try {
            made.operands.back() =
                readTensor(made.inputFiles.back(), model.graph.inputs.at(i).dtype);
        } catch (const InputError&) { // a sequence or an optional
        }
    }
    for (std::size_t i = 0;; ++i) {
        const auto file = data / fmt::format("output_{}.pb", i);
        if (!std::filesystem::exists(file)) break;
        made.results.push_back({});
        try {
            made.results.back() = readTensor(bytesOfFile(file), model.graph.outputs.at(i).dtype);
        } catch (const InputError&) {}
    }
    return made;
}

} // namespace shardlens::test
