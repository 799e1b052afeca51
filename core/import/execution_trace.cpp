// SPDX-License-Identifier: Apache-2.0
// See execution_trace.h.
#include "core/import/execution_trace.h"

#include "core/error.h"
#include "core/import/json_text.h"
#include "core/import/text.h"
#include "core/import/torch_symbols.h"
#include "core/import/torch_translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace shardlens {

namespace {

using nlohmann::json;
using torch::Value;

std::optional<DType> dtypeFromCpp(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, DType>, 20> kNames{{
        {"float", DType::F32},
        {"double", DType::F64},
        {"c10::Half", DType::F16},
        {"c10::BFloat16", DType::BF16},
        {"c10::Float8_e4m3fn", DType::F8E4M3},
        {"c10::Float8_e5m2", DType::F8E5M2},
        {"long int", DType::I64},
        {"long", DType::I64},
        {"int64_t", DType::I64},
        {"int", DType::I32},
        {"short", DType::I16},
        {"short int", DType::I16},
        {"signed char", DType::I8},
        {"char", DType::I8},
        {"unsigned char", DType::U8},
        {"bool", DType::Bool},
        {"c10::complex<float>", DType::C64},
        {"c10::complex<double>", DType::C128},
        {"unsigned short", DType::U16},
        {"unsigned int", DType::U32},
    }};
    const auto found = std::ranges::find(kNames, name, &decltype(kNames)::value_type::first);
    if (found == kNames.end()) return std::nullopt;
    return found->second;
}

/// A tensor by its id and its storage's: [id, storage, offset, elements, item size, device].
using Key = std::pair<std::int64_t, std::int64_t>;

/// One operand or result.
struct Port {
    const json* value;
    const json* shape;
    std::string type;

    bool isTensor() const { return type.starts_with("Tensor("); }
    bool isTensorList() const {
        return type.starts_with("GenericList[Tensor(") || type.starts_with("TensorList[Tensor(");
    }
};

struct Item {
    Key key;
    std::optional<TensorSpec> spec;
};

std::optional<Key> keyOf(const json& value) {
    if (!value.is_array() || value.size() < 2 || !value[0].is_number_integer() ||
        !value[1].is_number_integer())
        return std::nullopt;
    return Key{value[0].get<std::int64_t>(), value[1].get<std::int64_t>()};
}

/// "Tensor(float)" → the type between the parentheses.
std::string_view elementType(std::string_view type) {
    const auto open = type.find('(');
    const auto close = type.find(')', open);
    if (open == std::string_view::npos || close == std::string_view::npos) return {};
    return type.substr(open + 1, close - open - 1);
}

std::optional<TensorSpec> specOf(std::string_view type, const json& shape) {
    const auto dtype = dtypeFromCpp(elementType(type));
    if (!dtype || !shape.is_array() || shape.size() > torch::kMaxRank) return std::nullopt;
    TensorSpec spec{*dtype, {}};
    for (const json& size : shape) {
        if (!size.is_number_integer()) return std::nullopt;
        spec.shape.push_back(size.get<std::int64_t>());
    }
    if (!torch::isReasonable(spec.shape)) return std::nullopt;
    return spec;
}

/// A node in either layout.
struct Node {
    std::int64_t id = 0;
    std::string name, schema;
    std::optional<std::size_t> parent; ///< index; an earlier node
    std::vector<Port> inputs, outputs;

