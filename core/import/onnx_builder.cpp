// SPDX-License-Identifier: Apache-2.0
// Scopes and sources, and the ops that are added for nodes.
#include "core/import/onnx_builder.h"

#include "core/import/onnx_order.h"
#include "core/import/onnx_tensor.h"
#include "core/import/onnx_translation.h"
#include "core/import/text.h"
#include "core/model/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardlens::onnx {

namespace {

constexpr std::size_t kMaxUnfolded = 250'000; ///< nodes that functions and bodies may add

std::vector<const ValueInfo*> realInputsOf(const GraphData& graph) {
    std::unordered_set<std::string_view> initialized;
    for (const TensorData& initializer : graph.initializers) initialized.insert(initializer.name);
    std::vector<const ValueInfo*> inputs;
    for (const ValueInfo& input : graph.inputs)
        if (!initialized.contains(input.name)) inputs.push_back(&input);
    return inputs;
}

} // namespace

Import::Import(const Model& model, const ImportOptions& options, std::string where)
    : m_model(model), m_options(options), m_where(std::move(where)),
      m_realInputs(realInputsOf(model.graph)), m_symbols(m_realInputs, options, m_where),
      m_roles([this](const Node& node) { return functionOf(node); }) {
    for (const Function& function : model.functions)
        m_functions.try_emplace({function.domain, function.name, function.overload}, &function);
    for (const ValueInfo& output : model.graph.outputs) m_outputs.insert(output.name);
    m_training = std::ranges::any_of(
        m_realInputs, [this](const ValueInfo* input) { return isTrainedInput(*input); });
}

const Function* Import::functionOf(const Node& node) const {
    const auto found = m_functions.find({node.domain, node.type, node.overload});
    return found == m_functions.end() ? nullptr : found->second;
}

void Import::countNode(const Node& node) {
    const std::size_t limit = 4 * m_model.nodeCount + kMaxUnfolded;
    m_nodes += 1 + node.nested;
    if (m_nodes > limit)
        throw InputError(fmt::format("the model unfolds to more than {} nodes", limit), m_where,
                         "its functions or loops call each other too often");
    if (m_options.stop.stop_requested()) throw Cancelled();
}

bool Import::isTrainedInput(const ValueInfo& input) const {
    return isFloat(input.dtype) && m_outputs.contains(std::string(input.name) + "_grad");
}

std::string innerPrefix(const Scope& scope, const Node& node, std::size_t index) {
    constexpr std::size_t kLongest = 200;
    std::string prefix = scope.prefix + (node.name.empty() ? fmt::format("{}_{}", node.type, index)
                                                           : std::string(node.name));
    if (prefix.size() > kLongest) prefix.erase(0, prefix.size() - kLongest);
    return prefix + "/";
}

void Builder::enter(Scope& scope, const GraphData& graph) {
    for (const TensorData& initializer : graph.initializers) {
        if (initializer.name.empty()) continue;
        if (!scope.names.try_emplace(initializer.name, Binding{.initializer = &initializer}).second)
            throw InputError(
                fmt::format("the initializer {} exists twice, the second time at byte {}",
                            inQuotes(initializer.name), initializer.offset),
                m_import.where(), "a name may be defined once: export the model again");
    }
    for (const auto* list : {&graph.values, &graph.outputs})
        for (const ValueInfo& value : *list) scope.declared.try_emplace(value.name, &value);
    scope.roles = m_import.rolesOf(graph.nodes);
}

const Binding* Builder::find(const Scope& scope, std::string_view name) {
    for (const Scope* at = &scope; at != nullptr; at = at->parent)
        if (const auto found = at->names.find(name); found != at->names.end())
            return &found->second;
    return nullptr;
}

namespace {

/// The function's or the body's own scope, around any branches.
template <typename AnyScope>
AnyScope& rootOf(AnyScope& scope) {
    AnyScope* root = &scope;
    while (root->parent != nullptr) root = root->parent;
    return *root;
}

} // namespace

bool Builder::isDefined(const Scope& scope, std::string_view name) const {
    if (find(scope, name) != nullptr) return true;
    return m_outer != nullptr && !rootOf(scope).closed && m_outer->isDefined(*m_outerScope, name);
}

