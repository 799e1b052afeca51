// SPDX-License-Identifier: Apache-2.0
// The grammar of operations. Pretty forms are free, so that only their frame can be relied on: an
// operation ends where a line begins another one ("%x =", "dialect.op", "}", "^bb"), or where one
// follows its signature. Keys "a = b" become attributes, values operands, "{…}" a dictionary or a
// region by what it begins with.
#include "core/error.h"
#include "core/import/mlir_module.h"
#include "core/import/mlir_scanner.h"
#include "core/import/mlir_types.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace shardlens::mlir {

namespace {

constexpr int kMostRegions = 64;                 // nested in each other
constexpr std::size_t kMostOperations = 400'000; // in a file
constexpr std::uint32_t kMostResults = 100'000;  // of an operation

/// Names of operations that are written without their dialect.
constexpr std::array<std::string_view, 4> kBareNames{"return", "func", "call", "module"};

bool isBare(std::string_view name) {
    return std::ranges::find(kBareNames, name) != kBareNames.end();
}

class Parser {
public:
    Parser(std::string_view text, const std::string& where, std::stop_token stop)
        : m_scan(text, where), m_stop(std::move(stop)) {}

    Module parse() {
        m_module.operations = operations(0, '\0');
        return std::move(m_module);
    }

private:
    std::vector<Operation> operations(int depth, char end);
    void alias();
    Operation operation(int depth);
    void resultNames(Operation& op);
    void location(Operation& op);

    void generic(Operation& op, int depth);
    void function(Operation& op, int depth);
    void moduleOp(Operation& op, int depth);
    void pretty(Operation& op, int depth);
    bool prettyPart(Operation& op, int depth, bool newline, bool signed_);
    void word(Operation& op);
    void keyed(Operation& op, std::string_view key);
    void parentheses(Operation& op);
    void value(Operation& op, bool inParentheses);
    void signature(Operation& op);

    Region region(int depth);
    BlockArgument argument(std::string_view name);
    void dictionary(std::vector<Attribute>& attributes);
    std::string_view attributeValue(std::string_view enders);
    std::string_view item();
    void skipRestOfNumber();
    bool atDictionary();
    bool atStatement(bool newline, bool afterSignature);
    bool atResults();
    ValueUse use();
    std::uint32_t count(std::string_view digits);

    Scanner m_scan;
    std::stop_token m_stop;
    Module m_module;
    std::vector<BlockArgument> m_pending; ///< arguments written before the region they belong to
};

std::uint32_t Parser::count(std::string_view digits) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || error != std::errc{} || value > kMostResults)
        m_scan.fail("a number of results is missing or too large");
    return value;
}

std::vector<Operation> Parser::operations(int depth, char end) {
    std::vector<Operation> result;
    while (true) {
        const char c = m_scan.peek();
        if (c == '\0' && m_scan.atEnd()) {
            if (end != '\0') m_scan.fail("a region is not closed");
            return result;
        }
        if (c == end || (end == '}' && c == '^')) return result;
        if (c == '#' || c == '!') {
            alias();
        } else if (m_scan.accept("{-#")) { // resources: weights as hexadecimal text
            const auto close = m_scan.text().find("#-}", m_scan.offset());
            m_scan.moveTo(close == std::string_view::npos ? m_scan.text().size() : close + 3);
        } else {
            result.push_back(operation(depth));
        }
    }
}

void Parser::alias() {
    const std::string_view name = m_scan.sigilName();
    m_scan.expect("=", "an alias");
    m_scan.skipSpace();
    const std::size_t start = m_scan.offset();
    if (name.starts_with("!")) {
        Type type = parseType(m_scan, m_module.typeAliases);
        // Of tuples a use could be many times as long as its text.
        if (type.kind == Type::Kind::Tuple) type = {};
        m_module.typeAliases.insert_or_assign(name, std::move(type));
        return;
    }
    item();
    if (m_scan.startsWith("->")) { // a map: (d0) -> (d0)
        m_scan.accept("->");
        item();
    }
    m_module.aliases.insert_or_assign(name, m_scan.since(start));
}

