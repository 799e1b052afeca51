// SPDX-License-Identifier: Apache-2.0
// See options.h. CLI11 calls the functions given here while it parses, so that a bad text is
// reported with the name of its option.
#include "app/options.h"

#include "core/error.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace shardlens::app {

namespace {

template <typename Number>
std::optional<Number> parsed(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// A value must be a number above 0; CLI11's own check prints the whole range of a double.
template <typename Number>
CLI::Validator positive(const char* name) {
    return {[name](const std::string& text) {
                const auto value = parsed<Number>(text);
                return value && *value > 0 ? std::string()
                                           : fmt::format("'{}' is not a {}", text, name);
            },
            "", "positive"};
}

CLI::Validator positiveWhole() {
    return positive<std::int64_t>("positive whole number");
}

std::vector<double> parsedList(const std::string& text, const char* option) {
    std::vector<double> values;
    for (const auto& item : CLI::detail::split(text, ',')) {
        const auto value = parsed<double>(item);
        if (!value || *value < 0) {
            throw CLI::ValidationError(
                option, fmt::format("'{}' is not a list of numbers such as 1,0.1", text));
        }
        values.push_back(*value);
    }
    return values;
}

/// Splits at the first '='; both sides must be there.
std::optional<std::pair<std::string, std::string>> parsedPair(const std::string& text) {
    const auto equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
        return std::nullopt;
    }
    return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

void bind(const std::string& text, PlanRequest& request) {
    const auto pair = parsedPair(text);
    const auto value = pair ? parsed<std::int64_t>(pair->second) : std::nullopt;
    if (!value || *value < 1) {
        throw CLI::ValidationError(
            "--bind", fmt::format("'{}' is not NAME=VALUE with a positive whole number", text));
    }
    request.bindings[pair->first] = *value;
}

void pin(const std::string& text, PlanRequest& request) {
    const auto pair = parsedPair(text);
    if (!pair) {
        throw CLI::ValidationError(
            "--pin", fmt::format("'{}' is not PATTERN=CHOICE, such as '*.q_proj=b@dp,n@tp'", text));
    }
    request.pins.push_back({pair->first, pair->second});
}

} // namespace

Size parseSize(const std::string& text) {
    constexpr int kLeast = 200, kMost = 10'000;
    const auto cross = text.find('x');
    if (cross != std::string::npos) {
        const auto width = parsed<int>(std::string_view(text).substr(0, cross));
        const auto height = parsed<int>(std::string_view(text).substr(cross + 1));
        if (width && height && std::min(*width, *height) >= kLeast &&
            std::max(*width, *height) <= kMost) {
            return {*width, *height};
        }
    }
    throw CLI::ValidationError(
        "--size", fmt::format("'{}' is not WxH with sides of {} to {}", text, kLeast, kMost));
}

void addWorkloadOptions(CLI::App& command, PlanRequest& request) {
    command.add_option("--batch", request.batch, "Sequences or samples of one step")
        ->check(positiveWhole())
        ->capture_default_str();
    command.add_option("--seq", request.sequence, "Tokens of one sequence")
        ->check(positiveWhole())
        ->capture_default_str();
    command
        .add_option_function<std::string>(
            "--mode",
            [&request](const std::string& text) {
                request.mode = text == "train" ? Mode::Train : Mode::Infer;
            },
            "What a step is")
        ->check(CLI::IsMember({"train", "infer"}))
        ->default_str("train");
    command
        .add_option_function<std::vector<std::string>>(
            "--bind",
            [&request](const std::vector<std::string>& texts) {
                for (const auto& text : texts) bind(text, request);
            },
            "Value of a symbolic dimension of the model; may be repeated")
        ->type_name("NAME=VALUE")
        ->expected(1)
        ->take_all();
}

void addPlanningOptions(CLI::App& command, PlanRequest& request) {
    command
        .add_option("--cluster", request.cluster, "Kind of node; 'shardlens clusters' lists them")
        ->type_name("NAME")
        ->capture_default_str();
    command.add_option("--nodes", request.nodes, "Nodes of the cluster")
        ->check(positiveWhole())
        ->capture_default_str();
    command
        .add_option_function<std::string>(
            "--mesh",
            [&request](const std::string& text) {
                try {
                    request.mesh = parseMesh(text);
                } catch (const PlanError& error) {
                    throw CLI::ValidationError("--mesh", error.what());
                }
            },
            "Axes of the mesh, outermost first; default: tp inside a node, dp across")
        ->type_name("dp=8,tp=8");
    command
        .add_option_function<double>(
            "--memory-limit",
            [&request](double gib) { request.memoryLimitBytes = gib * 1024 * 1024 * 1024; },
            "Memory of a device that a plan may use; default: all the device has")
        ->type_name("GiB")
        ->check(positive<double>("positive number"));
    command.add_option("--cost-model", request.costModel, "What prices work and collectives")
        ->check(CLI::IsMember({"roofline", "alpa"}))
        ->capture_default_str();
    const auto addList = [&command](const char* option, std::vector<double>& values,
                                    const char* description) {
        command
            .add_option_function<std::string>(
                option,
                [&values, option](const std::string& text) { values = parsedList(text, option); },
                description)
            ->type_name("A,B");
    };
    addList("--alpha", request.alpha, "Latency of each mesh axis, for the cost model alpa");
    addList("--beta", request.beta, "Time per byte of each mesh axis, for the cost model alpa");
    command
        .add_option_function<std::vector<std::string>>(
            "--pin",
            [&request](const std::vector<std::string>& texts) {
                for (const auto& text : texts) pin(text, request);
            },
            "Fix the choice of the ops a name pattern matches; may be repeated")
        ->type_name("PATTERN=CHOICE")
        ->expected(1)
        ->take_all();
}

} // namespace shardlens::app