const Attribute* Builder::functionAttribute(const Scope& scope, std::string_view name) const {
    for (const Scope* at = &scope; at != nullptr; at = at->parent)
        if (const auto found = at->attributes.find(name); found != at->attributes.end())
            return found->second;
    if (m_outer == nullptr || rootOf(scope).closed) return nullptr;
    return m_outer->functionAttribute(*m_outerScope, name);
}

TensorId Builder::read(Scope& scope, std::string_view name) {
    for (Scope* at = &scope; at != nullptr; at = at->parent)
        if (const auto found = at->names.find(name); found != at->names.end())
            return materialise(*at, found->second);
    if (Scope& root = rootOf(scope); m_outer != nullptr && !root.closed) {
        const TensorId tensor = capture(name);
        root.names[name] = Binding{.tensor = tensor}; // so that it is captured once
        return tensor;
    }
    throw InputError(fmt::format("the value {} is read, but nothing defines it", inQuotes(name)),
                     m_import.where(), "the model is incomplete: export it again");
}

TensorId Builder::materialise(const Scope& scope, Binding& binding) {
    if (binding.tensor == kNoTensor && binding.initializer != nullptr)
        binding.tensor = addInitializer(scope, *binding.initializer);
    else if (binding.tensor == kNoTensor && binding.input != nullptr)
        binding.tensor = addInput(scope, *binding.input);
    return binding.tensor;
}

TensorId Builder::addInitializer(const Scope& scope, const TensorData& data) {
    const auto role = scope.roles.find(data.name);
    const auto hasRole = [&](Role wanted) {
        return role != scope.roles.end() && role->second == wanted;
    };
    const bool packed = hasRole(Role::Packed4Bit);
    const bool several = !data.dims.empty() && elementsOf(data.dims) > 1;
    const bool trained =
        several && !m_import.isTraining() &&
        (isFloat(data.dtype) ? !hasRole(Role::Fixed) : hasRole(Role::QuantizedWeight) || packed);
    TensorSpec spec = data.spec();
    if (packed && trained && spec.dtype == DType::U8) {
        spec.dtype = DType::U4;
        spec.shape.back() *= 2;
    }
    Op op;
    op.name = scope.prefix + cleaned(data.name);
    op.kind = trained ? OpKind::Parameter : OpKind::Constant;
    op.type = "initializer";
    const std::string name = op.name;
    const TensorId tensor = m_graph.op(addAs(std::move(op), {spec}, {name})).outputs[0];
    setDependsOnInput(tensor, false);
    if (!trained && data.ints) m_known.setInts(tensor, *data.ints);
    if (!trained && data.floats) m_known.setFloats(tensor, *data.floats);
    if (trained && data.floats &&
        elementsOf(spec.shape) == static_cast<double>(data.floats->size()))
        m_graph.setKnownReals(tensor, *data.floats);
    return tensor;
}

TensorId Builder::addInput(const Scope& scope, const ValueInfo& input) {
    const bool trained = m_import.isTrainedInput(input);
    TensorSpec spec;
    if (auto shape = m_import.symbols().inputShape(input)) {
        spec = {input.dtype, std::move(*shape)};
    } else if (input.dims) {
        throw InputError(fmt::format("the size of input {} cannot be told from the symbolic "
                                     "dimensions",
                                     inQuotes(input.name)),
                         m_import.where(), "bind them with --bind NAME=SIZE");
    }
    if (spec.dtype == DType::Unknown) m_import.report.unknownShape(cleaned(input.name));
    Op op;
    op.name = scope.prefix + cleaned(input.name);
    op.kind = trained ? OpKind::Parameter : OpKind::Input;
    op.type = "input";
    const std::string name = op.name;
    const TensorId tensor = m_graph.op(addAs(std::move(op), {spec}, {name})).outputs[0];
    setDependsOnInput(tensor, !trained);
    return tensor;
}

TensorId Builder::capture(std::string_view name) {
    const TensorId outside = m_outer->read(*m_outerScope, name);
    if (outside == kNoTensor) return kNoTensor;
    Op op;
    op.name = cleaned(name);
    op.kind = OpKind::Input;
    const TensorId tensor =
        m_graph.op(addAs(std::move(op), {m_outer->m_graph.tensor(outside).spec}, {})).outputs[0];
    setDependsOnInput(tensor, m_outer->dependsOnInput(outside));
    if (const auto elements = m_outer->m_known.elements(outside)) m_known.set(tensor, *elements);
    m_captures.push_back(outside);
    return tensor;
}

