// SPDX-License-Identifier: Apache-2.0
// See fx_statements.h.
#include "core/import/fx_statements.h"

#include "core/import/torch_translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

namespace shardlens::fx {

using python::Expression;
using torch::Call;
using torch::Value;

// --- annotations --------------------------------------------------------------------------------

namespace {

std::string_view trimmed(std::string_view text) {
    const auto begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// Splits at commas outside parentheses.
std::vector<std::string_view> splitDims(std::string_view text) {
    std::vector<std::string_view> parts;
    if (trimmed(text).empty()) return parts;
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        if (i < text.size() && text[i] == '(') ++depth;
        if (i < text.size() && text[i] == ')') --depth;
        if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
        parts.push_back(trimmed(text.substr(begin, i - begin)));
        begin = i + 1;
    }
    return parts;
}

} // namespace

std::optional<Annotation> parseAnnotation(std::string_view text) {
    text = trimmed(text);
    Annotation result;
    if (text.starts_with("Sym(") && text.ends_with(")")) {
        result.symbol = text.substr(4, text.size() - 5);
        return result;
    }
    const auto bracket = text.find('[');
    if (bracket == std::string_view::npos) return std::nullopt;
    result.dtype = torch::dtypeFromFx(text.substr(0, bracket));
    const auto end = text.find(']', bracket);
    if (!result.dtype || end == std::string_view::npos) return std::nullopt;
    result.dims = splitDims(text.substr(bracket + 1, end - bracket - 1));
    if (result.dims.size() > torch::kMaxRank) return std::nullopt;
    return result;
}

std::optional<TensorSpec> Annotation::spec(torch::Symbols& symbols) const {
    if (!dtype) return std::nullopt;
    TensorSpec result{*dtype, {}};
    for (std::size_t d = 0; d < dims.size(); ++d) {
        const auto size = symbols.evaluate(dims[d], static_cast<int>(d));
        if (!size) return std::nullopt;
        result.shape.push_back(*size);
    }
    if (!torch::isReasonable(result.shape)) return std::nullopt;
    return result;
}

// --- expressions --------------------------------------------------------------------------------

namespace {

/// Name of the operator that Python's sign stands for.
std::string_view operatorName(std::string_view sign) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kNames{{
        {"+", "add"},
        {"-", "sub"},
        {"*", "mul"},
        {"/", "truediv"},
        {"//", "floordiv"},
        {"%", "mod"},
        {"**", "pow"},
        {"@", "matmul"},
        {"==", "eq"},
        {"!=", "ne"},
        {"<", "lt"},
        {">", "gt"},
        {"<=", "le"},
        {">=", "ge"},
        {"&", "and_"},
        {"|", "or_"},
    }};
    const auto found = std::ranges::find(kNames, sign, &decltype(kNames)::value_type::first);
    return found == kNames.end() ? "xor" : found->second;
}

/// The operator that a function of torch's modules stands for: torch.nn.functional.gelu,
/// torch._C._nn.linear, operator.mul, math.sqrt.
std::string targetOf(const std::string& path) {
    constexpr std::string_view kOps = "torch.ops.";
    if (path.starts_with(kOps)) return path.substr(kOps.size());
    const auto dot = path.rfind('.');
    const std::string last = dot == std::string::npos ? path : path.substr(dot + 1);
    if (path.starts_with("torch.")) return "aten." + last;
    for (const std::string_view space : {"operator.", "_operator."})
        if (path.starts_with(space)) return "operator." + last;
    return dot == std::string::npos ? "builtins." + path : path;
}

} // namespace

Call Statements::makeCall(std::string target, std::size_t line) const {
    Call call;
    call.target = std::move(target);
    call.scope = m_scope;
    call.line = line;
    return call;
}

Value Statements::emit(Call call) {
    if (call.name.empty()) call.name = fmt::format("_{}", m_temporaries++);
    m_known.insert(call.name);
    Value name = Value::ofName(call.name);
    m_program.calls.push_back(std::move(call));
    return name;
}

bool Statements::isVariable(const std::string& path) const {
    return m_known.contains(path.substr(0, path.find('.')));
}

