// SPDX-License-Identifier: Apache-2.0
// The ops of HLO that build structure rather than compute: parameters, tuples, calls, loops,
// branches, and the sharding annotations that hang on any instruction.
#include "core/error.h"
#include "core/import/hlo_attributes.h"
#include "core/import/hlo_loops.h"
#include "core/import/hlo_translation.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace shardlens::hlo {

namespace {

/// Whether a module is one device's program: partitioning leaves collectives, the number of the
/// device, or its mark in the name of the entry.
bool isPartitioned(const Module& module) {
    if (module.computations[module.entry].name.ends_with("_spmd")) return true;
    return std::ranges::any_of(module.computations, [](const Computation& computation) {
        return std::ranges::any_of(computation.instructions, [](const Instruction& instruction) {
            return !collectiveOf(instruction.opcode).empty() ||
                   instruction.opcode == "partition-id" || instruction.opcode == "replica-id";
        });
    });
}

std::optional<double> number(std::string_view text) {
    if (text == "true" || text == "false") return text == "true" ? 1 : 0;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || std::isnan(value))
        return std::nullopt;
    return value;
}

std::string_view trimmed(std::string_view text) {
    const auto blank = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return text;
}

} // namespace

// --- the whole ----------------------------------------------------------------------------------

void Translation::findMesh() {
    MeshFinder finder;
    const auto header = [&](std::string_view key) {
        const auto numbers = integersIn(m_module.attribute(key));
        return numbers && numbers->size() == 1 && (*numbers)[0] > 0 && (*numbers)[0] < (1 << 30)
                   ? (*numbers)[0]
                   : std::int64_t{1};
    };
    finder.atLeast(header("num_partitions") * header("replica_count"));
    std::set<std::string_view> groupsSeen;
    for (const Computation& computation : m_module.computations)
        for (const Instruction& instruction : computation.instructions) {
            if (const std::string_view text = instruction.attribute("sharding"); !text.empty())
                for (const std::string_view leaf : leafShardings(text)) {
                    const auto [at, added] = m_tilings.try_emplace(leaf);
                    if (!added) continue;
                    at->second = tilingOf(leaf);
                    if (!at->second) continue;
                    finder.atLeast(at->second->devices);
                    for (const auto& ranges : at->second->dims) finder.add(ranges);
                }
            const std::string_view groups = instruction.attribute("replica_groups");
            if (groups.empty() || !groupsSeen.insert(groups).second) continue;
            const auto array = deviceGroupsIn(groups);
            if (!array || array->devices.empty()) continue;
            finder.atLeast(1 + std::ranges::max(array->devices));
            const auto expected = static_cast<std::size_t>(array->dims[0] * array->dims[1]);
            if (array->devices.size() != expected) continue;
            if (const auto ranges = rangesOf(*array)) finder.add((*ranges)[1]);
        }
    m_devices = finder.devices();
    m_local = isPartitioned(m_module);
    m_mesh = m_devices > 1 ? finder.mesh() : std::vector<PartitionAxis>{};
}

void Translation::addParameters(std::vector<Value>& arguments) {
    const Computation& entry = m_module.computations[m_module.entry];
    std::size_t leaf = 0;
    const std::vector<Value> none;
    const std::string noPrefix;
    for (const std::uint32_t index : entry.parameters) {
        const Instruction& instruction = entry.instructions[index];
        const Site site{entry, instruction, none, noPrefix};
        std::vector<const TensorSpec*> specs;
        appendLeaves(instruction.type, specs);
        std::vector<Leaf> leaves;
        for (const TensorSpec* spec : specs) {
            const Role role = m_roles.leaves.at(leaf++);
            if (!spec) {
                leaves.push_back(kNoTensor);
                continue;
            }
            const OpKind kind = role == Role::Weight ? OpKind::Parameter : OpKind::Input;
            const OpId id =
                m_graph.addOp({nameAt(site),
                               kind,
                               role == Role::Optimizer ? "optimizer state" : "parameter",
                               {},
                               {},
                               {}},
                              {*spec});
            leaves.push_back(m_graph.op(id).outputs[0]);
        }
        arguments.push_back(pool(leaves));
    }
}

Graph Translation::run() {
    std::vector<Value> arguments;
    addParameters(arguments);
    const Computation& entry = m_module.computations[m_module.entry];
    const Value root = evaluate(entry, arguments, {});
    m_graph.name = cleaned(m_module.name);
    m_graph.format = "HLO text";
    return finish(root);
}

Value Translation::evaluate(const Computation& computation, std::span<const Value> arguments,
                            const std::string& prefix) {
    if (m_stop.stop_requested()) throw Cancelled();
    if (arguments.size() != computation.parameters.size())
        throw InputError(fmt::format("computation {} has {} parameters and is given {}",
                                     inQuotes(computation.name), computation.parameters.size(),
                                     arguments.size()),
                         m_module.place(computation.name));
    Frame values(computation.instructions.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const Site site{computation, computation.instructions[i], values, prefix};
        values[i] = step(site, arguments);
        annotate(site, values[i]);
    }
    return values[computation.root];
}

