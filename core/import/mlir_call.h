// SPDX-License-Identifier: Apache-2.0
// One operation while it is translated: its operands as tensors of the graph, its attributes as
// numbers, and the words in which mlir_ops_*.cpp say what it becomes.
#pragma once

#include "core/import/mlir_attributes.h"
#include "core/import/mlir_builder.h"

namespace shardlens::mlir {

class Call {
public:
    using Ints = std::vector<std::int64_t>;

    Call(Builder& builder, const Operation& op, Scope& scope, const std::string& prefix);

    const Operation& op() const { return m_op; }
    Builder& builder() { return m_builder; }
    Scope& scope() { return m_scope; }
    const std::string& prefix() const { return m_prefix; }
    std::string opName() const; ///< for the graph

    // Operands.
    std::size_t count() const { return m_values.size(); }
    const std::vector<Value>& values() const { return m_values; }
    TensorId input(std::size_t i);  ///< @throws InputError if it is no tensor
    std::vector<TensorId> inputs(); ///< those that are tensors
    const Shape& shape(std::size_t i) { return m_builder.graph().tensor(input(i)).spec.shape; }
    DType dtype(std::size_t i) { return m_builder.graph().tensor(input(i)).spec.dtype; }
    std::int64_t rank(std::size_t i) { return static_cast<std::int64_t>(shape(i).size()); }
    const Shape& shapeOf(TensorId id) { return m_builder.graph().tensor(id).spec.shape; }
    std::optional<std::int64_t> knownScalar(std::size_t i);
    const KnownInts* knownInts(std::size_t i);

    // Attributes.
    std::optional<Ints> maybeInts(std::string_view first, std::string_view second = {}) const;
    Ints ints(std::string_view first, std::string_view second = {}) const;
    Ints intsOr(std::string_view first, std::string_view second, std::size_t count,
                std::int64_t fallback) const;
    std::int64_t integer(std::string_view first, std::string_view second = {}) const;
    /// A dimension of a tensor of that rank. @throws InputError
    std::int64_t axis(std::int64_t value, std::int64_t ofRank) const;

    // Results.
    std::size_t resultCount() const { return m_op.resultCount(); }
    const TensorSpec& declared(std::size_t i) const; ///< dimensions may be kDynamic
    /// Adds the op and makes its results those of the operation. Where the catalogue infers other
    /// shapes than the text declares, the translation does not fit: @throws InputError
    void result(OpKind kind, Attributes attributes, std::vector<TensorId> operands);
    /// An op in between; its result is inferred.
    TensorId step(OpKind kind, Attributes attributes, std::vector<TensorId> operands);
    TensorId reshaped(TensorId x, const Shape& shape);
    TensorId transposed(TensorId x, const Ints& perm);
    void alias(TensorId id) { m_results = {Value{{id}, nullptr}}; }
    void setResults(std::vector<Value> values) { m_results = std::move(values); }
    /// @param detail what tells one from others of the same name (the target of a custom call)
    void opaque(std::string_view detail = {});
    /// Results of an op that the catalogue cannot infer: as declared.
    void declaredResult(OpKind kind, Attributes attributes, std::vector<TensorId> operands);

    /// Says what does not fit, without the place: an op that does not fit becomes opaque, and
    /// counting lines for each would take longer than the import.
    [[noreturn]] void fail(const std::string& problem) const;
    void require(bool condition, const char* problem) const {
        if (!condition) fail(problem);
    }
    std::vector<Value> takeResults() { return std::move(m_results); }

private:
    std::string typeName() const;
    TensorSpec resolved(std::size_t i);
    void checkOperands();

    Builder& m_builder;
    const Operation& m_op;
    Scope& m_scope;
    const std::string& m_prefix;
    std::vector<Value> m_values, m_results;
};

/// A kind of operation: its name without the dialect, and what to do.
struct Rule {
    std::string_view name;
    void (*apply)(Call& call, std::string_view detail);
    std::string_view detail = {};
};

std::vector<Rule> elementwiseRules();
std::vector<Rule> contractionRules();
std::vector<Rule> movementRules();
std::vector<Rule> reductionRules();
std::vector<Rule> matrixRules(); ///< linear algebra, transforms, sorts, bits
std::vector<Rule> collectiveRules();
std::vector<Rule> controlRules();

/// The function of a reduction's region, as Reduce and Collective name it: "sum", "max", "min",
/// "prod"; empty if it is none of these.
std::string_view reductionOf(const Operation& op);

/// Of an operation over n arrays at once that reduces each for itself, in the generic form: the
/// functions, "sum" and so on. Empty where the arrays meet, or another function is used.
std::vector<std::string_view> reductionsApart(const Operation& op, std::size_t n);

/// "LT" out of "LT", "#stablehlo<comparison_direction LT>" or "\"LT\"", of a comparison.
std::string_view directionOf(const Operation& op);

/// A custom call to something the catalogue has. @return whether it was translated
bool knownCustomCall(Call& call, std::string_view target);

/// The same for Scatter: "none" (the update replaces), "add", "max", "min", "mul".
std::string_view scatterReduction(const Operation& op);

} // namespace shardlens::mlir
