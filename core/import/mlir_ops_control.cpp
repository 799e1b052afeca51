// SPDX-License-Identifier: Apache-2.0
// What is around the ops: calls, globals, loops, branches, sharding annotations. A loop whose
// number of turns can be told (a counter from a known start, by a known step, below a known limit)
// is unrolled, so that slices of stacked weights become the weights of a layer.
#include "core/error.h"
#include "core/import/mlir_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shardlens::mlir {

namespace {

/// The operand as it is: barriers, and views that change nothing.
void forward(Call& call, std::string_view) {
    std::vector<Value> values = call.values();
    values.resize(call.resultCount());
    call.setResults(std::move(values));
}

void callFunction(Call& call, std::string_view) {
    std::string_view symbol = call.op().symbol;
    if (symbol.empty()) symbol = call.op().attribute("callee", "decomposition");
    const auto& functions = call.builder().program().functions;
    const auto found = functions.find(symbolName(symbol));
    if (found == functions.end() || found->second.body == nullptr) return call.opaque();
    call.setResults(call.builder().call(found->second, call.values(), call.prefix(), call.op()));
}

/// "stablehlo.composite \"name\" %x {decomposition = @f}" is what its decomposition computes.
void composite(Call& call, std::string_view) {
    const auto& functions = call.builder().program().functions;
    const auto found = functions.find(symbolName(call.op().attribute("decomposition")));
    if (found == functions.end() || found->second.body == nullptr) return call.opaque();
    call.setResults(call.builder().call(found->second, call.values(), call.prefix(), call.op()));
}

/// A single block inside: its arguments stand for the operands.
void inlineRegion(Call& call, std::string_view) {
    const auto& regions = call.op().regions;
    if (regions.size() != 1 || regions[0].blocks.size() != 1 ||
        regions[0].blocks[0].arguments.size() != call.count())
        return call.opaque();
    const Block& body = regions[0].blocks[0];
    for (std::size_t i = 0; i < call.count(); ++i)
        call.scope().insert_or_assign(body.arguments[i].name, std::vector{call.values()[i]});
    call.setResults(call.builder().block(body, call.scope(), call.prefix()));
}

/// One device's program in the midst of that of all: its shapes would contradict those around it.
void manualComputation(Call& call, std::string_view) {
    call.builder().manualIsland();
    call.declaredResult(OpKind::Opaque, {}, call.inputs());
}

// --- globals and constants ----------------------------------------------------------------------

const Operation* globalOf(Call& call, std::string_view symbol) {
    const auto& globals = call.builder().program().globals;
    const auto found = globals.find(symbolName(symbol));
    return found == globals.end() ? nullptr : found->second;
}

/// Loads are late: the parameter is added where it is read first.
void loadGlobal(Call& call, std::string_view) {
    std::string_view symbol = call.op().symbol;
    if (symbol.empty()) symbol = call.op().attribute("global");
    if (symbol.empty()) return forward(call, {}); // through an address, which stands for it
    const Operation* global = globalOf(call, symbol);
    if (global == nullptr) call.fail(fmt::format("the global {} is not defined", symbol));
    call.setResults({Value{{}, global}});
}

/// IREE's tests write what a model is fed as constants that may not be folded.
void unfoldable(Call& call, std::string_view) {
    call.declaredResult(OpKind::Input, {}, {});
}

// --- branches and loops -------------------------------------------------------------------------

void branch(Call& call, std::string_view detail) {
    const auto index = call.count() > 0 && call.values()[0].tensors.size() == 1
                           ? call.knownScalar(0)
                           : std::nullopt;
    const auto& regions = call.op().regions;
    if (!index || regions.empty()) return call.opaque();
    const bool truth = detail == "if";
    const auto last = static_cast<std::int64_t>(regions.size()) - 1;
    std::int64_t chosen = truth ? (*index != 0 ? 0 : 1) : *index;
    if (chosen < 0 || chosen > last) chosen = last;
    const Region& region = regions[static_cast<std::size_t>(chosen)];
    if (region.blocks.size() != 1) return call.opaque();
    call.setResults(call.builder().block(region.blocks[0], call.scope(), call.prefix()));
}

const Operation* definitionOf(const Block& block, std::string_view name) {
    for (const Operation& op : block.operations)
        if (op.results.size() == 1 && op.results[0].name == name) return &op;
    return nullptr;
}

std::string_view withoutDialect(std::string_view name) {
    const auto dot = name.find('.');
    return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

/// A scalar integer constant of a block, or a known value from around it.
std::optional<std::int64_t> constantIn(Call& call, const Block& block, const ValueUse& use) {
    if (const Operation* op = definitionOf(block, use.name)) {
        if (withoutDialect(op->name) != "constant" || op->resultTypes.size() != 1)
            return std::nullopt;
        std::string_view text = op->attribute("value");
        if (text.empty()) text = op->positional(0);
        const Literal literal = readLiteral(text, op->resultTypes[0].spec.dtype, 1);
        const bool single = literal.ints && literal.ints->size() == 1;
        return single ? std::optional(literal.ints->front()) : std::nullopt;
    }
    const auto found = call.scope().find(use.name);
    if (found == call.scope().end() || use.index >= found->second.size()) return std::nullopt;
    const Value& value = found->second[use.index];
    if (value.tensors.size() != 1) return std::nullopt;
    const KnownInts* known = call.builder().known().ints(value.tensors.front());
    return known != nullptr && known->size() == 1 ? std::optional(known->front()) : std::nullopt;
}

struct Loop {
    const Block *condition = nullptr, *body = nullptr;
    std::vector<std::string_view> conditionNames, bodyNames;
};

std::optional<Loop> loopOf(const Operation& op) {
    if (op.regions.size() != 2 || op.regions[0].blocks.size() != 1 ||
        op.regions[1].blocks.size() != 1)
        return std::nullopt;
    Loop loop{&op.regions[0].blocks[0], &op.regions[1].blocks[0], op.loopNames, op.loopNames};
    const auto names = [](const Block& block, std::vector<std::string_view>& into) {
        if (block.arguments.empty()) return;
        into.clear();
        for (const BlockArgument& argument : block.arguments) into.push_back(argument.name);
    };
    names(*loop.condition, loop.conditionNames);
    names(*loop.body, loop.bodyNames);
    if (loop.conditionNames.size() != op.operands.size() ||
        loop.bodyNames.size() != op.operands.size())
        return std::nullopt;
    return loop;
}

/// Turns of "while (i < limit) { …; i = i + step }" with all three known.
std::optional<std::int64_t> turnsOf(Call& call, const Loop& loop) {
    const auto& test = loop.condition->operations;
    const auto& body = loop.body->operations;
    if (test.empty() || body.empty() || test.back().operands.size() != 1) return std::nullopt;
    const Operation* compare = definitionOf(*loop.condition, test.back().operands[0].name);
    if (compare == nullptr || withoutDialect(compare->name) != "compare" ||
        compare->operands.size() != 2)
        return std::nullopt;
    std::string_view direction = compare->attribute("comparison_direction");
    direction =
        direction.empty() ? compare->positional(0) : fieldOf(direction, "comparison_direction");
    const auto counter = std::ranges::find(loop.conditionNames, compare->operands[0].name);
    if (counter == loop.conditionNames.end()) return std::nullopt;
    const auto index = static_cast<std::size_t>(counter - loop.conditionNames.begin());
    const auto limit = constantIn(call, *loop.condition, compare->operands[1]);
    if (!limit || (direction != "LT" && direction != "LE")) return std::nullopt;
    if (body.back().operands.size() <= index) return std::nullopt;
    const Operation* next = definitionOf(*loop.body, body.back().operands[index].name);
    if (next == nullptr || withoutDialect(next->name) != "add" || next->operands.size() != 2)
        return std::nullopt;
    const bool first = next->operands[0].name == loop.bodyNames[index];
    if (!first && next->operands[1].name != loop.bodyNames[index]) return std::nullopt;
    const auto step = constantIn(call, *loop.body, next->operands[first ? 1 : 0]);
    const auto start =
        call.values()[index].tensors.size() == 1 ? call.knownScalar(index) : std::nullopt;
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    const auto sensible = [](std::int64_t value) { return value > -kMost && value < kMost; };
    if (!start || !step || *step < 1 || !sensible(*start) || !sensible(*step) || !sensible(*limit))
        return std::nullopt;
    const std::int64_t end = *limit + (direction == "LE" ? 1 : 0);
    return end <= *start ? 0 : (end - *start + *step - 1) / *step;
}

std::size_t sizeOf(const Block& block) {
    std::size_t size = block.operations.size();
    for (const Operation& op : block.operations)
        for (const Region& region : op.regions)
            for (const Block& inner : region.blocks) size += sizeOf(inner);
    return size;
}

void whileLoop(Call& call, std::string_view) {
    const auto loop = loopOf(call.op());
    const auto turns = loop ? turnsOf(call, *loop) : std::nullopt;
    constexpr std::int64_t kMostTurns = 4096;
    if (!turns || *turns > kMostTurns ||
        !call.builder().hasRoomFor(static_cast<double>(*turns) *
                                   static_cast<double>(sizeOf(*loop->body))))
        return call.opaque();
    std::vector<Value> values = call.values();
    for (std::int64_t turn = 0; turn < *turns; ++turn) {
        for (std::size_t i = 0; i < values.size(); ++i)
            call.scope().insert_or_assign(loop->bodyNames[i], std::vector{values[i]});
        std::vector<Value> next = call.builder().block(
            *loop->body, call.scope(), longerPrefix(call.prefix(), fmt::format("turn{}", turn)));
        if (next.size() != values.size()) call.fail("a turn of the loop loses values");
        values = std::move(next);
    }
    call.setResults(std::move(values));
}

// --- tuples -------------------------------------------------------------------------------------

void tuple(Call& call, std::string_view) {
    call.setResults({Value{call.inputs(), nullptr}});
}

void tupleElement(Call& call, std::string_view) {
    std::string_view text = call.op().attribute("index");
    if (text.empty()) text = call.op().positional(0);
    const auto index = readIntegers(text);
    const auto& elements =
        call.values().empty() ? std::vector<TensorId>{} : call.values()[0].tensors;
    if (!index || index->size() != 1 || index->front() < 0 ||
        index->front() >= static_cast<std::int64_t>(elements.size()))
        return call.opaque();
    call.alias(elements[static_cast<std::size_t>(index->front())]);
}

// --- sharding annotations -----------------------------------------------------------------------

/// A value that is the operand with another layout: an identity where the operand has one already.
TensorId relaid(Call& call) {
    const TensorId x = call.input(0);
    if (!call.builder().hasSharding(x)) return x;
    return call.step(OpKind::Elementwise, {{"function", std::string("identity")}}, {x});
}

/// sdy.sharding_constraint %x <@mesh, …>, and sdy's collectives with out_sharding=<…>.
void constrain(Call& call, std::string_view) {
    const Operation& op = call.op();
    std::string_view text = op.attribute("out_sharding", "sharding");
    for (const Attribute& attribute : op.attributes)
        if (text.empty() && attribute.name.empty() &&
            (attribute.value.starts_with("<") || attribute.value.starts_with("#sdy.sharding")))
            text = attribute.value;
    const TensorId x = relaid(call);
    if (!text.empty())
        call.builder().note(x, parseSdySharding(text, fmt::format("{}", op.name)), op);
    call.alias(x);
}

void customCall(Call& call, std::string_view) {
    std::string_view target = call.op().symbol;
    if (target.empty()) target = call.op().attribute("call_target_name");
    const auto isQuote = [](char c) { return c == '@' || c == '"'; };
    while (!target.empty() && isQuote(target.front())) target.remove_prefix(1);
    while (!target.empty() && isQuote(target.back())) target.remove_suffix(1);
    if (knownCustomCall(call, target)) return;
    if (target != "Sharding" || call.count() != 1) return call.opaque(target);
    call.alias(relaid(call)); // its "mhlo.sharding" is that of any operation
}

} // namespace

std::vector<Rule> controlRules() {
    std::vector<Rule> rules{
        {"call", callFunction},
        {"func.call", callFunction},
        {"sdy.manual_computation", manualComputation},
        {"sdy.named_computation", inlineRegion},
        {"sdy.sharding_constraint", constrain},
        {"sdy.reshard", constrain},
        {"sdy.all_gather", constrain},
        {"sdy.all_slice", constrain},
        {"sdy.all_reduce", constrain},
        {"sdy.all_to_all", constrain},
        {"sdy.reduce_scatter", constrain},
        {"sdy.collective_permute", constrain},
        {"sdy.replicated_to_unreduced", constrain},
        {"sdy.sharded_to_unreduced", constrain},
        {"sdy.propagation_barrier", forward},
        {"sdy.data_flow_edge", forward},
        {"sdy.sharding_group", forward},
        {"util.global.address", loadGlobal},
        {"util.global.load", loadGlobal},
        {"util.global.load.indirect", loadGlobal},
        {"flow.variable.load", loadGlobal},
        {"ml_program.global_load", loadGlobal},
        {"ml_program.global_load_const", loadGlobal},
        {"memref.get_global", loadGlobal},
        {"util.unfoldable_constant", unfoldable},
        {"util.optimization_barrier", forward},
    };
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kNames{{
        {"stablehlo.while", "mhlo.while"},
        {"stablehlo.custom_call", "mhlo.custom_call"},
    }};
    for (const auto& [stable, mhlo] : kNames) {
        const auto apply = stable == "stablehlo.while" ? whileLoop : customCall;
        rules.push_back({stable, apply});
        rules.push_back({mhlo, apply});
    }
    for (const std::string_view name : {"stablehlo.if", "mhlo.if"})
        rules.push_back({name, branch, "if"});
    for (const std::string_view name : {"stablehlo.case", "mhlo.case"})
        rules.push_back({name, branch, "case"});
    for (const std::string_view name :
         {"stablehlo.optimization_barrier", "mhlo.optimization_barrier"})
        rules.push_back({name, forward});
    for (const std::string_view name : {"stablehlo.composite", "mhlo.composite"})
        rules.push_back({name, composite});
    for (const std::string_view name : {"stablehlo.tuple", "mhlo.tuple"})
        rules.push_back({name, tuple});
    for (const std::string_view name : {"stablehlo.get_tuple_element", "mhlo.get_tuple_element"})
        rules.push_back({name, tupleElement});
    return rules;
}

} // namespace shardlens::mlir
