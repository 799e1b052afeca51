// SPDX-License-Identifier: Apache-2.0
// Builtin types: https://mlir.llvm.org/docs/Dialects/Builtin/#types. An alias is read once,
// where it is defined.
#include "core/import/mlir_types.h"

#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace shardlens::mlir {

namespace {

constexpr int kMostNesting = 16;

struct Named {
    std::string_view name;
    DType dtype;
};
constexpr std::array kElements{
    Named{"f64", DType::F64},           Named{"f32", DType::F32},
    Named{"f16", DType::F16},           Named{"bf16", DType::BF16},
    Named{"f8E4M3", DType::F8E4M3},     Named{"f8E4M3FN", DType::F8E4M3},
    Named{"f8E4M3FNUZ", DType::F8E4M3}, Named{"f8E4M3B11FNUZ", DType::F8E4M3},
    Named{"f8E5M2", DType::F8E5M2},     Named{"f8E5M2FNUZ", DType::F8E5M2},
    Named{"f8E8M0FNU", DType::U8}, // an exponent only: a byte, no number of ours
    Named{"f4E2M1FN", DType::F4E2M1},   Named{"i1", DType::Bool},
    Named{"index", DType::I64},
};

std::optional<DType> integerType(std::string_view name) {
    const bool isUnsigned = name.starts_with("u"); // "ui8", and "u8" inside quantised types
    if (isUnsigned || name.starts_with("s")) name.remove_prefix(1);
    if (name.starts_with("i"))
        name.remove_prefix(1);
    else if (!isUnsigned)
        return std::nullopt;
    if (name == "64") return isUnsigned ? DType::U64 : DType::I64;
    if (name == "32") return isUnsigned ? DType::U32 : DType::I32;
    if (name == "16") return isUnsigned ? DType::U16 : DType::I16;
    if (name == "8") return isUnsigned ? DType::U8 : DType::I8;
    if (name == "4" || name == "2") return isUnsigned ? DType::U4 : DType::I4;
    return std::nullopt;
}

class TypeParser {
public:
    TypeParser(Scanner& scanner, const TypeAliases& aliases)
        : m_scanner(scanner), m_aliases(aliases) {}

    Type type(int depth) {
        const char c = m_scanner.peek();
        const std::size_t start = m_scanner.offset();
        if (depth > kMostNesting) m_scanner.fail("types nest too deeply");
        Type result;
        if (c == '(') {
            m_scanner.group();
            m_scanner.expect("->", "a function type");
            if (m_scanner.peek() == '(')
                m_scanner.group();
            else
                type(depth + 1);
        } else if (c == '!') {
            result = named();
        } else {
            result = builtin(depth);
        }
        result.text = m_scanner.since(start);
        return result;
    }

private:
    Type named() {
        const std::string_view name = m_scanner.sigilName();
        if (m_scanner.peekAhead(0) == '<') m_scanner.group();
        const auto alias = m_aliases.find(name);
        return alias == m_aliases.end() ? Type{} : alias->second;
    }

    Type builtin(int depth) {
        const std::string_view name = m_scanner.name();
        if (name.empty()) m_scanner.fail("a type is missing");
        Type result;
        if (name == "tensor") return tensor();
        if (name == "tuple") {
            result.kind = Type::Kind::Tuple;
            m_scanner.expect("<", "a tuple type");
            while (m_scanner.peek() != '>') {
                result.elements.push_back(type(depth + 1));
                if (!m_scanner.accept(",")) break;
            }
            m_scanner.expect(">", "a tuple type");
            return result;
        }
        if (name == "complex" && m_scanner.peekAhead(0) == '<') {
            result.kind = Type::Kind::Tensor;
            result.spec.dtype = m_scanner.group() == "<f64>" ? DType::C128 : DType::C64;
            return result;
        }
        if (m_scanner.peekAhead(0) == '<') {
            m_scanner.group(); // memref, vector and the like
            return result;
        }
        if (const auto dtype = elementType(name)) {
            result.kind = Type::Kind::Tensor;
            result.spec.dtype = *dtype;
        }
        return result;
    }

