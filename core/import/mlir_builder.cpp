// SPDX-License-Identifier: Apache-2.0
// Scopes, calls and arguments. Arguments of main come first; a global becomes a parameter where it
// is read first, so that the ops of a layer stay together.
#include "core/import/mlir_builder.h"

#include "core/error.h"
#include "core/import/mlir_call.h"
#include "core/import/mlir_scanner.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shardlens::mlir {

namespace {

constexpr std::size_t kMostWork = 400'000; // operations after inlining and unrolling
constexpr std::size_t kMostCalls = 256;    // nested in each other

bool isTerminator(const Operation& op) {
    return op.name == "return" || op.name.ends_with(".return") || op.name.ends_with(".yield");
}

/// The part of a name after a dialect whose operations the tables know.
std::string_view shortName(std::string_view name) {
    if (name == "arith.constant") return "constant";
    for (const std::string_view dialect : {"stablehlo.", "mhlo.", "chlo."})
        if (name.starts_with(dialect)) return name.substr(dialect.size());
    return {};
}

} // namespace

std::string longerPrefix(const std::string& prefix, std::string_view part) {
    constexpr std::size_t kLongest = 128; // it is part of every name inside
    return prefix.size() + part.size() < kLongest ? fmt::format("{}{}/", prefix, part) : prefix;
}

namespace {

using Table = std::unordered_map<std::string_view, Rule>;

const Table& kinds() {
    static const Table table = [] {
        Table result;
        for (const auto& family : {elementwiseRules(), contractionRules(), movementRules(),
                                   reductionRules(), matrixRules(), collectiveRules()})
            for (const Rule& rule : family) result.emplace(rule.name, rule);
        return result;
    }();
    return table;
}

const Table& control() {
    static const Table table = [] {
        Table result;
        for (const Rule& rule : controlRules()) result.emplace(rule.name, rule);
        return result;
    }();
    return table;
}

} // namespace

Builder::Builder(const Module& module, const Program& program, const std::string& where,
                 const ImportOptions& options, std::set<std::size_t> trained)
    : m_module(module), m_program(program), m_where(where), m_options(options),
      m_trained(std::move(trained)) {
}

void Builder::fail(const Operation& at, const std::string& problem, const std::string& hint) const {
    throw InputError(fmt::format("{} in {}", problem, shardlens::inQuotes(at.name)),
                     m_where + ", " + placeOf(m_program.text, at.offset), hint);
}

void Builder::countWork(std::size_t operations, const Operation& at) {
    m_work += operations;
    if (m_work > kMostWork)
        fail(
            at,
            fmt::format("inlined and unrolled, the program has more than {} operations", kMostWork),
            "open a smaller part of it, or one with its loops kept");
    if (++m_steps % 256 == 0 && m_options.stop.stop_requested()) throw Cancelled();
}

bool Builder::hasRoomFor(double operations) const {
    return static_cast<double>(m_work) + operations <= static_cast<double>(kMostWork) / 2;
}

// --- values -------------------------------------------------------------------------------------

Value Builder::lookUp(const ValueUse& use, const Scope& scope, const Operation& at) {
    const auto found = scope.find(use.name);
    if (found == scope.end() || use.index >= found->second.size())
        fail(at, fmt::format("the value {} is not defined", shardlens::inQuotes(use.name)));
    return found->second[use.index];
}

void Builder::define(const Operation& op, Scope& scope, std::vector<Value> values) {
    if (values.size() != op.resultCount())
        fail(op,
             fmt::format("{} results are named, {} are given", op.resultCount(), values.size()));
    std::size_t next = 0;
    for (const ResultName& result : op.results) {
        std::vector<Value> group(
            std::make_move_iterator(values.begin() + std::ptrdiff_t(next)),
            std::make_move_iterator(values.begin() + std::ptrdiff_t(next + result.count)));
        next += result.count;
        scope.insert_or_assign(result.name, std::move(group));
    }
}

TensorId Builder::tensorOf(const Operation& global) {
    if (const auto known = m_globals.find(&global); known != m_globals.end()) return known->second;
    const Type type = typeOfGlobal(global);
    if (!type.isTensor()) fail(global, "the type of a global is no tensor");
    if (std::ranges::find(type.spec.shape, kDynamic) != type.spec.shape.end())
        fail(global, "a global has a dimension without a size");
    const bool isMutable = std::ranges::any_of(global.attributes, [](const Attribute& attribute) {
        return attribute.name == "is_mutable" ||
               (attribute.name.empty() && attribute.value == "mutable");
    });
    const OpKind kind = isMutable                  ? OpKind::Input
                        : isFloat(type.spec.dtype) ? OpKind::Parameter
                                                   : OpKind::Constant;
    const std::string name = global.symbol.empty() ? std::string(global.attribute("sym_name"))
                                                   : std::string(global.symbol);
    const OpId id = m_graph.addOp(
        {cleaned(symbolName(name)), kind, std::string(global.name), {}, {}, {}}, {type.spec});
    return m_globals[&global] = m_graph.op(id).outputs.front();
}

