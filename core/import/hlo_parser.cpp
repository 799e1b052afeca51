// SPDX-License-Identifier: Apache-2.0
// The reader of HLO text. Attribute values are kept as balanced pieces of text, so that whatever a
// new version of XLA writes there does no harm. Running out of text anywhere means that the dump is
// cut off, which happens to dumps pasted into logs, and is said as such.
#include "core/error.h"
#include "core/import/hlo_module.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace shardlens::hlo {

namespace {

constexpr std::string_view kDumpAgain =
    "dump the module again (XLA_FLAGS=--xla_dump_to=DIR) and open the whole file";
constexpr int kMaxTypeDepth = 64;
constexpr double kMaxElements = 4.0e18; ///< products of dimensions stay below 2^63

struct NamedType {
    std::string_view name;
    DType dtype;
};

/// Eight-bit floats without a counterpart are read as another one; one- and two-bit integers count
/// as four bits, the narrowest there are.
constexpr std::array kTypes{
    NamedType{"pred", DType::Bool},
    NamedType{"s1", DType::I4},
    NamedType{"u1", DType::U4},
    NamedType{"s2", DType::I4},
    NamedType{"u2", DType::U4},
    NamedType{"s4", DType::I4},
    NamedType{"u4", DType::U4},
    NamedType{"s8", DType::I8},
    NamedType{"u8", DType::U8},
    NamedType{"s16", DType::I16},
    NamedType{"u16", DType::U16},
    NamedType{"s32", DType::I32},
    NamedType{"u32", DType::U32},
    NamedType{"s64", DType::I64},
    NamedType{"u64", DType::U64},
    NamedType{"f16", DType::F16},
    NamedType{"bf16", DType::BF16},
    NamedType{"f32", DType::F32},
    NamedType{"f64", DType::F64},
    NamedType{"f8e4m3", DType::F8E4M3},
    NamedType{"f8e4m3fn", DType::F8E4M3},
    NamedType{"f8e4m3b11fnuz", DType::F8E4M3},
    NamedType{"f8e4m3fnuz", DType::F8E4M3},
    NamedType{"f8e3m4", DType::F8E4M3},
    NamedType{"f8e5m2", DType::F8E5M2},
    NamedType{"f8e5m2fnuz", DType::F8E5M2},
    NamedType{"f8e8m0fnu", DType::F8E5M2},
    NamedType{"f4e2m1fn", DType::F4E2M1},
    NamedType{"c64", DType::C64},
    NamedType{"c128", DType::C128},
    NamedType{"opaque", DType::Unknown},
};

constexpr std::array<std::string_view, 4> kSections{"FileNames", "FunctionNames", "FileLocations",
                                                    "StackFrames"};

bool isNameChar(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

bool isBlank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

class Parser {
public:
    Parser(std::string_view text, const std::string& where) : m_text(text) {
        m_module.text = text;
        m_module.where = where;
    }

    Module parse() {
        skipSpace();
        if (word() != "HloModule") fail("HLO text begins with HloModule", m_at);
        skipSpace();
        m_module.name = name();
        m_module.attributes = attributes();
        skipSections();
        bool hasEntry = false;
        while (skipSpace(), m_at < m_text.size()) computation(hasEntry);
        if (!hasEntry) truncated("it has no ENTRY computation");
        return std::move(m_module);
    }

private:
    // --- errors ---------------------------------------------------------------------------------

    [[noreturn]] void fail(const std::string& problem, std::size_t offset) const {
        throw InputError(problem, m_module.place(m_text.substr(std::min(offset, m_text.size()))),
                         std::string(kDumpAgain));
    }

    [[noreturn]] void truncated(const std::string& how) const {
        throw InputError("this HLO text is truncated: " + how, m_module.where,
                         std::string(kDumpAgain));
    }

    [[noreturn]] void endsInside() const {
        truncated(m_current.empty() ? "it ends in its header"
                                    : "it ends inside computation " + inQuotes(m_current));
    }

    // --- characters -----------------------------------------------------------------------------

    char peek() const { return m_at < m_text.size() ? m_text[m_at] : '\0'; }

    /// Blanks and comments, which may stand anywhere: `/*index=5*/`.
    void skipSpace() {
        while (m_at < m_text.size()) {
            if (isBlank(m_text[m_at])) {
                ++m_at;
            } else if (m_text.substr(m_at, 2) == "/*") {
                const std::size_t end = m_text.find("*/", m_at + 2);
                if (end == std::string_view::npos) endsInside();
                m_at = end + 2;
            } else if (m_text.substr(m_at, 2) == "//") {
                m_at = std::min(m_text.find('\n', m_at), m_text.size());
            } else {
                return;
            }
        }
    }

    bool accept(char c) {
        skipSpace();
        if (peek() != c) return false;
        ++m_at;
        return true;
    }

    void expect(char c, std::string_view after) {
        if (accept(c)) return;
        if (m_at >= m_text.size()) endsInside();
        fail(fmt::format("'{}' is missing after {}", c, after), m_at);
    }

    std::string_view word() {
        const std::size_t begin = m_at;
        while (m_at < m_text.size() && isNameChar(m_text[m_at])) ++m_at;
        return m_text.substr(begin, m_at - begin);
    }

    std::string_view name() {
        skipSpace();
        if (peek() == '%') ++m_at;
        const std::string_view result = word();
        if (!result.empty()) return result;
        if (m_at >= m_text.size()) endsInside();
        fail("a name is missing", m_at);
    }

    /// Over a quoted string, whose first quote is at the cursor.
    void skipString() {
        for (++m_at; m_at < m_text.size(); ++m_at) {
            if (m_text[m_at] == '\\')
                ++m_at;
            else if (m_text[m_at] == '"') {
                ++m_at;
                return;
            }
        }
        endsInside();
    }

    /// Text up to (not including) one of `stops` outside all brackets and strings.
    std::string_view balanced(std::string_view stops) {
        const std::size_t begin = m_at;
        for (std::size_t depth = 0; m_at < m_text.size();) {
            const char c = m_text[m_at];
            if (depth == 0 && stops.find(c) != std::string_view::npos)
                return m_text.substr(begin, m_at - begin);
            if (c == '"') {
                skipString();
                continue;
            }
            if (c == '(' || c == '{' || c == '[') ++depth;
            if (c == ')' || c == '}' || c == ']') {
                if (depth == 0) return m_text.substr(begin, m_at - begin);
                --depth;
            }
            ++m_at;
        }
        if (stops.find('\n') == std::string_view::npos) endsInside();
        return m_text.substr(begin); // the last line may lack its end
    }

    // --- types ----------------------------------------------------------------------------------

    Type type(int depth = 0) {
        skipSpace();
        if (depth > kMaxTypeDepth) fail("tuples are nested too deeply", m_at);
        if (peek() == '(') return tupleType(depth);
        const std::size_t begin = m_at;
        const std::string_view element = word();
        if (m_at >= m_text.size()) endsInside();
        if (peek() != '[') fail("a type such as f32[8,128] is expected", begin);
        Type result;
        result.spec.shape = dims();
        if (peek() == '{') { // a layout: the brace follows at once
            ++m_at;
            balanced("}");
            expect('}', "a layout");
        }
        if (element == "token") {
            result.kind = Type::Kind::Token;
            return result;
        }
        const auto known = std::ranges::find(kTypes, element, &NamedType::name);
        if (known == kTypes.end())
            fail("element type " + inQuotes(element) + " is not known", begin);
        result.spec.dtype = known->dtype;
        return result;
    }

    Type tupleType(int depth) {
        Type result;
        result.kind = Type::Kind::Tuple;
        result.leaves = 0;
        ++m_at;
        if (accept(')')) return result;
        do {
            result.parts.push_back(type(depth + 1));
            result.parts.back().before = result.leaves;
            result.leaves += result.parts.back().leaves;
        } while (accept(','));
        expect(')', "a tuple type");
        return result;
    }

    Shape dims() {
        Shape shape;
        double elements = 1;
        ++m_at;
        if (accept(']')) return shape;
        do {
            skipSpace();
            if (m_text.substr(m_at, 2) == "<=") m_at += 2; // a bound of a dynamic dimension
            if (m_at >= m_text.size()) endsInside();
            std::int64_t dim = 0;
            const auto [end, error] =
                std::from_chars(m_text.data() + m_at, m_text.data() + m_text.size(), dim);
            if (error != std::errc{} || dim < 0) fail("a dimension is no number", m_at);
            elements *= static_cast<double>(std::max<std::int64_t>(dim, 1));
            if (elements > kMaxElements) fail("a tensor has too many elements", m_at);
            m_at = static_cast<std::size_t>(end - m_text.data());
            shape.push_back(dim);
        } while (accept(','));
        expect(']', "the dimensions");
        return shape;
    }

    // --- instructions ---------------------------------------------------------------------------

    /// `, key=value` as often as it occurs on this line.
    std::vector<Attribute> attributes() {
        std::vector<Attribute> result;
        while (true) {
            const std::size_t before = m_at;
            while (m_at < m_text.size() && isBlank(m_text[m_at]) && m_text[m_at] != '\n') ++m_at;
            if (peek() != ',') {
                m_at = before;
                return result;
            }
            ++m_at;
            skipSpace();
            const std::string_view key = word();
            if (key.empty()) {
                if (m_at >= m_text.size()) endsInside();
                fail("an attribute has no name", m_at);
            }
            if (peek() != '=') {
                result.push_back({key, {}});
                continue;
            }
            ++m_at;
            result.push_back({key, balanced(",\n")});
        }
    }

    using Names = std::unordered_map<std::string_view, std::uint32_t>;

    void operands(Instruction& instruction, const Names& names) const {
        const std::string_view list = instruction.literal;
        std::size_t begin = 0, depth = 0;
        for (std::size_t i = 0; i <= list.size(); ++i) {
            const char c = i < list.size() ? list[i] : ',';
            if (c == '(' || c == '{' || c == '[') ++depth;
            if ((c == ')' || c == '}' || c == ']') && depth > 0) --depth;
            if (c != ',' || (depth > 0 && i < list.size())) continue;
            operand(instruction, list.substr(begin, i - begin), names);
            begin = i + 1;
        }
    }

    /// The name is the last word: a type may stand before it, a comment too.
    void operand(Instruction& instruction, std::string_view piece, const Names& names) const {
        while (!piece.empty() && isBlank(piece.back())) piece.remove_suffix(1);
        std::size_t begin = piece.size();
        while (begin > 0 && isNameChar(piece[begin - 1])) --begin;
        const std::string_view name = piece.substr(begin);
        if (name.empty()) return;
        const auto found = names.find(name);
        if (found == names.end())
            fail(fmt::format("operand {} of {} is not defined before it", inQuotes(name),
                             inQuotes(instruction.name)),
                 static_cast<std::size_t>(name.data() - m_text.data()));
        instruction.operands.push_back(found->second);
    }

    /// @return whether it is the root
    bool instruction(Computation& computation, Names& names) {
        bool root = false;
        std::string_view first = name();
        if (skipSpace(), first == "ROOT" && peek() != '=') {
            root = true;
            first = name();
        }
        Instruction result;
        result.name = first;
        expect('=', "the name of an instruction");
        result.type = type();
        skipSpace();
        result.opcode = word();
        expect('(', "an opcode");
        result.literal = balanced(")");
        expect(')', "the operands");
        const bool leaf =
            result.opcode == "constant" || result.opcode == "parameter" || result.opcode == "iota";
        if (!leaf) operands(result, names);
        result.attributes = attributes();
        const auto index = static_cast<std::uint32_t>(computation.instructions.size());
        if (!names.emplace(result.name, index).second)
            fail(fmt::format("{} is defined twice in computation {}", inQuotes(result.name),
                             inQuotes(computation.name)),
                 static_cast<std::size_t>(result.name.data() - m_text.data()));
        if (result.opcode == "parameter") parameter(computation, result, index);
        computation.instructions.push_back(std::move(result));
        return root;
    }

    void parameter(Computation& computation, Instruction& instruction, std::uint32_t index) const {
        std::uint32_t number = 0;
        const std::string_view text = instruction.literal;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool sane = error == std::errc{} && number < m_text.size();
        if (!sane)
            fail("the number of parameter " + inQuotes(instruction.name) + " is not usable",
                 static_cast<std::size_t>(instruction.name.data() - m_text.data()));
        if (computation.parameters.size() <= number)
            computation.parameters.resize(number + 1, kNone);
        if (computation.parameters[number] != kNone)
            fail("parameter " + inQuotes(instruction.name) + " is there twice",
                 static_cast<std::size_t>(instruction.name.data() - m_text.data()));
        computation.parameters[number] = index;
        instruction.parameterNumber = number;
    }

    // --- computations ---------------------------------------------------------------------------

    void skipSections() {
        while (true) {
            skipSpace();
            const std::size_t before = m_at;
            const std::string_view title = word();
            if (std::ranges::find(kSections, title) == kSections.end()) {
                m_at = before;
                return;
            }
            while (skipSpace(), m_at < m_text.size() && peek() >= '0' && peek() <= '9')
                m_at = std::min(m_text.find('\n', m_at), m_text.size());
        }
    }

    void computation(bool& hasEntry) {
        const std::size_t begin = m_at;
        std::string_view first = name();
        const bool entry = first == "ENTRY" && (skipSpace(), peek() != '{' && peek() != '(');
        if (entry) first = name();
        Computation result;
        result.name = m_current = first;
        if (accept('(')) {
            balanced(")");
            expect(')', "the parameters of a computation");
        }
        skipSpace();
        if (m_text.substr(m_at, 2) == "->") {
            m_at += 2;
            type();
        }
        expect('{', "the head of a computation");
        body(result);
        attributes();
        if (entry) {
            if (hasEntry) fail("there are two ENTRY computations", begin);
            hasEntry = true;
            m_module.entry = static_cast<std::uint32_t>(m_module.computations.size());
        }
        const auto index = static_cast<std::uint32_t>(m_module.computations.size());
        if (!m_module.byName.emplace(result.name, index).second)
            fail("computation " + inQuotes(result.name) + " is defined twice", begin);
        m_module.computations.push_back(std::move(result));
        m_current = {};
    }

    void body(Computation& computation) {
        Names names;
        bool hasRoot = false;
        while (!accept('}')) {
            if (m_at >= m_text.size()) endsInside();
            if (!instruction(computation, names)) continue;
            hasRoot = true;
            computation.root = static_cast<std::uint32_t>(computation.instructions.size() - 1);
        }
        if (computation.instructions.empty())
            fail("computation " + inQuotes(computation.name) + " is empty", m_at);
        if (!hasRoot)
            computation.root = static_cast<std::uint32_t>(computation.instructions.size() - 1);
        if (std::ranges::find(computation.parameters, kNone) != computation.parameters.end())
            fail("computation " + inQuotes(computation.name) + " lacks one of its parameters",
                 m_at);
    }

    static constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

    std::string_view m_text;
    std::size_t m_at = 0;
    std::string_view m_current; ///< the computation being read
    Module m_module;
};

std::string_view find(const std::vector<Attribute>& attributes, std::string_view key) {
    const auto found = std::ranges::find(attributes, key, &Attribute::key);
    return found == attributes.end() ? std::string_view() : found->value;
}

} // namespace

void appendLeaves(const Type& type, std::vector<const TensorSpec*>& leaves) {
    if (type.kind == Type::Kind::Tuple)
        for (const Type& part : type.parts) appendLeaves(part, leaves);
    else
        leaves.push_back(type.kind == Type::Kind::Array ? &type.spec : nullptr);
}

std::string_view Instruction::attribute(std::string_view key) const {
    return find(attributes, key);
}

bool Instruction::has(std::string_view key) const {
    return std::ranges::find(attributes, key, &Attribute::key) != attributes.end();
}

std::string_view Module::attribute(std::string_view key) const {
    return find(attributes, key);
}

const Computation* Module::computation(std::string_view called) const {
    if (called.starts_with('%')) called.remove_prefix(1);
    const auto found = byName.find(called);
    return found == byName.end() ? nullptr : &computations[found->second];
}

const Computation* Module::callee(const Instruction& instruction, std::string_view key) const {
    const std::string_view called = instruction.attribute(key);
    if (called.empty()) return nullptr;
    if (const Computation* found = computation(called)) return found;
    throw InputError(fmt::format("{} calls computation {}, which is not in the file",
                                 inQuotes(instruction.name), inQuotes(called)),
                     place(instruction.name), std::string(kDumpAgain));
}

std::size_t Module::indexOf(const Computation& computation) const {
    return static_cast<std::size_t>(&computation - computations.data());
}

std::string Module::place(std::string_view piece) const {
    const auto offset = static_cast<std::size_t>(piece.data() - text.data());
    const auto line = 1 + std::ranges::count(text.substr(0, offset), '\n');
    return fmt::format("{}, line {}", where, line);
}

Module parseModule(std::string_view text, const std::string& where) {
    return Parser(text, where).parse();
}

} // namespace shardlens::hlo