Operation Parser::operation(int depth) {
    if (++m_module.count > kMostOperations)
        m_scan.fail(fmt::format("there are more than {} operations", kMostOperations));
    if (m_module.count % 1024 == 0 && m_stop.stop_requested()) throw Cancelled();
    Operation op;
    op.offset = (m_scan.skipSpace(), m_scan.offset());
    resultNames(op);
    if (m_scan.peek() == '"') {
        op.name = m_scan.string();
        generic(op, depth);
        return op;
    }
    op.name = m_scan.name();
    if (op.name.empty())
        m_scan.fail(fmt::format("an operation is expected, not {}",
                                shardlens::inQuotes(m_scan.text().substr(m_scan.offset(), 1))));
    if (op.name == "module" || op.name == "builtin.module") {
        moduleOp(op, depth);
    } else if (op.name == "func.func" || op.name == "func") {
        op.name = "func.func";
        function(op, depth);
    } else {
        pretty(op, depth);
    }
    return op;
}

void Parser::resultNames(Operation& op) {
    if (m_scan.peek() != '%') return;
    do {
        ResultName result{m_scan.sigilName()};
        if (m_scan.accept(":")) result.count = count(m_scan.number());
        op.results.push_back(result);
    } while (m_scan.accept(",") && m_scan.peek() == '%');
    m_scan.expect("=", "the results of an operation");
}

void Parser::location(Operation& op) {
    if (!m_scan.startsWith("loc(")) return;
    m_scan.name();
    const std::string_view group = m_scan.group();
    op.location = group.substr(1, group.size() - 2);
}

// --- the generic form ---------------------------------------------------------------------------

void Parser::generic(Operation& op, int depth) {
    m_scan.expect("(", "an operation in generic form");
    while (m_scan.peek() == '%') {
        op.operands.push_back(use());
        if (!m_scan.accept(",")) break;
    }
    m_scan.expect(")", "the operands of an operation");
    if (m_scan.peek() == '[') m_scan.group(); // successors
    if (m_scan.accept("<{")) {
        m_scan.moveTo(m_scan.offset() - 1);
        dictionary(op.attributes);
        m_scan.expect(">", "the properties of an operation");
    }
    if (m_scan.accept("(")) {
        do {
            op.regions.push_back(region(depth + 1));
        } while (m_scan.accept(","));
        m_scan.expect(")", "the regions of an operation");
    }
    if (m_scan.peek() == '{') dictionary(op.attributes);
    m_scan.expect(":", "an operation in generic form, before its types");
    op.operandTypes = parseTypes(m_scan, m_module.typeAliases);
    m_scan.expect("->", "the type of an operation");
    op.resultTypes = parseTypes(m_scan, m_module.typeAliases);
    location(op);
}

// --- functions and modules ----------------------------------------------------------------------

void Parser::function(Operation& op, int depth) {
    if (const std::string_view visibility = m_scan.peekName(); !visibility.empty()) {
        m_scan.name();
        op.attributes.push_back({"sym_visibility", visibility});
    }
    if (m_scan.peek() != '@') m_scan.fail("the name of a function is missing");
    op.symbol = m_scan.sigilName();
    m_scan.expect("(", "a function");
    std::vector<BlockArgument> arguments;
    while (m_scan.peek() != ')') {
        if (m_scan.peek() == '%') {
            const std::string_view name = m_scan.sigilName();
            arguments.push_back(argument(name));
        } else { // a declaration
            arguments.emplace_back().type = parseType(m_scan, m_module.typeAliases);
            if (m_scan.peek() == '{') m_scan.group();
        }
        if (!m_scan.accept(",")) break;
    }
    m_scan.expect(")", "the arguments of a function");
    if (m_scan.accept("->")) op.resultTypes = parseTypes(m_scan, m_module.typeAliases);
    if (m_scan.peekName() == "attributes") {
        m_scan.name();
        dictionary(op.attributes);
    }
    if (m_scan.peek() == '{') {
        m_pending = std::move(arguments);
        op.regions.push_back(region(depth + 1));
    }
    location(op);
}

