// SPDX-License-Identifier: Apache-2.0
// Access to a node, and the merged translation table.
#include "core/import/onnx_translation.h"

#include "core/error.h"
#include "core/import/onnx_tensor.h"
#include "core/import/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens::onnx {

namespace {

constexpr std::int64_t kNewestOpset = 28;

const Rule* findRule(std::string_view domain, std::string_view type) {
    static const std::unordered_map<std::string, Rule> table = [] {
        std::unordered_map<std::string, Rule> rules;
        for (auto family :
             {elementwiseRules, contractionRules, convolutionRules, normRules, movementRules,
              reductionRules, constantRules, attentionRules, shapeOnlyRules, trainingRules,
              controlRules, indexingRules, imageRules, recurrentRules, expertRules, blockedRules})
            for (const Rule& rule : family()) rules.emplace(rule.type, rule);
        return rules;
    }();
    if (!domain.empty()) {
        const auto special = table.find(fmt::format("{}::{}", domain, type));
        if (special != table.end()) return &special->second;
        if (domain != "com.microsoft") return nullptr;
    }
    const auto rule = table.find(std::string(type));
    return rule == table.end() ? nullptr : &rule->second;
}

} // namespace

Translation::Translation(Builder& builder, Scope& scope, const Node& node, std::size_t index)
    : m_builder(builder), m_scope(scope), m_node(node), m_index(index),
      m_defined(node.outputs.size(), false) {
    for (const std::string_view name : node.inputs)
        m_inputs.push_back(name.empty() ? kNoTensor : builder.read(scope, name));
}

void Translation::run() {
    const Rule* rule = findRule(m_node.domain, m_node.type);
    const bool unknown = std::ranges::any_of(m_inputs, [this](TensorId id) {
        return id != kNoTensor && specOf(id).dtype == DType::Unknown;
    });
    if (rule != nullptr && (!unknown || rule->takesUnknown))
        rule->translate(*this, rule->function);
    else
        opaque();
    for (std::size_t port = 0; port < outputCount(); ++port) opaqueOutput(port);
}

std::int64_t Translation::opset() const {
    const auto import = std::ranges::find(m_scope.opsets, m_node.domain, &OpsetImport::domain);
    return import == m_scope.opsets.end() ? kNewestOpset : import->version;
}

std::string Translation::type() const {
    constexpr std::size_t kLongest = 100;
    const std::string_view name = m_node.type.substr(0, kLongest);
    return cleaned(m_node.domain.empty()
                       ? std::string(name)
                       : fmt::format("{}::{}", m_node.domain.substr(0, kLongest), name));
}

void Translation::fail(const std::string& problem) const {
    throw InputError(problem);
}

TensorId Translation::input(std::size_t i) const {
    if (!has(i)) fail(fmt::format("operand {} is missing", i));
    return m_inputs[i];
}

TensorSpec Translation::specOf(TensorId tensor) const {
    return m_builder.graph().tensor(tensor).spec;
}

const KnownInts* Translation::ints(std::size_t i) const {
    return m_builder.known().ints(inputOrNone(i));
}

const std::vector<double>* Translation::floats(std::size_t i) const {
    return m_builder.known().floats(inputOrNone(i));
}

std::optional<std::int64_t> Translation::scalar(std::size_t i) const {
    const KnownInts* values = ints(i);
    return values != nullptr && values->size() == 1 ? std::optional(values->front()) : std::nullopt;
}

bool Translation::dependsOnInput() const {
    return std::ranges::any_of(
        m_inputs, [this](TensorId id) { return id != kNoTensor && m_builder.dependsOnInput(id); });
}

const Attribute* Translation::attribute(std::string_view name) const {
    const Attribute* found = m_node.attribute(name);
    if (found == nullptr || found->reference.empty()) return found;
    return m_builder.functionAttribute(m_scope, found->reference);
}

std::int64_t Translation::integer(std::string_view name, std::int64_t fallback) const {
    const Attribute* found = attribute(name);
    return found != nullptr && found->type == Attribute::Type::Int ? found->integer : fallback;
}

double Translation::number(std::string_view name, double fallback) const {
    const Attribute* found = attribute(name);
    return found != nullptr && found->type == Attribute::Type::Float ? found->number : fallback;
}

