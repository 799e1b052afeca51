// SPDX-License-Identifier: Apache-2.0
// The frame around the tables: names and what they stand for, placeholders, outputs, and what the
// import has to say about itself.
#include "core/error.h"
#include "core/import/text.h"
#include "core/import/torch_symbols.h"
#include "core/import/torch_translation.h"
#include "core/model/merged_dims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>

namespace shardlens::torch {

namespace {

const Rule* ruleFor(std::string_view target) {
    static const std::unordered_map<std::string_view, Rule> rules = [] {
        std::unordered_map<std::string_view, Rule> all;
        for (auto family : {contractionRules, elementwiseRules, movementRules, lookupRules,
                            reductionRules, sourceRules, collectiveRules})
            for (const Rule& rule : family()) all.emplace(rule.base, rule);
        return all;
    }();
    const Target parts = split(target);
    constexpr std::string_view kSpaces[] = {
        "",     "aten",  "prims",    "apex",  "operator",         "_c10d_functional_autograd",
        "math", "torch", "builtins", "quack", "_c10d_functional", "c10d_functional",
        "c10d"};
    if (std::ranges::find(kSpaces, parts.space) == std::ranges::end(kSpaces)) return nullptr;
    if (const auto found = rules.find(parts.base); found != rules.end()) return &found->second;
    // add_ is add in place; names that begin with "__" are Python's.
    if (!parts.base.ends_with("_") || parts.base.ends_with("__")) return nullptr;
    const auto found = rules.find(parts.base.substr(0, parts.base.size() - 1));
    return found == rules.end() ? nullptr : &found->second;
}

constexpr std::size_t kMaxItems = std::size_t{1} << 20; ///< of a list that is copied about

std::size_t itemsOf(const Value& value) {
    std::size_t count = 1;
    for (const Value& item : value.items) count += itemsOf(item);
    return count;
}

} // namespace

bool isKnown(std::string_view target) {
    return ruleFor(target) != nullptr;
}

bool givesTuple(std::string_view target, bool indexed) {
    const Rule* rule = ruleFor(target);
    return rule == nullptr ? indexed : rule->tuple && indexed;
}

Builder::Builder(const Program& program, const ImportOptions& options)
    : m_program(program), m_options(options) {
}

std::string Builder::where(std::size_t line) const {
    return fmt::format("{}, {} {}", m_program.where, m_program.lineWord, line);
}

void Builder::define(const std::string& name, Value value) {
    if (!name.empty()) m_names.insert_or_assign(name, std::move(value));
}

Value Builder::resolve(const Value& value, std::size_t line) const {
    if (value.kind == Value::Kind::Name) {
        const auto found = m_names.find(value.text);
        if (found != m_names.end()) return found->second;
        throw InputError(
            fmt::format("{} is read but nothing before gives it", shardlens::inQuotes(value.text)),
            where(line), "print the graph again; the file may be cut off or edited");
    }
    if (value.kind != Value::Kind::List) return value;
    Value result = value;
    for (Value& item : result.items) item = resolve(item, line);
    return result;
}

void Builder::setResult(const Call& call, std::size_t port, TensorId tensor) {
    if (!call.tuple && port == 0) return define(call.name, Value::ofTensor(tensor));
    Value& whole = m_names[call.name];
    if (whole.kind != Value::Kind::List)
        whole = Value::ofList(port == 0 ? std::vector<Value>{} : std::vector<Value>{whole});
    if (whole.items.size() <= port) whole.items.resize(port + 1);
    whole.items[port] = Value::ofTensor(tensor);
    if (port < call.results.size()) define(call.results[port].name, whole.items[port]);
}

void Builder::noteCollective(std::string function, const std::string& group, std::int64_t size) {
    ++m_collectives[std::move(function)];
    std::int64_t& known = m_groups[group];
    known = std::max(known, size);
}

void Builder::addPlaceholders() {
    for (const Placeholder& placeholder : m_program.placeholders) {
        if (placeholder.number) {
            define(placeholder.name, Value::ofInteger(*placeholder.number));
            continue;
        }
        if (!placeholder.spec) { // None, or something that is no tensor
            define(placeholder.name, Value{});
            continue;
        }
        Op op;
        op.name = placeholder.name;
        op.type = "placeholder";
        op.kind = placeholder.role == Role::Parameter ? OpKind::Parameter
                  : placeholder.role == Role::Buffer  ? OpKind::Constant
                                                      : OpKind::Input;
        const OpId id = m_graph.addOp(std::move(op), {*placeholder.spec});
        define(placeholder.name, Value::ofTensor(m_graph.op(id).outputs[0]));
    }
}

void Builder::translateCall(const Call& call, Translation& translation) {
    const Rule* rule = ruleFor(call.target);
    if (rule == nullptr) return translation.opaque();
    try {
        rule->translate(translation, rule->function);
    } catch (const Unfit& unfit) {
        translation.opaque(unfit.reason);
    }
}

void Builder::addCall(const Call& call) {
    std::vector<Argument> arguments;
    std::size_t items = 0;
    for (const Argument& argument : call.arguments) {
        arguments.push_back({argument.name, resolve(argument.value, call.line)});
        items += itemsOf(arguments.back().value);
        if (items > kMaxItems)
            throw InputError("a call has more arguments than can be read", where(call.line),
                             "the file is no graph of a model");
    }
    Translation translation(*this, call, std::move(arguments));
    translateCall(call, translation);
}

void Builder::markOutputs() {
    std::unordered_set<TensorId> seen;
    const auto mark = [&](const Value& value) {
        if (value.kind != Value::Kind::Tensor) return;
        if (seen.insert(value.tensor).second) m_graph.markOutput(value.tensor);
    };
    for (const Value& output : m_program.outputs) {
        const Value value = resolve(output, 0);
        if (value.kind == Value::Kind::List)
            std::ranges::for_each(value.items, mark);
        else
            mark(value);
    }
    m_graph.facts["outputs"] = fmt::format("{}", seen.size());
}

void Builder::addFacts() {
    std::map<std::string, std::size_t> calls;
    for (const Call& call : m_program.calls) ++calls[cleaned(call.target)];
    constexpr std::size_t kMostTargets = 500;
    for (const auto& [target, count] : calls)
        if (calls.size() <= kMostTargets && target != "operator.getitem" && target != "get_attr")
            m_graph.facts.emplace("calls of " + target, fmt::format("{}", count));
    std::size_t total = 0;
    for (const auto& [function, count] : m_collectives) {
        m_graph.facts.emplace("collectives " + function, fmt::format("{}", count));
        total += count;
    }
    m_graph.facts.emplace("collectives", fmt::format("{}", total));
    m_graph.facts.emplace("placeholders", fmt::format("{}", m_program.placeholders.size()));
}

void Builder::addPartition() {
    if (m_collectives.empty()) return;
    Partition partition;
    partition.madeBy = "PyTorch";
    partition.local = true;
    for (const auto& [group, size] : m_groups) {
        if (size <= 1) continue;
        partition.mesh.push_back({"group " + group, size});
        partition.devices = partition.devices > (std::int64_t{1} << 31) / size
                                ? partition.devices
                                : partition.devices * size;
    }
    m_graph.partition = std::move(partition);
}

void Builder::addWarnings() {
    m_graph.warnings = m_program.warnings;
    const auto list = [](const std::map<std::string, std::size_t>& counts) {
        constexpr std::size_t kShown = 12;
        std::vector<std::string> parts;
        for (const auto& [target, count] : counts) {
            if (parts.size() == kShown) {
                parts.push_back(fmt::format("{} more", counts.size() - kShown));
                break;
            }
            parts.push_back(fmt::format("{} × {}", count, cleaned(target)));
        }
        return fmt::format("{}", fmt::join(parts, ", "));
    };
    if (!m_opaque.empty())
        m_graph.warnings.push_back(fmt::format(
            "Not understood, so opaque and replicated on every device: {}.", list(m_opaque)));
    if (!m_mismatched.empty())
        m_graph.warnings.push_back(
            fmt::format("Understood only in simpler forms, so opaque and replicated on every "
                        "device: {}.",
                        list(m_mismatched)));
}

Graph Builder::run() {
    addPlaceholders();
    constexpr std::size_t kStopEvery = 256;
    for (std::size_t i = 0; i < m_program.calls.size(); ++i) {
        if (i % kStopEvery == 0 && m_options.stop.stop_requested()) throw Cancelled();
        addCall(m_program.calls[i]);
    }
    m_graph.facts = m_program.facts;
    m_graph.bindings = m_program.bindings;
    m_graph.backwardIncluded = m_program.backward;
    markOutputs();
    addFacts();
    addPartition();
    addWarnings();
    return std::move(m_graph);
}

Graph translate(Program program, std::string_view format, const ImportOptions& options) {
    assignRoles(program);
    Graph graph = withMergedDimsApart(Builder(program, options).run());
    graph.format = format;
    return graph;
}

} // namespace shardlens::torch