void Parser::moduleOp(Operation& op, int depth) {
    if (m_scan.peek() == '@') op.symbol = m_scan.sigilName();
    if (m_scan.peekName() == "attributes") {
        m_scan.name();
        dictionary(op.attributes);
    }
    op.regions.push_back(region(depth + 1));
    location(op);
}

BlockArgument Parser::argument(std::string_view name) {
    BlockArgument result;
    result.name = name;
    m_scan.expect(":", "an argument");
    result.type = parseType(m_scan, m_module.typeAliases);
    if (m_scan.peek() == '{') dictionary(result.attributes);
    if (m_scan.startsWith("loc(")) {
        m_scan.name();
        const std::string_view group = m_scan.group();
        result.location = group.substr(1, group.size() - 2);
    }
    return result;
}

Region Parser::region(int depth) {
    if (depth > kMostRegions)
        m_scan.fail(fmt::format("regions nest more than {} deep", kMostRegions));
    m_scan.expect("{", "an operation with a region");
    Region result;
    Block& entry = result.blocks.emplace_back();
    entry.arguments = std::exchange(m_pending, {});
    if (m_scan.peek() != '^') entry.operations = operations(depth, '}');
    bool first = entry.operations.empty();
    while (m_scan.peek() == '^') {
        Block& block =
            std::exchange(first, false) ? result.blocks.front() : result.blocks.emplace_back();
        m_scan.sigilName();
        if (m_scan.accept("(")) {
            while (m_scan.peek() == '%') {
                const std::string_view name = m_scan.sigilName();
                block.arguments.push_back(argument(name));
                if (!m_scan.accept(",")) break;
            }
            m_scan.expect(")", "the arguments of a block");
        }
        m_scan.expect(":", "a block");
        block.operations = operations(depth, '}');
    }
    m_scan.expect("}", "a region");
    return result;
}

// --- pretty forms -------------------------------------------------------------------------------

void Parser::pretty(Operation& op, int depth) {
    m_pending.clear();
    bool afterSignature = false;
    while (true) {
        const bool newline = m_scan.skipSpace();
        const char c = m_scan.peekAhead(0);
        if (c == '\0' || c == '}' || c == '^' || atStatement(newline, afterSignature)) break;
        if (c == ')' || c == ']' || c == '>')
            m_scan.fail(fmt::format("the bracket '{}' closes nothing", c));
        if (c == ':') {
            m_scan.skipCharacter();
            if (atType(m_scan)) {
                signature(op);
                afterSignature = true;
            }
        } else if (m_scan.accept("->")) {
            if (atType(m_scan)) op.resultTypes = parseTypes(m_scan, m_module.typeAliases);
        } else if (c == '{' && !atDictionary()) {
            op.regions.push_back(region(depth + 1));
        } else if (c == '{') {
            dictionary(op.attributes);
        } else if (c == '(') {
            parentheses(op);
        } else if (c == '%') {
            value(op, false);
        } else {
            word(op);
        }
    }
    m_pending.clear();
    // "op %a, %b : T, U" without an arrow: of the results if their number fits, else the last.
    const std::size_t results = op.resultCount();
    if (op.operandTypes.empty() && !op.resultTypes.empty() && op.resultTypes.size() != results) {
        if (results == 0)
            op.operandTypes = std::exchange(op.resultTypes, {});
        else if (results == 1)
            op.resultTypes.erase(op.resultTypes.begin(), op.resultTypes.end() - 1);
    }
}

void Parser::signature(Operation& op) {
    std::vector<Type> types = parseTypes(m_scan, m_module.typeAliases);
    if (m_scan.accept("->")) {
        op.operandTypes = std::move(types);
        op.resultTypes = parseTypes(m_scan, m_module.typeAliases);
    } else {
        op.resultTypes = std::move(types);
    }
}

