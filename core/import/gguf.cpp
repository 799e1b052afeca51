// SPDX-License-Identifier: Apache-2.0
// Every length is checked against what is left of the file before it is used, and lists of lists
// share one budget, so that no count in a file can make the reader run on.
#include "core/import/gguf.h"

#include "core/error.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <unordered_set>

namespace shardlens::gguf {

namespace {

constexpr std::uint64_t kMostEntries = 1'000'000;               // metadata, tensors
constexpr std::uint64_t kMostName = 65'535;                     // the format's limit of keys
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 26; // of lists, all together
constexpr std::uint64_t kMostKept = 4096;
constexpr int kMostNesting = 8;

/// Packings of ggml.h (enum ggml_type), block sizes of ggml-common.h.
constexpr std::array<Packing, 33> kPackings{{
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
}};

enum class Type : std::uint32_t {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    Array,
    U64,
    I64,
    F64,
};

class Reader {
public:
    Reader(std::span<const std::byte> file, const std::string& where, const std::stop_token& stop)
        : m_file(file), m_where(where), m_stop(stop) {}

    Header read();

private:
    [[noreturn]] void fail(const std::string& problem, const char* hint = "fetch the file again") {
        throw InputError(fmt::format("{} at byte {}", problem, m_at), m_where, hint);
    }

    std::uint64_t left() const { return m_file.size() - m_at; }

    template <typename Number>
    Number number() {
        if (left() < sizeof(Number)) fail("the header is cut off");
        Number value{};
        std::memcpy(&value, m_file.data() + m_at, sizeof(Number));
        m_at += sizeof(Number);
        return value;
    }

    std::string_view string(std::uint64_t most) {
        const auto length = number<std::uint64_t>();
        if (length > left()) fail("a text is longer than the file");
        if (length > most) fail(fmt::format("a name is longer than {} bytes", most));
        const char* begin = reinterpret_cast<const char*>(m_file.data() + m_at);
        m_at += length;
        return {begin, static_cast<std::size_t>(length)};
    }

    static std::uint64_t widthOf(Type type);
    Value value(Type type, int depth);
    List list(int depth);
    void version(Header& header);
    Tensor tensor();
    void checkData(const Header& header);

