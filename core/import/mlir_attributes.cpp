// SPDX-License-Identifier: Apache-2.0
// Numbers are read with from_chars; floats may be bit patterns ("0xFF800000" is minus infinity).
#include "core/import/mlir_attributes.h"

#include "core/error.h"
#include "core/import/mlir_scanner.h"
#include "core/import/mlir_types.h"

#include <bit>
#include <charconv>
#include <limits>

namespace shardlens::mlir {

namespace {

constexpr std::size_t kMostNumbers = std::size_t{1} << 16;
constexpr std::int64_t kLargest = std::int64_t{1} << 62;

struct Dense {
    std::string_view content; ///< between the brackets
    std::string_view type;    ///< behind the ':', may be empty
};

/// Parts of "dense<content> : type"; std::nullopt for anything else.
std::optional<Dense> denseOf(std::string_view value) {
    Scanner scan(value, "an attribute");
    if (scan.name() != "dense" || scan.peekAhead(0) != '<') return std::nullopt;
    const std::string_view group = scan.group();
    Dense dense{group.substr(1, group.size() - 2), {}};
    if (scan.accept(":")) {
        scan.skipSpace();
        dense.type = value.substr(scan.offset());
    }
    return dense;
}

bool isNumberPart(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '+';
}

/// Words of a list, brackets and commas left out. Calls `take` for each; it returns whether to go
/// on.
template <typename Take>
bool eachWord(std::string_view list, Take take) {
    while (!list.empty()) {
        if (!isNumberPart(list.front())) {
            if (std::string_view("[](){}, \t\r\n").find(list.front()) == std::string_view::npos)
                return false;
            list.remove_prefix(1);
            continue;
        }
        std::size_t end = 0;
        while (end < list.size() && isNumberPart(list[end])) ++end;
        if (!take(list.substr(0, end))) return false;
        list.remove_prefix(end);
    }
    return true;
}

std::optional<std::int64_t> integerOf(std::string_view word) {
    if (word == "true" || word == "false") return word == "true" ? 1 : 0;
    if (word.starts_with("+")) word.remove_prefix(1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
    return value;
}

double fromBits(std::uint64_t bits, DType dtype) {
    if (dtype == DType::F64) return std::bit_cast<double>(bits);
    if (dtype == DType::F32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (dtype == DType::BF16)
        return std::bit_cast<float>(static_cast<std::uint32_t>(bits & 0xffff) << 16);
    // F16: only the infinities are written so, apart from NaNs.
    if (dtype == DType::F16 && (bits & 0x7fff) == 0x7c00)
        return (bits & 0x8000) != 0 ? -std::numeric_limits<double>::infinity()
                                    : std::numeric_limits<double>::infinity();
    return std::numeric_limits<double>::quiet_NaN();
}

std::optional<double> realOf(std::string_view word, DType dtype) {
    const char* end = word.data() + word.size();
    if (word.starts_with("0x")) {
        std::uint64_t bits = 0;
        const auto [stop, error] = std::from_chars(word.data() + 2, end, bits, 16);
        if (error != std::errc{} || stop != end) return std::nullopt;
        return fromBits(bits, dtype);
    }
    double value = 0;
    const auto [stop, error] = std::from_chars(word.data(), end, value);
    if (error != std::errc{} || stop != end) return std::nullopt;
    return value;
}

std::string_view listOf(std::string_view value) {
    Scanner scan(value, "an attribute");
    if (scan.peek() == '[') return scan.group();
    if (scan.name() == "array" && scan.peekAhead(0) == '<') {
        std::string_view group = scan.group();
        const auto colon = group.find(':');
        if (colon == std::string_view::npos) return "[]"; // array<i64>
        return group.substr(colon + 1, group.size() - colon - 2);
    }
    return value.substr(0, value.find(':'));
}

} // namespace

std::optional<Shape> shapeOfDense(std::string_view value) {
    const auto dense = denseOf(value);
    if (!dense || dense->type.empty()) return std::nullopt;
    Scanner scan(dense->type, "an attribute");
    if (!atType(scan)) return std::nullopt;
    const Type type = parseType(scan, {});
    if (!type.isTensor()) return std::nullopt;
    return type.spec.shape;
}

std::optional<std::vector<std::int64_t>> readIntegers(std::string_view value) {
    if (value.empty()) return std::nullopt;
    const auto dense = denseOf(value);
    std::vector<std::int64_t> result;
    const bool read = eachWord(dense ? dense->content : listOf(value), [&](std::string_view word) {
        const auto number = integerOf(word);
        if (!number || *number > kLargest || *number < -kLargest) return false;
        result.push_back(*number);
        return result.size() <= kMostNumbers;
    });
    if (!read) return std::nullopt;
    const bool splat = dense && result.size() == 1 && !dense->content.starts_with("[");
    if (const auto shape = splat ? shapeOfDense(value) : std::nullopt) {
        if (elementsOf(*shape) > static_cast<double>(kMostNumbers)) return std::nullopt;
        result.assign(static_cast<std::size_t>(elementsOf(*shape)), result.front());
    }
    return result;
}

std::vector<std::string_view> splitLists(std::string_view value) {
    std::vector<std::string_view> lists;
    Scanner scan(value, "an attribute");
    while (!scan.atEnd()) {
        if (scan.peek() == '[')
            lists.push_back(scan.group());
        else
            scan.skipCharacter();
    }
    return lists;
}

std::vector<Attribute> fieldsOf(std::string_view value) {
    std::vector<Attribute> fields;
    const auto open = value.find_first_of("<{");
    if (open == std::string_view::npos) return fields;
    Scanner outer(value.substr(open), "an attribute");
    const std::string_view group = outer.group();
    Scanner scan(group.substr(1, group.size() - 2), "an attribute");
    while (!scan.atEnd()) {
        Attribute field{scan.name(), {}};
        if (!field.name.empty()) scan.accept("=");
        scan.skipSpace();
        const std::size_t start = scan.offset();
        while (!scan.atEnd() && scan.peek() != ',') {
            if (std::string_view("([{<").find(scan.peek()) != std::string_view::npos)
                scan.group();
            else if (scan.peek() == '"')
                scan.string();
            else
                scan.skipCharacter();
        }
        field.value = scan.since(start);
        fields.push_back(field);
        scan.accept(",");
    }
    return fields;
}

std::string_view fieldOf(std::string_view value, std::string_view name) {
    for (const Attribute& field : fieldsOf(value))
        if (field.name == name) return field.value;
    return {};
}

Literal readLiteral(std::string_view value, DType dtype, std::size_t most) {
    Literal literal;
    const auto dense = denseOf(value);
    const std::string_view content = dense ? dense->content : value.substr(0, value.find(':'));
    constexpr std::size_t kWidest = 64; // characters of a number with its comma
    if (content.size() > most * kWidest) return literal;
    KnownInts ints;
    KnownReals reals;
    const bool read = eachWord(content, [&](std::string_view word) {
        if (isFloat(dtype)) {
            const auto real = realOf(word, dtype);
            if (real) reals.push_back(*real);
            return real && reals.size() <= most;
        }
        const auto number = integerOf(word);
        if (number) ints.push_back(*number);
        return number && ints.size() <= most;
    });
    if (!read) return literal;
    literal.splat = !content.starts_with("[") && ints.size() + reals.size() == 1;
    if (isFloat(dtype))
        literal.reals = std::move(reals);
    else
        literal.ints = std::move(ints);
    return literal;
}

} // namespace shardlens::mlir
