// SPDX-License-Identifier: Apache-2.0
// Finds the forward function and the arguments in the text; everything else is skipped line by
// line.
#include "core/import/fx_text.h"

#include "core/error.h"
#include "core/import/fx_statements.h"
#include "core/import/text.h"
#include "core/import/torch_translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

namespace shardlens {

namespace {

using python::Expression;
using python::Token;

/// An argument of fx_graph_runnable: a tensor, a size, or something else.
using LoadedArgument = std::variant<std::monostate, TensorSpec, std::int64_t>;

/// "…/attention.py:630 in get_query, code: …" → "attention.get_query".
std::string scopeOf(std::string_view comment) {
    const auto in = comment.find(" in ");
    std::string_view path = comment.substr(0, in);
    while (path.starts_with(" ")) path.remove_prefix(1);
    path = path.substr(0, path.rfind(':'));
    if (const auto slash = path.rfind('/'); slash != std::string_view::npos)
        path.remove_prefix(slash + 1);
    if (path.ends_with(".py")) path.remove_suffix(3);
    if (in == std::string_view::npos) return cleaned(path);
    std::string_view function = comment.substr(in + 4);
    function = function.substr(0, function.find(", code"));
    while (function.ends_with(" ") || function.ends_with("\r")) function.remove_suffix(1);
    return cleaned(path) + "." + cleaned(function);
}

class Reader {
public:
    Reader(std::string_view text, const std::string& where, const ImportOptions& options)
        : m_parser(text, where), m_symbols(options), m_statements(m_program, m_symbols),
          m_options(options) {
        m_program.where = where;
    }

    torch::Program read() {
        while (!m_parser.atEnd()) topLevel();
        if (!m_found)
            throw InputError("the text holds no forward function", m_program.where,
                             "print the graph with print_readable and open that");
        if (!m_returned) m_parser.fail("the graph ends without a return");
        giveLoaded();
        finish();
        return std::move(m_program);
    }

private:
    void topLevel() {
        if (m_parser.isName("def")) {
            m_parser.take();
            if (m_parser.isName("forward") && !m_found) return forward();
        } else if (m_parser.isName("reader") || m_parser.isName("args")) {
            return argumentLine();
        }
        m_parser.skipLine();
    }

    // --- the function ----------------------------------------------------------------------------

    struct Parameter {
        std::string name;
        std::string annotation;
        std::size_t line;
    };

    void forward() {
        m_found = true;
        m_parser.take();
        m_parser.expect("(");
        std::vector<Parameter> parameters;
        while (!m_parser.is(")")) {
            while (m_parser.is("*") || m_parser.is("**") || m_parser.is("/")) m_parser.take();
            if (m_parser.token().kind != Token::Kind::Name)
                m_parser.fail("a parameter is expected");
            const Token name = m_parser.take();
            Parameter parameter{cleaned(name.text), {}, name.line};
            if (m_parser.takeIf(":")) {
                const Expression annotation = m_parser.single();
                if (annotation.kind == Expression::Kind::Text)
                    parameter.annotation = annotation.text;
            }
            if (m_parser.takeIf("=")) m_parser.single();
            if (parameter.name != "self") parameters.push_back(std::move(parameter));
            if (!m_parser.takeIf(",")) break;
        }
        m_parser.expect(")");
        m_parser.skipLine();
        addPlaceholders(parameters);
        body();
    }

    /// Tensors first: a symbol is better known from where it stands in a tensor.
    void addPlaceholders(const std::vector<Parameter>& parameters) {
        for (const Parameter& parameter : parameters) {
            if (std::ranges::any_of(m_program.placeholders, [&](const torch::Placeholder& other) {
                    return parameters.size() < kManyParameters && other.name == parameter.name;
                }))
                throw InputError(fmt::format("the parameter {} exists twice",
                                             shardlens::inQuotes(parameter.name)),
                                 fmt::format("{}, line {}", m_program.where, parameter.line),
                                 "a name may be given once: print the graph again");
            torch::Placeholder placeholder;
            placeholder.name = parameter.name;
            placeholder.line = parameter.line;
            if (const auto type = fx::parseAnnotation(parameter.annotation);
                type && type->symbol.empty())
                placeholder.spec = type->spec(m_symbols);
            m_statements.addName(parameter.name);
            m_program.placeholders.push_back(std::move(placeholder));
        }
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const auto type = fx::parseAnnotation(parameters[i].annotation);
            if (type && !type->symbol.empty())
                m_program.placeholders[i].number = m_symbols.evaluate(type->symbol);
        }
    }

