// SPDX-License-Identifier: Apache-2.0
// The small part of Python that printed FX graphs are written in: names, numbers, strings, lists,
// calls with keywords, attributes, subscripts and arithmetic (Python language reference, chapters 2
// and 6). Nothing is executed. Nesting and the number of expressions are bounded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardlens::python {

struct Token {
    enum class Kind : std::uint8_t { Name, Integer, Real, Text, Symbol, Newline, End };
    Kind kind = Kind::End;
    std::string_view text; ///< Text: without quotes, escapes as written
    std::size_t line = 1;
};

/// Splits text into tokens. Inside brackets line ends do not count, as in Python.
class Lexer {
public:
    explicit Lexer(std::string_view text) : m_text(text) {}

    Token next();
    /// The latest comment line that begins with "File:", without that word; taken once.
    std::string_view takeFileComment() { return std::exchange(m_fileComment, {}); }

private:
    void skipBlanksAndComments();
    Token number();
    Token quotedText(char quote);
    Token take(Token::Kind kind, std::size_t length);

    std::string_view m_text;
    std::size_t m_at = 0;
    std::size_t m_line = 1;
    std::size_t m_depth = 0;
    std::string_view m_fileComment;
};

struct NamedExpression;

struct Expression {
    enum class Kind : std::uint8_t {
        None,
        Boolean,
        Integer,
        Real,
        Text,
        Name,
        Attribute, ///< items[0] . text
        Call,      ///< items[0] is called with the others, and `named`
        Item,      ///< items[0] [ items[1] ]
        List,      ///< also tuples
        Binary,    ///< items[0] `text` items[1]
        Unary,     ///< `text` items[0]
    };
    Kind kind = Kind::None;
    std::int64_t integer = 0;
    double real = 0;
    std::string text;
    std::vector<Expression> items;
    std::vector<NamedExpression> named;
};

/// "name = value" in a call, "name: value" in a map.
struct NamedExpression {
    std::string name;
    Expression value;
};

/// "torch.ops.aten.mm.default" of a name with attributes; empty if it is anything else.
std::string pathOf(const Expression& expression);

/// Reads expressions one after the other.
class Parser {
public:
    /// @param where names the file in messages
    Parser(std::string_view text, std::string where) : m_lexer(text), m_where(std::move(where)) {
        advance();
    }

    const Token& token() const { return m_token; }
    bool is(std::string_view symbol) const;
    bool isName(std::string_view name) const;
    bool atEnd() const { return m_token.kind == Token::Kind::End; }
    bool atLineEnd() const { return atEnd() || m_token.kind == Token::Kind::Newline; }
    Token take();
    bool takeIf(std::string_view symbol);
    void expect(std::string_view symbol);
    void skipLine();
    std::string_view takeFileComment() { return m_lexer.takeFileComment(); }

    /// An expression; commas outside brackets make a list of it. @throws InputError with the line
    Expression expression();
    /// One without such commas.
    Expression single();

    [[noreturn]] void fail(const std::string& problem) const;

private:
    void advance() { m_token = m_lexer.next(); }
    Expression make(Expression::Kind kind);
    Expression binary(int level);
    Expression unary();
    Expression postfix();
    Expression atom();
    Expression numberAtom();
    Expression nameAtom();
    Expression callOf(Expression callee);
    Expression itemOf(Expression object);
    Expression listUntil(std::string_view end);
    Expression dictionary();

    Lexer m_lexer;
    std::string m_where;
    Token m_token;
    std::size_t m_depth = 0;
    std::size_t m_count = 0;
};

} // namespace shardlens::python