    std::span<const std::byte> m_file;
    const std::string& m_where;
    const std::stop_token& m_stop;
    std::uint64_t m_at = 0;
    std::uint64_t m_elements = 0;
};

std::uint64_t Reader::widthOf(Type type) {
    switch (type) {
    case Type::U8:
    case Type::I8:
    case Type::Bool:
        return 1;
    case Type::U16:
    case Type::I16:
        return 2;
    case Type::U32:
    case Type::I32:
    case Type::F32:
        return 4;
    case Type::U64:
    case Type::I64:
    case Type::F64:
        return 8;
    default:
        return 0;
    }
}

Value Reader::value(Type type, int depth) {
    switch (type) {
    case Type::U8:
        return std::int64_t{number<std::uint8_t>()};
    case Type::I8:
        return std::int64_t{number<std::int8_t>()};
    case Type::U16:
        return std::int64_t{number<std::uint16_t>()};
    case Type::I16:
        return std::int64_t{number<std::int16_t>()};
    case Type::U32:
        return std::int64_t{number<std::uint32_t>()};
    case Type::I32:
        return std::int64_t{number<std::int32_t>()};
    case Type::U64: // sizes beyond 2^63 are none
        return static_cast<std::int64_t>(std::min<std::uint64_t>(
            number<std::uint64_t>(), std::numeric_limits<std::int64_t>::max()));
    case Type::I64:
        return number<std::int64_t>();
    case Type::F32:
        return double{number<float>()};
    case Type::F64:
        return number<double>();
    case Type::Bool:
        return number<std::uint8_t>() != 0;
    case Type::String:
        return string(left());
    case Type::Array:
        return list(depth + 1);
    }
    fail(fmt::format("the type {} of a value is not known", static_cast<std::uint32_t>(type)));
}

List Reader::list(int depth) {
    if (depth > kMostNesting) fail("lists nest too deeply");
    const auto type = static_cast<Type>(number<std::uint32_t>());
    List result{number<std::uint64_t>(), {}};
    if (const std::uint64_t width = widthOf(type); width > 0) {
        if (result.length > left() / width) fail("a list is longer than the file");
        const bool keep = result.length <= kMostKept && type != Type::F32 && type != Type::F64 &&
                          type != Type::Bool;
        if (!keep) {
            m_at += result.length * width;
            return result;
        }
        for (std::uint64_t i = 0; i < result.length; ++i)
            result.integers.push_back(std::get<std::int64_t>(value(type, depth)));
        return result;
    }
    if (type != Type::String && type != Type::Array)
        fail(fmt::format("the type {} of a list is not known", static_cast<std::uint32_t>(type)));
    if (result.length > left() / 8) fail("a list is longer than the file");
    m_elements += result.length;
    if (m_elements > kMostElements) fail("lists have more elements than any model's");
    for (std::uint64_t i = 0; i < result.length; ++i) {
        if (i % 65'536 == 0 && m_stop.stop_requested()) throw Cancelled();
        if (type == Type::String)
            string(left());
        else
            list(depth + 1);
    }
    return result;
}

void Reader::version(Header& header) {
    constexpr std::string_view kMagic = "GGUF";
    const std::string_view begin(reinterpret_cast<const char*>(m_file.data()), m_file.size());
    if (!begin.starts_with(kMagic)) fail("this is no GGUF file");
    m_at = kMagic.size();
    header.version = number<std::uint32_t>();
    if ((header.version & 0xffff) == 0)
        fail("this GGUF file is for big-endian machines", "convert it for little-endian ones");
    if (header.version == 1)
        fail("this is version 1 of GGUF, which is no longer in use",
             "convert the model again, or open its config.json");
    if (header.version != 2 && header.version != 3)
        fail(fmt::format("version {} of GGUF is not known", header.version),
             "versions 2 and 3 are read");
}

Tensor Reader::tensor() {
    Tensor result;
    result.name = string(kMostName);
    const auto rank = number<std::uint32_t>();
    if (rank > 8)
        fail(
            fmt::format("the tensor {} has {} dimensions", shardlens::inQuotes(result.name), rank));
    double elements = 1;
    for (std::uint32_t d = 0; d < rank; ++d) {
        const auto size = number<std::uint64_t>();
        elements *= static_cast<double>(std::max<std::uint64_t>(size, 1));
        if (size > (std::uint64_t{1} << 40) || elements > 4.0e18)
            fail(
                fmt::format("the tensor {} is impossibly large", shardlens::inQuotes(result.name)));
        result.shape.insert(result.shape.begin(), static_cast<std::int64_t>(size));
    }
    const auto id = number<std::uint32_t>();
    const auto packing = std::ranges::find(kPackings, id, &Packing::id);
    if (packing == kPackings.end())
        fail(fmt::format("the element type {} of the tensor {} is not known", id,
                         shardlens::inQuotes(result.name)),
             "");
    result.packing = *packing;
    if (rank > 0 && result.shape.back() % packing->elements != 0)
        fail(fmt::format("rows of the tensor {} do not fill blocks of {}",
                         shardlens::inQuotes(result.name), packing->elements));
    result.offset = number<std::uint64_t>();
    return result;
}

void Reader::checkData(const Header& header) {
    for (const Tensor& entry : header.tensors) {
        const double bytes = entry.elements() * entry.packing.bits() / 8;
        const double end =
            static_cast<double>(header.dataBegin) + static_cast<double>(entry.offset) + bytes;
        if (end > static_cast<double>(m_file.size()))
            throw InputError(fmt::format("the tensor {} ends at byte {:.0f}, the file at {}",
                                         shardlens::inQuotes(entry.name), end, m_file.size()),
                             m_where, "the file is cut off, fetch it again");
    }
}

Header Reader::read() {
    Header header;
    version(header);
    const auto tensors = number<std::uint64_t>(), entries = number<std::uint64_t>();
    if (tensors > kMostEntries || entries > kMostEntries)
        fail(fmt::format("the header says {} tensors and {} values", tensors, entries));
    for (std::uint64_t i = 0; i < entries; ++i) {
        const std::string_view key = string(kMostName);
        const auto type = static_cast<Type>(number<std::uint32_t>());
        if (!header.metadata.emplace(key, value(type, 0)).second)
            fail(fmt::format("the value {} is given twice", shardlens::inQuotes(key)));
    }
    std::unordered_set<std::string_view> names;
    for (std::uint64_t i = 0; i < tensors; ++i) {
        header.tensors.push_back(tensor());
        if (!names.insert(header.tensors.back().name).second)
            fail(fmt::format("the tensor {} is listed twice",
                             shardlens::inQuotes(header.tensors.back().name)));
    }
    const std::int64_t alignment = header.integer("general.alignment").value_or(32);
    if (alignment < 1 || alignment > (1 << 20)) fail("the alignment is impossible");
    const auto step = static_cast<std::uint64_t>(alignment);
    header.dataBegin = (m_at + step - 1) / step * step;
    checkData(header);
    return header;
}

template <typename Wanted>
const Wanted* find(const Header& header, std::string_view key) {
    const auto found = header.metadata.find(key);
    return found == header.metadata.end() ? nullptr : std::get_if<Wanted>(&found->second);
}

} // namespace

std::optional<std::int64_t> Header::integer(std::string_view key) const {
    if (const auto* value = find<std::int64_t>(*this, key)) return *value;
    const auto* flag = find<bool>(*this, key);
    return flag == nullptr ? std::nullopt : std::optional<std::int64_t>(*flag ? 1 : 0);
}

std::optional<double> Header::number(std::string_view key) const {
    if (const auto* value = find<double>(*this, key)) return *value;
    const auto whole = integer(key);
    return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

std::optional<std::string_view> Header::text(std::string_view key) const {
    const auto* value = find<std::string_view>(*this, key);
    return value == nullptr ? std::nullopt : std::optional(*value);
}

const List* Header::list(std::string_view key) const {
    return find<List>(*this, key);
}

Header parseHeader(std::span<const std::byte> file, const std::string& where,
                   const std::stop_token& stop) {
    return Reader(file, where, stop).read();
}

} // namespace shardlens::gguf
