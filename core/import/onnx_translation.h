// SPDX-License-Identifier: Apache-2.0
// One ONNX node on its way into the graph: its operands, known values and attributes with the
// differences between opsets evened out, and the ops it becomes.
#pragma once

#include "core/import/onnx_builder.h"

namespace shardlens::onnx {

class Translation {
public:
    using Ints = std::vector<std::int64_t>;

    /// Reads the node's operands, which makes sources of those read for the first time.
    Translation(Builder& builder, Scope& scope, const Node& node, std::size_t index);

    /// Looks the op type up in the tables and translates it; what no table knows becomes opaque.
    void run();

    Builder& builder() { return m_builder; }
    Scope& scope() { return m_scope; }
    const Node& node() const { return m_node; }
    std::size_t index() const { return m_index; } ///< in its list of nodes
    /// Version of the opset the node's domain has here; the newest if none is stated.
    std::int64_t opset() const;
    std::string type() const; ///< "MatMul", "com.microsoft::FusedMatMul"
    [[noreturn]] void fail(const std::string& problem) const;
    void require(bool condition, const std::string& problem) const {
        if (!condition) fail(problem);
    }

    // --- operands ------------------------------------------------------------------------------
    std::size_t inputCount() const { return m_inputs.size(); }
    bool has(std::size_t i) const { return i < m_inputs.size() && m_inputs[i] != kNoTensor; }
    TensorId input(std::size_t i) const; ///< @throws InputError if absent
    TensorId inputOrNone(std::size_t i) const { return has(i) ? m_inputs[i] : kNoTensor; }
    std::vector<TensorId> inputs() const { return m_inputs; }
    // By value: ops added meanwhile move the graph's own.
    TensorSpec spec(std::size_t i) const { return specOf(input(i)); }
    Shape shape(std::size_t i) const { return spec(i).shape; }
    DType dtype(std::size_t i) const { return spec(i).dtype; }
    std::int64_t rank(std::size_t i) const { return static_cast<std::int64_t>(shape(i).size()); }
    TensorSpec specOf(TensorId tensor) const;
    const KnownInts* ints(std::size_t i) const; ///< nullptr if absent or not known
    const std::vector<double>* floats(std::size_t i) const;
    std::optional<std::int64_t> scalar(std::size_t i) const; ///< the one known integer
    bool dependsOnInput() const;                             ///< some operand does

    // --- attributes ----------------------------------------------------------------------------
    const Attribute* attribute(std::string_view name) const; ///< references resolved
    bool hasAttribute(std::string_view name) const { return attribute(name) != nullptr; }
    std::int64_t integer(std::string_view name, std::int64_t fallback) const;
    double number(std::string_view name, double fallback) const;
    std::string_view text(std::string_view name, std::string_view fallback = {}) const;
    std::optional<Ints> integers(std::string_view name) const;
    const TensorData* tensor(std::string_view name) const;
    const GraphData* graph(std::string_view name) const;
    std::optional<DType> dtypeAttribute(std::string_view name) const;

    /// Integers that an attribute held in old opsets and operand `i` holds in new ones.
    /// `known` is false when the operand is there but its elements are not known.
    struct Listed {
        std::optional<Ints> values;
        bool known = true;
    };
    Listed listed(std::string_view name, std::size_t i) const;
    /// A non-negative axis. @throws InputError if it does not exist
    std::int64_t axis(std::int64_t value, std::int64_t rank) const;
    Ints axes(Ints values, std::int64_t rank) const; ///< likewise, sorted, without repeats

    // --- results -------------------------------------------------------------------------------
    std::size_t outputCount() const { return m_node.outputs.size(); }
    bool wants(std::size_t port) const; ///< the file names this output
    /// An op on the way, with one result that the file has no name for.
    TensorId step(OpKind kind, Attributes attributes, std::vector<TensorId> inputs,
                  DType dtype = DType::Unknown);
    /// The op that the node is: its results are the node's outputs from `port` on.
    TensorId result(OpKind kind, Attributes attributes, std::vector<TensorId> inputs,
                    DType dtype = DType::Unknown, std::size_t port = 0);
    TensorId resultAs(OpKind kind, Attributes attributes, std::vector<TensorId> inputs,
                      std::vector<TensorSpec> specs, std::size_t port = 0);
    /// Output `port` is `tensor`, under the file's name.
    void alias(TensorId tensor, std::size_t port = 0);
    /// An op that is not understood, its results known by shape. Missing specs are taken from the
    /// declarations, or are unknown.
    void opaque(std::vector<std::optional<TensorSpec>> specs = {});
    /// Likewise for one output only.
    void opaqueOutput(std::size_t port, std::optional<TensorSpec> spec = {});
    /// An integer result that is computed here and now, without a warning if its value is known.
    void computed(TensorSpec spec, std::optional<KnownInts> value);
    /// A result without operands: a Parameter if it may be trained, else a Constant.
    /// @param made attributes of a Generate: what it becomes when its integers are not known
    void source(TensorSpec spec, std::optional<KnownInts> ints,
                std::optional<std::vector<double>> floats, bool trainable,
                std::optional<Attributes> made = {});
    /// One number, made in place.
    TensorId number(double value, DType dtype);
    /// Operands beyond those of the node: what a body reads from around it.
    void alsoReads(std::span<const TensorId> tensors);

    // Shorthands of common ops.
    TensorId reshaped(TensorId tensor, Shape shape);
    TensorId transposed(TensorId tensor, Ints perm);

private:
    std::string opName(bool isResult) const;
    std::vector<std::string> resultNames(std::size_t port, std::size_t count) const;
    TensorId finish(OpId op, std::size_t port);
    std::optional<TensorSpec> specOfOutput(std::size_t port, std::optional<TensorSpec> spec);

    Builder& m_builder;
    Scope& m_scope;
    const Node& m_node;
    std::size_t m_index;
    std::vector<TensorId> m_inputs;
    std::vector<bool> m_defined; ///< by output
};

/// A row of the translation tables.
struct Rule {
    std::string_view type; ///< with its domain where another domain has an op of that name
    void (*translate)(Translation&, std::string_view function);
    std::string_view function = {}; ///< of Elementwise, Reduce …
    bool takesUnknown = false;      ///< operands may have no known shape
};

std::vector<Rule> elementwiseRules();
std::vector<Rule> contractionRules();
std::vector<Rule> convolutionRules();
std::vector<Rule> normRules();
std::vector<Rule> movementRules();
std::vector<Rule> reductionRules();
std::vector<Rule> constantRules();
std::vector<Rule> attentionRules();
std::vector<Rule> indexingRules();
std::vector<Rule> imageRules();
std::vector<Rule> recurrentRules();
std::vector<Rule> expertRules();
std::vector<Rule> blockedRules();
std::vector<Rule> shapeOnlyRules();
std::vector<Rule> trainingRules();
std::vector<Rule> controlRules();

} // namespace shardlens::onnx
