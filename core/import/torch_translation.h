// SPDX-License-Identifier: Apache-2.0
// Turns the calls of a torch::Program into ops of a graph. Each operator that is understood has a
// row in one of the tables (torch_ops_*.cpp): a function that reads the call's arguments through a
// Translation and adds ops whose shapes the catalogue infers. What has no row, or does not fit its
// row, becomes an opaque op with the result types the file states.
#pragma once

#include "core/import/importer.h"
#include "core/import/torch_program.h"
#include "core/model/catalogue.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardlens::torch {

class Builder;

/// A call does not fit what its row expects; it becomes opaque, or an error where the file does
/// not say what its results are.
struct Unfit {
    std::string reason;
};

class Translation {
public:
    using Ints = std::vector<std::int64_t>;

    Translation(Builder& builder, const Call& call, std::vector<Argument> arguments)
        : m_builder(builder), m_call(call), m_arguments(std::move(arguments)) {}

    // --- arguments: by the name in the operator's schema (schemas differ: "mat2|other"), else by
    // place ---
    const Value& argument(std::size_t i, std::string_view name) const; ///< None if absent
    bool has(std::size_t i, std::string_view name) const;
    std::size_t count() const { return m_arguments.size(); }
    TensorId tensor(std::size_t i, std::string_view name) const; ///< @throws Unfit
    TensorId optionalTensor(std::size_t i, std::string_view name) const;
    std::vector<TensorId> tensors(std::size_t i, std::string_view name) const;
    std::int64_t integer(std::size_t i, std::string_view name, std::int64_t fallback) const;
    double number(std::size_t i, std::string_view name, double fallback) const;
    bool boolean(std::size_t i, std::string_view name, bool fallback) const;
    std::string text(std::size_t i, std::string_view name) const;
    std::optional<DType> dtype(std::size_t i, std::string_view name) const;
    /// A list of whole numbers; one number is a list of one. Empty if absent.
    Ints ints(std::size_t i, std::string_view name) const;
    /// The whole numbers from argument `i` on where they are given one by one: x.view(2, 3).
    Ints intsFrom(std::size_t i, std::string_view name) const;
    /// A tensor, or a number as a constant of the element type of `like`.
    TensorId operand(std::size_t i, std::string_view name, DType like);

    Shape shape(TensorId id) const; ///< a copy: ops that are added move tensors
    std::int64_t rank(TensorId id) const { return static_cast<std::int64_t>(shape(id).size()); }
    DType typeOf(TensorId id) const;
    /// An axis counted from the end is counted from the front. @throws Unfit
    std::int64_t axis(std::int64_t axis, std::int64_t rank) const;
    void require(bool condition, std::string_view reason) const;
    std::string_view base() const { return split(m_call.target).base; }
    std::string_view overload() const { return split(m_call.target).overload; }

    // --- results --------------------------------------------------------------------------------
    /// Whether a further result is read by anything.
    bool wants(std::size_t port) const;
    /// An op on the way to a result. @param dtype of the result where not as the catalogue says
    TensorId step(OpKind kind, Attributes attributes, std::vector<TensorId> inputs,
                  DType dtype = DType::Unknown);
    /// Several results at once.
    std::vector<TensorId> steps(OpKind kind, Attributes attributes, std::vector<TensorId> inputs);
    /// The op that is result `port`.
    void result(OpKind kind, Attributes attributes, std::vector<TensorId> inputs,
                DType dtype = DType::Unknown, std::size_t port = 0);
    /// The same, with a result that the catalogue does not infer.
    void resultAs(OpKind kind, Attributes attributes, std::vector<TensorId> inputs, TensorSpec spec,
                  std::size_t port = 0);
    /// Result `port` is a tensor that exists already.
    void alias(TensorId tensor, std::size_t port = 0);
    /// What the call's name stands for is no tensor: a size, a list.
    void value(Value value);
    /// The results are those the file states.
    void opaque(std::string_view reason = {});
    TensorId constant(double value, DType dtype);
    TensorId reshaped(TensorId tensor, Shape shape);

    std::optional<TensorSpec> declared(std::size_t port) const;
    Builder& builder() { return m_builder; }
    const Call& call() const { return m_call; }

private:
    Op opFor(OpKind kind, Attributes attributes, std::vector<TensorId> inputs) const;
    std::string opName() const;
    std::string stepName(OpKind kind, const Attributes& attributes) const;

    Builder& m_builder;
    const Call& m_call;
    std::vector<Argument> m_arguments;
};

/// A row of the tables.
struct Rule {
    std::string_view base; ///< of the target, without namespace and overload
    void (*translate)(Translation&, std::string_view) = nullptr;
    std::string_view function = {}; ///< handed on: the catalogue's name
    bool tuple = false;             ///< gives several results, or a list
};

std::vector<Rule> contractionRules();
std::vector<Rule> elementwiseRules();
std::vector<Rule> movementRules();
std::vector<Rule> lookupRules();
std::vector<Rule> reductionRules();
std::vector<Rule> sourceRules();
std::vector<Rule> collectiveRules();

/// Whether some row knows the target.
bool isKnown(std::string_view target);
/// Whether what a call gives is taken apart by getitem. @param indexed it is, somewhere
bool givesTuple(std::string_view target, bool indexed);

/// The graph of a program, with merged dimensions apart (model/merged_dims.h). @throws InputError
/// naming the call and its line
Graph translate(Program program, std::string_view format, const ImportOptions& options);

/// What translate() works on; the tables see it through Translation.
class Builder {
public:
    Builder(const Program& program, const ImportOptions& options);

    Graph run();

    Graph& graph() { return m_graph; }
    std::string where(std::size_t line) const;
    Value resolve(const Value& value, std::size_t line) const;
    void define(const std::string& name, Value value);
    void setResult(const Call& call, std::size_t port, TensorId tensor);
    void countOpaque(const Call& call) { ++m_opaque[call.target]; }
    void countMismatch(const Call& call) { ++m_mismatched[call.target]; }
    /// Notes a collective and the size of its group, 0 if the call does not say it.
    void noteCollective(std::string function, const std::string& group, std::int64_t size);

private:
    void addPlaceholders();
    void addCall(const Call& call);
    void translateCall(const Call& call, Translation& translation);
    void markOutputs();
    void addFacts();
    void addPartition();
    void addWarnings();

    const Program& m_program;
    const ImportOptions& m_options;
    Graph m_graph;
    std::unordered_map<std::string, Value> m_names;
    std::map<std::string, std::size_t> m_opaque, m_mismatched, m_collectives;
    std::map<std::string, std::int64_t> m_groups; ///< by name: ranks, 0 if unknown
};

} // namespace shardlens::torch
