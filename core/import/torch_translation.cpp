// SPDX-License-Identifier: Apache-2.0
// Reading of arguments and building of ops for the tables of PyTorch operators.
#include "core/import/torch_translation.h"

#include "core/error.h"
#include "core/import/text.h"
#include "core/import/torch_symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shardlens::torch {

// --- arguments ----------------------------------------------------------------------------------

namespace {

/// Whether a name is among those between bars: "mat2|other".
bool isOneOf(std::string_view name, std::string_view names) {
    while (!name.empty()) {
        const auto bar = names.find('|');
        if (names.substr(0, bar) == name) return true;
        if (bar == std::string_view::npos) return false;
        names.remove_prefix(bar + 1);
    }
    return false;
}

} // namespace

const Value& Translation::argument(std::size_t i, std::string_view name) const {
    static const Value absent;
    const auto named = std::ranges::find_if(
        m_arguments, [name](const Argument& argument) { return isOneOf(argument.name, name); });
    if (named != m_arguments.end()) return named->value;
    // The first argument is known by its place whatever a schema calls it.
    if (i < m_arguments.size() && (m_arguments[i].name.empty() || i == 0))
        return m_arguments[i].value;
    return absent;
}

bool Translation::has(std::size_t i, std::string_view name) const {
    return argument(i, name).kind != Value::Kind::None;
}

void Translation::require(bool condition, std::string_view reason) const {
    if (!condition) throw Unfit{std::string(reason)};
}

TensorId Translation::tensor(std::size_t i, std::string_view name) const {
    const Value& value = argument(i, name);
    if (value.kind != Value::Kind::Tensor)
        throw Unfit{fmt::format("its argument '{}' is not a tensor", name)};
    return value.tensor;
}

TensorId Translation::optionalTensor(std::size_t i, std::string_view name) const {
    const Value& value = argument(i, name);
    return value.kind == Value::Kind::Tensor ? value.tensor : kNoTensor;
}

std::vector<TensorId> Translation::tensors(std::size_t i, std::string_view name) const {
    const Value& value = argument(i, name);
    if (value.kind == Value::Kind::Tensor) return {value.tensor};
    std::vector<TensorId> result;
    for (const Value& item : value.items) {
        require(item.kind == Value::Kind::Tensor, "one of its tensors is missing");
        result.push_back(item.tensor);
    }
    return result;
}

std::int64_t Translation::integer(std::size_t i, std::string_view name,
                                  std::int64_t fallback) const {
    const Value& value = argument(i, name);
    if (value.kind == Value::Kind::Integer || value.kind == Value::Kind::Boolean)
        return value.integer;
    if (value.kind == Value::Kind::None) return fallback;
    throw Unfit{fmt::format("its argument '{}' is not a whole number", name)};
}

double Translation::number(std::size_t i, std::string_view name, double fallback) const {
    const Value& value = argument(i, name);
    if (value.isNumber() || value.kind == Value::Kind::Boolean) return value.number();
    if (value.kind == Value::Kind::None) return fallback;
    throw Unfit{fmt::format("its argument '{}' is not a number", name)};
}

bool Translation::boolean(std::size_t i, std::string_view name, bool fallback) const {
    const Value& value = argument(i, name);
    if (value.kind == Value::Kind::Boolean || value.kind == Value::Kind::Integer)
        return value.integer != 0;
    return fallback;
}

std::string Translation::text(std::size_t i, std::string_view name) const {
    const Value& value = argument(i, name);
    return value.kind == Value::Kind::Text ? value.text : std::string();
}

std::optional<DType> Translation::dtype(std::size_t i, std::string_view name) const {
    const Value& value = argument(i, name);
    if (value.kind == Value::Kind::Text) return dtypeFromTorch(value.text);
    if (value.kind == Value::Kind::Integer) return dtypeFromScalarType(value.integer);
    return std::nullopt;
}

Translation::Ints Translation::ints(std::size_t i, std::string_view name) const {
    const Value& value = argument(i, name);
    if (value.kind == Value::Kind::Integer) return {value.integer};
    Ints result;
    for (const Value& item : value.items) {
        require(item.kind == Value::Kind::Integer, "a list holds something else than sizes");
        result.push_back(item.integer);
    }
    return result;
}

Translation::Ints Translation::intsFrom(std::size_t i, std::string_view name) const {
    const Value& first = argument(i, name);
    if (first.kind != Value::Kind::Integer) return ints(i, name);
    Ints result{first.integer};
    for (std::size_t j = i + 1; j < m_arguments.size() && m_arguments[j].name.empty(); ++j) {
        require(m_arguments[j].value.kind == Value::Kind::Integer, "a size is not a whole number");
        result.push_back(m_arguments[j].value.integer);
    }
    return result;
}

