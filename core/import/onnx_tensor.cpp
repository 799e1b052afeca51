// SPDX-License-Identifier: Apache-2.0
// TensorProto. The data may stand in raw_data or in one of the typed lists; both forms are decoded
// only when the tensor is small enough to be of interest to shape inference.
#include "core/import/onnx_tensor.h"

#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace shardlens::onnx {

namespace {

using wire::Field;
using wire::Reader;
using wire::Type;

/// The parts of a TensorProto before they are put together: fields come in any order.
struct Parts {
    std::span<const std::byte> raw;
    bool hasRaw = false;
    std::vector<std::int64_t> ints; ///< int32_data, int64_data, uint64_data
    std::vector<double> numbers;    ///< float_data, double_data
    std::int64_t type = 0;
};

void checkLocation(const Reader& reader, std::string_view location, std::string_view tensor,
                   std::uint64_t offset) {
    const auto refuse = [&](std::string_view why) {
        reader.fail(fmt::format("the external data of tensor {} lies {} ({})", inQuotes(tensor),
                                why, inQuotes(location)),
                    offset);
    };
    if (location.find('\0') != std::string_view::npos) refuse("under an invalid name");
    if (location.starts_with('/') || location.starts_with('\\') ||
        (location.size() > 1 && location[1] == ':'))
        refuse("at an absolute path, which is not allowed");
    std::string_view rest = location;
    while (!rest.empty()) {
        const auto end = std::min(rest.find_first_of("/\\"), rest.size());
        if (rest.substr(0, end) == "..") refuse("outside the folder of the model");
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
}

void externalEntry(Reader reader, TensorData& tensor) {
    std::string_view key, value;
    const std::uint64_t offset = reader.offset();
    for (Field field; reader.next(field);) {
        if (field.is(1, Type::Bytes)) key = field.text();
        if (field.is(2, Type::Bytes)) value = field.text();
    }
    if (key == "location") checkLocation(reader, value, tensor.name, offset);
}

std::int64_t integerFromRaw(std::span<const std::byte> raw, std::size_t index, std::size_t size,
                            bool isSigned) {
    std::uint64_t bits = 0;
    for (std::size_t b = 0; b < size; ++b)
        bits |= static_cast<std::uint64_t>(raw[index * size + b]) << (8 * b);
    if (!isSigned || size == 8) return static_cast<std::int64_t>(bits);
    const unsigned shift = 64 - 8 * static_cast<unsigned>(size);
    return static_cast<std::int64_t>(bits << shift) >> shift;
}

double halfFromBits(std::uint32_t bits) {
    const double sign = bits & 0x8000u ? -1 : 1;
    const int exponent = static_cast<int>(bits >> 10 & 0x1fu);
    const auto fraction = static_cast<double>(bits & 0x3ffu);
    if (exponent == 31)
        return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::quiet_NaN();
    return exponent == 0 ? sign * std::ldexp(fraction, -24)
                         : sign * std::ldexp(1024 + fraction, exponent - 25);
}

/// A float of the given type from its bit pattern. std::nullopt for the 8-bit types and smaller.
std::optional<double> floatFromBits(DType dtype, std::uint64_t bits) {
    const auto low = static_cast<std::uint32_t>(bits);
    switch (dtype) {
    case DType::F64:
        return std::bit_cast<double>(bits);
    case DType::F32:
        return static_cast<double>(std::bit_cast<float>(low));
    case DType::BF16:
        return static_cast<double>(std::bit_cast<float>(low << 16));
    case DType::F16:
        return halfFromBits(low);
    default:
        return std::nullopt;
    }
}

/// Data of another length than the shape says is damage; no data at all is a stripped file.
void checkRawSize(const Reader& reader, const TensorData& tensor, const Parts& parts) {
    const double wanted = std::ceil(bytesOf(tensor.spec()));
    if (!parts.hasRaw || tensor.dtype == DType::String) return;
    if (static_cast<double>(parts.raw.size()) != wanted)
        reader.fail(fmt::format("tensor {} has {} bytes of data where its shape {} needs {:.0f}",
                                inQuotes(tensor.name), parts.raw.size(), toString(tensor.dims),
                                wanted),
                    tensor.offset);
}

void decodeInts(TensorData& tensor, const Parts& parts, std::size_t count) {
    const int bits = bitsOf(tensor.dtype);
    if (bits < 8) return; // packed nibbles are weights, never shapes
    const auto size = static_cast<std::size_t>(bits / 8);
    KnownInts values;
    if (parts.hasRaw) {
        const bool isSigned = tensor.dtype == DType::I8 || tensor.dtype == DType::I16 ||
                              tensor.dtype == DType::I32 || tensor.dtype == DType::I64;
        for (std::size_t i = 0; i < count; ++i)
            values.push_back(integerFromRaw(parts.raw, i, size, isSigned));
    } else {
        if (parts.ints.size() != count) return;
        values = parts.ints;
    }
    tensor.ints = std::move(values);
}

void decodeFloats(TensorData& tensor, const Parts& parts, std::size_t count) {
    const auto size = static_cast<std::size_t>(bitsOf(tensor.dtype) / 8);
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) {
        std::optional<double> value;
        if (parts.hasRaw) {
            if (size == 0) return;
            value = floatFromBits(tensor.dtype, static_cast<std::uint64_t>(
                                                    integerFromRaw(parts.raw, i, size, false)));
        } else if (i < parts.numbers.size()) {
            value = parts.numbers[i];
        } else if (i < parts.ints.size()) { // 16-bit floats stand in int32_data
            value = floatFromBits(tensor.dtype, static_cast<std::uint64_t>(parts.ints[i]));
        }
        if (!value) return;
        values.push_back(*value);
    }
    tensor.floats = std::move(values);
}

void readField(const Reader& reader, const Field& field, TensorData& tensor, Parts& parts) {
    switch (field.number) {
    case 1:
        wire::appendIntegers(reader, field, tensor.dims, kMaxRank + 1);
        break;
    case 2:
        if (field.type == Type::Varint) parts.type = field.integer();
        break;
    case 4:
        wire::appendFloats(reader, field, parts.numbers, kMaxKnownFloats + 1);
        break;
    case 5:
    case 7:
    case 11:
        wire::appendIntegers(reader, field, parts.ints, kMaxKnownInts + 1);
        break;
    case 8:
        if (field.type == Type::Bytes) tensor.name = field.text();
        break;
    case 9:
        if (field.type == Type::Bytes) {
            parts.raw = field.bytes;
            parts.hasRaw = !field.bytes.empty();
        }
        break;
    case 10:
        wire::appendDoubles(reader, field, parts.numbers, kMaxKnownFloats + 1);
        break;
    case 13:
        if (field.type == Type::Bytes) externalEntry(reader.nested(field), tensor);
        break;
    case 14:
        tensor.external = field.is(14, Type::Varint) && field.value == 1;
        break;
    default:
        break;
    }
}

} // namespace

