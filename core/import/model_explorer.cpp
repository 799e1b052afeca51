// SPDX-License-Identifier: Apache-2.0
// Nodes may be listed in any order: they are taken when all they read is there, in file order else
// (Kahn's algorithm). A label becomes a kind of ours only where the catalogue then infers the very
// shape that the file notes.
#include "core/import/model_explorer.h"

#include "core/error.h"
#include "core/import/mlir_types.h"
#include "core/import/text.h"
#include "core/model/catalogue.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <queue>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <unordered_map>

namespace shardlens {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostNodes = 500'000;
constexpr std::size_t kMostEdges = 5'000'000;
constexpr std::size_t kMostPorts = 1024;
constexpr int kMostDepth = 32;

struct Edge {
    std::size_t source = 0; ///< node
    std::size_t output = 0;
    std::string target; ///< id of the operand
};

struct Node {
    std::string id, label, space;
    std::vector<Edge> edges;
    std::vector<std::string> outputs; ///< ids, in order
    std::vector<std::optional<TensorSpec>> specs;

    std::size_t output(const std::string& wanted) {
        const auto found = std::ranges::find(outputs, wanted);
        if (found != outputs.end()) return static_cast<std::size_t>(found - outputs.begin());
        outputs.push_back(wanted);
        specs.emplace_back();
        return outputs.size() - 1;
    }
};

// --- reading ------------------------------------------------------------------------------------

class Reader {
public:
    Reader(const std::string& where, const ImportOptions& options)
        : m_where(where), m_options(options) {}

    [[noreturn]] void fail(const std::string& problem, const std::string& hint = {}) const {
        throw InputError(problem, m_where, hint);
    }

    Json parse(std::string_view text) const {
        try {
            return Json::parse(text, [this](int depth, Json::parse_event_t, Json&) {
                if (depth > kMostDepth) fail("the JSON nests too deeply");
                return true;
            });
        } catch (const Json::parse_error& error) {
            fail(fmt::format("not valid JSON at byte {}", error.byte), "the file may be cut off");
        } catch (const Json::exception&) {
            fail("a number is out of range");
        }
    }

    /// The first graph with nodes, wherever it is: {graphs}, [{graphs}] or {graphCollections}.
    const Json* findGraph(const Json& root) {
        const Json* found = nullptr;
        const auto add = [&](const Json& list) {
            if (!list.is_array()) return;
            for (const Json& graph : list) {
                if (!graph.is_object() || !graph.contains("nodes")) continue;
                ++graphs;
                if (found == nullptr) found = &graph;
            }
        };
        const auto collection = [&](const Json& value) {
            if (value.is_object() && value.contains("graphs")) add(value["graphs"]);
        };
        collection(root);
        const Json* list = &root;
        if (root.is_object() && root.contains("graphCollections")) list = &root["graphCollections"];
        if (list->is_array()) {
            add(*list);
            for (const Json& value : *list) collection(value);
        }
        return found;
    }

    void readNodes(const Json& graph) {
        const Json& list = graph["nodes"];
        if (!list.is_array() || list.empty()) fail("the graph has no nodes");
        if (list.size() > kMostNodes) fail(fmt::format("the graph has {} nodes", list.size()));
        for (const Json& value : list) {
            Node node;
            node.id = textOf(value, "id");
            if (node.id.empty()) fail(fmt::format("node {} has no id", nodes.size()));
            node.label = cleaned(textOf(value, "label"));
            node.space = cleaned(textOf(value, "namespace"));
            if (!m_byId.emplace(node.id, nodes.size()).second)
                fail(fmt::format("two nodes have the id {}", shardlens::inQuotes(node.id)));
            readOutputs(value, node);
            nodes.push_back(std::move(node));
        }
        for (std::size_t i = 0; i < list.size(); ++i) readEdges(list[i], i);
    }

