// SPDX-License-Identifier: Apache-2.0
// Writing and reading the JSON snapshot of a graph. An op is the array
//   [name, kind, type, {attributes}, [operand ids, -1 = absent], [results]]
// and a result is [name, dtype, [shape]] with a fourth entry, the values, when they are known
// ({"f": ...} when they are not whole numbers).
// Floating-point attributes are wrapped as {"f": ...} to keep their type.
#include "core/model/graph_json.h"

#include "core/error.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace shardlens {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "shardlens-graph";
constexpr std::int64_t kVersion = 1;
constexpr std::string_view kHint = "the snapshot is damaged, import the model file again";

[[noreturn]] void damaged(const std::string& problem, const std::string& where) {
    throw InputError(problem, where, std::string(kHint));
}

// --- writing -----------------------------------------------------------------------------------

Json doubleToJson(double value) {
    if (std::isfinite(value)) return value;
    return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

struct AttributeWriter {
    Json operator()(std::int64_t value) const { return value; }
    Json operator()(double value) const { return {{"f", doubleToJson(value)}}; }
    Json operator()(const std::string& value) const { return value; }
    Json operator()(const std::vector<std::int64_t>& value) const { return Json(value); }
    Json operator()(const std::vector<double>& value) const {
        Json list = Json::array();
        for (const double element : value) list.push_back(doubleToJson(element));
        return {{"f", std::move(list)}};
    }
};

Json tensorToJson(const Tensor& tensor) {
    Json result = Json::array({tensor.name, nameOf(tensor.spec.dtype), tensor.spec.shape});
    if (tensor.value)
        result.push_back(*tensor.value);
    else if (tensor.reals)
        result.push_back(AttributeWriter{}(*tensor.reals));
    return result;
}

Json partitionToJson(const Partition& partition) {
    Json mesh = Json::array(), shardings = Json::array();
    for (const PartitionAxis& axis : partition.mesh) mesh.push_back({axis.name, axis.size});
    for (const auto& [tensor, sharding] : partition.shardings)
        shardings.push_back({tensor, sharding.dims, sharding.partial});
    return {{"made_by", partition.madeBy},
            {"devices", partition.devices},
            {"local", partition.local},
            {"mesh", std::move(mesh)},
            {"shardings", std::move(shardings)}};
}

Json opToJson(const Graph& graph, const Op& op) {
    Json attributes = Json::object();
    for (const auto& [name, value] : op.attributes.values())
        attributes[name] = std::visit(AttributeWriter{}, value);
    Json inputs = Json::array();
    for (const TensorId input : op.inputs)
        inputs.push_back(input == kNoTensor ? std::int64_t{-1} : std::int64_t{input});
    Json outputs = Json::array();
    for (const TensorId output : op.outputs) outputs.push_back(tensorToJson(graph.tensor(output)));
    return Json::array({op.name, nameOf(op.kind), op.type, std::move(attributes), std::move(inputs),
                        std::move(outputs)});
}

// --- reading -----------------------------------------------------------------------------------

/// Member access with checks; `where` says what is being read.
const Json& member(const Json& object, const char* key, Json::value_t type) {
    const auto found = object.find(key);
    if (found == object.end() || found->type() != type)
        damaged(fmt::format("\"{}\" is missing or of the wrong type", key), "graph snapshot");
    return *found;
}

std::string textOf(const Json& json, const std::string& where) {
    if (!json.is_string()) damaged("a text is expected", where);
    return json.get<std::string>();
}

std::int64_t integerOf(const Json& json, const std::string& where) {
    const bool fits =
        json.is_number_integer() &&
        (!json.is_number_unsigned() ||
         json.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
    if (!fits) damaged("a whole number is expected", where);
    return json.get<std::int64_t>();
}

std::vector<std::int64_t> integersOf(const Json& json, const std::string& where) {
    if (!json.is_array()) damaged("a list of whole numbers is expected", where);
    std::vector<std::int64_t> result;
    for (const Json& element : json) result.push_back(integerOf(element, where));
    return result;
}

double doubleOf(const Json& json, const std::string& where) {
    if (json.is_number()) return json.get<double>();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (json == "inf") return infinity;
    if (json == "-inf") return -infinity;
    damaged("a number is expected", where);
}

AttributeValue attributeOf(const Json& json, const std::string& where) {
    if (json.is_string()) return json.get<std::string>();
    if (json.is_array()) return integersOf(json, where);
    if (!json.is_object()) return integerOf(json, where);
    const auto floating = json.find("f");
    if (floating == json.end()) damaged("an attribute is of no known type", where);
    if (!floating->is_array()) return doubleOf(*floating, where);
    std::vector<double> values;
    for (const Json& element : *floating) values.push_back(doubleOf(element, where));
    return values;
}

TensorId tensorIdOf(const Json& json, std::size_t count, const std::string& where) {
    const std::int64_t id = integerOf(json, where);
    if (id < 0 || id >= static_cast<std::int64_t>(count))
        damaged(fmt::format("tensor {} does not exist yet", id), where);
    return static_cast<TensorId>(id);
}

struct Result {
    std::string name;
    TensorSpec spec;
    std::optional<KnownInts> value;
    std::optional<KnownReals> reals;
};

Result resultOf(const Json& json, const std::string& where) {
    if (!json.is_array() || json.size() < 3 || json.size() > 4)
        damaged("a result needs a name, a type and a shape", where);
    Result result;
    result.name = textOf(json[0], where);
    const std::string dtype = textOf(json[1], where);
    const std::optional<DType> known = dtypeFromName(dtype);
    if (!known) damaged(fmt::format("\"{}\" is no element type", dtype), where);
    result.spec = {*known, integersOf(json[2], where)};
    if (std::ranges::any_of(result.spec.shape, [](std::int64_t size) { return size < 0; }))
        damaged(fmt::format("the shape {} has a negative size", toString(result.spec.shape)),
                where);
    if (json.size() < 4) return result;
    std::size_t count = 0;
    if (json[3].is_object()) {
        const AttributeValue list = attributeOf(json[3], where);
        const auto* reals = std::get_if<std::vector<double>>(&list);
        if (!reals) damaged("a list of numbers is expected", where);
        result.reals = *reals;
        count = reals->size();
    } else {
        result.value = integersOf(json[3], where);
        count = result.value->size();
    }
    if (static_cast<double>(count) != elementsOf(result.spec.shape))
        damaged(
            fmt::format("{} values do not fill the shape {}", count, toString(result.spec.shape)),
            where);
    return result;
}

void addOpFromJson(Graph& graph, const Json& json) {
    std::string where = fmt::format("graph snapshot, op {}", graph.ops().size());
    if (!json.is_array() || json.size() != 6) damaged("an op needs six entries", where);
    Op op;
    op.name = textOf(json[0], where);
    where += fmt::format(" \"{}\"", op.name);
    const std::string kind = textOf(json[1], where);
    const std::optional<OpKind> known = opKindFromName(kind);
    if (!known) damaged(fmt::format("\"{}\" is no op kind", kind), where);
    op.kind = *known;
    op.type = textOf(json[2], where);
    if (!json[3].is_object() || !json[4].is_array() || !json[5].is_array())
        damaged("attributes, operands or results are of the wrong type", where);
    for (const auto& [name, value] : json[3].items())
        op.attributes.set(name, attributeOf(value, where));
    for (const Json& input : json[4])
        op.inputs.push_back(input == -1 ? kNoTensor
                                        : tensorIdOf(input, graph.tensors().size(), where));
    std::vector<TensorSpec> specs;
    std::vector<std::string> names;
    std::vector<Result> results;
    for (const Json& output : json[5]) {
        results.push_back(resultOf(output, where));
        specs.push_back(results.back().spec);
        names.push_back(results.back().name);
    }
    const OpId id = graph.addOp(std::move(op), std::move(specs), std::move(names));
    for (std::size_t port = 0; port < results.size(); ++port) {
        const TensorId tensor = graph.op(id).outputs[port];
        if (results[port].value) graph.setKnownValue(tensor, std::move(*results[port].value));
        if (results[port].reals) graph.setKnownReals(tensor, std::move(*results[port].reals));
    }
}

std::uint8_t axisOf(const Json& json, const Partition& partition) {
    const std::string where = "graph snapshot, partition";
    const std::int64_t axis = integerOf(json, where);
    if (axis < 0 || axis >= static_cast<std::int64_t>(partition.mesh.size()))
        damaged(fmt::format("the mesh has no axis {}", axis), where);
    return static_cast<std::uint8_t>(axis);
}

Partition partitionFromJson(const Json& json, const Graph& graph) {
    using Type = Json::value_t;
    const std::string where = "graph snapshot, partition";
    if (!json.is_object()) damaged("an object is expected", where);
    Partition partition;
    partition.madeBy = textOf(member(json, "made_by", Type::string), where);
    const auto devices = json.find("devices");
    if (devices != json.end()) partition.devices = integerOf(*devices, where);
    partition.local = member(json, "local", Type::boolean).get<bool>();
    for (const Json& axis : member(json, "mesh", Type::array)) {
        if (!axis.is_array() || axis.size() != 2) damaged("an axis needs a name and a size", where);
        partition.mesh.push_back({textOf(axis[0], where), integerOf(axis[1], where)});
    }
    for (const Json& entry : member(json, "shardings", Type::array)) {
        if (!entry.is_array() || entry.size() != 3 || !entry[1].is_array() || !entry[2].is_array())
            damaged("a sharding needs a tensor, dimensions and partial axes", where);
        const TensorId tensor = tensorIdOf(entry[0], graph.tensors().size(), where);
        TensorSharding sharding;
        for (const Json& dim : entry[1]) {
            if (!dim.is_array()) damaged("a list of axes is expected", where);
            auto& axes = sharding.dims.emplace_back();
            for (const Json& axis : dim) axes.push_back(axisOf(axis, partition));
        }
        for (const Json& axis : entry[2]) sharding.partial.push_back(axisOf(axis, partition));
        partition.shardings.emplace(tensor, std::move(sharding));
    }
    return partition;
}

Json parse(std::string_view text) {
    try {
        return Json::parse(text);
    } catch (const Json::parse_error& error) {
        damaged(fmt::format("no JSON at byte {}", error.byte), "graph snapshot");
    } catch (const Json::exception&) {
        damaged("a number is out of range", "graph snapshot");
    }
}

void checkHeader(const Json& json) {
    if (!json.is_object() || json.value("format", Json()) != kFormat)
        damaged("this is no graph snapshot", "graph snapshot");
    const std::int64_t version = integerOf(member(json, "version", Json::value_t::number_unsigned),
                                           "graph snapshot, version");
    if (version != kVersion)
        throw InputError(
            fmt::format("version {} is not the version {} that is read here", version, kVersion),
            "graph snapshot", "open it with the program that wrote it");
}

} // namespace

std::string graphToJson(const Graph& graph) {
    Json ops = Json::array();
    for (const Op& op : graph.ops()) ops.push_back(opToJson(graph, op));
    const auto outputs = graph.outputs();
    Json json = {
        {"format", kFormat},
        {"version", kVersion},
        {"name", graph.name},
        {"source", graph.format},
        {"warnings", graph.warnings},
        {"bindings", graph.bindings},
        {"facts", graph.facts},
        {"ops", std::move(ops)},
        {"outputs", std::vector<TensorId>(outputs.begin(), outputs.end())},
    };
    if (graph.backwardIncluded) json["backward_included"] = true;
    if (graph.partition) json["partition"] = partitionToJson(*graph.partition);
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Graph graphFromJson(std::string_view text) {
    using Type = Json::value_t;
    const Json json = parse(text);
    checkHeader(json);
    Graph graph;
    graph.name = member(json, "name", Type::string).get<std::string>();
    graph.format = member(json, "source", Type::string).get<std::string>();
    for (const Json& warning : member(json, "warnings", Type::array))
        graph.warnings.push_back(textOf(warning, "graph snapshot, warnings"));
    for (const auto& [name, value] : member(json, "bindings", Type::object).items())
        graph.bindings[name] = integerOf(value, "graph snapshot, bindings");
    for (const auto& [name, value] : member(json, "facts", Type::object).items())
        graph.facts[name] = textOf(value, "graph snapshot, facts");
    for (const Json& op : member(json, "ops", Type::array)) addOpFromJson(graph, op);
    for (const Json& output : member(json, "outputs", Type::array))
        graph.markOutput(tensorIdOf(output, graph.tensors().size(), "graph snapshot, outputs"));
    graph.backwardIncluded = json.value("backward_included", false);
    if (const auto partition = json.find("partition"); partition != json.end())
        graph.partition = partitionFromJson(*partition, graph);
    return graph;
}

} // namespace shardlens