std::optional<DType> dtypeFromOnnx(std::int64_t number) {
    using enum DType;
    switch (number) {
    case 1:
        return F32;
    case 2:
        return U8;
    case 3:
        return I8;
    case 4:
        return U16;
    case 5:
        return I16;
    case 6:
        return I32;
    case 7:
        return I64;
    case 8:
        return String;
    case 9:
        return Bool;
    case 10:
        return F16;
    case 11:
        return F64;
    case 12:
        return U32;
    case 13:
        return U64;
    case 14:
        return C64;
    case 15:
        return C128;
    case 16:
        return BF16;
    case 17:
    case 18:
        return F8E4M3;
    case 19:
    case 20:
        return F8E5M2;
    case 21:
    case 25:
        return U4;
    case 22:
    case 26:
        return I4;
    case 23:
        return F4E2M1;
    case 24:
        return U8; // a bare exponent, 8 bits
    default:
        return std::nullopt;
    }
}

void checkDims(const Reader& reader, const Shape& dims, std::string_view name) {
    const auto refuse = [&](const std::string& why) {
        reader.fail(fmt::format("tensor {} has {}", inQuotes(name), why), reader.offset());
    };
    if (dims.size() > kMaxRank) refuse(fmt::format("more than {} dimensions", kMaxRank));
    for (const std::int64_t dim : dims)
        if (dim < 0 || dim > kMaxDim) refuse(fmt::format("an impossible dimension, {}", dim));
    if (elementsOf(dims) > kMaxElements)
        refuse(fmt::format("an impossible shape, {}", toString(dims)));
}

TensorData parseTensor(Reader reader) {
    TensorData tensor;
    Parts parts;
    tensor.offset = reader.offset();
    for (Field field; reader.next(field);) readField(reader, field, tensor, parts);

    checkDims(reader, tensor.dims, tensor.name);
    const auto dtype = dtypeFromOnnx(parts.type);
    if (!dtype)
        reader.fail(
            fmt::format("tensor {} has the unknown type {}", inQuotes(tensor.name), parts.type),
            tensor.offset);
    tensor.dtype = *dtype;
    const double elements = elementsOf(tensor.dims);
    if (tensor.external) return tensor;
    checkRawSize(reader, tensor, parts);
    if (isFloat(tensor.dtype)) {
        if (elements <= static_cast<double>(kMaxKnownFloats))
            decodeFloats(tensor, parts, static_cast<std::size_t>(elements));
    } else if (tensor.dtype != DType::String && elements <= static_cast<double>(kMaxKnownInts)) {
        decodeInts(tensor, parts, static_cast<std::size_t>(elements));
    }
    return tensor;
}

} // namespace shardlens::onnx