Value Translation::step(const Site& site, std::span<const Value> arguments) {
    const Instruction& instruction = site.instruction;
    if (instruction.opcode == "parameter") {
        const Value value = arguments[instruction.parameterNumber];
        checkCount(site, value);
        return value;
    }
    if (const auto value = structural(site)) return *value;
    if (const auto row = m_rows.find(instruction.opcode); row != m_rows.end())
        if (instruction.type.kind == Type::Kind::Array && !instruction.operands.empty())
            if (const auto leaf = row->second(*this, site)) return pool(*leaf);
    if (instruction.type.kind == Type::Kind::Tuple && !instruction.operands.empty())
        if (const auto values = translateSeveral(*this, site)) return *values;
    return opaque(site, cleaned(instruction.opcode));
}

std::optional<Value> Translation::structural(const Site& site) {
    const Instruction& instruction = site.instruction;
    const std::string_view opcode = instruction.opcode;
    if (opcode == "get-tuple-element") return element(site);
    if (opcode == "tuple") return tuple(site);
    const bool array = instruction.type.kind == Type::Kind::Array;
    if (array && (opcode == "constant" || opcode == "iota" || opcode == "partition-id" ||
                  opcode == "replica-id"))
        return pool(literal(site));
    if (opcode == "while") return loop(site);
    if (opcode == "conditional") return branches(site);
    if (inlines(instruction)) return call(site);
    if (opcode == "custom-call") return customCall(site);
    if (!collectiveOf(opcode).empty()) return collective(site);
    const bool passes = opcode == "copy" || opcode == "copy-start" || opcode == "domain" ||
                        opcode == "optimization-barrier" || opcode == "opt-barrier" ||
                        opcode == "add-dependency" || opcode.ends_with("-done") ||
                        opcode == "async-update";
    if (passes && !instruction.operands.empty()) return site.values[instruction.operands[0]];
    return std::nullopt;
}

void Translation::checkCount(const Site& site, Value value) const {
    if (value.count == site.instruction.type.leaves) return;
    throw InputError(fmt::format("{} has {} values where its type has {}",
                                 inQuotes(site.instruction.name), value.count,
                                 site.instruction.type.leaves),
                     m_module.place(site.instruction.name));
}

// --- tuples and constants -----------------------------------------------------------------------

Value Translation::element(const Site& site) {
    const Instruction& instruction = site.instruction;
    const auto index = integersIn(instruction.attribute("index"));
    if (instruction.operands.size() != 1 || !index || index->size() != 1)
        throw InputError(inQuotes(instruction.name) + " does not say which element it takes",
                         m_module.place(instruction.name));
    const Type& type = site.computation.instructions[instruction.operands[0]].type;
    const Value value = site.values[instruction.operands[0]];
    const std::int64_t which = (*index)[0];
    if (type.kind != Type::Kind::Tuple || which < 0 ||
        which >= static_cast<std::int64_t>(type.parts.size()) || value.count != type.leaves)
        throw InputError(inQuotes(instruction.name) + " takes an element that is not there",
                         m_module.place(instruction.name));
    const auto part = static_cast<std::size_t>(which);
    return {value.first + static_cast<std::uint32_t>(type.parts[part].before),
            static_cast<std::uint32_t>(type.parts[part].leaves)};
}

Value Translation::tuple(const Site& site) {
    std::vector<Leaf> leaves;
    for (const std::uint32_t operand : site.instruction.operands) {
        const auto part = leavesOf(site.values[operand]);
        leaves.insert(leaves.end(), part.begin(), part.end());
        if (leaves.size() > site.instruction.type.leaves) break;
    }
    const Value value = pool(leaves);
    checkCount(site, value);
    return value;
}

TensorId Translation::literal(const Site& site) {
    const Instruction& instruction = site.instruction;
    const TensorSpec& spec = instruction.type.spec;
    const std::string type = fmt::format("{}|{}", nameOf(spec.dtype), toString(spec.shape));
    if (instruction.opcode == "iota") {
        const auto dims = integersIn(instruction.attribute("iota_dimension"));
        const std::int64_t dim = dims && dims->size() == 1 ? (*dims)[0] : 0;
        const TensorId id = constant(fmt::format("iota|{}|{}", type, dim), "iota",
                                     {{"dimension", dim}}, spec, nameAt(site));
        constexpr std::int64_t kTracked = 64;
        if (spec.shape.size() == 1 && spec.shape[0] <= kTracked && !isFloat(spec.dtype)) {
            KnownInts values(static_cast<std::size_t>(spec.shape[0]));
            std::iota(values.begin(), values.end(), std::int64_t{0});
            m_known.setInts(id, std::move(values));
        }
        return id;
    }
    if (instruction.opcode != "constant") { // the device's number
        deviceDependent();
        return splat(spec, 0);
    }
    const std::string_view text = trimmed(instruction.literal);
    if (const auto value = number(text); value && spec.shape.empty()) return splat(spec, *value);
    constexpr std::size_t kCompared = 4096;
    const std::string key =
        text.size() <= kCompared
            ? fmt::format("literal|{}|{}", type, text)
            : fmt::format("literal|{}|{}", type, instruction.name); // unique in the module
    const TensorId id = constant(key, "constant", {}, spec, nameAt(site));
    const auto values = isFloat(spec.dtype) ? std::nullopt : integersIn(text);
    if (values && values->size() <= KnownValues::kMaxInts &&
        static_cast<double>(values->size()) == elementsOf(spec.shape))
        m_known.setInts(id, *values);
    return id;
}

