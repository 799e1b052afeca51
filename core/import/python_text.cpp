// SPDX-License-Identifier: Apache-2.0
// Recursive-descent parser of the subset, by Python's precedence of operators.
#include "core/import/python_text.h"

#include "core/error.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace shardlens::python {

namespace {

constexpr std::size_t kMaxDepth = 100;
constexpr std::size_t kMaxExpressions = std::size_t{1} << 22;

} // namespace

std::string pathOf(const Expression& expression) {
    if (expression.kind == Expression::Kind::Name) return expression.text;
    if (expression.kind != Expression::Kind::Attribute) return {};
    const std::string object = pathOf(expression.items[0]);
    return object.empty() ? object : object + "." + expression.text;
}

void Parser::fail(const std::string& problem) const {
    throw InputError(problem, fmt::format("{}, line {}", m_where, m_token.line),
                     "print the graph again; the file may be cut off or edited");
}

bool Parser::is(std::string_view symbol) const {
    return m_token.kind == Token::Kind::Symbol && m_token.text == symbol;
}

bool Parser::isName(std::string_view name) const {
    return m_token.kind == Token::Kind::Name && m_token.text == name;
}

Token Parser::take() {
    const Token token = m_token;
    advance();
    return token;
}

bool Parser::takeIf(std::string_view symbol) {
    if (!is(symbol)) return false;
    advance();
    return true;
}

void Parser::expect(std::string_view symbol) {
    if (takeIf(symbol)) return;
    if (atEnd()) fail(fmt::format("the text ends where '{}' is expected", symbol));
    fail(fmt::format("'{}' is expected, not {}", symbol,
                     m_token.kind == Token::Kind::Newline ? std::string("the end of the line")
                                                          : shardlens::inQuotes(m_token.text)));
}

void Parser::skipLine() {
    while (!atLineEnd()) advance();
    if (!atEnd()) advance();
}

Expression Parser::make(Expression::Kind kind) {
    if (++m_count > kMaxExpressions) fail("the text holds more expressions than can be read");
    Expression expression;
    expression.kind = kind;
    return expression;
}

Expression Parser::expression() {
    Expression first = single();
    if (!is(",")) return first;
    Expression list = make(Expression::Kind::List);
    list.items.push_back(std::move(first));
    while (takeIf(",")) {
        if (atLineEnd() || is("=") || is(";") || is(":")) break;
        list.items.push_back(single());
    }
    return list;
}

Expression Parser::single() {
    if (m_depth >= kMaxDepth) fail(fmt::format("brackets are nested more than {} deep", kMaxDepth));
    ++m_depth;
    Expression result = binary(0);
    --m_depth;
    return result;
}

/// Operators by how loosely they bind.
Expression Parser::binary(int level) {
    constexpr std::array<std::array<std::string_view, 6>, 5> kLevels{{
        {"==", "!=", "<", ">", "<=", ">="},
        {"|", "^"},
        {"&"},
        {"+", "-"},
        {"*", "/", "//", "%", "@"},
    }};
    if (level == static_cast<int>(kLevels.size())) return unary();
    Expression left = binary(level + 1);
    const auto& symbols = kLevels[static_cast<std::size_t>(level)];
    std::size_t links = 0;
    while (m_token.kind == Token::Kind::Symbol &&
           std::ranges::find(symbols, m_token.text) != symbols.end()) {
        // Each link nests the tree one deeper.
        if (++links + m_depth > kMaxDepth)
            fail(fmt::format("an expression has more than {} operators in a row", kMaxDepth));
        Expression whole = make(Expression::Kind::Binary);
        whole.text = std::string(take().text);
        whole.items.push_back(std::move(left));
        whole.items.push_back(binary(level + 1));
        left = std::move(whole);
    }
    return left;
}

Expression Parser::unary() {
    if (is("-") || is("+") || is("~") || is("*") || is("**")) {
        const std::string symbol(take().text);
        if (m_depth >= kMaxDepth)
            fail(fmt::format("signs are nested more than {} deep", kMaxDepth));
        ++m_depth;
        Expression operand = unary();
        --m_depth;
        if (symbol == "-" && operand.kind == Expression::Kind::Integer) {
            operand.integer = -operand.integer;
            return operand;
        }
        if (symbol == "-" && operand.kind == Expression::Kind::Real) {
            operand.real = -operand.real;
            return operand;
        }
        Expression whole = make(Expression::Kind::Unary);
        whole.text = symbol;
        whole.items.push_back(std::move(operand));
        return whole;
    }
    Expression base = postfix();
    if (!is("**")) return base;
    Expression whole = make(Expression::Kind::Binary);
    whole.text = std::string(take().text);
    whole.items.push_back(std::move(base));
    if (m_depth >= kMaxDepth) fail(fmt::format("powers are nested more than {} deep", kMaxDepth));
    ++m_depth;
    whole.items.push_back(unary());
    --m_depth;
    return whole;
}

Expression Parser::postfix() {
    Expression result = atom();
    for (std::size_t links = 0;; ++links) {
        if (links + m_depth > kMaxDepth)
            fail(fmt::format("an expression has more than {} parts in a row", kMaxDepth));
        if (is("(")) {
            result = callOf(std::move(result));
        } else if (is("[")) {
            result = itemOf(std::move(result));
        } else if (takeIf(".")) {
            if (m_token.kind != Token::Kind::Name) fail("a name is expected after '.'");
            Expression whole = make(Expression::Kind::Attribute);
            whole.text = shardlens::cleaned(take().text);
            whole.items.push_back(std::move(result));
            result = std::move(whole);
        } else {
            return result;
        }
    }
}

