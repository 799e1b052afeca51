// SPDX-License-Identifier: Apache-2.0
// Brackets are matched with a stack of closing characters, never by recursion: nesting in a file
// must not become nesting on our stack.
#include "core/import/mlir_scanner.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens::mlir {

namespace {

bool isNameStart(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool isDigit(char c) {
    return c >= '0' && c <= '9';
}

bool isNamePart(char c) {
    return isNameStart(c) || isDigit(c) || c == '$' || c == '.';
}

char closingOf(char open) {
    switch (open) {
    case '(':
        return ')';
    case '[':
        return ']';
    case '{':
        return '}';
    case '<':
        return '>';
    default:
        return '\0';
    }
}

} // namespace

std::string placeOf(std::string_view text, std::size_t offset) {
    const std::string_view before = text.substr(0, std::min(offset, text.size()));
    const auto line = std::ranges::count(before, '\n') + 1;
    const auto start = before.rfind('\n');
    const std::size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1);
    return fmt::format("line {}, column {}", line, column + 1);
}

void Scanner::failAt(std::size_t offset, const std::string& problem) const {
    const bool cutOff = offset >= m_text.size();
    throw InputError(problem, m_where + ", " + placeOf(m_text, offset),
                     cutOff ? "the file is cut off, write it again" : "");
}

bool Scanner::skipSpace() {
    bool newline = false;
    while (m_at < m_text.size()) {
        const char c = m_text[m_at];
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            newline = newline || c == '\n';
            ++m_at;
        } else if (c == '/' && m_text.substr(m_at).starts_with("//")) {
            m_at = std::min(m_text.find('\n', m_at), m_text.size());
        } else {
            break;
        }
    }
    return newline;
}

bool Scanner::atEnd() {
    skipSpace();
    return m_at >= m_text.size();
}

char Scanner::peek() {
    skipSpace();
    return peekAhead(0);
}

char Scanner::peekAhead(std::size_t distance) const {
    return m_at + distance < m_text.size() ? m_text[m_at + distance] : '\0';
}

bool Scanner::startsWith(std::string_view token) {
    skipSpace();
    return m_text.substr(m_at).starts_with(token);
}

bool Scanner::accept(std::string_view token) {
    if (!startsWith(token)) return false;
    m_at += token.size();
    return true;
}

void Scanner::expect(std::string_view token, std::string_view inWhat) {
    if (!accept(token)) fail(fmt::format("'{}' is missing in {}", token, inWhat));
}

std::string_view Scanner::name() {
    const std::string_view found = peekName();
    m_at += found.size();
    return found;
}

std::string_view Scanner::peekName() {
    if (!isNameStart(peek())) return {};
    std::size_t end = m_at;
    while (end < m_text.size() && isNamePart(m_text[end])) ++end;
    return m_text.substr(m_at, end - m_at);
}

std::string_view Scanner::sigilName() {
    skipSpace();
    const std::size_t start = m_at;
    if (start >= m_text.size()) fail("a name is missing");
    ++m_at;
    if (m_at < m_text.size() && m_text[m_at] == '"') {
        skipString();
        return since(start);
    }
    while (m_at < m_text.size() && (isNamePart(m_text[m_at]) || m_text[m_at] == '-')) {
        if (m_text.substr(m_at).starts_with("->")) break;
        ++m_at;
    }
    if (m_at == start + 1) failAt(start, fmt::format("a name must follow '{}'", m_text[start]));
    return since(start);
}

void Scanner::skipString() {
    const std::size_t start = m_at++;
    while (true) {
        m_at = m_text.find_first_of("\"\\", m_at);
        if (m_at == std::string_view::npos) {
            m_at = m_text.size();
            fail(fmt::format("the string that begins at {} does not end", placeOf(m_text, start)));
        }
        if (m_text[m_at] == '"') break;
        m_at += 2;
    }
    ++m_at;
}

std::string_view Scanner::string() {
    if (peek() != '"') fail("a string is missing");
    const std::size_t start = m_at;
    skipString();
    return m_text.substr(start + 1, m_at - start - 2);
}

std::string_view Scanner::number() {
    skipSpace();
    std::size_t end = m_at;
    if (peekAhead(0) == '-' || peekAhead(0) == '+') ++end;
    const std::size_t digits = end;
    while (end < m_text.size() && isDigit(m_text[end])) ++end;
    if (end == digits) return {};
    const std::size_t start = m_at;
    m_at = end;
    return m_text.substr(start, end - start);
}

std::string_view Scanner::group() {
    skipSpace();
    const std::size_t start = m_at;
    std::string closers;
    do {
        skipSpace();
        const char c = peekAhead(0);
        if (m_at >= m_text.size())
            fail(fmt::format("the bracket that opens at {} is not closed", placeOf(m_text, start)));
        if (c == '"') {
            skipString();
            continue;
        }
        const std::string_view rest = m_text.substr(m_at);
        const bool arrow = rest.starts_with("->") || rest.starts_with(">=") ||
                           rest.starts_with("<=") || rest.starts_with("==");
        if (arrow) {
            m_at += 2;
            continue;
        }
        if (const char closing = closingOf(c); closing != '\0') {
            closers.push_back(closing);
        } else if (c == ')' || c == ']' || c == '}' || c == '>') {
            if (closers.empty() || closers.back() != c)
                fail(fmt::format("the bracket '{}' closes nothing", c));
            closers.pop_back();
        }
        ++m_at;
    } while (!closers.empty());
    return since(start);
}

} // namespace shardlens::mlir