    std::vector<std::size_t> order() const {
        std::vector<std::size_t> waiting(nodes.size());
        std::vector<std::vector<std::size_t>> readers(nodes.size());
        std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            waiting[i] = nodes[i].edges.size();
            for (const Edge& edge : nodes[i].edges) readers[edge.source].push_back(i);
            if (waiting[i] == 0) ready.push(i);
        }
        std::vector<std::size_t> result;
        while (!ready.empty()) {
            const std::size_t node = ready.top();
            ready.pop();
            result.push_back(node);
            for (const std::size_t reader : readers[node])
                if (--waiting[reader] == 0) ready.push(reader);
        }
        if (result.size() < nodes.size()) {
            const auto stuck = std::ranges::find_if(waiting, [](std::size_t n) { return n > 0; });
            fail(fmt::format(
                "the node {} is part of a cycle, or behind one",
                shardlens::inQuotes(nodes[static_cast<std::size_t>(stuck - waiting.begin())].id)));
        }
        return result;
    }

    std::vector<Node> nodes;
    std::size_t graphs = 0, dangling = 0;

private:
    static std::string textOf(const Json& value, const char* key) {
        const auto found = value.is_object() ? value.find(key) : value.end();
        if (!value.is_object() || found == value.end()) return {};
        if (found->is_string()) return found->get<std::string>();
        return found->is_number() ? found->dump() : std::string();
    }

    void readOutputs(const Json& value, Node& node) const {
        const auto list = value.find("outputsMetadata");
        if (list == value.end() || !list->is_array()) return;
        for (const Json& output : *list) {
            if (node.outputs.size() >= kMostPorts) fail("a node has too many results");
            const std::size_t port = node.output(textOf(output, "id"));
            const auto attributes = output.is_object() ? output.find("attrs") : output.end();
            if (!output.is_object() || attributes == output.end() || !attributes->is_array())
                continue;
            for (const Json& attribute : *attributes) {
                const std::string key = textOf(attribute, "key");
                if (key != "tensor_shape" && key != "shape" && key != "output_shape") continue;
                if (auto spec = specFromText(textOf(attribute, "value"))) node.specs[port] = spec;
            }
        }
    }

    void readEdges(const Json& value, std::size_t index) {
        const auto list = value.find("incomingEdges");
        if (list == value.end() || !list->is_array()) return;
        for (const Json& item : *list) {
            if (++m_edges > kMostEdges) fail("the graph has too many edges");
            const auto source = m_byId.find(textOf(item, "sourceNodeId"));
            if (source == m_byId.end()) {
                ++dangling;
                continue;
            }
            Node& from = nodes[source->second];
            if (from.outputs.size() >= kMostPorts) fail("a node has too many results");
            nodes[index].edges.push_back({source->second,
                                          from.output(textOf(item, "sourceNodeOutputId")),
                                          textOf(item, "targetNodeInputId")});
        }
        std::ranges::stable_sort(nodes[index].edges, {}, [](const Edge& edge) {
            std::size_t number = 0;
            std::from_chars(edge.target.data(), edge.target.data() + edge.target.size(), number);
            return number;
        });
        if (m_options.stop.stop_requested()) throw Cancelled();
    }

    const std::string& m_where;
    const ImportOptions& m_options;
    std::unordered_map<std::string, std::size_t> m_byId;
    std::size_t m_edges = 0;
};

// --- kinds --------------------------------------------------------------------------------------

struct Label {
    std::string_view label, function;
};
constexpr std::array<Label, 34> kElementwise{{
    {"abs", "abs"},         {"add", "add"},
    {"ceil", "ceil"},       {"cos", "cos"},
    {"cosine", "cos"},      {"div", "div"},
    {"divide", "div"},      {"elu", "elu"},
    {"erf", "erf"},         {"exp", "exp"},
    {"exponential", "exp"}, {"floor", "floor"},
    {"gelu", "gelu"},       {"leaky_relu", "leakyrelu"},
    {"log", "log"},         {"logistic", "sigmoid"},
    {"maximum", "max"},     {"minimum", "min"},
    {"mul", "mul"},         {"multiply", "mul"},
    {"neg", "neg"},         {"negate", "neg"},
    {"pow", "pow"},         {"relu", "relu"},
    {"rsqrt", "rsqrt"},     {"sigmoid", "sigmoid"},
    {"silu", "silu"},       {"sin", "sin"},
    {"sine", "sin"},        {"sqrt", "sqrt"},
    {"square", "square"},   {"sub", "sub"},
    {"subtract", "sub"},    {"tanh", "tanh"},
}};