/// Values that look like calls: device(type='cuda'), float('inf'), slice(0, 4).
std::optional<Value> Statements::lowerSpecial(const std::string& path, const Expression& call,
                                              std::size_t line) {
    if (path == "device" || path == "torch.device" || path == "torch.memory_format")
        return Value::ofText("device");
    if (path == "float" && call.items.size() == 2 && call.items[1].kind == Expression::Kind::Text) {
        constexpr double kInfinity = std::numeric_limits<double>::infinity();
        return Value::ofReal(call.items[1].text.starts_with("-") ? -kInfinity : kInfinity);
    }
    if (path != "slice") return std::nullopt;
    std::vector<Value> parts{Value::ofText("slice")};
    for (std::size_t i = 1; i < call.items.size(); ++i) parts.push_back(lower(call.items[i], line));
    return Value::ofList(std::move(parts));
}

/// Makes `call` the call that an expression is; false if the expression is a plain value.
bool Statements::fill(const Expression& expression, Call& call) {
    const auto argument = [&](const Expression& item) {
        call.arguments.push_back({{}, lower(item, call.line)});
    };
    switch (expression.kind) {
    case Expression::Kind::Call: {
        const Expression& callee = expression.items[0];
        const std::string path = python::pathOf(callee);
        const bool method = callee.kind == Expression::Kind::Attribute &&
                            (path.empty() || (isVariable(path) && !path.starts_with("self.")));
        if (method) {
            call.target = "aten." + callee.text;
            argument(callee.items[0]);
        } else {
            call.target = path.empty() ? "call" : targetOf(path);
        }
        for (std::size_t i = 1; i < expression.items.size(); ++i) argument(expression.items[i]);
        for (const auto& [name, value] : expression.named)
            call.arguments.push_back({name, lower(value, call.line)});
        return true;
    }
    case Expression::Kind::Item:
        call.target = "operator.getitem";
        argument(expression.items[0]);
        argument(expression.items[1]);
        return true;
    case Expression::Kind::Binary:
        call.target = fmt::format("operator.{}", operatorName(expression.text));
        argument(expression.items[0]);
        argument(expression.items[1]);
        return true;
    case Expression::Kind::Unary:
        call.target = expression.text == "-" ? "aten.neg" : "aten.bitwise_not";
        argument(expression.items[0]);
        return true;
    case Expression::Kind::Attribute: {
        const std::string path = python::pathOf(expression);
        if (path.starts_with("self.")) {
            call.target = "get_attr";
            call.arguments.push_back({{}, Value::ofText(path.substr(5))});
            return true;
        }
        if (!path.empty() && !isVariable(path)) return false; // torch.float32
        call.target = "aten." + expression.text;
        argument(expression.items[0]);
        return true;
    }
    default:
        return false;
    }
}

Value Statements::lower(const Expression& expression, std::size_t line) {
    switch (expression.kind) {
    case Expression::Kind::None:
        return {};
    case Expression::Kind::Boolean:
        return Value::ofBoolean(expression.integer != 0);
    case Expression::Kind::Integer:
        return Value::ofInteger(expression.integer);
    case Expression::Kind::Real:
        return Value::ofReal(expression.real);
    case Expression::Kind::Text:
        return Value::ofText(expression.text);
    case Expression::Kind::Name:
        return m_known.contains(expression.text) ? Value::ofName(expression.text)
                                                 : Value::ofText(expression.text);
    case Expression::Kind::List: {
        std::vector<Value> items;
        for (const Expression& item : expression.items) items.push_back(lower(item, line));
        return Value::ofList(std::move(items));
    }
    case Expression::Kind::Call:
        if (auto special = lowerSpecial(python::pathOf(expression.items[0]), expression, line))
            return std::move(*special);
        break;
    default:
        break;
    }
    Call call = makeCall({}, line);
    if (!fill(expression, call)) return Value::ofText(python::pathOf(expression));
    return emit(std::move(call));
}

// --- statements ---------------------------------------------------------------------------------

