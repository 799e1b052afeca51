// SPDX-License-Identifier: Apache-2.0
// The JSON form of a PlanRequest. The text is canonical: every key is written, in one order, so
// that equal requests give equal bytes and a session can tell what a step changed. Reading is
// strict: a key we do not know or a number out of range is refused, never skipped or clamped,
// because a request that loses a pin would give an "optimum" nobody asked for.
#include "core/plan/request.h"

#include "core/error.h"
#include "core/plan/request_json.h"

#include <fmt/format.h>

#include <limits>
#include <set>
#include <string_view>

namespace shardlens {

using namespace request_json;

namespace {

constexpr int kFormat = 2; // 2: with the pipeline block

/// The two members of an object that must have exactly these two.
std::pair<const Json*, const Json*> pairOf(const Json& value, std::string_view list,
                                           const char* first, const char* second) {
    if (!value.is_object() || value.size() != 2 || !value.contains(first) ||
        !value.contains(second))
        refuse(fmt::format("each entry of '{}' must be an object with '{}' and '{}', not {}", list,
                           first, second, shown(value)));
    return {&value.at(first), &value.at(second)};
}

std::vector<AxisSize> meshOf(const Json& value) {
    std::vector<AxisSize> axes;
    std::set<std::string> names;
    for (const Json& entry : arrayOf(value, "mesh")) {
        const auto [name, size] = pairOf(entry, "mesh", "axis", "size");
        AxisSize axis{
            textOf(*name, "axis"),
            static_cast<int>(integerOf(*size, "size", 1, std::numeric_limits<int>::max()))};
        if (axis.name.empty()) refuse("a mesh axis has an empty name");
        if (!names.insert(axis.name).second)
            refuse(fmt::format("the mesh has two axes named '{}'", axis.name));
        axes.push_back(std::move(axis));
    }
    if (axes.size() > kMaxMeshAxes)
        refuse(fmt::format("the mesh has {} axes, at most {} are possible", axes.size(),
                           kMaxMeshAxes));
    return axes;
}

std::map<std::string, std::int64_t> bindingsOf(const Json& value) {
    if (!value.is_object()) refuse("'bindings' must be an object of dimension names and sizes");
    std::map<std::string, std::int64_t> bindings;
    for (const auto& [name, size] : value.items())
        bindings[name] = integerOf(size, fmt::format("bindings.{}", name), 0);
    return bindings;
}

Mode modeOf(const Json& value) {
    const std::string text = textOf(value, "mode");
    if (text == "train") return Mode::Train;
    if (text == "infer") return Mode::Infer;
    refuse(fmt::format("'mode' must be \"train\" or \"infer\", not \"{}\"", text));
}

std::optional<double> limitOf(const Json& value) {
    if (value.is_null()) return std::nullopt;
    const double bytes = numberOf(value, "memory_limit_bytes");
    if (bytes <= 0)
        refuse("'memory_limit_bytes' must be more than 0, or null for the device's memory");
    return bytes;
}

std::vector<double> numbersOf(const Json& value, std::string_view key) {
    std::vector<double> numbers;
    for (const Json& entry : arrayOf(value, key)) numbers.push_back(numberOf(entry, key));
    return numbers;
}

std::vector<Pin> pinsOf(const Json& value) {
    std::vector<Pin> pins;
    for (const Json& entry : arrayOf(value, "pins")) {
        const auto [target, choice] = pairOf(entry, "pins", "target", "choice");
        pins.push_back({textOf(*target, "target"), textOf(*choice, "choice")});
    }
    return pins;
}

/// Sets one field. @return false if the key is not one of ours
bool readField(PlanRequest& request, std::string_view key, const Json& value) {
    constexpr int most = std::numeric_limits<int>::max();
    if (key == "cluster")
        request.cluster = textOf(value, key);
    else if (key == "nodes")
        request.nodes = static_cast<int>(integerOf(value, key, 1, most));
    else if (key == "devices_per_node")
        request.devicesPerNode = static_cast<int>(integerOf(value, key, 0, most));
    else if (key == "mesh")
        request.mesh = meshOf(value);
    else if (key == "batch")
        request.batch = integerOf(value, key, 1);
    else if (key == "sequence")
        request.sequence = integerOf(value, key, 1);
    else if (key == "bindings")
        request.bindings = bindingsOf(value);
    else if (key == "mode")
        request.mode = modeOf(value);
    else if (key == "memory_limit_bytes")
        request.memoryLimitBytes = limitOf(value);
    else if (key == "cost_model")
        request.costModel = textOf(value, key);
    else if (key == "alpha")
        request.alpha = numbersOf(value, key);
    else if (key == "beta")
        request.beta = numbersOf(value, key);
    else if (key == "pins")
        request.pins = pinsOf(value);
    else if (key == "pipeline")
        request.pipeline = pipelineOf(value);
    else
        return false;
    return true;
}

/// Parses an object whose keys are all different (the library would silently keep one of two).
Json parseObject(const std::string& text) {
    std::vector<std::set<std::string>> keys;
    const auto watch = [&keys](int, Json::parse_event_t event, Json& parsed) {
        if (event == Json::parse_event_t::object_start) keys.emplace_back();
        if (event == Json::parse_event_t::object_end) keys.pop_back();
        if (event == Json::parse_event_t::key &&
            !keys.back().insert(parsed.get<std::string>()).second)
            refuse(fmt::format("the key {} is given twice", shown(parsed)));
        return true;
    };
    try {
        Json document = Json::parse(text, watch);
        if (!document.is_object()) refuse("the text must be a JSON object");
        return document;
    } catch (const Json::exception& error) {
        refuse(fmt::format("the text is not JSON ({})", error.what()));
    }
}

void checkFormat(const Json& document) {
    if (!document.contains("version"))
        refuse("the key 'version' is missing", fmt::format("this program writes {}", kFormat));
    const std::int64_t version = integerOf(document.at("version"), "version", 1);
    if (version > kFormat)
        refuse(fmt::format("its version is {}, this program reads up to {}", version, kFormat),
               "update Shardlens to read it");
}

Json toDocument(const PlanRequest& request) {
    Json mesh = Json::array();
    for (const AxisSize& axis : request.mesh)
        mesh.push_back({{"axis", axis.name}, {"size", axis.size}});
    Json pins = Json::array();
    for (const Pin& pin : request.pins)
        pins.push_back({{"target", pin.target}, {"choice", pin.choice}});
    return {{"version", kFormat},
            {"cluster", request.cluster},
            {"nodes", request.nodes},
            {"devices_per_node", request.devicesPerNode},
            {"mesh", std::move(mesh)},
            {"batch", request.batch},
            {"sequence", request.sequence},
            {"bindings", Json(request.bindings)},
            {"mode", request.mode == Mode::Train ? "train" : "infer"},
            {"memory_limit_bytes",
             request.memoryLimitBytes ? Json(*request.memoryLimitBytes) : Json(nullptr)},
            {"cost_model", request.costModel},
            {"alpha", request.alpha},
            {"beta", request.beta},
            {"pins", std::move(pins)},
            {"pipeline", pipelineJson(request.pipeline)}};
}

} // namespace

std::string toJson(const PlanRequest& request) {
    const Json document = toDocument(request);
    // What is written must be readable: the checks are those of the reader.
    PlanRequest checked;
    for (const auto& [key, value] : document.items()) readField(checked, key, value);
    try {
        return document.dump();
    } catch (const Json::exception&) {
        refuse("a name is not valid UTF-8 text and cannot be written as JSON");
    }
}

PlanRequest requestFromJson(const std::string& text) {
    const Json document = parseObject(text);
    checkFormat(document);
    PlanRequest request;
    for (const auto& [key, value] : document.items())
        if (key != "version" && !readField(request, key, value))
            refuse(fmt::format("the key '{}' is unknown", key),
                   "remove it or correct its spelling");
    return request;
}

} // namespace shardlens
