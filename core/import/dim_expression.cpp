// SPDX-License-Identifier: Apache-2.0
// Recursive descent: sum := product {(+|-) product}, product := atom {(*|/|//) atom},
// atom := integer | name | ( sum ). Division must come out even; // rounds down.
#include "core/import/dim_expression.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace shardlens {

namespace {

constexpr std::int64_t kLimit = std::int64_t{1} << 40;
constexpr int kMaxDepth = 64;

bool isNameStart(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool isNamePart(char c) {
    return isNameStart(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.' ||
           c == ':' || c == '-' || c == '/' || c == '[' || c == ']';
}

class Expression {
public:
    using ValueOf = std::function<std::optional<std::int64_t>(std::string_view)>;
    /// @param syntaxOnly values do not matter: a division may come out odd
    Expression(std::string_view text, const ValueOf& valueOf, bool syntaxOnly = false)
        : m_rest(text), m_valueOf(valueOf), m_syntaxOnly(syntaxOnly) {}

    std::optional<std::int64_t> whole() {
        const auto value = sum(0);
        skipBlanks();
        return m_rest.empty() && value ? value : std::nullopt;
    }

    std::vector<std::string_view> names;

private:
    void skipBlanks() {
        while (!m_rest.empty() && m_rest.front() == ' ') m_rest.remove_prefix(1);
    }

    bool accept(std::string_view token) {
        skipBlanks();
        if (!m_rest.starts_with(token)) return false;
        m_rest.remove_prefix(token.size());
        return true;
    }

    static std::optional<std::int64_t> inRange(std::int64_t value) {
        return value > kLimit || value < -kLimit ? std::nullopt : std::optional(value);
    }

    std::optional<std::int64_t> sum(int depth) {
        auto left = product(depth);
        while (left) {
            const bool plus = accept("+");
            if (!plus && !accept("-")) break;
            const auto right = product(depth);
            if (!right) return std::nullopt;
            left = inRange(plus ? *left + *right : *left - *right);
        }
        return left;
    }

    std::optional<std::int64_t> product(int depth) {
        auto left = atom(depth);
        while (left) {
            const bool times = accept("*");
            const bool floor = !times && accept("//");
            if (!times && !floor && !accept("/")) break;
            const auto right = atom(depth);
            if (!right) return std::nullopt;
            std::int64_t value = 1;
            if (times) {
                if (__builtin_mul_overflow(*left, *right, &value)) return std::nullopt;
            } else if (!m_syntaxOnly) {
                if (*right <= 0 || (!floor && *left % *right != 0)) return std::nullopt;
                value = *left / *right - (*left % *right < 0 ? 1 : 0);
            }
            left = inRange(value);
        }
        return left;
    }

    std::optional<std::int64_t> atom(int depth) {
        if (depth > kMaxDepth) return std::nullopt;
        if (accept("(")) {
            const auto value = sum(depth + 1);
            return value && accept(")") ? value : std::nullopt;
        }
        skipBlanks();
        if (m_rest.empty()) return std::nullopt;
        if (isNameStart(m_rest.front())) {
            const auto end = std::ranges::find_if_not(m_rest, isNamePart) - m_rest.begin();
            const std::string_view name = m_rest.substr(0, static_cast<std::size_t>(end));
            m_rest.remove_prefix(name.size());
            names.push_back(name);
            return m_valueOf(name);
        }
        std::int64_t value = 0;
        const auto [end, error] =
            std::from_chars(m_rest.data(), m_rest.data() + m_rest.size(), value);
        if (error != std::errc{}) return std::nullopt;
        m_rest.remove_prefix(static_cast<std::size_t>(end - m_rest.data()));
        return inRange(value);
    }

    std::string_view m_rest;
    const ValueOf& m_valueOf;
    bool m_syntaxOnly;
};

} // namespace

std::vector<std::string_view> namesInDimension(std::string_view text) {
    const Expression::ValueOf one = [](std::string_view) { return std::int64_t{1}; };
    Expression syntax(text, one, true);
    if (!syntax.whole()) return {};
    std::vector<std::string_view> unique;
    std::ranges::copy_if(syntax.names, std::back_inserter(unique), [&](std::string_view name) {
        return std::ranges::find(unique, name) == unique.end();
    });
    return unique;
}

std::optional<std::int64_t>
evaluateDimension(std::string_view text,
                  const std::function<std::optional<std::int64_t>(std::string_view)>& valueOf) {
    return Expression(text, valueOf).whole();
}

} // namespace shardlens
