// SPDX-License-Identifier: Apache-2.0
// What every row needs: leaves and tensors, emission with a check against the catalogue, constants,
// which are shared wherever they are equal, and opaque ops.
#include "core/import/hlo_translation.h"

#include "core/error.h"
#include "core/import/hlo_attributes.h"
#include "core/import/hlo_loops.h"
#include "core/import/text.h"
#include "core/model/catalogue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace shardlens::hlo {

namespace {

constexpr std::size_t kMostWork = std::size_t{1} << 25; ///< leaves and cells handled

/// The op_name without what JAX wraps around every one: "jit(step)/jit(main)/layers/mul".
std::string_view withoutJit(std::string_view name) {
    while (name.starts_with("jit(")) {
        const std::size_t slash = name.find('/');
        if (slash == std::string_view::npos) break;
        name.remove_prefix(slash + 1);
    }
    return name;
}

std::string unescaped(std::string_view text) {
    std::string result;
    for (const char c : text)
        if (c != '\\') result.push_back(c);
    return cleaned(result);
}

} // namespace

Translation::Translation(const Module& module, const Roles& roles, std::stop_token stop)
    : m_module(module), m_roles(roles), m_stop(std::move(stop)),
      m_sizes(writtenOut(module, kMaxWrittenOut)) {
    for (const auto rows : {elementwiseRows(), movementRows(), computeRows(), matrixRows()})
        for (const OpcodeRow& row : rows) m_rows.emplace(row.opcode, row.row);
    findMesh();
}

// --- leaves and tensors -------------------------------------------------------------------------

Value Translation::pool(std::span<const Leaf> leaves) {
    const Value value{static_cast<std::uint32_t>(m_pool.size()),
                      static_cast<std::uint32_t>(leaves.size())};
    if (m_pool.size() + leaves.size() + m_buffers.work() > kMostWork)
        throw InputError("the module is too large when its calls and loops are written out",
                         m_module.where);
    m_pool.insert(m_pool.end(), leaves.begin(), leaves.end());
    return value;
}

std::span<const Leaf> Translation::leavesOf(Value value) const {
    return std::span(m_pool).subspan(value.first, value.count);
}

Leaf Translation::leaf(const Site& site, std::size_t port) const {
    const Instruction& instruction = site.instruction;
    if (port >= instruction.operands.size())
        throw InputError(fmt::format("{} of {} lacks operand {}", cleaned(instruction.opcode),
                                     inQuotes(instruction.name), port),
                         m_module.place(instruction.name));
    const Value value = site.values[instruction.operands[port]];
    if (value.count != 1 || m_pool[value.first] == kNoTensor)
        throw InputError(fmt::format("operand {} of {} ({}) is no array", port,
                                     inQuotes(instruction.name), cleaned(instruction.opcode)),
                         m_module.place(instruction.name));
    return m_pool[value.first];
}

std::vector<TensorId> Translation::arrays(const Site& site) {
    std::vector<TensorId> result;
    for (std::size_t i = 0; i < site.instruction.operands.size(); ++i)
        result.push_back(tensor(site, i));
    return result;
}

TensorId Translation::tensor(const Site& site, std::size_t port) {
    return materialise(leaf(site, port));
}

std::vector<TensorId> Translation::tensors(const Site& site) {
    std::vector<TensorId> result;
    for (const std::uint32_t operand : site.instruction.operands) {
        const Value value = site.values[operand];
        for (std::uint32_t i = 0; i < value.count; ++i)
            if (const Leaf leaf = m_pool[value.first + i]; leaf != kNoTensor)
                result.push_back(materialise(leaf));
    }
    return result;
}

const TensorSpec& Translation::spec(Leaf leaf) const {
    return Buffers::isVirtual(leaf) ? m_buffers.spec(leaf) : m_graph.tensor(leaf).spec;
}

/// The concatenation of the pieces; what was not written is cut from the base.
TensorId Translation::materialise(Leaf leaf) {
    if (!Buffers::isVirtual(leaf)) return leaf;
    if (const TensorId made = m_buffers.made(leaf); made != kNoTensor) return made;
    const TensorSpec spec = m_buffers.spec(leaf);
    const Buffers::Pieces pieces = m_buffers.pieces(leaf);
    std::vector<TensorId> inputs;
    const auto axis = static_cast<std::int64_t>(pieces.axis);
    for (const Buffers::Cell& cell : pieces.cells) {
        if (cell.tensor != kNoTensor) {
            inputs.push_back(cell.tensor);
            continue;
        }
        TensorSpec part = spec;
        part.shape[pieces.axis] = cell.size;
        if (const auto value = splatValue(pieces.base)) {
            inputs.push_back(splat(part, *value));
            continue;
        }
        const OpId slice = m_graph.addOp({"unwritten",
                                          OpKind::Slice,
                                          "slice",
                                          {{"starts", std::vector{cell.start}},
                                           {"ends", std::vector{cell.start + cell.size}},
                                           {"axes", std::vector{axis}},
                                           {"steps", std::vector<std::int64_t>{1}}},
                                          {pieces.base},
                                          {}},
                                         {part});
        inputs.push_back(m_graph.op(slice).outputs[0]);
    }
    TensorId result = inputs.front();
    if (inputs.size() > 1) {
        const OpId concat = m_graph.addOp(
            {"stacked", OpKind::Concat, "dynamic-update-slice", {{"axis", axis}}, inputs, {}},
            {spec});
        result = m_graph.op(concat).outputs[0];
    }
    return m_buffers.made(leaf) = result;
}

