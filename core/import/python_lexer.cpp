// SPDX-License-Identifier: Apache-2.0
// Tokens of the subset. What the lexer does not know becomes a symbol of one character, so that
// statements of no interest can be skipped whatever they hold.
#include "core/import/python_text.h"

#include <algorithm>
#include <array>

namespace shardlens::python {

namespace {

bool isDigit(char c) {
    return c >= '0' && c <= '9';
}

bool beginsName(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
}

bool continuesName(char c) {
    return beginsName(c) || isDigit(c);
}

} // namespace

Token Lexer::take(Token::Kind kind, std::size_t length) {
    Token token{kind, m_text.substr(m_at, length), m_line};
    m_at += length;
    return token;
}

void Lexer::skipBlanksAndComments() {
    while (m_at < m_text.size()) {
        const char c = m_text[m_at];
        if (c == '\n' && m_depth > 0) {
            ++m_line;
            ++m_at;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
            ++m_at;
        } else if (c == '\\' && m_at + 1 < m_text.size() && m_text[m_at + 1] == '\n') {
            ++m_line;
            m_at += 2;
        } else if (c == '#') {
            const std::size_t end = std::min(m_text.find('\n', m_at), m_text.size());
            const std::string_view comment = m_text.substr(m_at + 1, end - m_at - 1);
            const auto file = comment.find("File:");
            if (file != std::string_view::npos) m_fileComment = comment.substr(file + 5);
            m_at = end;
        } else {
            return;
        }
    }
}

Token Lexer::number() {
    std::size_t end = m_at;
    bool real = false;
    const bool hex = m_text.substr(m_at).starts_with("0x");
    while (end < m_text.size()) {
        const char c = m_text[end];
        const bool exponent = !hex && (c == 'e' || c == 'E');
        if (exponent && end + 1 < m_text.size() &&
            (m_text[end + 1] == '-' || m_text[end + 1] == '+'))
            ++end;
        else if (!continuesName(c) && c != '.')
            break;
        real = real || c == '.' || exponent;
        ++end;
    }
    return take(real ? Token::Kind::Real : Token::Kind::Integer, end - m_at);
}

/// A string in one or three quotes; one that is not closed ends with its line.
Token Lexer::quotedText(char quote) {
    const std::string three(3, quote);
    if (m_text.substr(m_at).starts_with(three)) {
        const std::size_t begin = m_at + 3,
                          end = std::min(m_text.find(three, begin), m_text.size());
        const Token token{Token::Kind::Text, m_text.substr(begin, end - begin), m_line};
        m_line += static_cast<std::size_t>(std::ranges::count(token.text, '\n'));
        m_at = std::min(end + 3, m_text.size());
        return token;
    }
    const std::size_t begin = ++m_at;
    while (m_at < m_text.size() && m_text[m_at] != quote && m_text[m_at] != '\n')
        m_at +=
            m_text[m_at] == '\\' && m_at + 1 < m_text.size() && m_text[m_at + 1] != '\n' ? 2 : 1;
    m_at = std::min(m_at, m_text.size());
    const Token token{Token::Kind::Text, m_text.substr(begin, m_at - begin), m_line};
    if (m_at < m_text.size() && m_text[m_at] == quote) ++m_at;
    return token;
}

Token Lexer::next() {
    skipBlanksAndComments();
    if (m_at >= m_text.size()) return {Token::Kind::End, {}, m_line};
    const char c = m_text[m_at];
    if (c == '\n') {
        Token token = take(Token::Kind::Newline, 1);
        ++m_line;
        return token;
    }
    if (c == '"' || c == '\'') return quotedText(c);
    if (isDigit(c) || (c == '.' && m_at + 1 < m_text.size() && isDigit(m_text[m_at + 1])))
        return number();
    if (beginsName(c)) {
        std::size_t end = m_at;
        while (end < m_text.size() && continuesName(m_text[end])) ++end;
        return take(Token::Kind::Name, end - m_at);
    }
    constexpr std::array<std::string_view, 8> kLong{
        "...", "**", "//", "==", "!=", "<=", ">=", "->"};
    for (const std::string_view symbol : kLong)
        if (m_text.substr(m_at).starts_with(symbol))
            return take(Token::Kind::Symbol, symbol.size());
    if (c == '(' || c == '[' || c == '{') ++m_depth;
    if ((c == ')' || c == ']' || c == '}') && m_depth > 0) --m_depth;
    return take(Token::Kind::Symbol, 1);
}

} // namespace shardlens::python