    bool isOperator() const { return !schema.empty(); }
};

std::vector<Port> portsOf(const json& values, const json& shapes, const json& types) {
    static const json absent;
    std::vector<Port> ports;
    if (!values.is_array()) return ports;
    for (std::size_t i = 0; i < values.size(); ++i) {
        Port port{&values[i], &absent, {}};
        if (shapes.is_array() && i < shapes.size()) port.shape = &shapes[i];
        if (types.is_array() && i < types.size() && types[i].is_string())
            port.type = types[i].get<std::string>();
        ports.push_back(std::move(port));
    }
    return ports;
}

std::string schemaOf(const json& node) {
    if (const json& attributes = member(node, "attrs"); attributes.is_array())
        for (const json& attribute : attributes)
            if (textOf(attribute, "name") == "op_schema") return textOf(attribute, "value");
    return textOf(node, "op_schema");
}

Node nodeOf(const json& node) {
    Node result;
    if (const json& id = member(node, "id"); id.is_number_integer())
        result.id = id.get<std::int64_t>();
    result.name = cleaned(textOf(node, "name"));
    result.schema = schemaOf(node);
    const auto side = [&](const char* plural, const char* prefix) {
        const json& grouped = member(node, plural);
        if (grouped.is_object())
            return portsOf(member(grouped, "values"), member(grouped, "shapes"),
                           member(grouped, "types"));
        return portsOf(grouped, member(node, fmt::format("{}_shapes", prefix)),
                       member(node, fmt::format("{}_types", prefix)));
    };
    result.inputs = side("inputs", "input");
    result.outputs = side("outputs", "output");
    return result;
}

/// "aten::addmm(Tensor self, Tensor mat1, *, Scalar beta=1) -> Tensor" → self, mat1, beta.
std::vector<std::string> argumentNames(std::string_view schema) {
    std::vector<std::string> names;
    const auto open = schema.find('(');
    if (open == std::string_view::npos) return names;
    int depth = 0;
    std::string current;
    for (const char c : schema.substr(open)) {
        if (c == '(' || c == '[') ++depth;
        if (c == ')' || c == ']') --depth;
        const bool ends = depth == 0 || (depth == 1 && c == ',');
        if (!ends) {
            current += c;
            continue;
        }
        const std::string_view declaration = std::string_view(current).substr(0, current.find('='));
        const auto blank = declaration.find_last_of(' ');
        const std::string_view name =
            blank == std::string_view::npos ? declaration : declaration.substr(blank + 1);
        if (name != "*" && name != "(*" && !name.empty()) names.push_back(cleaned(name));
        current.clear();
        if (depth == 0) break;
    }
    return names;
}

/// "aten::transpose.int(…" → "aten.transpose.int".
std::string targetOf(const Node& node) {
    const std::string_view schema = std::string_view(node.schema).substr(0, node.schema.find('('));
    const auto colons = schema.find("::");
    if (colons == std::string_view::npos) return cleaned(schema);
    return fmt::format("{}.{}", cleaned(schema.substr(0, colons)),
                       cleaned(schema.substr(colons + 2)));
}

std::vector<Item> tensorsOf(const Port& port) {
    std::vector<Item> items;
    if (port.isTensor()) {
        if (const auto key = keyOf(*port.value))
            items.push_back({*key, specOf(port.type, *port.shape)});
    } else if (port.isTensorList() && port.value->is_array()) {
        for (std::size_t i = 0; i < port.value->size(); ++i)
            if (const auto key = keyOf((*port.value)[i])) {
                const bool shaped = port.shape->is_array() && i < port.shape->size();
                items.push_back(
                    {*key, shaped ? specOf(port.type, (*port.shape)[i]) : std::nullopt});
            }
    }
    return items;
}

std::set<Key> keysOf(const std::vector<Port>& ports) {
    std::set<Key> keys;
    for (const Port& port : ports)
        for (const Item& item : tensorsOf(port)) keys.insert(item.key);
    return keys;
}

class Reader {
public:
    Reader(const json& root, const std::string& where, const ImportOptions& options)
        : m_options(options) {
        m_program.where = where;
        m_program.lineWord = "node";
        readNodes(member(root, "nodes"));
        if (const std::string version = textOf(root, "schema"); !version.empty())
            m_program.facts["schema"] = cleaned(version);
    }

    torch::Program read() {
        decide();
        for (std::size_t i = 0; i < m_nodes.size(); ++i) {
            if (i % kStopEvery == 0 && m_options.stop.stop_requested()) throw Cancelled();
            noteWeights(m_nodes[i]);
            if (m_taken[i]) take(m_nodes[i]);
        }
        giveResults();
        std::size_t operators = 0;
        for (const Node& node : m_nodes) {
            operators += node.isOperator();
            const std::string_view name = node.name;
            m_program.backward = m_program.backward ||
                                 name.find("Backward") != std::string_view::npos ||
                                 name.starts_with("autograd::engine::evaluate_function");
        }
        m_program.facts["nodes"] = fmt::format("{}", m_nodes.size());
        m_program.facts["operators"] = fmt::format("{}", operators);
        m_program.facts["operators taken"] = fmt::format("{}", m_program.calls.size());
        return std::move(m_program);
    }

private:
    void readNodes(const json& nodes) {
        if (!nodes.is_array())
            throw InputError("the JSON holds no nodes", m_program.where,
                             "record the trace with torch.profiler.ExecutionTraceObserver");
        std::vector<std::pair<std::int64_t, const json*>> order;
        for (const json& node : nodes) {
            const json& id = member(node, "id");
            order.emplace_back(id.is_number_integer() ? id.get<std::int64_t>() : 0, &node);
        }
        std::ranges::stable_sort(order, {}, &decltype(order)::value_type::first); // as they began
        std::unordered_map<std::int64_t, std::size_t> indexOf;
        for (const auto& [id, node] : order) {
            m_nodes.push_back(nodeOf(*node));
            const json& parent = member(*node, node->contains("parent") ? "parent" : "ctrl_deps");
            if (parent.is_number_integer())
                if (const auto at = indexOf.find(parent.get<std::int64_t>()); at != indexOf.end())
                    m_nodes.back().parent = at->second;
            if (!indexOf.emplace(id, m_nodes.size() - 1).second)
                throw InputError("two nodes have the same id",
                                 fmt::format("{}, node {}", m_program.where, id),
                                 "the file is damaged: record the trace again");
        }
    }