std::vector<Value> Builder::call(const Function& function, const std::vector<Value>& arguments,
                                 const std::string& prefix, const Operation& at) {
    if (std::ranges::find(m_calls, function.name) != m_calls.end())
        fail(at, fmt::format("the function {} calls itself", shardlens::inQuotes(function.name)),
             "recursion cannot be drawn as a graph");
    if (m_calls.size() >= kMostCalls) fail(at, "calls nest too deeply");
    const Block& body = *function.body;
    if (body.arguments.size() != arguments.size())
        fail(at, fmt::format("the function {} takes {} arguments, not {}",
                             shardlens::inQuotes(function.name), body.arguments.size(),
                             arguments.size()));
    Scope scope;
    for (std::size_t i = 0; i < arguments.size(); ++i)
        scope.insert_or_assign(body.arguments[i].name, std::vector{arguments[i]});
    m_calls.push_back(function.name);
    std::vector<Value> results =
        block(body, scope, longerPrefix(prefix, cleaned(function.name.substr(0, 64))));
    m_calls.pop_back();
    return results;
}

std::vector<Value> Builder::block(const Block& block, Scope& scope, const std::string& prefix) {
    for (const Operation& op : block.operations) {
        if (isTerminator(op)) {
            std::vector<Value> results;
            countWork(1 + op.operands.size() / 16, op);
            for (const ValueUse& use : op.operands) results.push_back(lookUp(use, scope, op));
            return results;
        }
        operation(op, scope, prefix);
    }
    return {};
}

void Builder::operation(const Operation& op, Scope& scope, const std::string& prefix) {
    Call call(*this, op, scope, prefix);
    const auto controlled = control().find(op.name);
    const auto known = kinds().find(shortName(op.name));
    if (controlled != control().end()) {
        controlled->second.apply(call, controlled->second.detail);
    } else if (known != kinds().end()) {
        try {
            known->second.apply(call, known->second.detail);
        } catch (const InputError&) { // attributes this reader does not expect
            misfit(op.name);
            call.opaque();
        }
    } else if (op.resultCount() == 0) {
        const std::vector<TensorId> inputs = call.inputs();
        m_sinks.insert(m_sinks.end(), inputs.begin(), inputs.end());
    } else {
        call.opaque();
    }
    std::vector<Value> values = call.takeResults();
    std::size_t i = 0;
    if (const std::string_view text = op.attribute("sdy.sharding"); !text.empty())
        for (const SdySharding& sharding : parseSdyShardings(text, m_where))
            if (i++ < values.size() && values[i - 1].tensors.size() == 1)
                note(values[i - 1].tensors.front(), sharding, op);
    if (const std::string_view text = op.attribute("mhlo.sharding");
        !text.empty() && values.size() == 1 && values[0].tensors.size() == 1)
        noteMhlo(values[0].tensors.front(), text);
    define(op, scope, std::move(values));
}

// --- the graph ----------------------------------------------------------------------------------

std::int64_t Builder::bind(const std::string& argument, std::size_t dim, const TensorSpec& spec) {
    const std::string name = fmt::format("{}.dim{}", argument, dim);
    const bool tokens = !isFloat(spec.dtype) || spec.shape.size() > 2;
    std::int64_t size = dim == 0 ? m_options.batch : dim == 1 && tokens ? m_options.sequence : 1;
    if (const auto bound = m_options.bindings.find(name); bound != m_options.bindings.end())
        size = bound->second;
    else
        m_guessed.insert(name);
    if (size < 1 || size > (std::int64_t{1} << 30))
        throw InputError(fmt::format("the size {} of {} is out of range", size, name), m_where,
                         "choose another size");
    return m_bindings[name] = size;
}

Value Builder::argument(const BlockArgument& argument, std::size_t index, const Function& main) {
    std::string name = index < main.body->arguments.size()
                           ? locationName(m_module, main.body->arguments[index].location)
                           : std::string();
    if (name.empty()) name = fmt::format("arg{}", index);
    const auto add = [&](TensorSpec spec) {
        const TensorSpec written = spec;
        for (std::size_t d = 0; d < spec.shape.size(); ++d)
            if (spec.shape[d] == kDynamic) spec.shape[d] = bind(name, d, written);
        if (elementsOf(spec.shape) > 4.0e18)
            throw InputError(fmt::format("the argument {} is too large", shardlens::inQuotes(name)),
                             m_where, "bind smaller sizes");
        const OpKind kind = m_trained.contains(index) ? OpKind::Parameter : OpKind::Input;
        const OpId id = m_graph.addOp({name, kind, "argument", {}, {}, {}}, {std::move(spec)});
        return m_graph.op(id).outputs.front();
    };
    Value value;
    if (argument.type.isTensor()) value.tensors.push_back(add(argument.type.spec));
    for (const Type& element : argument.type.elements)
        if (element.isTensor()) value.tensors.push_back(add(element.spec));
    if (m_arguments.size() <= index) m_arguments.resize(index + 1, kNoTensor);
    if (argument.type.isTensor()) m_arguments[index] = value.tensors.front();
    return value;
}

