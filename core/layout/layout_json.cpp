// SPDX-License-Identifier: Apache-2.0
// JSON by nlohmann-json, which reads and writes numbers without regard to the locale.
#include "core/layout/layout_json.h"

#include "core/error.h"

#include <nlohmann/json.hpp>

namespace shardlens {

namespace {

using Json = nlohmann::json;

// Runs a reader and turns the library's exceptions into ours.
template <class Reader>
auto readJson(std::string_view text, const char* what, Reader reader) {
    try {
        return reader(Json::parse(text));
    } catch (const Error&) {
        throw;
    } catch (const std::exception& e) {
        throw InputError(std::string("this is not a valid ") + what + " (" + e.what() + ")", what);
    }
}

LayoutPoint pointFromJson(const Json& json) {
    return {json.at(0).get<double>(), json.at(1).get<double>()};
}

LayoutRoute routeFromJson(const Json& json) {
    LayoutRoute route;
    for (std::size_t i = 0; i < json.size(); i += 2)
        route.points.push_back({json.at(i).get<double>(), json.at(i + 1).get<double>()});
    return route;
}

} // namespace

std::string layoutInputToJson(const LayoutInput& input) {
    Json boxes = Json::array(), edges = Json::array();
    for (const auto [width, height] : input.boxes) boxes.push_back(Json::array({width, height}));
    for (const auto [from, to] : input.edges) edges.push_back(Json::array({from, to}));
    return Json{{"boxes", std::move(boxes)},
                {"edges", std::move(edges)},
                {"rank_gap", input.rankGap},
                {"node_gap", input.nodeGap},
                {"left_to_right", input.leftToRight}}
        .dump();
}

LayoutInput layoutInputFromJson(std::string_view text) {
    LayoutInput input = readJson(text, "layout problem", [](const Json& json) {
        LayoutInput result;
        for (const Json& box : json.at("boxes"))
            result.boxes.push_back({box.at(0).get<double>(), box.at(1).get<double>()});
        for (const Json& edge : json.at("edges"))
            result.edges.push_back(
                {edge.at(0).get<std::uint32_t>(), edge.at(1).get<std::uint32_t>()});
        json.at("rank_gap").get_to(result.rankGap);
        json.at("node_gap").get_to(result.nodeGap);
        json.at("left_to_right").get_to(result.leftToRight);
        return result;
    });
    checkLayoutInput(input);
    return input;
}

std::string layoutResultToJson(const LayoutResult& result) {
    Json centres = Json::array(), routes = Json::array(), sideChannels = Json::array();
    for (const auto [x, y] : result.centres) centres.push_back(Json::array({x, y}));
    for (std::size_t i = 0; i < result.routes.size(); ++i) {
        Json points = Json::array();
        for (const auto [x, y] : result.routes[i].points) {
            points.push_back(x);
            points.push_back(y);
        }
        routes.push_back(std::move(points));
        if (result.routes[i].sideChannel) sideChannels.push_back(i);
    }
    return Json{{"centres", std::move(centres)},
                {"routes", std::move(routes)},
                {"side_channels", std::move(sideChannels)},
                {"width", result.width},
                {"height", result.height},
                {"engine", result.engine},
                {"note", result.note}}
        .dump();
}

LayoutResult layoutResultFromJson(std::string_view text) {
    return readJson(text, "graph drawing", [](const Json& json) {
        if (json.contains("error")) throw InputError(json["error"].get<std::string>());
        LayoutResult result;
        for (const Json& centre : json.at("centres"))
            result.centres.push_back(pointFromJson(centre));
        for (const Json& route : json.at("routes")) result.routes.push_back(routeFromJson(route));
        for (const Json& edge : json.at("side_channels"))
            result.routes.at(edge.get<std::size_t>()).sideChannel = true;
        json.at("width").get_to(result.width);
        json.at("height").get_to(result.height);
        json.at("engine").get_to(result.engine);
        json.at("note").get_to(result.note);
        return result;
    });
}

} // namespace shardlens
