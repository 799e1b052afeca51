// SPDX-License-Identifier: Apache-2.0
// Walks protobuf's wire format in place, without a schema and without copying
// (https://protobuf.dev/programming-guides/encoding/). Every length is checked against what is
// left, so that a file cut off or forged at any byte ends in one InputError with its offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardlens::wire {

enum class Type : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

struct Field {
    std::uint32_t number = 0;
    Type type = Type::Varint;
    std::uint64_t value = 0;          ///< of Varint, Fixed64, Fixed32
    std::span<const std::byte> bytes; ///< of Bytes
    std::uint64_t offset = 0;         ///< of `bytes` (or of the value) in the file

    bool is(std::uint32_t wanted, Type wantedType) const {
        return number == wanted && type == wantedType;
    }
    std::int64_t integer() const { return static_cast<std::int64_t>(value); }
    std::string_view text() const {
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
};

/// What to do with a length that passes the end.
enum class CutOff : std::uint8_t {
    Refuse, ///< throw
    Clamp,  ///< hand out what there is: for looking at the beginning of a file only
};

/// The fields of one message, in file order.
class Reader {
public:
    /// @param offset of `bytes` in the file; @param file its name, for messages, outlives this
    explicit Reader(std::span<const std::byte> bytes, std::uint64_t offset = 0,
                    std::string_view file = {}, CutOff cutOff = CutOff::Refuse)
        : m_bytes(bytes), m_offset(offset), m_file(file), m_cutOff(cutOff) {}

    /// Reads the next field. @return false at the end. @throws InputError
    bool next(Field& field);

    /// Reads the next bare varint, for packed fields. @return false at the end
    bool nextVarint(std::uint64_t& value);

    /// A reader of the message a field holds.
    Reader nested(const Field& field) const {
        return Reader(field.bytes, field.offset, m_file, m_cutOff);
    }

    std::uint64_t offset() const { return m_offset + m_position; } ///< in the file
    [[noreturn]] void fail(const std::string& problem, std::uint64_t at) const;

private:
    std::uint64_t varint();
    std::uint64_t fixed(std::size_t size);

    std::span<const std::byte> m_bytes;
    std::uint64_t m_offset = 0;
    std::string_view m_file;
    CutOff m_cutOff = CutOff::Refuse;
    std::size_t m_position = 0;
};

/// Appends a repeated integer field, packed or not, while fewer than `limit` are held.
void appendIntegers(const Reader& reader, const Field& field, std::vector<std::int64_t>& values,
                    std::size_t limit);

/// Appends a repeated float field (32 bits), packed or not, likewise.
void appendFloats(const Reader& reader, const Field& field, std::vector<double>& values,
                  std::size_t limit);

/// Appends a repeated double field (64 bits), packed or not, likewise.
void appendDoubles(const Reader& reader, const Field& field, std::vector<double>& values,
                   std::size_t limit);

} // namespace shardlens::wire