TensorId Translation::operand(std::size_t i, std::string_view name, DType like) {
    const Value& value = argument(i, name);
    if (value.kind == Value::Kind::Tensor) return value.tensor;
    if (!value.isNumber() && value.kind != Value::Kind::Boolean)
        throw Unfit{fmt::format("its argument '{}' is neither a tensor nor a number", name)};
    // A number takes the tensor's type, unless it is a real beside whole numbers.
    if (value.kind == Value::Kind::Real && !isFloat(like)) like = DType::F32;
    if (value.kind == Value::Kind::Integer && like == DType::Bool) like = DType::I64;
    return constant(value.number(), like);
}

Shape Translation::shape(TensorId id) const {
    return m_builder.graph().tensor(id).spec.shape;
}

DType Translation::typeOf(TensorId id) const {
    return m_builder.graph().tensor(id).spec.dtype;
}

std::int64_t Translation::axis(std::int64_t axis, std::int64_t rank) const {
    const std::int64_t result = axis < 0 ? axis + rank : axis;
    if (result < 0 || result >= std::max<std::int64_t>(rank, 1))
        throw Unfit{fmt::format("dimension {} does not exist in a tensor of rank {}", axis, rank)};
    return result;
}

// --- results ------------------------------------------------------------------------------------

bool Translation::wants(std::size_t port) const {
    return port < m_call.results.size() && m_call.results[port].wanted;
}

std::optional<TensorSpec> Translation::declared(std::size_t port) const {
    return port < m_call.results.size() ? m_call.results[port].spec : std::nullopt;
}

std::string Translation::opName() const {
    const std::string& label = m_call.label.empty() ? m_call.name : m_call.label;
    return m_call.scope.empty() ? label : m_call.scope + "/" + label;
}

std::string Translation::stepName(OpKind kind, const Attributes& attributes) const {
    std::string suffix = attributes.text("function");
    if (suffix.empty()) {
        suffix = nameOf(kind);
        std::ranges::transform(suffix, suffix.begin(), [](char c) {
            return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        });
    }
    return fmt::format("{}.{}", opName(), suffix);
}

Op Translation::opFor(OpKind kind, Attributes attributes, std::vector<TensorId> inputs) const {
    Op op;
    op.name = opName();
    op.kind = kind;
    op.type = m_call.target;
    op.attributes = std::move(attributes);
    op.inputs = std::move(inputs);
    return op;
}

namespace {

/// The catalogue's results. Sizes that cannot be are refused before anything computes with them.
std::vector<TensorSpec> inferred(const Graph& graph, const Op& op) {
    OpView view{op, {}, {}};
    for (const TensorId id : op.inputs)
        view.inputs.push_back(id == kNoTensor ? TensorSpec{} : graph.tensor(id).spec);
    std::vector<TensorSpec> specs;
    try {
        specs = inferShapes(view);
    } catch (const InputError& error) {
        throw Unfit{error.problem()};
    }
    for (const TensorSpec& spec : specs)
        if (!isReasonable(spec.shape)) throw Unfit{"its result would be impossibly large"};
    return specs;
}

} // namespace

std::vector<TensorId> Translation::steps(OpKind kind, Attributes attributes,
                                         std::vector<TensorId> inputs) {
    Op op = opFor(kind, std::move(attributes), std::move(inputs));
    op.name = stepName(kind, op.attributes);
    std::vector<TensorSpec> specs = inferred(m_builder.graph(), op);
    const OpId id = m_builder.graph().addOp(std::move(op), std::move(specs));
    return m_builder.graph().op(id).outputs;
}

TensorId Translation::step(OpKind kind, Attributes attributes, std::vector<TensorId> inputs,
                           DType dtype) {
    Op op = opFor(kind, std::move(attributes), std::move(inputs));
    op.name = stepName(kind, op.attributes);
    std::vector<TensorSpec> specs = inferred(m_builder.graph(), op);
    if (dtype != DType::Unknown) specs[0].dtype = dtype;
    const OpId id = m_builder.graph().addOp(std::move(op), std::move(specs));
    return m_builder.graph().op(id).outputs[0];
}

void Translation::resultAs(OpKind kind, Attributes attributes, std::vector<TensorId> inputs,
                           TensorSpec spec, std::size_t port) {
    require(isReasonable(spec.shape), "its result would be impossibly large");
    if (const auto stated = declared(port)) {
        if (stated->shape != spec.shape)
            throw Unfit{fmt::format("the file says its result is {}, but it gives {}",
                                    toString(stated->shape), toString(spec.shape))};
        spec.dtype = stated->dtype;
    }
    std::string name = port < m_call.results.size() ? m_call.results[port].name : std::string();
    const OpId id = m_builder.graph().addOp(opFor(kind, std::move(attributes), std::move(inputs)),
                                            {std::move(spec)}, {std::move(name)});
    m_builder.setResult(m_call, port, m_builder.graph().op(id).outputs[0]);
}

