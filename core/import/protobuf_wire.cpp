// SPDX-License-Identifier: Apache-2.0
// Tags, varints and lengths. Groups (wire types 3 and 4) were dropped from protobuf long ago and
// are refused, as is field number 0.
#include "core/import/protobuf_wire.h"

#include "core/error.h"

#include <fmt/format.h>

#include <bit>

namespace shardlens::wire {

void Reader::fail(const std::string& problem, std::uint64_t at) const {
    throw InputError(fmt::format("{} at byte {}", problem, at), std::string(m_file),
                     "the file is damaged or incomplete: copy or export it again");
}

std::uint64_t Reader::varint() {
    const std::uint64_t start = offset();
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (m_position >= m_bytes.size()) fail("the file is cut off in a number", start);
        const auto byte = static_cast<std::uint64_t>(m_bytes[m_position++]);
        if (shift == 63 && byte > 1) break;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    fail("a number has too many digits", start);
}

std::uint64_t Reader::fixed(std::size_t size) {
    if (m_bytes.size() - m_position < size) fail("the file is cut off in a number", offset());
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
        value |= static_cast<std::uint64_t>(m_bytes[m_position + i]) << (8 * i);
    m_position += size;
    return value;
}

bool Reader::nextVarint(std::uint64_t& value) {
    if (m_position >= m_bytes.size()) return false;
    value = varint();
    return true;
}

bool Reader::next(Field& field) {
    if (m_position >= m_bytes.size()) return false;
    const std::uint64_t start = offset();
    const std::uint64_t tag = varint();
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) fail("a field number is not valid", start);
    field = Field{};
    field.number = static_cast<std::uint32_t>(tag >> 3);
    field.offset = offset();
    switch (tag & 7) {
    case 0:
        field.value = varint();
        return true;
    case 1:
        field.type = Type::Fixed64;
        field.value = fixed(8);
        return true;
    case 5:
        field.type = Type::Fixed32;
        field.value = fixed(4);
        return true;
    case 2:
        break;
    default:
        fail(fmt::format("wire type {} is not valid", tag & 7), start);
    }
    field.type = Type::Bytes;
    const std::uint64_t length = varint();
    const std::uint64_t left = m_bytes.size() - m_position;
    if (length > left && m_cutOff == CutOff::Refuse)
        fail(fmt::format("the file is cut off: {} bytes should follow, {} do", length, left),
             offset());
    field.offset = offset();
    field.bytes = m_bytes.subspan(m_position, static_cast<std::size_t>(std::min(length, left)));
    m_position += field.bytes.size();
    return true;
}

void appendIntegers(const Reader& reader, const Field& field, std::vector<std::int64_t>& values,
                    std::size_t limit) {
    if (field.type == Type::Varint && values.size() < limit) values.push_back(field.integer());
    if (field.type != Type::Bytes) return;
    Reader packed = reader.nested(field);
    std::uint64_t value = 0;
    while (values.size() < limit && packed.nextVarint(value))
        values.push_back(static_cast<std::int64_t>(value));
}

namespace {

template <typename Bits, typename Convert>
void appendFixed(const Reader& reader, const Field& field, Type single, std::vector<double>& values,
                 std::size_t limit, Convert convert) {
    if (field.type == single && values.size() < limit)
        values.push_back(convert(static_cast<Bits>(field.value)));
    if (field.type != Type::Bytes) return;
    if (field.bytes.size() % sizeof(Bits) != 0)
        reader.fail("a list of numbers has a broken length", field.offset);
    for (std::size_t i = 0; i < field.bytes.size() && values.size() < limit; i += sizeof(Bits)) {
        Bits bits = 0;
        for (std::size_t b = 0; b < sizeof(Bits); ++b)
            bits |= static_cast<Bits>(field.bytes[i + b]) << (8 * b);
        values.push_back(convert(bits));
    }
}

} // namespace

void appendFloats(const Reader& reader, const Field& field, std::vector<double>& values,
                  std::size_t limit) {
    appendFixed<std::uint32_t>(reader, field, Type::Fixed32, values, limit, [](std::uint32_t bits) {
        return static_cast<double>(std::bit_cast<float>(bits));
    });
}

void appendDoubles(const Reader& reader, const Field& field, std::vector<double>& values,
                   std::size_t limit) {
    appendFixed<std::uint64_t>(reader, field, Type::Fixed64, values, limit,
                               [](std::uint64_t bits) { return std::bit_cast<double>(bits); });
}

} // namespace shardlens::wire