std::string_view Translation::text(std::string_view name, std::string_view fallback) const {
    const Attribute* found = attribute(name);
    return found != nullptr && found->type == Attribute::Type::String ? found->text : fallback;
}

std::optional<Translation::Ints> Translation::integers(std::string_view name) const {
    const Attribute* found = attribute(name);
    if (found == nullptr || found->type != Attribute::Type::Ints) return std::nullopt;
    return found->integers;
}

const TensorData* Translation::tensor(std::string_view name) const {
    const Attribute* found = attribute(name);
    return found == nullptr ? nullptr : found->tensor.get();
}

const GraphData* Translation::graph(std::string_view name) const {
    const Attribute* found = attribute(name);
    return found == nullptr ? nullptr : found->graph.get();
}

std::optional<DType> Translation::dtypeAttribute(std::string_view name) const {
    const std::int64_t number = integer(name, 0);
    if (number == 0) return std::nullopt;
    const auto dtype = dtypeFromOnnx(number);
    if (!dtype) fail(fmt::format("the element type {} does not exist", number));
    return dtype;
}

Translation::Listed Translation::listed(std::string_view name, std::size_t i) const {
    if (auto values = integers(name)) return {std::move(values), true};
    if (!has(i)) return {};
    const KnownInts* values = ints(i);
    if (values == nullptr) return {std::nullopt, false};
    return {*values, true};
}

std::int64_t Translation::axis(std::int64_t value, std::int64_t rank) const {
    if (value < -rank || value >= rank)
        fail(fmt::format("axis {} does not exist in a tensor of rank {}", value, rank));
    return value < 0 ? value + rank : value;
}

Translation::Ints Translation::axes(Ints values, std::int64_t rank) const {
    for (std::int64_t& value : values) value = axis(value, rank);
    std::ranges::sort(values);
    const auto repeats = std::ranges::unique(values);
    values.erase(repeats.begin(), repeats.end());
    return values;
}

bool Translation::wants(std::size_t port) const {
    return port < outputCount() && !m_node.outputs[port].empty() && !m_defined[port];
}

std::string Translation::opName(bool isResult) const {
    if (m_node.name.empty()) return {};
    return m_scope.prefix + cleaned(m_node.name) + (isResult ? "" : "/part");
}

std::vector<std::string> Translation::resultNames(std::size_t port, std::size_t count) const {
    std::vector<std::string> names;
    for (std::size_t i = port; i < port + count; ++i)
        names.push_back(i < outputCount() && !m_node.outputs[i].empty()
                            ? m_scope.prefix + cleaned(m_node.outputs[i])
                            : std::string());
    return names;
}

TensorId Translation::finish(OpId op, std::size_t port) {
    const std::vector<TensorId> results = m_builder.graph().op(op).outputs;
    for (std::size_t i = 0; i < results.size() && port + i < outputCount(); ++i) {
        if (!wants(port + i)) continue;
        m_builder.define(m_scope, m_node.outputs[port + i], results[i]);
        m_defined[port + i] = true;
    }
    return results.empty() ? kNoTensor : results.front();
}

TensorId Translation::step(OpKind kind, Attributes attributes, std::vector<TensorId> inputs,
                           DType dtype) {
    const OpId op = m_builder.add(
        {opName(false), kind, type(), std::move(attributes), std::move(inputs), {}}, {}, dtype);
    return m_builder.graph().op(op).outputs.at(0);
}

TensorId Translation::result(OpKind kind, Attributes attributes, std::vector<TensorId> inputs,
                             DType dtype, std::size_t port) {
    const OpId op =
        m_builder.add({opName(true), kind, type(), std::move(attributes), std::move(inputs), {}},
                      resultNames(port, std::max<std::size_t>(outputCount(), port) - port), dtype);
    return finish(op, port);
}

TensorId Translation::resultAs(OpKind kind, Attributes attributes, std::vector<TensorId> inputs,
                               std::vector<TensorSpec> specs, std::size_t port) {
    const std::size_t count = specs.size();
    const OpId op =
        m_builder.addAs({opName(true), kind, type(), std::move(attributes), std::move(inputs), {}},
                        std::move(specs), resultNames(port, count));
    return finish(op, port);
}