void Translation::result(OpKind kind, Attributes attributes, std::vector<TensorId> inputs,
                         DType dtype, std::size_t port) {
    Op op = opFor(kind, std::move(attributes), std::move(inputs));
    std::vector<TensorSpec> specs = inferred(m_builder.graph(), op);
    if (dtype != DType::Unknown) specs[0].dtype = dtype;
    std::vector<std::string> names;
    for (std::size_t r = 0; r < specs.size(); ++r) {
        const std::size_t at = port + r;
        names.push_back(at < m_call.results.size() ? m_call.results[at].name : std::string());
        const auto stated = declared(at);
        if (!stated) continue;
        if (stated->shape != specs[r].shape)
            throw Unfit{fmt::format("the file says its result is {}, but it gives {}",
                                    toString(stated->shape), toString(specs[r].shape))};
        specs[r].dtype = stated->dtype;
    }
    const OpId id = m_builder.graph().addOp(std::move(op), std::move(specs), std::move(names));
    const std::vector<TensorId> outputs = m_builder.graph().op(id).outputs;
    for (std::size_t r = 0; r < outputs.size(); ++r)
        m_builder.setResult(m_call, port + r, outputs[r]);
}

void Translation::alias(TensorId tensor, std::size_t port) {
    if (const auto stated = declared(port)) {
        if (stated->shape != shape(tensor))
            throw Unfit{fmt::format("the file says its result is {}, but it gives {}",
                                    toString(stated->shape), toString(shape(tensor)))};
        if (stated->dtype != typeOf(tensor))
            return result(
                OpKind::Elementwise,
                {{"function", std::string("cast")}, {"to", std::string(nameOf(stated->dtype))}},
                {tensor}, DType::Unknown, port);
    }
    m_builder.setResult(m_call, port, tensor);
}

void Translation::value(Value value) {
    m_builder.define(m_call.name, std::move(value));
}

void Translation::opaque(std::string_view reason) {
    std::vector<TensorSpec> specs;
    std::vector<std::string> names;
    for (const Result& result : m_call.results) {
        specs.push_back(result.spec.value_or(TensorSpec{}));
        names.push_back(result.name);
    }
    const bool stated = std::ranges::any_of(
        m_call.results, [](const Result& result) { return result.spec.has_value(); });
    const bool missed = std::ranges::any_of(
        m_call.results, [](const Result& result) { return result.wanted && !result.spec; });
    if (missed) {
        const std::string why =
            reason.empty() ? std::string("the operator is not known") : std::string(reason);
        throw InputError(fmt::format("the shape of the result of {} cannot be found: {}",
                                     shardlens::inQuotes(m_call.target), why),
                         m_builder.where(m_call.line),
                         "print the graph with its types (print_readable) and open that");
    }
    if (!stated) return; // nothing reads it
    std::vector<TensorId> inputs;
    const auto collect = [&](auto&& self, const Value& value) -> void {
        if (value.kind == Value::Kind::Tensor) inputs.push_back(value.tensor);
        for (const Value& item : value.items) self(self, item);
    };
    for (const Argument& argument : m_arguments) collect(collect, argument.value);
    if (reason.empty())
        m_builder.countOpaque(m_call);
    else
        m_builder.countMismatch(m_call);
    const OpId id = m_builder.graph().addOp(opFor(OpKind::Opaque, {}, std::move(inputs)),
                                            std::move(specs), std::move(names));
    const std::vector<TensorId> outputs = m_builder.graph().op(id).outputs;
    for (std::size_t r = 0; r < outputs.size(); ++r) m_builder.setResult(m_call, r, outputs[r]);
}

TensorId Translation::constant(double value, DType dtype) {
    Op op;
    op.name = opName() + ".constant";
    op.kind = OpKind::Constant;
    op.type = "scalar";
    Graph& graph = m_builder.graph();
    const OpId id = graph.addOp(std::move(op), {{dtype, {}}});
    const TensorId tensor = graph.op(id).outputs[0];
    graph.setKnownReals(tensor, {value});
    return tensor;
}

TensorId Translation::reshaped(TensorId tensor, Shape target) {
    if (shape(tensor) == target) return tensor;
    return step(OpKind::Reshape, {{"shape", std::move(target)}}, {tensor});
}

} // namespace shardlens::torch