void Statements::assign(const std::string& name, std::string_view annotation,
                        const Expression& expression, std::size_t line) {
    if (const auto type = parseAnnotation(annotation)) {
        if (!type->symbol.empty()) { // a size: its value is known, whatever computes it
            if (const auto size = m_symbols.evaluate(type->symbol)) {
                Call call = makeCall("operator.same", line);
                call.name = name;
                call.arguments.push_back({{}, Value::ofInteger(*size)});
                emit(std::move(call));
                return;
            }
        }
        m_specs.insert_or_assign(name, type->spec(m_symbols));
    }
    Call call = makeCall({}, line);
    const bool special = expression.kind == Expression::Kind::Call &&
                         lowerSpecial(python::pathOf(expression.items[0]), expression, line);
    if (special || !fill(expression, call)) {
        call.target = "operator.same";
        call.arguments.push_back({{}, lower(expression, line)});
    }
    call.name = name;
    emit(std::move(call));
}

void Statements::returned(const Expression& expression, std::size_t line) {
    Value value = lower(expression, line);
    if (value.kind == Value::Kind::List)
        std::ranges::move(value.items, std::back_inserter(m_program.outputs));
    else
        m_program.outputs.push_back(std::move(value));
}

namespace {

void collectNames(const Value& value, std::unordered_set<std::string>& names) {
    if (value.kind == Value::Kind::Name) names.insert(value.text);
    for (const Value& item : value.items) collectNames(item, names);
}

constexpr std::int64_t kMostResults = 4096; // of one call

/// Drops what a forward pass keeps for its backward pass: it follows the outputs and, as weights
/// are kept first, begins with a placeholder.
void dropKept(torch::Program& program) {
    std::unordered_set<std::string_view> placeholders;
    for (const torch::Placeholder& placeholder : program.placeholders)
        placeholders.insert(placeholder.name);
    auto& outputs = program.outputs;
    if (outputs.empty()) return;
    const auto kept = std::find_if(outputs.begin() + 1, outputs.end(), [&](const Value& output) {
        return output.kind == Value::Kind::Name && placeholders.contains(output.text);
    });
    if (kept == outputs.end()) return;
    program.facts["kept for the backward pass"] = fmt::format("{}", outputs.end() - kept);
    outputs.erase(kept, outputs.end());
}

} // namespace

void Statements::finish(bool trainingForward) {
    if (trainingForward) dropKept(m_program);
    std::unordered_set<std::string> read;
    for (const Call& call : m_program.calls)
        for (const torch::Argument& argument : call.arguments) collectNames(argument.value, read);
    for (const Value& output : m_program.outputs) collectNames(output, read);
    // What getitem takes apart: the results have the names of those that take them.
    std::unordered_map<std::string, std::size_t> callOf;
    std::unordered_map<std::string, std::vector<std::pair<std::int64_t, std::string>>> parts;
    for (std::size_t i = 0; i < m_program.calls.size(); ++i) {
        const Call& call = m_program.calls[i];
        callOf.insert_or_assign(call.name, i);
        if (call.target != "operator.getitem") continue;
        const Value &whole = call.arguments[0].value, &at = call.arguments[1].value;
        if (whole.kind == Value::Kind::Name && at.kind == Value::Kind::Integer && at.integer >= 0 &&
            at.integer < kMostResults)
            parts[whole.text].emplace_back(at.integer, call.name);
    }
    const auto resultOf = [&](const std::string& name) {
        torch::Result result{name, std::nullopt, read.contains(name)};
        if (const auto spec = m_specs.find(name); spec != m_specs.end()) result.spec = spec->second;
        return result;
    };
    for (Call& call : m_program.calls) {
        const auto taken = parts.find(call.name);
        const bool indexed = taken != parts.end() && !m_specs.contains(call.name);
        call.tuple = torch::givesTuple(call.target, indexed);
        if (!call.tuple) {
            call.results = {resultOf(call.name)};
            continue;
        }
        for (const auto& [at, name] : taken->second) {
            const auto place = static_cast<std::size_t>(at);
            if (call.results.size() <= place) call.results.resize(place + 1);
            torch::Result result = resultOf(name);
            torch::Result& known = call.results[place];
            result.wanted = result.wanted || known.wanted;
            if (!result.spec) result.spec = known.spec;
            known = std::move(result);
        }
    }
}

} // namespace shardlens::fx