    void body() {
        while (!m_parser.atEnd() && !m_returned) {
            if (m_parser.atLineEnd()) {
                m_parser.skipLine();
                continue;
            }
            if (m_nodes % kStopEvery == 0 && m_options.stop.stop_requested()) throw Cancelled();
            statement();
        }
    }

    void statement() {
        constexpr std::array<std::string_view, 12> kIgnored{"with", "if",     "for", "import",
                                                            "from", "assert", "del", "global",
                                                            "pass", "raise",  "try", "@"};
        if (const std::string_view comment = m_parser.takeFileComment(); !comment.empty())
            m_statements.setScope(scopeOf(comment));
        const Token start = m_parser.token();
        if (m_parser.isName("def") || m_parser.isName("class"))
            m_parser.fail("the graph ends without a return");
        if (std::ranges::find(kIgnored, start.text) != kIgnored.end() &&
            start.kind != Token::Kind::Text)
            return m_parser.skipLine();
        if (m_parser.isName("return")) {
            m_parser.take();
            if (!m_parser.atLineEnd()) m_statements.returned(m_parser.expression(), start.line);
            m_returned = true;
            return;
        }
        assignment(start.line);
        if (m_parser.takeIf(";")) return;
        if (!m_parser.atLineEnd())
            m_parser.fail(fmt::format("the line is expected to end, not to go on with {}",
                                      shardlens::inQuotes(m_parser.token().text)));
    }

    /// name: "type" = expression. What is set to None is only freed.
    void assignment(std::size_t line) {
        const Expression target = m_parser.expression();
        Expression annotation;
        if (m_parser.takeIf(":")) annotation = m_parser.single();
        if (!m_parser.takeIf("=")) return; // an expression for its own sake
        Expression value = m_parser.expression();
        while (m_parser.takeIf("=")) value = m_parser.expression();
        if (value.kind == Expression::Kind::None) return;
        if (target.kind == Expression::Kind::Name) {
            ++m_nodes;
            m_statements.assign(target.text, annotation.text, value, line);
        } else if (target.kind == Expression::Kind::List) {
            unpack(target, value, line);
        }
    }

    /// a, b, = fx_pytree.tree_flatten_spec(…): the parameters under other names.
    void unpack(const Expression& target, const Expression& value, std::size_t line) {
        const bool flattened =
            value.kind == Expression::Kind::Call &&
            python::pathOf(value.items[0]).find("tree_flatten") != std::string::npos;
        for (std::size_t i = 0; i < target.items.size(); ++i) {
            if (target.items[i].kind != Expression::Kind::Name) continue;
            Expression part;
            if (flattened) {
                if (i >= m_program.placeholders.size()) return;
                part.kind = Expression::Kind::Name;
                part.text = m_program.placeholders[i].name;
                if (part.text == target.items[i].text) continue;
            } else {
                part.kind = Expression::Kind::Item;
                part.items = {value, {}};
                part.items[1].kind = Expression::Kind::Integer;
                part.items[1].integer = static_cast<std::int64_t>(i);
                if (value.kind != Expression::Kind::Name) return;
            }
            m_statements.assign(target.items[i].text, {}, part, line);
        }
    }

    // --- the arguments of fx_graph_runnable ------------------------------------------------------

    /// reader.tensor(buf0, (512,), dtype=torch.int64), reader.symint(7), or the older list args.
    void argumentLine() {
        const bool list = m_parser.isName("args");
        const Expression statement = m_parser.expression();
        if (list) {
            if (m_parser.takeIf("=")) {
                const Expression all = m_parser.expression();
                if (all.kind == Expression::Kind::List && m_loaded.empty())
                    for (const Expression& item : all.items) m_loaded.push_back(described(item));
            }
        } else if (statement.kind == Expression::Kind::Call) {
            const std::string path = python::pathOf(statement.items[0]);
            if (path == "reader.tensor")
                m_loaded.push_back(tensor(statement));
            else if (path == "reader.symint" || path == "reader.const")
                m_loaded.push_back(number(statement));
        }
        m_parser.skipLine();
    }