    // --- which nodes -----------------------------------------------------------------------------

    /// An operator stands for itself unless those it calls make all its results and say more.
    void decide() {
        std::vector<std::vector<std::size_t>> called(m_nodes.size());
        for (std::size_t i = 0; i < m_nodes.size(); ++i)
            if (m_nodes[i].isOperator() && m_nodes[i].parent && !keysOf(m_nodes[i].outputs).empty())
                called[*m_nodes[i].parent].push_back(i);
        m_taken.assign(m_nodes.size(), false);
        std::vector<bool> inside(m_nodes.size(), false); // of one that was taken
        for (std::size_t i = 0; i < m_nodes.size(); ++i) {
            const auto parent = m_nodes[i].parent;
            inside[i] = parent && (inside[*parent] || m_taken[*parent]);
            if (inside[i] || !m_nodes[i].isOperator()) continue;
            m_taken[i] = standsForItself(m_nodes[i], called[i], called);
        }
    }

    bool standsForItself(const Node& node, const std::vector<std::size_t>& calls,
                         const std::vector<std::vector<std::size_t>>& called) const {
        const std::set<Key> results = keysOf(node.outputs);
        std::set<Key> made;
        bool usable = true;
        for (const std::size_t call : calls) {
            made.merge(keysOf(m_nodes[call].outputs));
            usable = usable && (torch::isKnown(targetOf(m_nodes[call])) || !called[call].empty());
        }
        const bool covered = usable && std::ranges::includes(made, results) && !calls.empty();
        if (!covered) return true;
        // One that only calls another stands for it, unless that one has more results.
        return calls.size() == 1 && torch::isKnown(targetOf(node)) &&
               std::ranges::includes(results, made);
    }

    /// Operands that layers read as their weights.
    void noteWeights(const Node& node) {
        struct Layer {
            std::string_view name;
            std::array<std::size_t, 2> weights;
        };
        constexpr std::array<Layer, 12> kLayers{{{"linear", {1, 2}},
                                                 {"addmm", {0, 0}},
                                                 {"embedding", {0, 0}},
                                                 {"conv1d", {1, 2}},
                                                 {"conv2d", {1, 2}},
                                                 {"conv3d", {1, 2}},
                                                 {"convolution", {1, 2}},
                                                 {"layer_norm", {2, 3}},
                                                 {"native_layer_norm", {2, 3}},
                                                 {"batch_norm", {1, 2}},
                                                 {"group_norm", {2, 3}},
                                                 {"rms_norm", {2, 2}}}};
        if (!node.isOperator()) return;
        const std::string target = targetOf(node);
        const auto layer = std::ranges::find(kLayers, torch::split(target).base, &Layer::name);
        if (layer == kLayers.end()) return;
        for (const std::size_t i : layer->weights)
            if (i < node.inputs.size())
                for (const Item& item : tensorsOf(node.inputs[i]))
                    if (!m_names.contains(item.key)) m_weights.insert(item.key);
    }

    // --- calls -----------------------------------------------------------------------------------

    std::string nameOf(const Item& item) {
        if (const auto known = m_names.find(item.key); known != m_names.end()) return known->second;
        // What autograd keeps is another tensor on the same storage.
        if (const auto same = m_storages.find(item.key.second);
            same != m_storages.end() && item.spec && same->second.second == item.spec) {
            m_names.emplace(item.key, same->second.first);
            return same->second.first;
        }
        torch::Placeholder placeholder;
        placeholder.name = fmt::format("tensor_{}_{}", item.key.first, item.key.second);
        placeholder.spec = item.spec;
        placeholder.role =
            m_weights.contains(item.key) ? torch::Role::Parameter : torch::Role::Input;
        define(item, placeholder.name);
        m_program.placeholders.push_back(std::move(placeholder));
        return m_program.placeholders.back().name;
    }

