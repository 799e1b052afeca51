// SPDX-License-Identifier: Apache-2.0
// From a module to a graph. Calls, fusions and loops are written out: a loop over layers becomes
// its layers, so that folding finds them, and a weight that is stacked over layers is sliced once a
// layer. Tuples vanish, arrays filled piece by piece are resolved (hlo_buffers.h). Each opcode has
// a row in the tables of hlo_ops_*.cpp; what has none is opaque, with the types the file states.
#pragma once

#include "core/import/hlo_buffers.h"
#include "core/import/hlo_module.h"
#include "core/import/hlo_roles.h"
#include "core/import/hlo_sharding.h"
#include "core/import/known_values.h"

#include <map>
#include <optional>
#include <set>
#include <stop_token>

namespace shardlens::hlo {

/// The leaves of an instruction's value: a piece of Translation's pool.
struct Value {
    std::uint32_t first = 0, count = 0;
};

/// An instruction in the place where it is being translated.
struct Site {
    const Computation& computation;
    const Instruction& instruction;
    const std::vector<Value>& values; ///< of the instructions before it
    const std::string& prefix;        ///< of names, inside a loop: "while/3/"
};

class Translation;

/// Translates an instruction with one result. std::nullopt: it is opaque.
using Row = std::optional<Leaf> (*)(Translation&, const Site&);
struct OpcodeRow {
    std::string_view opcode;
    Row row;
};
std::span<const OpcodeRow> elementwiseRows();
std::span<const OpcodeRow> movementRows();
std::span<const OpcodeRow> computeRows();
std::span<const OpcodeRow> matrixRows();

/// "all-gather-start" -> "all-gather"; empty if the opcode is no collective.
std::string_view collectiveOf(std::string_view opcode);

class Translation {
public:
    /// Instructions that calls and loops may be written out to.
    static constexpr double kMaxWrittenOut = 200'000;

    Translation(const Module& module, const Roles& roles, std::stop_token stop);
    Graph run();

    // --- for the rows ---------------------------------------------------------------------------

    /// Operand `port` as a tensor. @throws InputError if it is a tuple or is not there
    TensorId tensor(const Site& site, std::size_t port);
    std::vector<TensorId> arrays(const Site& site); ///< all operands, each an array
    /// The same, which may be virtual.
    Leaf leaf(const Site& site, std::size_t port) const;
    std::vector<TensorId> tensors(const Site& site); ///< all leaves of all operands, no tokens
    TensorId materialise(Leaf leaf);
    const TensorSpec& spec(Leaf leaf) const;
    Buffers& buffers() { return m_buffers; }

    /// Adds an op with one result of that type.
    TensorId emit(const Site& site, OpKind kind, Attributes attributes,
                  std::vector<TensorId> inputs, TensorSpec spec);
    /// The same if the catalogue derives that very shape.
    std::optional<TensorId> tryEmit(const Site& site, OpKind kind, Attributes attributes,
                                    std::vector<TensorId> inputs, const TensorSpec& spec);
    /// Adds an op with these results.
    Value emitMany(const Site& site, OpKind kind, Attributes attributes,
                   std::vector<TensorId> inputs, std::vector<TensorSpec> results);
    /// A value whose first leaf is `main`; the others come from an opaque op of that type.
    Value attentionResults(const Site& site, TensorId main, std::vector<TensorId> inputs,
                           std::string type);
    /// A constant; equal keys give the same tensor.
    TensorId constant(const std::string& key, std::string type, Attributes attributes,
                      TensorSpec spec, std::string name);
    /// A constant all of whose elements are `value`.
    TensorId splat(const TensorSpec& spec, double value);

    KnownValues& known() { return m_known; }
    std::optional<double> splatValue(TensorId id) const;
    /// The integer a scalar operand is known to be.
    std::optional<std::int64_t> index(const Site& site, std::size_t port);
    /// The binary function (sum, prod, max, min) of a reducer, from its root.
    std::string reducer(const Instruction& instruction, std::string_view key = "to_apply") const;
    /// The same of a reducer of n arrays that do not meet; empty where they do.
    std::vector<std::string> reducersApart(const Instruction& instruction, std::size_t n) const;
    const Module& module() const { return m_module; }
    void deviceDependent() { m_deviceDependent = true; }
    std::int64_t devices() const { return m_devices; }
    const std::vector<PartitionAxis>& mesh() const { return m_mesh; }

    Value opaque(const Site& site, std::string type, double flops = -1);
    Value pool(std::span<const Leaf> leaves);
    Value pool(Leaf leaf) { return pool(std::span(&leaf, 1)); }
    std::span<const Leaf> leavesOf(Value value) const;
    std::string nameAt(const Site& site) const;

private:
    using Frame = std::vector<Value>;

    void findMesh();
    void addParameters(std::vector<Value>& arguments);
    Value evaluate(const Computation& computation, std::span<const Value> arguments,
                   const std::string& prefix);
    Value step(const Site& site, std::span<const Value> arguments);
    std::optional<Value> structural(const Site& site);
    Value element(const Site& site);
    Value tuple(const Site& site);
    Value call(const Site& site);
    Value loop(const Site& site);
    Value branches(const Site& site);
    Value customCall(const Site& site);
    Value collective(const Site& site);
    TensorId literal(const Site& site);
    void annotate(const Site& site, Value value);
    void checkCount(const Site& site, Value value) const;
    Graph finish(Value root);
    std::string loopName(const Site& site) const;
    void say(std::string sentence) { m_sentences.insert(std::move(sentence)); }

    friend Value translateCustomCall(Translation& translation, const Site& site);
    friend Value translateCollective(Translation& translation, const Site& site);

    const Module& m_module;
    const Roles& m_roles;
    std::stop_token m_stop;
    Graph m_graph;
    KnownValues m_known{m_graph};
    Buffers m_buffers;
    std::vector<double> m_sizes; ///< of computations, written out
    double m_budget = kMaxWrittenOut;
    std::unordered_map<std::string_view, Row> m_rows;
    std::vector<Leaf> m_pool;
    std::unordered_map<std::string, TensorId> m_constants;
    std::unordered_map<TensorId, double> m_splats;
    std::map<std::string, std::size_t> m_opaque;
    std::set<std::string> m_sentences;
    bool m_deviceDependent = false;
    std::unordered_map<std::string_view, std::optional<Tiling>> m_tilings;
    std::vector<PartitionAxis> m_mesh;
    std::int64_t m_devices = 1;
    bool m_local = false;
    std::map<TensorId, TensorSharding> m_shardings;
    std::size_t m_notOnMesh = 0;
};

/// The pieces of translation that have files of their own.
Value translateCustomCall(Translation& translation, const Site& site);
Value translateCollective(Translation& translation, const Site& site);
/// Opcodes with several results. std::nullopt: it is opaque.
std::optional<Value> translateSeveral(Translation& translation, const Site& site);

} // namespace shardlens::hlo
