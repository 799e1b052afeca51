// SPDX-License-Identifier: Apache-2.0
// Builds the graph node by node: names to tensors, sources where they are first read, nested graphs
// and functions in place where they can be, known values carried along. What each op means is in
// the translation tables (onnx_ops_*.cpp).
#pragma once

#include "core/error.h"
#include "core/import/known_values.h"
#include "core/import/onnx_report.h"
#include "core/import/onnx_roles.h"
#include "core/import/onnx_symbols.h"

#include <map>
#include <span>
#include <tuple>
#include <unordered_set>

namespace shardlens::onnx {

/// An InputError that already says which node it is about.
class NodeError : public InputError {
    using InputError::InputError;
};

/// What all builders of one import share.
class Import {
public:
    /// `model` and `options` outlive this. @throws InputError for bindings that do not fit
    Import(const Model& model, const ImportOptions& options, std::string where);

    const Model& model() const { return m_model; }
    const ImportOptions& options() const { return m_options; }
    const std::string& where() const { return m_where; }
    const Symbols& symbols() const { return m_symbols; }
    const std::vector<const ValueInfo*>& realInputs() const { return m_realInputs; }
    const Function* functionOf(const Node& node) const; ///< nullptr if it calls none
    RoleMap rolesOf(const std::vector<Node>& nodes) { return m_roles.of(nodes); }
    const RoleMap& rolesOf(const Function& function) { return m_roles.ofFunction(function); }
    /// Counts a node that is built, with what it nests (functions and bodies multiply them), and
    /// polls for cancellation.
    void countNode(const Node& node);
    /// A float input whose gradient is an output: the parameter of a training graph.
    bool isTrainedInput(const ValueInfo& input) const;
    /// The graph holds its own backward pass: then nothing but such inputs is trained.
    bool isTraining() const { return m_training; }

    Report report;

private:
    const Model& m_model;
    const ImportOptions& m_options;
    std::string m_where;
    std::vector<const ValueInfo*> m_realInputs;
    Symbols m_symbols;
    std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const Function*>
        m_functions;
    std::unordered_set<std::string_view> m_outputs;
    Roles m_roles;
    bool m_training = false;
    std::size_t m_nodes = 0;
};

/// What a name stands for: a tensor, or a source that becomes one when it is first read.
struct Binding {
    TensorId tensor = kNoTensor; ///< kNoTensor without a source: an optional that is absent
    const TensorData* initializer = nullptr;
    const ValueInfo* input = nullptr;
};

/// The names of one graph, branch or function body.
struct Scope {
    Scope* parent = nullptr; ///< the graph around it, whose names it may read
    bool closed = false;     ///< a function: sees its own names only
    bool repeated = false;   ///< a loop's round, or inside one: its constants are not trained
    std::unordered_map<std::string_view, Binding> names;
    std::unordered_map<std::string_view, const ValueInfo*> declared;
    RoleMap roles;
    std::span<const OpsetImport> opsets;
    std::unordered_map<std::string_view, const Attribute*> attributes; ///< of a function call
    std::string prefix; ///< of the names in the graph; "" for the main graph
    int depth = 0;
};

class Builder {
public:
    explicit Builder(Import& import) : m_import(import), m_known(m_graph) {}
    /// A builder of a body whose ops stay out of the graph; what it reads from `scope` of `outer`
    /// becomes an Input of its own graph and is listed in captures().
    Builder(Builder& outer, Scope& scope)
        : m_import(outer.m_import), m_known(m_graph), m_outer(&outer), m_outerScope(&scope) {}

    Import& import() { return m_import; }
    Graph& graph() { return m_graph; }
    KnownValues& known() { return m_known; }
    bool isBody() const { return m_outer != nullptr; }
    const std::vector<TensorId>& captures() const { return m_captures; }

    // --- names -------------------------------------------------------------------------------
    /// Enters a graph's initializers and declarations into a scope.
    void enter(Scope& scope, const GraphData& graph);
    static const Binding* find(const Scope& scope, std::string_view name);
    bool isDefined(const Scope& scope, std::string_view name) const;
    /// The tensor of a name, made now if it is a source. @throws InputError if there is none
    TensorId read(Scope& scope, std::string_view name);
    void define(Scope& scope, std::string_view name, TensorId tensor);
    /// Declared spec of a name, if all of it is bound: a hint for what cannot be inferred.
    std::optional<TensorSpec> declared(const Scope& scope, std::string_view name) const;
    /// What a function call gives for an attribute; nullptr for an optional one it leaves out.
    const Attribute* functionAttribute(const Scope& scope, std::string_view name) const;

    // --- nodes -------------------------------------------------------------------------------
    void run(Scope& scope, const std::vector<Node>& nodes);
    void inlineFunction(Scope& scope, const Node& node, std::size_t index,
                        const Function& function);
    /// Runs a branch in place, its names under `prefix`. @return its results
    std::vector<TensorId> inlineBranch(Scope& scope, const std::string& prefix,
                                       const GraphData& branch);
    /// Likewise, in a scope that has been entered.
    std::vector<TensorId> inlineBody(Scope& scope, const GraphData& body);

    // --- ops ---------------------------------------------------------------------------------
    /// A value a body is given from outside: its own input, of unknown content.
    TensorId addFormal(Scope& scope, std::string_view name, TensorSpec spec);
    /// Adds an op, its results inferred by the catalogue (dtype of result 0 replaced if given).
    OpId add(Op op, std::vector<std::string> names, DType dtype = DType::Unknown);
    /// Adds an op with the results given. @throws InputError for impossible sizes
    OpId addAs(Op op, std::vector<TensorSpec> specs, std::vector<std::string> names);
    bool dependsOnInput(TensorId tensor) const { return m_depends.at(tensor); }
    void setDependsOnInput(TensorId tensor, bool depends) { m_depends.at(tensor) = depends; }

private:
    void runNode(Scope& scope, const Node& node, std::size_t index);
    TensorId materialise(const Scope& scope, Binding& binding);
    TensorId addInitializer(const Scope& scope, const TensorData& data);
    TensorId addInput(const Scope& scope, const ValueInfo& input);
    TensorId capture(std::string_view name);

    Import& m_import;
    Graph m_graph;
    KnownValues m_known;
    Builder* m_outer = nullptr;
    Scope* m_outerScope = nullptr;
    std::vector<TensorId> m_captures; ///< tensors of the outer builder
    std::vector<bool> m_depends;      ///< by tensor: on an input
    bool m_nodeDepends = false;       ///< the node at hand reads such a tensor
};

/// Names of values inside a function or a branch: "layer1/MatMul_3/".
std::string innerPrefix(const Scope& scope, const Node& node, std::size_t index);

} // namespace shardlens::onnx