/// "add" of "aten::add", "stablehlo.add" and "Add"; "aten.add.Tensor" is its second word.
std::string plainLabel(std::string_view label) {
    std::string text(label);
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    if (const auto colons = text.rfind("::"); colons != std::string::npos)
        text.erase(0, colons + 2);
    if (text.starts_with("aten.")) {
        text.erase(0, 5);
        text.erase(std::min(text.find('.'), text.size()));
    }
    if (const auto dot = text.rfind('.'); dot != std::string::npos) text.erase(0, dot + 1);
    return text;
}

Op opFor(const std::string& label, bool source, const std::vector<TensorSpec>& results) {
    Op op;
    const auto isOne = [&](std::initializer_list<std::string_view> names) {
        return std::ranges::find(names, label) != names.end();
    };
    if (source && isOne({"input", "inputs", "graphinputs", "placeholder", "arg", "parameter"}))
        op.kind = OpKind::Input;
    else if (source && isOne({"const", "constant", "pseudo_const", "pseudo_qconst"}))
        op.kind = OpKind::Constant;
    if (source || results.size() != 1) return op;
    const auto elementwise = std::ranges::find(kElementwise, label, &Label::label);
    if (elementwise != kElementwise.end()) {
        op.kind = OpKind::Elementwise;
        op.attributes = {{"function", std::string(elementwise->function)}};
    } else if (isOne({"matmul", "batch_matmul", "mm", "bmm"})) {
        op.kind = OpKind::MatMul;
    } else if (isOne({"reshape", "view", "flatten", "squeeze", "unsqueeze"})) {
        op.kind = OpKind::Reshape;
        op.attributes = {{"shape", results.front().shape}};
    }
    return op;
}

/// Whether the catalogue makes of the operands just what the file says.
bool isProven(const Graph& graph, const Op& op, const std::vector<TensorSpec>& results) {
    OpView view{op, {}, {}};
    for (const TensorId id : op.inputs) {
        view.inputs.push_back(graph.tensor(id).spec);
        if (view.inputs.back().dtype == DType::Unknown) return false;
    }
    try {
        return inferShapes(view) == results;
    } catch (const InputError&) {
        return false;
    }
}

std::size_t addNode(Graph& graph, const Node& node, std::vector<TensorId>& results,
                    const std::vector<std::vector<TensorId>>& all) {
    std::vector<TensorSpec> specs;
    for (const auto& spec : node.specs) specs.push_back(spec.value_or(TensorSpec{}));
    if (specs.empty()) specs.emplace_back();
    const bool source = node.edges.empty();
    Op op = opFor(plainLabel(node.label), source, specs);
    for (const Edge& edge : node.edges) {
        if (op.kind == OpKind::Reshape && !op.inputs.empty()) break; // the shape is an operand too
        op.inputs.push_back(all[edge.source][edge.output]);
    }
    if (!source && op.kind != OpKind::Opaque && !isProven(graph, op, specs)) {
        op = {};
        for (const Edge& edge : node.edges) op.inputs.push_back(all[edge.source][edge.output]);
    }
    op.type = node.label.empty() ? node.id : node.label;
    const std::string name = node.label.empty() ? cleaned(node.id) : node.label;
    op.name = node.space.empty() ? name : node.space + "/" + name;
    const bool opaque = op.kind == OpKind::Opaque;
    const OpId id = graph.addOp(std::move(op), std::move(specs));
    results = graph.op(id).outputs;
    return opaque ? 1 : 0;
}

} // namespace