// --- emission -----------------------------------------------------------------------------------

std::string Translation::nameAt(const Site& site) const {
    const std::string_view path = withoutJit(opNameOf(site.instruction));
    if (path.empty()) return site.prefix + cleaned(site.instruction.name);
    if (site.prefix.empty()) return unescaped(path);
    constexpr std::string_view kBody = "while/body/";
    const std::size_t body = path.rfind(kBody);
    return site.prefix +
           unescaped(body == std::string_view::npos ? path : path.substr(body + kBody.size()));
}

TensorId Translation::emit(const Site& site, OpKind kind, Attributes attributes,
                           std::vector<TensorId> inputs, TensorSpec spec) {
    const OpId id = m_graph.addOp({nameAt(site),
                                   kind,
                                   cleaned(site.instruction.opcode),
                                   std::move(attributes),
                                   std::move(inputs),
                                   {}},
                                  {std::move(spec)});
    m_known.propagate(id);
    return m_graph.op(id).outputs[0];
}

std::optional<TensorId> Translation::tryEmit(const Site& site, OpKind kind, Attributes attributes,
                                             std::vector<TensorId> inputs, const TensorSpec& spec) {
    const Op op{{}, kind, {}, attributes, inputs, {}};
    OpView view{op, {}, {}};
    for (const TensorId id : inputs)
        view.inputs.push_back(id == kNoTensor ? TensorSpec{} : m_graph.tensor(id).spec);
    try {
        const std::vector<TensorSpec> results = inferShapes(view);
        if (results.empty() || results[0].shape != spec.shape) return std::nullopt;
    } catch (const InputError&) { // the operands do not fit: the op stays opaque
        return std::nullopt;
    }
    return emit(site, kind, std::move(attributes), std::move(inputs), spec);
}

Value Translation::emitMany(const Site& site, OpKind kind, Attributes attributes,
                            std::vector<TensorId> inputs, std::vector<TensorSpec> results) {
    const OpId id = m_graph.addOp({nameAt(site),
                                   kind,
                                   cleaned(site.instruction.opcode),
                                   std::move(attributes),
                                   std::move(inputs),
                                   {}},
                                  std::move(results));
    return pool(m_graph.op(id).outputs);
}

Value Translation::attentionResults(const Site& site, TensorId main, std::vector<TensorId> inputs,
                                    std::string type) {
    std::vector<const TensorSpec*> leaves;
    appendLeaves(site.instruction.type, leaves);
    std::vector<TensorSpec> specs;
    for (std::size_t i = 1; i < leaves.size(); ++i)
        if (leaves[i]) specs.push_back(*leaves[i]);
    std::vector<Leaf> value(leaves.size(), kNoTensor);
    value[0] = main;
    if (!specs.empty()) {
        ++m_opaque[type];
        const OpId id = m_graph.addOp({nameAt(site),
                                       OpKind::Opaque,
                                       std::move(type),
                                       {{"flops", 0.0}},
                                       std::move(inputs),
                                       {}},
                                      std::move(specs));
        std::size_t port = 0;
        for (std::size_t i = 1; i < leaves.size(); ++i)
            if (leaves[i]) value[i] = m_graph.op(id).outputs[port++];
    }
    return pool(value);
}

TensorId Translation::constant(const std::string& key, std::string type, Attributes attributes,
                               TensorSpec spec, std::string name) {
    if (const auto found = m_constants.find(key); found != m_constants.end()) return found->second;
    const OpId id = m_graph.addOp(
        {std::move(name), OpKind::Constant, std::move(type), std::move(attributes), {}, {}},
        {std::move(spec)});
    const TensorId tensor = m_graph.op(id).outputs[0];
    m_constants.emplace(key, tensor);
    return tensor;
}

TensorId Translation::splat(const TensorSpec& spec, double value) {
    const std::string number = fmt::format("{}", value);
    const TensorId id =
        constant(fmt::format("splat|{}|{}|{}", nameOf(spec.dtype), toString(spec.shape), number),
                 "constant", {}, spec, "constant_" + number);
    m_splats.emplace(id, value);
    constexpr double kTracked = 64;
    const bool integer = !isFloat(spec.dtype) && std::abs(value) < 9.0e15;
    if (integer && elementsOf(spec.shape) <= kTracked)
        m_known.setInts(id, KnownInts(static_cast<std::size_t>(elementsOf(spec.shape)),
                                      static_cast<std::int64_t>(value)));
    return id;
}

