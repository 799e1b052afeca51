// SPDX-License-Identifier: Apache-2.0
// Characters of MLIR text: blanks, comments, names, strings and bracketed groups. Everything is a
// view into the file, so that megabytes of weights between quotes cost one search for the end.
// Grammar: https://mlir.llvm.org/docs/LangRef/, "Notation" and "Common syntax".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardlens::mlir {

/// "line 12, column 5" of a byte of a text.
std::string placeOf(std::string_view text, std::size_t offset);

class Scanner {
public:
    /// @param where names the file in messages
    Scanner(std::string_view text, std::string where) : m_text(text), m_where(std::move(where)) {}

    /// Skips blanks and comments. @return whether a line ended in them
    bool skipSpace();
    bool atEnd(); ///< after blanks
    /// The next character after blanks, '\0' at the end.
    char peek();
    char peekAhead(std::size_t distance) const; ///< counted from the next character, no skipping
    bool startsWith(std::string_view token);
    bool accept(std::string_view token); ///< consumes it if it comes next
    void expect(std::string_view token, std::string_view inWhat);

    /// A bare name: letters, digits, '_', '$', '.'; empty if none comes next.
    std::string_view name();
    /// The same without consuming it.
    std::string_view peekName();
    /// A name with its sigil ("%arg0", "@main", "@\"a b\"", "^bb0", "#loc1", "!t").
    std::string_view sigilName();
    /// A string; the view is what is between the quotes, escapes as written.
    std::string_view string();
    /// A decimal number with an optional sign, as text; empty if none comes next.
    std::string_view number();
    /// A bracketed group "(…)", "[…]", "{…}" or "<…>" with all that it nests; the view includes
    /// the brackets.
    std::string_view group();
    void skipCharacter() { m_at += m_at < m_text.size() ? 1 : 0; }

    std::size_t offset() const { return m_at; }
    void moveTo(std::size_t offset) { m_at = offset; }
    std::string_view since(std::size_t offset) const {
        return m_text.substr(offset, m_at - offset);
    }
    std::string_view text() const { return m_text; }

    [[noreturn]] void fail(const std::string& problem) const { failAt(m_at, problem); }
    [[noreturn]] void failAt(std::size_t offset, const std::string& problem) const;

private:
    void skipString();

    std::string_view m_text;
    std::string m_where;
    std::size_t m_at = 0;
};

} // namespace shardlens::mlir