void Parser::value(Operation& op, bool inParentheses) {
    const ValueUse used = use();
    if (inParentheses && m_scan.peek() == ':') {
        m_pending.push_back(argument(used.name));
    } else if (inParentheses && m_scan.peek() == '=') {
        m_scan.accept("=");
        op.loopNames.push_back(used.name);
    } else {
        op.operands.push_back(used);
    }
}

void Parser::parentheses(Operation& op) {
    const std::size_t start = m_scan.offset();
    m_scan.expect("(", "an operation");
    int depth = 1;
    while (depth > 0) {
        const char c = m_scan.peek();
        if (c == '\0')
            m_scan.failAt(m_scan.text().size(),
                          fmt::format("the bracket that opens at {} is not closed",
                                      placeOf(m_scan.text(), start)));
        if (c == '(' || c == ')') {
            depth += c == '(' ? 1 : -1;
            m_scan.skipCharacter();
        } else if (c == '%') {
            value(op, true);
        } else if (c == '[' || c == '{' || c == '<') {
            m_scan.group();
        } else if (c == '}' || c == ']') {
            m_scan.fail(fmt::format("the bracket '{}' closes nothing", c));
        } else {
            word(op);
        }
    }
}

/// A key with its value, or something that stands alone.
void Parser::word(Operation& op) {
    if (m_scan.startsWith("loc(")) return location(op);
    const std::size_t start = m_scan.offset();
    const std::string_view name = m_scan.name();
    if (!name.empty() && m_scan.peek() == '=' && m_scan.peekAhead(1) != '=') {
        m_scan.accept("=");
        return op.attributes.push_back({name, attributeValue({})});
    }
    m_scan.moveTo(start);
    const char c = m_scan.peek();
    if (c == '@' && op.symbol.empty()) {
        op.symbol = m_scan.sigilName();
        return;
    }
    const std::string_view found = item();
    const bool punctuation =
        found.size() == 1 && std::string_view(",=:|*+/?").find(c) != std::string_view::npos;
    if (!punctuation) op.attributes.push_back({{}, found});
}

/// Fractions, exponents and hexadecimal digits after the first digits.
void Parser::skipRestOfNumber() {
    constexpr std::string_view kParts = "0123456789.xX+-abcdefABCDEF";
    while (true) {
        const char c = m_scan.peekAhead(0);
        if (c == '\0' || kParts.find(c) == std::string_view::npos) return;
        if (c == '-' && m_scan.peekAhead(1) == '>') return;
        m_scan.skipCharacter();
    }
}

/// One thing of an attribute: a group, a string, a word or a symbol with the group that follows it.
std::string_view Parser::item() {
    const char c = m_scan.peek();
    const std::size_t start = m_scan.offset();
    if (c == '(' || c == '[' || c == '{' || c == '<') return m_scan.group();
    if (m_scan.accept("->")) return m_scan.since(start);
    if (c == '"') {
        m_scan.string();
        return m_scan.since(start);
    }
    if (c == '@' || c == '#' || c == '!' || c == '%' || c == '^')
        m_scan.sigilName();
    else if (m_scan.name().empty() && m_scan.number().empty())
        m_scan.skipCharacter();
    else
        skipRestOfNumber();
    if (m_scan.peekAhead(0) == '<') m_scan.group();
    if (m_scan.peekAhead(0) == '(' && m_scan.since(start) == "loc") m_scan.group();
    return m_scan.since(start);
}

/// Items joined by 'x' and "->" ("[1] x [0]", "[b, f]x[i, o]->[b, f]"), or up to one of `enders`.
std::string_view Parser::attributeValue(std::string_view enders) {
    m_scan.skipSpace();
    const std::size_t start = m_scan.offset();
    std::size_t end = start;
    while (true) {
        item();
        end = m_scan.offset();
        const char c = m_scan.peek();
        if (c == '\0') break;
        if (!enders.empty()) {
            if (enders.find(c) != std::string_view::npos) break;
            if (c == ')' || c == ']' || c == '}' || c == '>')
                m_scan.fail(fmt::format("the bracket '{}' closes nothing", c));
            continue;
        }
        if (m_scan.accept("->")) continue;
        if (c != 'x' || (m_scan.peekAhead(1) != ' ' && m_scan.peekAhead(1) != '[')) break;
        m_scan.skipCharacter();
    }
    return m_scan.text().substr(start, end - start);
}