std::optional<TensorSpec> specFromText(std::string_view text) {
    const auto open = text.find_first_of("[(<");
    if (open == std::string_view::npos) return std::nullopt;
    if (text.find("tuple") != std::string_view::npos) return std::nullopt;
    TensorSpec spec;
    std::string_view name = text.substr(0, open);
    std::string_view list = text.substr(open + 1);
    list = list.substr(0, list.find_first_of("])>"));
    if (text[open] == '<') { // tensor<1x2xf32>
        const auto last = list.rfind('x');
        name = last == std::string_view::npos ? list : list.substr(last + 1);
        list = last == std::string_view::npos ? std::string_view{} : list.substr(0, last);
    }
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    static constexpr std::array<std::pair<std::string_view, DType>, 14> kNames{{
        {"float32", DType::F32},
        {"float", DType::F32},
        {"float16", DType::F16},
        {"bfloat16", DType::BF16},
        {"float64", DType::F64},
        {"int64", DType::I64},
        {"int32", DType::I32},
        {"int", DType::I32},
        {"int16", DType::I16},
        {"int8", DType::I8},
        {"int4", DType::I4},
        {"uint8", DType::U8},
        {"uint32", DType::U32},
        {"bool", DType::Bool},
    }};
    const auto named = std::ranges::find(kNames, name, &std::pair<std::string_view, DType>::first);
    spec.dtype =
        named != kNames.end() ? named->second : mlir::elementType(name).value_or(DType::Unknown);
    double elements = 1;
    while (!list.empty()) {
        const auto end = list.find_first_of(",x*");
        std::string_view part = list.substr(0, end);
        list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
        while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
        while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
        if (part.empty()) continue;
        std::int64_t size = 1;
        if (part != "?" && part != "-1") {
            const char* stop = part.data() + part.size();
            const auto [at, error] = std::from_chars(part.data(), stop, size);
            if (error != std::errc{} || at != stop || size < 0 || size > mlir::kLargestDimension)
                return std::nullopt;
        }
        elements *= static_cast<double>(std::max<std::int64_t>(size, 1));
        if (elements > mlir::kMostElements) return std::nullopt;
        spec.shape.push_back(size);
    }
    return spec;
}

Graph importModelExplorer(std::string_view json, const std::string& where,
                          const ImportOptions& options) {
    Reader reader(where, options);
    const Json root = reader.parse(json);
    const Json* source = reader.findGraph(root);
    if (source == nullptr) reader.fail("the file holds no graph with nodes");
    reader.readNodes(*source);
    Graph graph;
    std::vector<std::vector<TensorId>> results(reader.nodes.size());
    std::size_t opaque = 0;
    for (const std::size_t index : reader.order())
        opaque += addNode(graph, reader.nodes[index], results[index], results);
    for (TensorId id = 0; id < graph.tensors().size(); ++id)
        if (graph.uses(id).empty()) graph.markOutput(id);
    graph.format = "Model Explorer JSON";
    graph.facts["nodes"] = fmt::format("{}", reader.nodes.size());
    graph.facts["graphs"] = fmt::format("{}", reader.graphs);
    graph.warnings.push_back(fmt::format("A Model Explorer file holds no meaning of its nodes: {} "
                                         "of {} are opaque, and the graph is "
                                         "for viewing, not for planning.",
                                         opaque, reader.nodes.size()));
    if (reader.graphs > 1)
        graph.warnings.push_back(
            fmt::format("The file holds {} graphs; the first is shown.", reader.graphs));
    if (reader.dangling > 0)
        graph.warnings.push_back(
            fmt::format("{} edge{} from nodes that are not in the file and left out.",
                        reader.dangling, reader.dangling == 1 ? " comes" : "s come"));
    return graph;
}

} // namespace shardlens