Expression Parser::callOf(Expression callee) {
    Expression call = make(Expression::Kind::Call);
    call.items.push_back(std::move(callee));
    expect("(");
    while (!is(")")) {
        Expression argument = single();
        if (takeIf("=")) {
            if (argument.kind != Expression::Kind::Name) fail("a keyword is expected before '='");
            call.named.push_back({std::move(argument.text), single()});
        } else {
            call.items.push_back(std::move(argument));
        }
        if (!takeIf(",")) break;
    }
    expect(")");
    return call;
}

/// x[3], x[1:2], x[0, 1]: several parts make a list, a part with colons a call of slice.
Expression Parser::itemOf(Expression object) {
    Expression item = make(Expression::Kind::Item);
    item.items.push_back(std::move(object));
    expect("[");
    std::vector<Expression> parts;
    while (!is("]")) {
        Expression slice = make(Expression::Kind::Call);
        slice.items.push_back(make(Expression::Kind::Name));
        slice.items[0].text = "slice";
        bool colon = false;
        while (!is(",") && !is("]")) {
            if (takeIf(":")) {
                if (slice.items.size() == (colon ? 2U : 1U))
                    slice.items.push_back(make(Expression::Kind::None));
                colon = true;
                continue;
            }
            if (atEnd()) expect("]");
            slice.items.push_back(single());
        }
        if (colon)
            parts.push_back(std::move(slice));
        else if (slice.items.size() == 2)
            parts.push_back(std::move(slice.items[1]));
        else
            fail("a subscript is expected");
        if (!takeIf(",")) break;
    }
    expect("]");
    if (parts.size() == 1) {
        item.items.push_back(std::move(parts[0]));
    } else {
        item.items.push_back(make(Expression::Kind::List));
        item.items.back().items = std::move(parts);
    }
    return item;
}

Expression Parser::listUntil(std::string_view end) {
    Expression list = make(Expression::Kind::List);
    while (!is(end)) {
        list.items.push_back(single());
        if (!takeIf(",")) break;
    }
    expect(end);
    return list;
}

Expression Parser::dictionary() {
    Expression list = make(Expression::Kind::List);
    while (!is("}")) {
        Expression key = single();
        Expression value = takeIf(":") ? single() : make(Expression::Kind::None);
        if (key.kind == Expression::Kind::Text)
            list.named.push_back({std::move(key.text), std::move(value)});
        if (!takeIf(",")) break;
    }
    expect("}");
    return list;
}

Expression Parser::numberAtom() {
    const Token token = m_token;
    std::string digits;
    std::ranges::copy_if(token.text, std::back_inserter(digits), [](char c) { return c != '_'; });
    const char *begin = digits.data(), *end = begin + digits.size();
    Expression result =
        make(token.kind == Token::Kind::Real ? Expression::Kind::Real : Expression::Kind::Integer);
    std::from_chars_result parsed{};
    if (token.kind == Token::Kind::Real)
        parsed = std::from_chars(begin, end, result.real);
    else if (digits.starts_with("0x"))
        parsed = std::from_chars(begin + 2, end, result.integer, 16);
    else
        parsed = std::from_chars(begin, end, result.integer);
    if (parsed.ec == std::errc::result_out_of_range && parsed.ptr == end) {
        result.kind = Expression::Kind::Real; // Python's integers have no bound
        if (token.kind == Token::Kind::Integer) result.real = std::numeric_limits<double>::max();
    } else if (parsed.ec != std::errc{} || parsed.ptr != end) {
        fail(fmt::format("{} is not a number", shardlens::inQuotes(token.text)));
    }
    advance();
    return result;
}

Expression Parser::nameAtom() {
    const Token token = take();
    if (token.text == "None") return make(Expression::Kind::None);
    if (token.text == "True" || token.text == "False") {
        Expression result = make(Expression::Kind::Boolean);
        result.integer = token.text == "True" ? 1 : 0;
        return result;
    }
    if (token.text == "inf" || token.text == "nan") {
        Expression result = make(Expression::Kind::Real);
        result.real = token.text == "inf" ? std::numeric_limits<double>::infinity()
                                          : std::numeric_limits<double>::quiet_NaN();
        return result;
    }
    Expression result = make(Expression::Kind::Name);
    result.text = shardlens::cleaned(token.text);
    return result;
}

Expression Parser::atom() {
    switch (m_token.kind) {
    case Token::Kind::Name:
        return nameAtom();
    case Token::Kind::Integer:
    case Token::Kind::Real:
        return numberAtom();
    case Token::Kind::Text: {
        Expression result = make(Expression::Kind::Text);
        while (m_token.kind == Token::Kind::Text) result.text += shardlens::cleaned(take().text);
        return result;
    }
    case Token::Kind::Newline:
        fail("the line ends where a value is expected");
    case Token::Kind::End:
        fail("the text ends where a value is expected");
    case Token::Kind::Symbol:
        break;
    }
    if (takeIf("[")) return listUntil("]");
    if (takeIf("{")) return dictionary();
    if (takeIf("...")) return make(Expression::Kind::None);
    if (!is("(")) fail(fmt::format("{} is not expected here", shardlens::inQuotes(m_token.text)));
    take();
    if (takeIf(")")) return make(Expression::Kind::List);
    Expression first = single();
    if (takeIf(")")) return first;
    Expression list = make(Expression::Kind::List);
    list.items.push_back(std::move(first));
    while (takeIf(",")) {
        if (is(")")) break;
        list.items.push_back(single());
    }
    expect(")");
    return list;
}

} // namespace shardlens::python