std::optional<double> Translation::splatValue(TensorId id) const {
    const auto found = m_splats.find(id);
    return found == m_splats.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::int64_t> Translation::index(const Site& site, std::size_t port) {
    const KnownInts* ints = m_known.ints(tensor(site, port));
    return ints && ints->size() == 1 ? std::optional(ints->front()) : std::nullopt;
}

namespace {

std::string functionOf(const Instruction& root) {
    const std::string_view opcode = root.opcode;
    if (opcode == "add") return "sum";
    if (opcode == "multiply") return "prod";
    const bool logical = root.type.spec.dtype == DType::Bool;
    if (opcode == "maximum" || (opcode == "or" && logical)) return "max";
    if (opcode == "minimum" || (opcode == "and" && logical)) return "min";
    return {};
}

/// Behind changes of type.
std::uint32_t unconverted(const Computation& computation, std::uint32_t at) {
    while (computation.instructions[at].opcode == "convert" &&
           computation.instructions[at].operands.size() == 1)
        at = computation.instructions[at].operands[0];
    return at;
}

} // namespace

std::string Translation::reducer(const Instruction& instruction, std::string_view key) const {
    const Computation* computation = m_module.callee(instruction, key);
    if (!computation) return {};
    const Instruction& root =
        computation->instructions[unconverted(*computation, computation->root)];
    if (root.operands.size() != 2 || computation->parameters.size() != 2) return {};
    for (const std::uint32_t operand : root.operands)
        if (computation->instructions[unconverted(*computation, operand)].opcode != "parameter")
            return {};
    return functionOf(root);
}

std::vector<std::string> Translation::reducersApart(const Instruction& instruction,
                                                    std::size_t n) const {
    const Computation* computation = m_module.callee(instruction, "to_apply");
    if (!computation || computation->parameters.size() != 2 * n) return {};
    const Instruction& root = computation->instructions[computation->root];
    if (root.opcode != "tuple" || root.operands.size() != n) return {};
    std::vector<std::string> functions;
    for (std::size_t i = 0; i < n; ++i) {
        const Instruction& each =
            computation->instructions[unconverted(*computation, root.operands[i])];
        if (each.operands.size() != 2) return {};
        const std::uint32_t x = unconverted(*computation, each.operands[0]),
                            y = unconverted(*computation, each.operands[1]),
                            a = computation->parameters[i], b = computation->parameters[n + i];
        functions.push_back(functionOf(each));
        if (functions.back().empty() || !((x == a && y == b) || (x == b && y == a))) return {};
    }
    return functions;
}

Value Translation::opaque(const Site& site, std::string type, double flops) {
    Op op{nameAt(site), OpKind::Opaque, type, {}, tensors(site), {}};
    if (flops >= 0) op.attributes.set("flops", flops);
    std::vector<const TensorSpec*> leaves;
    appendLeaves(site.instruction.type, leaves);
    std::vector<TensorSpec> results;
    for (const TensorSpec* leaf : leaves)
        if (leaf) results.push_back(*leaf);
    std::vector<Leaf> value(leaves.size(), kNoTensor);
    if (results.empty()) return pool(value); // a token alone: nothing is computed
    const OpId id = m_graph.addOp(std::move(op), std::move(results));
    ++m_opaque[std::move(type)];
    std::size_t port = 0;
    for (std::size_t i = 0; i < leaves.size(); ++i)
        if (leaves[i]) value[i] = m_graph.op(id).outputs[port++];
    return pool(value);
}

// --- the end ------------------------------------------------------------------------------------

Graph Translation::finish(Value root) {
    for (const Leaf leaf : std::vector<Leaf>(leavesOf(root).begin(), leavesOf(root).end()))
        if (leaf != kNoTensor) m_graph.markOutput(materialise(leaf));
    if (!m_opaque.empty()) {
        std::size_t total = 0;
        std::vector<std::string> parts;
        for (const auto& [type, count] : m_opaque) {
            total += count;
            parts.push_back(fmt::format("{} × {}", count, type));
        }
        constexpr std::size_t kShown = 24;
        if (parts.size() > kShown) {
            parts.resize(kShown);
            parts.emplace_back("…");
        }
        say(fmt::format("{} op{} not understood and opaque, replicated on every device: {}.", total,
                        total == 1 ? " is" : "s are", fmt::join(parts, ", ")));
    }
    if (m_deviceDependent)
        say("What depends on the number of the device is shown as device 0 has it.");
    if (m_notOnMesh > 0)
        say(fmt::format("{} sharding annotation{} on no common mesh and left aside.", m_notOnMesh,
                        m_notOnMesh == 1 ? " is" : "s are"));
    m_graph.warnings.assign(m_sentences.begin(), m_sentences.end());
    m_graph.backwardIncluded = m_roles.backward;
    if (m_local || !m_shardings.empty()) {
        Partition partition;
        partition.madeBy = m_local ? "XLA SPMD" : "XLA sharding annotations";
        partition.devices = m_devices;
        partition.local = m_local;
        partition.mesh = m_mesh;
        partition.shardings = std::move(m_shardings);
        m_graph.partition = std::move(partition);
    }
    return std::move(m_graph);
}

} // namespace shardlens::hlo