void Builder::buildGlobal(const Function& main) {
    const Block& body = *main.body;
    Scope scope;
    const Operation& at = *main.op;
    for (std::size_t i = 0; i < body.arguments.size(); ++i) {
        Value value = argument(body.arguments[i], i, main);
        const auto& attributes = main.argumentAttributes[i];
        if (const auto text = valueOf(attributes, "sdy.sharding");
            !text.empty() && value.tensors.size() == 1)
            note(value.tensors.front(), parseSdySharding(text, m_where), at);
        if (const auto text = valueOf(attributes, "mhlo.sharding");
            !text.empty() && value.tensors.size() == 1)
            noteMhlo(value.tensors.front(), text);
        scope.insert_or_assign(body.arguments[i].name, std::vector{std::move(value)});
    }
    outputs(block(body, scope, {}));
}

/// main as one sdy.manual_computation: what is inside is the program of one device.
bool Builder::buildManual(const Function& main) {
    const std::vector<Operation>& operations = main.body->operations;
    if (operations.size() != 2 || operations[0].name != "sdy.manual_computation" ||
        !isTerminator(operations[1]))
        return false;
    const Operation& manual = operations[0];
    if (manual.regions.size() != 1 || manual.regions[0].blocks.size() != 1) return false;
    const Block& body = manual.regions[0].blocks[0];
    const auto& given = main.body->arguments;
    if (body.arguments.size() != manual.operands.size() || manual.results.size() != 1) return false;
    const auto in = parseSdyShardings(manual.attribute("in_shardings"), m_where);
    const auto out = parseSdyShardings(manual.attribute("out_shardings"), m_where);
    if (in.size() != body.arguments.size()) return false;
    m_local = true;
    Scope scope;
    for (std::size_t i = 0; i < body.arguments.size(); ++i) {
        const auto found = std::ranges::find(given, manual.operands[i].name, &BlockArgument::name);
        if (found == given.end())
            fail(manual, fmt::format("the value {} is not defined",
                                     shardlens::inQuotes(manual.operands[i].name)));
        Value value = argument(body.arguments[i], std::size_t(found - given.begin()), main);
        if (value.tensors.size() == 1) note(value.tensors.front(), in[i], manual);
        scope.insert_or_assign(body.arguments[i].name, std::vector{std::move(value)});
    }
    const std::vector<Value> results = block(body, scope, {});
    for (std::size_t i = 0; i < std::min(results.size(), out.size()); ++i)
        if (results[i].tensors.size() == 1 && !hasSharding(results[i].tensors.front()))
            note(results[i].tensors.front(), out[i], manual);
    outputs(results);
    const std::string_view cut = manual.attribute("manual_axes");
    if (const auto mesh = m_program.meshes.find(m_meshName); mesh != m_program.meshes.end())
        for (const PartitionAxis& axis : mesh->second.axes)
            if (axis.size > 1 && cut.find("\"" + axis.name + "\"") == std::string_view::npos)
                m_freeAxes.push_back(axis.name);
    return true;
}

void Builder::outputs(const std::vector<Value>& values) {
    for (Value value : values) {
        if (value.global != nullptr) value.tensors = {tensorOf(*value.global)};
        for (const TensorId id : value.tensors) m_graph.markOutput(id);
    }
    if (m_graph.outputs().empty())
        for (const TensorId id : m_sinks) m_graph.markOutput(id);
}

void Builder::checkBindings() const {
    for (const auto& [name, size] : m_options.bindings)
        if (!m_bindings.contains(name)) {
            std::vector<std::string> known;
            for (const auto& [bound, value] : m_bindings) known.push_back(bound);
            throw InputError(
                fmt::format("there is no dimension called {}", shardlens::inQuotes(name)), m_where,
                known.empty() ? "all sizes of this program are fixed"
                              : fmt::format("sizes can be given for {}", fmt::join(known, ", ")));
        }
}

Graph Builder::build() {
    const Function& main = m_program.main(m_where);
    m_calls.push_back(main.name);
    if (!buildManual(main)) buildGlobal(main);
    checkBindings();
    if (m_graph.outputs().empty())
        throw InputError("the function computes nothing", m_where, "open the whole program");
    addPartition();
    m_graph.bindings = m_bindings;
    m_graph.format = "StableHLO (MLIR text)";
    addFacts();
    addWarnings();
    return std::move(m_graph);
}

} // namespace shardlens::mlir