TensorId Builder::addFormal(Scope& scope, std::string_view name, TensorSpec spec) {
    Op op;
    op.name = scope.prefix + cleaned(name);
    op.kind = OpKind::Input;
    const TensorId tensor = m_graph.op(addAs(std::move(op), {std::move(spec)}, {})).outputs[0];
    setDependsOnInput(tensor, true);
    define(scope, name, tensor);
    return tensor;
}

void Builder::define(Scope& scope, std::string_view name, TensorId tensor) {
    scope.names[name] = Binding{.tensor = tensor};
}

std::optional<TensorSpec> Builder::declared(const Scope& scope, std::string_view name) const {
    const auto found = scope.declared.find(name);
    if (found == scope.declared.end()) return std::nullopt;
    return m_import.symbols().declared(*found->second);
}

void Builder::run(Scope& scope, const std::vector<Node>& nodes) {
    if (scope.depth > kMaxDepth)
        throw InputError(fmt::format("functions and graphs are nested deeper than {}", kMaxDepth),
                         m_import.where(), "a function must not call itself");
    const auto order = executionOrder(
        nodes, [&](std::string_view name) { return isDefined(scope, name); },
        [&](std::string_view name) { return scope.names.contains(name); }, m_import.where());
    for (const std::size_t index : order) {
        m_import.countNode(nodes[index]);
        const bool outerDepends = m_nodeDepends;
        try {
            runNode(scope, nodes[index], index);
        } catch (const NodeError&) {
            throw;
        } catch (const InputError& error) {
            std::string hint = error.hint();
            if (hint.empty())
                hint = m_import.symbols().anyGuessed()
                           ? "bind its symbolic dimensions with --bind NAME=SIZE, or check the "
                             "model with its exporter"
                           : "check the model with its exporter";
            throw NodeError(error.problem(),
                            fmt::format("{}, {}{}", m_import.where(), cleaned(scope.prefix),
                                        describe(nodes[index], index)),
                            hint);
        }
        m_nodeDepends = outerDepends;
    }
}

void Builder::runNode(Scope& scope, const Node& node, std::size_t index) {
    if (const Function* function = m_import.functionOf(node))
        return inlineFunction(scope, node, index, *function);
    Translation translation(*this, scope, node, index);
    m_nodeDepends = false;
    for (std::size_t i = 0; i < translation.inputCount(); ++i)
        if (translation.has(i) && dependsOnInput(translation.input(i))) m_nodeDepends = true;
    translation.run();
}

OpId Builder::add(Op op, std::vector<std::string> names, DType dtype) {
    OpView view{op, {}, {}};
    for (const TensorId id : op.inputs)
        view.inputs.push_back(id == kNoTensor ? TensorSpec{} : m_graph.tensor(id).spec);
    std::vector<TensorSpec> specs = inferShapes(view);
    if (dtype != DType::Unknown && !specs.empty()) specs[0].dtype = dtype;
    return addAs(std::move(op), std::move(specs), std::move(names));
}

OpId Builder::addAs(Op op, std::vector<TensorSpec> specs, std::vector<std::string> names) {
    for (const TensorSpec& spec : specs) {
        const bool sane =
            spec.shape.size() <= kMaxRank && elementsOf(spec.shape) <= kMaxElements &&
            std::ranges::all_of(spec.shape, [](auto d) { return d >= 0 && d <= kMaxDim; });
        if (!sane)
            throw InputError(
                fmt::format("a result would have the impossible shape {}", toString(spec.shape)));
    }
    const OpId id = m_graph.addOp(std::move(op), std::move(specs), std::move(names));
    const Op& added = m_graph.op(id);
    const bool depends = m_nodeDepends || std::ranges::any_of(added.inputs, [this](TensorId input) {
                             return input != kNoTensor && m_depends[input];
                         });
    m_depends.resize(m_graph.tensors().size(), depends);
    m_known.propagate(id);
    return id;
}

} // namespace shardlens::onnx