    static LoadedArgument number(const Expression& call) {
        if (call.items.size() < 2 || call.items[1].kind != Expression::Kind::Integer) return {};
        return call.items[1].integer;
    }

    LoadedArgument tensor(const Expression& call) {
        Expression dtype;
        for (const auto& [name, value] : call.named)
            if (name == "dtype") dtype = value;
        if (call.items.size() < 3) return {};
        return specOf(call.items[2], dtype);
    }

    /// ((8, 3), (3, 1), torch.float32, 'cuda')
    LoadedArgument described(const Expression& item) {
        if (item.kind != Expression::Kind::List || item.items.size() < 3) return {};
        return specOf(item.items[0], item.items[2]);
    }

    LoadedArgument specOf(const Expression& sizes, const Expression& dtype) {
        TensorSpec spec{torch::dtypeFromTorch(python::pathOf(dtype)).value_or(DType::F32), {}};
        const auto add = [&](const Expression& size) {
            const int dim = static_cast<int>(spec.shape.size());
            const auto value = size.kind == Expression::Kind::Name
                                   ? m_symbols.evaluate(size.text, dim)
                                   : std::optional<std::int64_t>(size.integer);
            spec.shape.push_back(value.value_or(-1));
        };
        if (sizes.kind == Expression::Kind::List)
            std::ranges::for_each(sizes.items, add);
        else
            add(sizes);
        if (!torch::isReasonable(spec.shape)) m_parser.fail("an argument has an impossible size");
        return spec;
    }

    void giveLoaded() {
        for (std::size_t i = 0; i < m_program.placeholders.size() && i < m_loaded.size(); ++i) {
            torch::Placeholder& placeholder = m_program.placeholders[i];
            if (const auto* spec = std::get_if<TensorSpec>(&m_loaded[i]);
                spec != nullptr && !placeholder.spec && !placeholder.number)
                placeholder.spec = *spec;
            if (const auto* size = std::get_if<std::int64_t>(&m_loaded[i]);
                size != nullptr && !placeholder.spec && !placeholder.number)
                placeholder.number = *size;
        }
    }

    // --- the end ---------------------------------------------------------------------------------

    void finish() {
        const auto begins = [&](std::string_view prefix) {
            return std::ranges::any_of(m_program.placeholders, [&](const auto& placeholder) {
                return placeholder.name.starts_with(prefix);
            });
        };
        const bool typed = std::ranges::any_of(m_program.placeholders, [](const auto& placeholder) {
            return placeholder.spec || placeholder.number;
        });
        if (!typed && !m_program.placeholders.empty())
            throw InputError("the text does not say what shapes the graph's arguments have",
                             m_program.where,
                             "print the graph with its types (print_readable), or with load_args "
                             "(fx_graph_runnable)");
        m_program.backward = begins("tangents_");
        m_statements.finish(begins("primals_") && !m_program.backward);
        m_symbols.checkBindings(m_program.where);
        m_program.bindings = m_symbols.bindings();
        m_program.warnings = m_symbols.warnings();
        m_program.facts["nodes"] = fmt::format("{}", m_program.placeholders.size() + m_nodes + 1);
    }

    static constexpr std::size_t kStopEvery = 1024;
    static constexpr std::size_t kManyParameters = 4096; // beyond, duplicates are not looked for

    torch::Program m_program;
    python::Parser m_parser;
    torch::Symbols m_symbols;
    fx::Statements m_statements;
    const ImportOptions& m_options;
    std::vector<LoadedArgument> m_loaded;
    std::size_t m_nodes = 0;
    bool m_found = false, m_returned = false;
};

/// Graphs printed one after the other, counted by their classes.
std::size_t graphsIn(std::string_view text) {
    std::size_t count = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line = text.substr(at, end - at);
        if (line.starts_with("class ") && line.find("torch.nn.Module") != std::string_view::npos)
            ++count;
        at = end + 1;
    }
    return count;
}

} // namespace

Graph importFx(std::string_view text, const std::string& where, const ImportOptions& options) {
    torch::Program program = Reader(text, where, options).read();
    if (const std::size_t graphs = graphsIn(text); graphs > 1)
        program.warnings.push_back(
            fmt::format("The file holds {} graphs; the first one was read.", graphs));
    return torch::translate(std::move(program), "FX graph", options);
}

} // namespace shardlens
