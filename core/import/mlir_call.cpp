// SPDX-License-Identifier: Apache-2.0
// Declared and inferred shapes are compared at every op: a translation that does not fit what the
// text says must not go unseen.
#include "core/import/mlir_call.h"

#include "core/error.h"
#include "core/import/text.h"
#include "core/model/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace shardlens::mlir {

namespace {

constexpr std::int64_t kLargestAttribute = std::int64_t{1} << 40;
constexpr std::size_t kLongestName = 80; // of what is repeated with every op

bool fits(const Shape& declared, const Shape& actual) {
    return declared.size() == actual.size() &&
           std::ranges::equal(declared, actual, [](std::int64_t d, std::int64_t a) {
               return d == kDynamic || d == a;
           });
}

/// Values that the regions of an operation read from around it, each once.
class Captures {
public:
    Captures(const Scope& scope, std::vector<TensorId>& into)
        : m_scope(scope), m_into(into), m_seen(into.begin(), into.end()) {}

    void add(const Operation& op) {
        for (const Region& region : op.regions)
            for (const Block& block : region.blocks)
                for (const Operation& inner : block.operations) {
                    for (const ValueUse& use : inner.operands) addUse(use);
                    add(inner);
                }
    }

private:
    void addUse(const ValueUse& use) {
        const auto found = m_scope.find(use.name);
        if (found == m_scope.end() || use.index >= found->second.size()) return;
        for (const TensorId id : found->second[use.index].tensors)
            if (m_seen.insert(id).second) m_into.push_back(id);
    }

    const Scope& m_scope;
    std::vector<TensorId>& m_into;
    std::unordered_set<TensorId> m_seen;
};

/// What carrying out an operation once more costs, in operations: repeats must not multiply long
/// lists without being counted.
std::size_t costOf(const Operation& op) {
    std::size_t cost =
        1 + op.operands.size() / 16 + op.resultTypes.size() / 4 + op.attributes.size() / 64;
    for (const Attribute& attribute : op.attributes)
        if (!attribute.value.starts_with("dense<\"")) cost += attribute.value.size() / 4096;
    return cost;
}

} // namespace

Call::Call(Builder& builder, const Operation& op, Scope& scope, const std::string& prefix)
    : m_builder(builder), m_op(op), m_scope(scope), m_prefix(prefix) {
    builder.countWork(costOf(op), op);
    for (const ValueUse& use : op.operands) {
        m_values.push_back(builder.lookUp(use, scope, op));
        builder.countWork(m_values.back().tensors.size() / 16, op);
    }
    checkOperands();
}

void Call::checkOperands() {
    if (m_op.operandTypes.size() != m_values.size()) return;
    for (std::size_t i = 0; i < m_values.size(); ++i) {
        const Type& type = m_op.operandTypes[i];
        if (!type.isTensor() || m_values[i].tensors.size() != 1) continue;
        const Shape& actual = shapeOf(m_values[i].tensors.front());
        if (!fits(type.spec.shape, actual))
            m_builder.fail(m_op, fmt::format("{} is used as {}, but its shape is {}",
                                             shardlens::inQuotes(m_op.operands[i].name),
                                             shardlens::inQuotes(type.text), toString(actual)));
    }
}

std::string Call::opName() const {
    const std::string located = locationName(m_builder.module(), m_op.location);
    if (!located.empty()) return located;
    const std::string_view own = m_op.results.empty() ? m_op.name : m_op.results.front().name;
    return m_prefix + cleaned(own.substr(0, kLongestName));
}

void Call::fail(const std::string& problem) const {
    throw InputError(fmt::format("{} in {}", problem, shardlens::inQuotes(m_op.name)));
}

std::string Call::typeName() const {
    return cleaned(m_op.name.substr(0, kLongestName));
}

TensorId Call::input(std::size_t i) {
    if (i >= m_values.size()) fail(fmt::format("operand {} is missing", i));
    if (m_values[i].global != nullptr) {
        m_values[i].tensors = {m_builder.tensorOf(*m_values[i].global)};
        m_values[i].global = nullptr;
    }
    if (m_values[i].tensors.size() != 1) fail(fmt::format("operand {} is no tensor", i));
    return m_values[i].tensors.front();
}

std::vector<TensorId> Call::inputs() {
    std::vector<TensorId> result;
    for (std::size_t i = 0; i < m_values.size(); ++i) {
        if (m_values[i].global != nullptr) input(i);
        result.insert(result.end(), m_values[i].tensors.begin(), m_values[i].tensors.end());
    }
    return result;
}

const KnownInts* Call::knownInts(std::size_t i) {
    return m_builder.known().ints(input(i));
}

std::optional<std::int64_t> Call::knownScalar(std::size_t i) {
    const KnownInts* known = knownInts(i);
    if (known == nullptr || known->size() != 1) return std::nullopt;
    return known->front();
}

std::optional<Call::Ints> Call::maybeInts(std::string_view first, std::string_view second) const {
    const std::string_view text = m_op.attribute(first, second);
    if (text.empty()) return std::nullopt;
    auto values = readIntegers(text);
    if (!values) fail(fmt::format("the attribute {} holds no integers", first));
    for (const std::int64_t value : *values)
        if (value > kLargestAttribute || value < -kLargestAttribute)
            fail(fmt::format("a number of the attribute {} is out of range", first));
    return values;
}

Call::Ints Call::ints(std::string_view first, std::string_view second) const {
    auto values = maybeInts(first, second);
    if (!values) fail(fmt::format("the attribute {} is missing", first));
    return *values;
}