    Type tensor() {
        Type result;
        if (m_scanner.peekAhead(0) != '<') m_scanner.fail("'<' is missing in a tensor type");
        const std::size_t start = m_scanner.offset();
        m_scanner.skipCharacter();
        if (m_scanner.peek() == '*') { // no rank
            m_scanner.moveTo(start);
            m_scanner.group();
            return result;
        }
        result.kind = Type::Kind::Tensor;
        dimensions(result.spec.shape);
        result.spec.dtype = element();
        if (m_scanner.peek() != '>') { // an encoding follows
            m_scanner.moveTo(start);
            m_scanner.group();
        } else {
            m_scanner.skipCharacter();
        }
        return result;
    }

    void dimensions(Shape& shape) {
        double elements = 1;
        while (true) {
            const char c = m_scanner.peek();
            std::int64_t size = kDynamic;
            if (c == '?') {
                m_scanner.skipCharacter();
            } else if (c >= '0' && c <= '9') {
                const std::string_view digits = m_scanner.number();
                const auto [end, error] =
                    std::from_chars(digits.data(), digits.data() + digits.size(), size);
                if (error != std::errc{} || size > kLargestDimension)
                    m_scanner.fail(fmt::format("the dimension {} is larger than {}",
                                               shardlens::inQuotes(digits), kLargestDimension));
                elements *= static_cast<double>(std::max<std::int64_t>(size, 1));
            } else {
                return;
            }
            if (elements > kMostElements) m_scanner.fail("the tensor has more elements than fit");
            shape.push_back(size);
            if (m_scanner.peekAhead(0) != 'x') m_scanner.fail("'x' is missing after a dimension");
            m_scanner.skipCharacter();
        }
    }

    DType element() {
        const std::size_t start = m_scanner.offset();
        std::string_view name;
        if (m_scanner.peek() == '!') { // quantised: !quant.uniform<i8:f32, 0.5>
            m_scanner.sigilName();
            if (m_scanner.peekAhead(0) == '<') {
                Scanner inner(m_scanner.group().substr(1), {});
                name = inner.name();
            }
        } else {
            name = m_scanner.name();
            if (name == "complex" && m_scanner.peekAhead(0) == '<')
                return m_scanner.group() == "<f64>" ? DType::C128 : DType::C64;
        }
        const auto dtype = elementType(name);
        if (!dtype)
            m_scanner.failAt(start, fmt::format("the element type {} is not known",
                                                shardlens::inQuotes(m_scanner.since(start))));
        return *dtype;
    }

    Scanner& m_scanner;
    const TypeAliases& m_aliases;
};

} // namespace

std::optional<DType> elementType(std::string_view name) {
    for (const Named& element : kElements)
        if (element.name == name) return element.dtype;
    return integerType(name);
}

bool atType(Scanner& scanner) {
    const char c = scanner.peek();
    if (c == '!' || c == '(') return true;
    const std::string_view name = scanner.peekName();
    for (const std::string_view known : {"tensor", "tuple", "memref", "vector", "complex", "none"})
        if (name == known) return true;
    return elementType(name).has_value();
}

Type parseType(Scanner& scanner, const TypeAliases& aliases) {
    return TypeParser(scanner, aliases).type(0);
}

std::vector<Type> parseTypes(Scanner& scanner, const TypeAliases& aliases) {
    std::vector<Type> types;
    if (!scanner.accept("(")) {
        types.push_back(parseType(scanner, aliases));
        while (scanner.peek() == ',') {
            const std::size_t comma = scanner.offset();
            scanner.skipCharacter();
            if (!atType(scanner)) {
                scanner.moveTo(comma);
                break;
            }
            types.push_back(parseType(scanner, aliases));
        }
        return types;
    }
    while (scanner.peek() != ')') {
        types.push_back(parseType(scanner, aliases));
        if (scanner.peek() == '{') scanner.group(); // {jax.result_info = ""}
        if (scanner.startsWith("loc(")) {
            scanner.name();
            scanner.group();
        }
        if (!scanner.accept(",")) break;
    }
    scanner.expect(")", "a list of types");
    return types;
}

} // namespace shardlens::mlir