    void define(const Item& item, const std::string& name) {
        m_names.insert_or_assign(item.key, name);
        m_storages.insert_or_assign(item.key.second, std::pair{name, item.spec});
    }

    static Value plain(const json& value) {
        if (value.is_boolean()) return Value::ofBoolean(value.get<bool>());
        if (value.is_number_integer()) return Value::ofInteger(value.get<std::int64_t>());
        if (value.is_number()) return Value::ofReal(value.get<double>());
        if (value.is_string()) {
            const std::string text = cleaned(value.get<std::string>());
            return text == "<None>" ? Value{} : Value::ofText(text);
        }
        if (!value.is_array()) return {};
        std::vector<Value> items;
        for (const json& item : value) items.push_back(item.is_array() ? Value{} : plain(item));
        return Value::ofList(std::move(items));
    }

    Value argument(const Port& port) {
        if (!port.isTensor() && !port.isTensorList())
            return port.type == "None" ? Value{} : plain(*port.value);
        std::vector<Value> names;
        for (const Item& item : tensorsOf(port)) names.push_back(Value::ofName(nameOf(item)));
        if (port.isTensorList()) return Value::ofList(std::move(names));
        return names.empty() ? Value{} : std::move(names[0]);
    }

    void take(const Node& node) {
        std::vector<Item> results;
        for (const Port& port : node.outputs)
            for (Item& item : tensorsOf(port)) results.push_back(std::move(item));
        if (results.empty()) return; // it looks, or works in place on what it is given
        torch::Call call;
        call.target = targetOf(node);
        call.line = static_cast<std::size_t>(std::max<std::int64_t>(node.id, 0));
        const std::vector<std::string> names = argumentNames(node.schema);
        for (std::size_t i = 0; i < node.inputs.size(); ++i)
            call.arguments.push_back(
                {i < names.size() ? names[i] : std::string(), argument(node.inputs[i])});
        const torch::Target target = torch::split(call.target);
        call.label = fmt::format("{}_{}", target.base, node.id);
        call.tuple =
            results.size() > 1 || (!node.outputs.empty() && node.outputs[0].isTensorList());
        call.name = call.tuple ? call.label + ":all" : call.label;
        for (std::size_t i = 0; i < results.size(); ++i) {
            std::string name = call.tuple ? fmt::format("{}:{}", call.label, i) : call.label;
            define(results[i], name);
            call.results.push_back({std::move(name), results[i].spec, false});
        }
        m_program.calls.push_back(std::move(call));
    }

    // --- results ---------------------------------------------------------------------------------

    static bool fillsOnly(std::string_view base) {
        return std::ranges::any_of(
            std::array<std::string_view, 7>{"empty", "zero", "ones", "fill", "full", "resize",
                                            "set_"},
            [base](std::string_view start) { return base.starts_with(start); });
    }

    void giveResults() {
        std::unordered_set<std::string> read;
        const auto collect = [&](auto&& self, const Value& value) -> void {
            if (value.kind == Value::Kind::Name) read.insert(value.text);
            for (const Value& item : value.items) self(self, item);
        };
        for (const torch::Call& call : m_program.calls)
            for (const torch::Argument& one : call.arguments) collect(collect, one.value);
        for (torch::Call& call : m_program.calls)
            for (std::size_t i = 0; i < call.results.size(); ++i) {
                torch::Result& result = call.results[i];
                result.wanted = read.contains(result.name);
                // Statistics beside a result are kept for the backward pass only.
                if (result.wanted || i > 0 || fillsOnly(torch::split(call.target).base)) continue;
                result.wanted = true;
                m_program.outputs.push_back(Value::ofName(result.name));
            }
    }

    static constexpr std::size_t kStopEvery = 1024;

    const ImportOptions& m_options;
    torch::Program m_program;
    std::vector<Node> m_nodes;
    std::vector<bool> m_taken;
    std::map<Key, std::string> m_names; ///< what each tensor is now
    /// What was last written to each storage.
    std::unordered_map<std::int64_t, std::pair<std::string, std::optional<TensorSpec>>> m_storages;
    std::set<Key> m_weights;
};

} // namespace

Graph importExecutionTrace(std::string_view text, const std::string& where,
                           const ImportOptions& options) {
    const json root = parseJson(text, where);
    Graph graph =
        torch::translate(Reader(root, where, options).read(), "PyTorch execution trace", options);
    if (!options.bindings.empty())
        throw InputError(fmt::format("the model has no symbolic dimension {}",
                                     shardlens::inQuotes(options.bindings.begin()->first)),
                         where, "all its dimensions are fixed");
    return graph;
}

} // namespace shardlens