// --- calls, loops, branches ---------------------------------------------------------------------

Value Translation::call(const Site& site) {
    const auto callees = inlined(m_module, site.instruction);
    if (callees.empty()) return opaque(site, cleaned(site.instruction.opcode));
    const double size = m_sizes[m_module.indexOf(*callees.front())];
    if (size > m_budget) {
        say("The module is too large to write all its calls out: some are opaque.");
        return opaque(site, cleaned(site.instruction.opcode));
    }
    m_budget -= size;
    std::vector<Value> arguments;
    for (const std::uint32_t operand : site.instruction.operands)
        arguments.push_back(site.values[operand]);
    const Value value = evaluate(*callees.front(), arguments, site.prefix);
    if (site.instruction.opcode != "async-start") checkCount(site, value);
    return value;
}

std::string Translation::loopName(const Site& site) const {
    std::string name = nameAt(site);
    for (char& c : name) // digits after a dot would read as a layer's number
        if (c == '.') c = '-';
    return name;
}

Value Translation::loop(const Site& site) {
    const auto bodies = inlined(m_module, site.instruction);
    if (bodies.empty() || site.instruction.operands.size() != 1) return opaque(site, "while");
    const Computation& body = *bodies.front();
    const auto trips = tripCount(m_module, site.computation, site.instruction);
    const std::string name = loopName(site);
    const double size = m_sizes[m_module.indexOf(body)];
    Value state = site.values[site.instruction.operands[0]];
    checkCount(site, state);
    std::int64_t rounds = trips.value_or(1);
    if (!trips) {
        say(fmt::format("How often the loop {} runs is not known; it is shown once.",
                        inQuotes(name)));
    } else if (size * static_cast<double>(*trips) > m_budget) {
        say(fmt::format("The loop {} runs {} times; written out it would be too large, so it is "
                        "shown once.",
                        inQuotes(name), *trips));
        m_graph.facts["trip_count of " + name] = fmt::format("{}", *trips);
        rounds = 1;
    }
    const bool layers = trips && rounds == *trips;
    if (size * static_cast<double>(rounds) > m_budget) return opaque(site, "while");
    m_budget -= size * static_cast<double>(rounds);
    for (std::int64_t i = 0; i < rounds; ++i) {
        state = evaluate(body, {&state, 1}, layers ? fmt::format("{}/{}/", name, i) : name + "/");
        checkCount(site, state);
    }
    return state;
}

/// The branch that holds the most stands for all of them.
Value Translation::branches(const Site& site) {
    const auto callees = inlined(m_module, site.instruction);
    const auto& operands = site.instruction.operands;
    if (callees.empty() || operands.size() != callees.size() + 1)
        return opaque(site, "conditional");
    std::size_t largest = 0;
    for (std::size_t i = 1; i < callees.size(); ++i)
        if (m_sizes[m_module.indexOf(*callees[i])] > m_sizes[m_module.indexOf(*callees[largest])])
            largest = i;
    const double size = m_sizes[m_module.indexOf(*callees[largest])];
    if (size > m_budget) return opaque(site, "conditional");
    m_budget -= size;
    say("Of each conditional the largest branch is shown.");
    const Value argument = site.values[operands[largest + 1]];
    const Value value = evaluate(*callees[largest], {&argument, 1}, site.prefix);
    checkCount(site, value);
    return value;
}

// --- annotations --------------------------------------------------------------------------------

void Translation::annotate(const Site& site, Value value) {
    const std::string_view text = site.instruction.attribute("sharding");
    if (text.empty()) return;
    const std::vector<std::string_view> shardings = leafShardings(text);
    if (shardings.empty()) return;
    for (std::uint32_t i = 0; i < value.count; ++i) {
        if (shardings.size() > 1 && i >= shardings.size()) return;
        const Leaf leaf = m_pool[value.first + i];
        if (leaf == kNoTensor || Buffers::isVirtual(leaf)) continue;
        const auto tiling = m_tilings.find(shardings[shardings.size() > 1 ? i : 0]);
        if (tiling == m_tilings.end() || !tiling->second) {
            ++m_notOnMesh;
            continue;
        }
        const auto sharding =
            shardingOf(m_mesh, *tiling->second, m_graph.tensor(leaf).spec.shape.size());
        if (sharding)
            m_shardings.emplace(leaf, *sharding);
        else
            ++m_notOnMesh;
    }
}

Value Translation::customCall(const Site& site) {
    return translateCustomCall(*this, site);
}

Value Translation::collective(const Site& site) {
    return translateCollective(*this, site);
}

} // namespace shardlens::hlo
