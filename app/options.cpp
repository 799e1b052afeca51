// SPDX-License-Identifier: Apache-2.0
// See options.h. Each option's text is checked while CLI11 parses, so that a bad one is reported
// with the option's name; CLI11's own conversions are not used, for their messages.
#include "app/options.h"

#include "core/error.h"
#include "core/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace shardlens::app {

namespace {

template <typename Number>
std::optional<Number> parsed(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

template <typename Number>
Number positive(const char* option, const std::string& text) {
    const auto value = parsed<Number>(text);
    if (value && *value > 0 && std::isfinite(static_cast<double>(*value))) return *value;
    throw CLI::ValidationError(option,
                               fmt::format("'{}' is not a positive {}", text,
                                           std::is_integral_v<Number> ? "whole number" : "number"));
}

std::vector<double> list(const char* option, const std::string& text) {
    std::vector<double> values;
    for (const auto& item : CLI::detail::split(text, ',')) {
        const auto value = parsed<double>(item);
        if (!value || !(*value >= 0) || std::isinf(*value)) {
            throw CLI::ValidationError(
                option, fmt::format("'{}' is not a list of numbers such as 1,0.1", text));
        }
        values.push_back(*value);
    }
    return values;
}

/// Splits at the first '='; both sides must be there.
std::optional<std::pair<std::string, std::string>> pairOf(const std::string& text) {
    const auto equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
        return std::nullopt;
    }
    return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

std::pair<std::string, std::int64_t> binding(const std::string& text) {
    const auto pair = pairOf(text);
    const auto value = pair ? parsed<std::int64_t>(pair->second) : std::nullopt;
    if (value && *value > 0) return {pair->first, *value};
    throw CLI::ValidationError(
        "--bind", fmt::format("'{}' is not NAME=VALUE with a positive whole number", text));
}

Pin pin(const std::string& text) {
    if (const auto pair = pairOf(text)) return {pair->first, pair->second};
    throw CLI::ValidationError(
        "--pin", fmt::format("'{}' is not PATTERN=CHOICE, such as '*.q_proj=b@dp,n@tp'", text));
}

std::vector<AxisSize> mesh(const std::string& text) {
    try {
        return parseMesh(text);
    } catch (const PlanError& error) {
        throw CLI::ValidationError("--mesh", error.what());
    }
}

/// An option whose text `change` turns into a change of the request.
template <typename Change>
CLI::Option* addOption(CLI::App& command, RequestOptions& options, const char* name, Change change,
                       const char* description) {
    return command.add_option_function<std::string>(
        name,
        [&options, change](const std::string& text) { options.changes.push_back(change(text)); },
        description);
}

/// The same, for an option that may be given many times.
template <typename Change>
CLI::Option* addRepeated(CLI::App& command, RequestOptions& options, const char* name,
                         Change change, const char* description) {
    return command
        .add_option_function<std::vector<std::string>>(
            name,
            [&options, change](const std::vector<std::string>& texts) {
                for (const auto& text : texts) options.changes.push_back(change(text));
            },
            description)
        ->expected(1)
        ->take_all();
}

void addPlaceOptions(CLI::App& command, RequestOptions& options) {
    addOption(
        command, options, "--cluster",
        [&options](const std::string& text) {
            options.placed = true;
            return [text](PlanRequest& request) { request.cluster = text; };
        },
        "Kind of node; 'shardlens clusters' lists them")
        ->type_name("NAME")
        ->default_str("dgx-h100");
    addOption(
        command, options, "--nodes",
        [&options](const std::string& text) {
            options.placed = true;
            return [nodes = positive<int>("--nodes", text)](PlanRequest& request) {
                request.nodes = nodes;
            };
        },
        "Nodes of the cluster; default: 1, or without --cluster and --mesh as many as it takes")
        ->type_name("N");
    addOption(
        command, options, "--devices-per-node",
        [&options](const std::string& text) {
            options.placed = true;
            return [n = positive<int>("--devices-per-node", text)](PlanRequest& request) {
                request.devicesPerNode = n;
            };
        },
        "How many of each node's devices are used; default: all")
        ->type_name("N");
    addOption(
        command, options, "--mesh",
        [&options](const std::string& text) {
            options.placed = true;
            return [axes = mesh(text)](PlanRequest& request) { request.mesh = axes; };
        },
        "Axes of the mesh, outermost first; default: tp inside a node, dp across")
        ->type_name("dp=8,tp=8");
}

void addCostOptions(CLI::App& command, RequestOptions& options) {
    addOption(
        command, options, "--cost-model",
        [](const std::string& text) {
            return [text](PlanRequest& request) { request.costModel = text; };
        },
        "What prices work and collectives")
        ->check(CLI::IsMember({"roofline", "alpa"}))
        ->default_str("roofline");
    addOption(
        command, options, "--alpha",
        [](const std::string& text) {
            return
                [values = list("--alpha", text)](PlanRequest& request) { request.alpha = values; };
        },
        "Latency of each mesh axis, for the cost model alpa")
        ->type_name("A,B");
    addOption(
        command, options, "--beta",
        [](const std::string& text) {
            return [values = list("--beta", text)](PlanRequest& request) { request.beta = values; };
        },
        "Time per byte of each mesh axis, for the cost model alpa")
        ->type_name("A,B");
}

} // namespace

PlanRequest RequestOptions::applied(PlanRequest request) const {
    if (placed) { // what was proposed or chosen for another place does not fit this one
        const PlanRequest fresh;
        request.nodes = fresh.nodes;
        request.devicesPerNode = fresh.devicesPerNode;
        request.mesh = fresh.mesh;
    }
    for (const auto& change : changes) change(request);
    return request;
}

void addWorkloadOptions(CLI::App& command, RequestOptions& options) {
    addOption(
        command, options, "--batch",
        [](const std::string& text) {
            return [batch = positive<std::int64_t>("--batch", text)](PlanRequest& request) {
                request.batch = batch;
            };
        },
        "Sequences or samples of one step; default: 8, or more if the mesh has more data shards")
        ->type_name("B");
    addOption(
        command, options, "--seq",
        [](const std::string& text) {
            return [sequence = positive<std::int64_t>("--seq", text)](PlanRequest& request) {
                request.sequence = sequence;
            };
        },
        "Tokens of one sequence")
        ->type_name("S")
        ->default_str("2048");
    addOption(
        command, options, "--mode",
        [](const std::string& text) {
            return [mode = text == "train" ? Mode::Train : Mode::Infer](PlanRequest& request) {
                request.mode = mode;
            };
        },
        "What a step is")
        ->check(CLI::IsMember({"train", "infer"}))
        ->default_str("train");
    addRepeated(
        command, options, "--bind",
        [](const std::string& text) {
            return [bound = binding(text)](PlanRequest& request) {
                request.bindings[bound.first] = bound.second;
            };
        },
        "Value of a symbolic dimension of the model; may be repeated")
        ->type_name("NAME=VALUE");
}

void addPlanningOptions(CLI::App& command, RequestOptions& options) {
    addPlaceOptions(command, options);
    addOption(
        command, options, "--memory-limit",
        [](const std::string& text) {
            return [bytes = positive<double>("--memory-limit", text) * kGiB](PlanRequest& request) {
                request.memoryLimitBytes = bytes;
            };
        },
        "Memory of a device that a plan may use; default: all the device has")
        ->type_name("GiB");
    addCostOptions(command, options);
    addRepeated(
        command, options, "--pin",
        [](const std::string& text) {
            return [fixed = pin(text)](PlanRequest& request) { request.pins.push_back(fixed); };
        },
        "Fix the choice of the ops whose names match a pattern; may be repeated")
        ->type_name("PATTERN=CHOICE");
}

Size parseSize(const std::string& text) {
    constexpr int kLeast = 200, kMost = 10'000;
    const auto cross = std::min(text.find('x'), text.size());
    const auto width = parsed<int>(std::string_view(text).substr(0, cross));
    const auto height =
        parsed<int>(std::string_view(text).substr(std::min(cross + 1, text.size())));
    if (width && height && std::min(*width, *height) >= kLeast &&
        std::max(*width, *height) <= kMost) {
        return {*width, *height};
    }
    throw CLI::ValidationError(
        "--size", fmt::format("'{}' is not WxH with sides of {} to {}", text, kLeast, kMost));
}

} // namespace shardlens::app
