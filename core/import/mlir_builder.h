// SPDX-License-Identifier: Apache-2.0
// Walks the operations of a program and puts what they mean into a graph: scopes of values, calls,
// regions, shardings. What a single kind of operation means is in mlir_ops_*.cpp.
#pragma once

#include "core/import/importer.h"
#include "core/import/known_values.h"
#include "core/import/mlir_program.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace shardlens::mlir {

/// What a name stands for: no tensors (a token), one, or the elements of a tuple. A global that is
/// not loaded yet becomes a tensor at its first use.
struct Value {
    std::vector<TensorId> tensors;
    const Operation* global = nullptr;
};

using Scope = std::unordered_map<std::string_view, std::vector<Value>>;

/// Prefix of the names of what is inside a call or a turn of a loop.
std::string longerPrefix(const std::string& prefix, std::string_view part);

class Builder {
public:
    /// @param trained indices of main's arguments that are parameters
    Builder(const Module& module, const Program& program, const std::string& where,
            const ImportOptions& options, std::set<std::size_t> trained);

    Graph build();
    /// Tensors of main's arguments, in order (kNoTensor where one is no tensor).
    const std::vector<TensorId>& arguments() const { return m_arguments; }

    Graph& graph() { return m_graph; }
    KnownValues& known() { return m_known; }
    const Module& module() const { return m_module; }
    const Program& program() const { return m_program; }

    /// Translates a block in a scope. @return what its terminator hands on
    std::vector<Value> block(const Block& block, Scope& scope, const std::string& prefix);
    /// Inlines a function. @throws InputError when it calls itself
    std::vector<Value> call(const Function& function, const std::vector<Value>& arguments,
                            const std::string& prefix, const Operation& at);
    Value lookUp(const ValueUse& use, const Scope& scope, const Operation& at);
    void define(const Operation& op, Scope& scope, std::vector<Value> values);
    TensorId tensorOf(const Operation& global);

    /// Counts work done, so that calls of calls cannot multiply without end. @throws InputError
    void countWork(std::size_t operations, const Operation& at);
    bool hasRoomFor(double operations) const;

    void note(TensorId tensor, const SdySharding& sharding, const Operation& at);
    bool hasSharding(TensorId tensor) const {
        return m_shardings.contains(tensor) || m_mhloShardings.contains(tensor);
    }
    void noteMhlo(TensorId tensor, std::string_view sharding);
    void noteCollective(std::int64_t devices);
    /// Axes (indices into the mesh as written) over which groups of devices stretch.
    std::vector<std::int64_t> axesOf(const std::vector<std::int64_t>& group) const;
    void opaque(std::string_view name) { ++m_opaque[std::string(name)]; }
    void misfit(std::string_view name) { ++m_misfits[std::string(name.substr(0, 80))]; }
    void unknownSize() { ++m_unknownSizes; }
    void manualIsland() { ++m_islands; }
    /// The size a '?' of an argument is bound to.
    std::int64_t bind(const std::string& argument, std::size_t dim, const TensorSpec& spec);
    [[noreturn]] void fail(const Operation& at, const std::string& problem,
                           const std::string& hint = {}) const;

private:
    void buildGlobal(const Function& main);
    bool buildManual(const Function& main);
    Value argument(const BlockArgument& argument, std::size_t index, const Function& main);
    void operation(const Operation& op, Scope& scope, const std::string& prefix);
    void outputs(const std::vector<Value>& values);
    void checkBindings() const;
    void addPartition();
    void addShardyLayouts(Partition& partition, const SdyMesh& mesh);
    void addMhloLayouts(Partition& partition);
    void addFacts();
    void addWarnings();

    const Module& m_module;
    const Program& m_program;
    const std::string& m_where;
    const ImportOptions& m_options;
    std::set<std::size_t> m_trained;
    Graph m_graph;
    KnownValues m_known{m_graph};
    std::vector<TensorId> m_arguments, m_sinks; ///< sinks: read by operations without results
    std::vector<std::string_view> m_calls;      ///< being inlined
    std::unordered_map<const Operation*, TensorId> m_globals;
    std::size_t m_work = 0, m_steps = 0;

    std::map<TensorId, SdySharding> m_shardings;
    std::map<TensorId, std::string> m_mhloShardings;
    std::string m_meshName; ///< of the first sharding; others must have the same axes
    std::map<std::string, std::size_t> m_opaque, m_misfits;
    std::map<std::string, std::int64_t> m_bindings;
    std::set<std::string> m_guessed;
    std::size_t m_unknownSizes = 0, m_islands = 0, m_otherMeshes = 0, m_leftAside = 0;
    std::int64_t m_collectiveDevices = 0;
    bool m_local = false;
    std::vector<std::string> m_freeAxes; ///< of a manual computation that does not cut all axes
};

} // namespace shardlens::mlir