void Translation::alias(TensorId tensor, std::size_t port) {
    resultAs(OpKind::Elementwise, {{"function", std::string("identity")}}, {tensor},
             {specOf(tensor)}, port);
}

std::optional<TensorSpec> Translation::specOfOutput(std::size_t port,
                                                    std::optional<TensorSpec> spec) {
    if (port >= outputCount() || m_node.outputs[port].empty()) return spec;
    if (!spec) spec = m_builder.declared(m_scope, m_node.outputs[port]);
    if (!spec) m_builder.import().report.unknownShape(cleaned(m_node.outputs[port]));
    return spec;
}

void Translation::opaque(std::vector<std::optional<TensorSpec>> specs) {
    m_builder.import().report.opaque(type());
    specs.resize(std::max(specs.size(), outputCount()));
    std::vector<TensorSpec> known;
    for (std::size_t i = 0; i < specs.size(); ++i)
        known.push_back(specOfOutput(i, std::move(specs[i])).value_or(TensorSpec{}));
    resultAs(OpKind::Opaque, {}, m_inputs, std::move(known));
}

void Translation::opaqueOutput(std::size_t port, std::optional<TensorSpec> spec) {
    if (!wants(port)) return;
    m_builder.import().report.opaque(fmt::format("output {} of {}", port, type()));
    resultAs(OpKind::Opaque, {}, m_inputs,
             {specOfOutput(port, std::move(spec)).value_or(TensorSpec{})}, port);
}

void Translation::computed(TensorSpec spec, std::optional<KnownInts> value) {
    if (!value) return opaque({std::move(spec)});
    const TensorId tensor = resultAs(OpKind::Opaque, {}, m_inputs, {std::move(spec)});
    m_builder.known().setInts(tensor, std::move(*value));
}

void Translation::source(TensorSpec spec, std::optional<KnownInts> ints,
                         std::optional<std::vector<double>> floats, bool trainable,
                         std::optional<Attributes> made) {
    const auto role = m_scope.roles.find(m_node.outputs.empty() ? "" : m_node.outputs[0]);
    const bool fixed = role != m_scope.roles.end() && role->second == Role::Fixed;
    const bool several = !spec.shape.empty() && elementsOf(spec.shape) > 1;
    const bool trained = trainable && several && isFloat(spec.dtype) && !fixed &&
                         !m_scope.repeated && !m_builder.import().isTraining();
    const bool generated = !trainable && made && !ints;
    if (generated) {
        made->set("shape", spec.shape);
        made->set("to", std::string(nameOf(spec.dtype)));
    }
    const OpKind kind = trained     ? OpKind::Parameter
                        : generated ? OpKind::Generate
                                    : OpKind::Constant;
    const TensorId tensor =
        resultAs(kind, generated ? std::move(*made) : Attributes{}, {}, {std::move(spec)});
    const bool readWhole =
        floats && elementsOf(specOf(tensor).shape) == static_cast<double>(floats->size());
    if (trained && readWhole) m_builder.graph().setKnownReals(tensor, std::move(*floats));
    if (trained) return;
    if (ints) m_builder.known().setInts(tensor, std::move(*ints));
    if (floats) m_builder.known().setFloats(tensor, std::move(*floats));
}

TensorId Translation::number(double value, DType dtype) {
    const TensorId tensor = step(OpKind::Generate,
                                 {{"function", std::string("constant")},
                                  {"shape", Shape{}},
                                  {"to", std::string(nameOf(dtype))},
                                  {"value", value}},
                                 {});
    m_builder.known().set(tensor, {value});
    return tensor;
}

void Translation::alsoReads(std::span<const TensorId> tensors) {
    for (const TensorId tensor : tensors)
        if (std::ranges::find(m_inputs, tensor) == m_inputs.end()) m_inputs.push_back(tensor);
}

TensorId Translation::reshaped(TensorId tensor, Shape shape) {
    return step(OpKind::Reshape, {{"shape", std::move(shape)}}, {tensor});
}

TensorId Translation::transposed(TensorId tensor, Ints perm) {
    return step(OpKind::Transpose, {{"perm", std::move(perm)}}, {tensor});
}

} // namespace shardlens::onnx