void Parser::dictionary(std::vector<Attribute>& attributes) {
    m_scan.expect("{", "a dictionary of attributes");
    while (m_scan.peek() != '}') {
        const std::string_view name = m_scan.peek() == '"' ? m_scan.string() : m_scan.name();
        if (name.empty()) m_scan.fail("the name of an attribute is missing");
        std::string_view text;
        if (m_scan.accept("=")) text = attributeValue(",}");
        attributes.push_back({name, text});
        if (!m_scan.accept(",")) break;
    }
    m_scan.expect("}", "a dictionary of attributes");
}

bool Parser::atDictionary() {
    const std::size_t start = m_scan.offset();
    m_scan.skipCharacter();
    bool result = m_scan.peek() == '}';
    if (!result) {
        const bool quoted = m_scan.peek() == '"';
        const std::string_view name = quoted ? m_scan.string() : m_scan.name();
        const char next = m_scan.peek();
        result =
            !name.empty() &&
            (next == '=' || ((next == ',' || next == '}') && !quoted && !name.ends_with("return")));
    }
    m_scan.moveTo(start);
    return result;
}

bool Parser::atResults() {
    const std::size_t start = m_scan.offset();
    bool result = false;
    constexpr int kMostNames = 64; // looking ahead must not cost more than reading
    for (int names = 0; names < kMostNames && m_scan.peek() == '%'; ++names) {
        m_scan.sigilName();
        if (m_scan.accept(":")) m_scan.number();
        if (m_scan.accept(",")) continue;
        result = m_scan.peek() == '=' && m_scan.peekAhead(1) != '=';
        break;
    }
    m_scan.moveTo(start);
    return result;
}

bool Parser::atStatement(bool newline, bool afterSignature) {
    if (!newline && !afterSignature) return false;
    const char c = m_scan.peekAhead(0);
    if (c == '%') return atResults();
    if (m_scan.startsWith("{-#")) return true;
    if (newline && (c == '#' || c == '!')) {
        const std::size_t start = m_scan.offset();
        m_scan.sigilName();
        const bool result = m_scan.peek() == '=';
        m_scan.moveTo(start);
        return result;
    }
    if (c == '"') {
        const std::size_t start = m_scan.offset();
        m_scan.string();
        const bool result = m_scan.peekAhead(0) == '(';
        m_scan.moveTo(start);
        return result;
    }
    const std::string_view name = m_scan.peekName();
    return name.find('.') != std::string_view::npos || isBare(name);
}

ValueUse Parser::use() {
    ValueUse result{m_scan.sigilName()};
    if (m_scan.peekAhead(0) == '#') {
        m_scan.skipCharacter();
        result.index = count(m_scan.number());
    }
    return result;
}

} // namespace

std::size_t Operation::resultCount() const {
    std::size_t total = 0;
    for (const ResultName& result : results) total += result.count;
    return total;
}

std::string_view Operation::attribute(std::string_view first, std::string_view second) const {
    for (const Attribute& entry : attributes)
        if (entry.name == first || (!second.empty() && entry.name == second)) return entry.value;
    return {};
}

bool Operation::hasAttribute(std::string_view wanted) const {
    return std::ranges::find(attributes, wanted, &Attribute::name) != attributes.end();
}

std::string_view Operation::positional(std::size_t n) const {
    for (const Attribute& entry : attributes)
        if (entry.name.empty() && n-- == 0) return entry.value;
    return {};
}

std::string_view symbolName(std::string_view symbol) {
    if (symbol.starts_with("@")) symbol.remove_prefix(1);
    if (symbol.size() >= 2 && symbol.front() == '"' && symbol.back() == '"')
        symbol = symbol.substr(1, symbol.size() - 2);
    return symbol;
}

Module parseModule(std::string_view text, const std::string& where, const std::stop_token& stop) {
    return Parser(text, where, stop).parse();
}

} // namespace shardlens::mlir
