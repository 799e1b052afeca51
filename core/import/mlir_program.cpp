// SPDX-License-Identifier: Apache-2.0
// Symbols may be written in pretty or generic form; both are looked at here and nowhere else.
#include "core/import/mlir_program.h"

#include "core/error.h"
#include "core/import/mlir_attributes.h"
#include "core/import/mlir_scanner.h"
#include "core/import/mlir_types.h"
#include "core/import/text.h"

#include <algorithm>
#include <array>

namespace shardlens::mlir {

namespace {

std::string_view unquoted(std::string_view text) {
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
        return text.substr(1, text.size() - 2);
    return text;
}

std::string_view symbolOf(const Operation& op) {
    return op.symbol.empty() ? unquoted(op.attribute("sym_name")) : symbolName(op.symbol);
}

std::vector<std::vector<Attribute>> argumentAttributes(const Operation& op, const Block* body) {
    std::vector<std::vector<Attribute>> result;
    if (body == nullptr) return result;
    for (const BlockArgument& argument : body->arguments) result.push_back(argument.attributes);
    const std::string_view list = op.attribute("arg_attrs");
    if (!list.starts_with("[")) return result;
    Scanner scan(list, "arg_attrs");
    scan.accept("[");
    for (auto& attributes : result) {
        if (scan.peek() != '{') break;
        attributes = fieldsOf(scan.group());
        scan.accept(",");
    }
    return result;
}

void addFunction(Program& program, const Operation& op) {
    Function function;
    function.op = &op;
    function.name = symbolOf(op);
    if (op.regions.size() == 1 && op.regions[0].blocks.size() == 1)
        function.body = &op.regions[0].blocks[0];
    function.isPublic = unquoted(op.attribute("sym_visibility")) != "private" &&
                        unquoted(op.attribute("sym_visibility")) != "nested";
    function.argumentAttributes = argumentAttributes(op, function.body);
    if (program.functions.try_emplace(function.name, function).second)
        program.functionOrder.push_back(function.name);
}

std::int64_t numberOf(const Operation& op, std::string_view name) {
    const auto value = readIntegers(op.attribute(name));
    constexpr std::int64_t kMost = std::int64_t{1} << 20;
    return value && value->size() == 1 ? std::clamp<std::int64_t>(value->front(), 1, kMost) : 1;
}

void addMesh(Program& program, const Operation& op, const std::string& where) {
    std::string_view text = op.attribute("mesh");
    if (text.empty()) text = op.positional(0);
    program.meshes.try_emplace(std::string(symbolOf(op)), parseSdyMesh(text, where));
}

void collect(Program& program, const std::vector<Operation>& operations, const std::string& where) {
    for (const Operation& op : operations) {
        if (op.name == "func.func") {
            addFunction(program, op);
        } else if (op.name == "sdy.mesh") {
            addMesh(program, op, where);
        } else if (isGlobal(op)) {
            program.globals.try_emplace(symbolOf(op), &op);
        } else if (op.name.ends_with("module")) {
            for (const Region& region : op.regions)
                for (const Block& block : region.blocks) collect(program, block.operations, where);
        }
    }
}

} // namespace

bool isGlobal(const Operation& op) {
    constexpr std::array<std::string_view, 4> kNames{"util.global", "ml_program.global",
                                                     "flow.variable", "memref.global"};
    return std::ranges::find(kNames, op.name) != kNames.end();
}

Type typeOfGlobal(const Operation& op) {
    for (const auto* types : {&op.resultTypes, &op.operandTypes})
        if (types->size() == 1 && types->front().isTensor()) return types->front();
    if (const std::string_view text = op.attribute("type"); !text.empty()) {
        Scanner scan(text, "a global");
        return parseType(scan, {});
    }
    return {};
}

std::string_view valueOf(const std::vector<Attribute>& attributes, std::string_view name) {
    const auto found = std::ranges::find(attributes, name, &Attribute::name);
    return found == attributes.end() ? std::string_view{} : found->value;
}

std::string locationName(const Module& module, std::string_view location) {
    constexpr int kMostSteps = 8;
    constexpr std::size_t kLongest = 200; // what is looked at: names repeat with every op
    for (int step = 0; step < kMostSteps; ++step) {
        if (location.starts_with("loc(")) location.remove_prefix(4);
        const bool whole = location.size() <= kLongest;
        location = location.substr(0, kLongest);
        if (location.starts_with("\"")) {
            const auto end = location.find('"', 1);
            if (end == std::string_view::npos && whole) return {};
            const bool file = end != std::string_view::npos &&
                              location.substr(end + 1).starts_with(":"); // "model.py":12:5
            return file ? std::string{}
                        : cleaned(location.substr(1, end == location.npos ? end : end - 1));
        }
        const auto hash = location.find('#');
        if (hash == std::string_view::npos) return {};
        Scanner scan(location.substr(hash), "a location");
        const auto alias = module.aliases.find(scan.sigilName());
        if (alias == module.aliases.end()) return {};
        location = alias->second;
    }
    return {};
}

Program programOf(const Module& module, std::string_view text, const std::string& where) {
    Program program;
    program.text = text;
    program.subAxes = text.find("\":(") != std::string_view::npos;
    for (const Operation& op : module.operations) {
        if (op.name != "module" && op.name != "builtin.module") continue;
        if (program.modules++ > 0) continue;
        program.name = symbolOf(op);
        program.partitions = numberOf(op, "mhlo.num_partitions");
        program.replicas = numberOf(op, "mhlo.num_replicas");
        for (const Region& region : op.regions)
            for (const Block& block : region.blocks) collect(program, block.operations, where);
    }
    if (program.modules == 0) collect(program, module.operations, where);
    return program;
}

const Function& Program::main(const std::string& where) const {
    if (const auto found = functions.find("main"); found != functions.end()) {
        if (found->second.body == nullptr)
            throw InputError("the function main has no body, or one of several blocks", where,
                             "lower control flow to stablehlo.while and stablehlo.if");
        return found->second;
    }
    for (const std::string_view candidate : functionOrder) {
        const Function& function = functions.at(candidate);
        if (function.isPublic && function.body != nullptr) return function;
    }
    throw InputError("the MLIR text holds no function that could be the graph", where,
                     "write the whole module, with its public function");
}

} // namespace shardlens::mlir