Call::Ints Call::intsOr(std::string_view first, std::string_view second, std::size_t size,
                        std::int64_t fallback) const {
    Ints values = maybeInts(first, second).value_or(Ints(size, fallback));
    if (values.size() == 1 && size > 1) values.assign(size, values.front());
    if (values.size() != size) fail(fmt::format("the attribute {} has a wrong length", first));
    return values;
}

std::int64_t Call::integer(std::string_view first, std::string_view second) const {
    const Ints values = ints(first, second);
    if (values.size() != 1) fail(fmt::format("the attribute {} is no single number", first));
    return values.front();
}

std::int64_t Call::axis(std::int64_t value, std::int64_t ofRank) const {
    if (value < 0 || value >= ofRank)
        fail(fmt::format("dimension {} does not exist in a tensor of rank {}", value, ofRank));
    return value;
}

const TensorSpec& Call::declared(std::size_t i) const {
    if (i >= m_op.resultTypes.size() || !m_op.resultTypes[i].isTensor())
        fail(fmt::format("the type of result {} is no tensor", i));
    return m_op.resultTypes[i].spec;
}

/// A declared type with its '?' filled from an operand of equal rank.
TensorSpec Call::resolved(std::size_t i) {
    TensorSpec spec = declared(i);
    for (std::size_t d = 0; d < spec.shape.size(); ++d) {
        if (spec.shape[d] != kDynamic) continue;
        spec.shape[d] = 1;
        bool found = false;
        for (const TensorId id : inputs())
            if (!found && shapeOf(id).size() == spec.shape.size()) {
                spec.shape[d] = shapeOf(id)[d];
                found = true;
            }
        if (!found) m_builder.unknownSize();
    }
    return spec;
}

TensorId Call::step(OpKind kind, Attributes attributes, std::vector<TensorId> operands) {
    Op op{opName(), kind, typeName(), std::move(attributes), std::move(operands), {}};
    const OpId id = addInferred(m_builder.graph(), std::move(op));
    m_builder.known().propagate(id);
    return m_builder.graph().op(id).outputs.front();
}

TensorId Call::reshaped(TensorId x, const Shape& shape) {
    return shapeOf(x) == shape ? x : step(OpKind::Reshape, {{"shape", shape}}, {x});
}

TensorId Call::transposed(TensorId x, const Ints& perm) {
    if (std::ranges::is_sorted(perm)) return x;
    return step(OpKind::Transpose, {{"perm", perm}}, {x});
}

void Call::result(OpKind kind, Attributes attributes, std::vector<TensorId> operands) {
    Graph& graph = m_builder.graph();
    Op op{opName(), kind, typeName(), std::move(attributes), std::move(operands), {}};
    OpView view{op, {}, {}};
    for (const TensorId id : op.inputs) view.inputs.push_back(graph.tensor(id).spec);
    std::vector<TensorSpec> specs = inferShapes(view);
    if (specs.size() != resultCount()) fail("the number of results does not fit");
    bool otherType = false;
    for (std::size_t i = 0; i < specs.size(); ++i) {
        if (!fits(declared(i).shape, specs[i].shape))
            fail(fmt::format("the result is declared as {}, but its operands give {}",
                             shardlens::inQuotes(m_op.resultTypes[i].text),
                             toString(specs[i].shape)));
        otherType = otherType || specs[i].dtype != declared(i).dtype;
        specs[i].dtype = declared(i).dtype;
    }
    if (otherType && kind == OpKind::Elementwise)
        op.attributes.set("to", std::string(nameOf(specs.front().dtype)));
    const OpId id = graph.addOp(std::move(op), std::move(specs));
    m_builder.known().propagate(id);
    m_results.clear();
    for (const TensorId output : graph.op(id).outputs) m_results.push_back({{output}, nullptr});
}

void Call::declaredResult(OpKind kind, Attributes attributes, std::vector<TensorId> operands) {
    std::vector<TensorSpec> specs;
    std::vector<std::size_t> tensors; ///< results that are tensors
    std::vector<Value> values(resultCount());
    for (std::size_t i = 0; i < values.size() && i < m_op.resultTypes.size(); ++i) {
        const Type& type = m_op.resultTypes[i];
        if (type.isTensor()) {
            specs.push_back(resolved(i));
            tensors.push_back(i);
        }
        for (const Type& element : type.elements) {
            if (!element.isTensor()) continue;
            specs.push_back(element.spec);
            for (std::int64_t& size : specs.back().shape)
                if (size == kDynamic) size = 1;
            tensors.push_back(i);
        }
    }
    if (specs.empty() && !values.empty()) return setResults(std::move(values));
    Graph& graph = m_builder.graph();
    const OpId id =
        graph.addOp({opName(), kind, typeName(), std::move(attributes), std::move(operands), {}},
                    std::move(specs));
    const auto& outputs = graph.op(id).outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i)
        values[tensors[i]].tensors.push_back(outputs[i]);
    setResults(std::move(values));
}

void Call::opaque(std::string_view detail) {
    std::vector<TensorId> operands = inputs();
    Captures(m_scope, operands).add(m_op);
    m_builder.opaque(detail.empty() ? typeName()
                                    : fmt::format("{} @{}", typeName(),
                                                  cleaned(detail.substr(0, kLongestName))));
    declaredResult(OpKind::Opaque, {}, std::move(operands));
}

} // namespace shardlens::mlir
