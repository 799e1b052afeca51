// SPDX-License-Identifier: Apache-2.0
// `shardlens verify MODEL`: runs the model, made small, whole and under a plan on in-process ranks,
// and prints how far the two are apart and which collectives ran.
#include "app/commands/commands.h"
#include "app/files.h"
#include "app/model_file.h"
#include "core/error.h"
#include "core/execute/verify_model.h"
#include "core/plan/planner.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <memory>

namespace shardlens::app {

namespace {

struct VerifyOptions {
    std::string model;
    RequestOptions request;
    std::string plan;
    int random = 0;
    std::uint64_t seed = 1;
    bool json = false;
};

/// One plan that was run.
struct Outcome {
    std::string name;
    Verification result;
};

std::vector<Outcome> run(const ModelFile& file, const SmallModel& small,
                         const VerifyOptions& options) {
    std::vector<Outcome> outcomes;
    if (options.random > 0) {
        std::mt19937_64 random(options.seed);
        for (int i = 0; i < options.random; ++i) {
            const Plan plan =
                evaluate(small.context, randomDecisions(*small.context->pricing, random));
            outcomes.push_back({fmt::format("random plan {}", i + 1), verify(plan, options.seed)});
        }
        return outcomes;
    }
    if (!options.plan.empty()) {
        const auto pinned =
            withPins(*small.context, pinsOfPlan(readFile(options.plan), *small.context->graph,
                                                small.context->mesh));
        outcomes.push_back({options.plan, verify(optimise(pinned), options.seed)});
        return outcomes;
    }
    const Plan best = optimise(
        makeContext(file.bundle.graph, file.bundle.folding, onAsManyDevices(file.request)));
    outcomes.push_back(
        {"the optimum",
         verify(evaluate(small.context, carriedOver(best, *small.context)), options.seed)});
    return outcomes;
}

/// "8 all-reduce over tp" of what ran.
std::map<std::string, std::size_t> counted(const Verification& result, const Mesh& mesh) {
    std::map<std::string, std::size_t> counts;
    for (const RanCollective& c : result.collectives)
        ++counts[fmt::format("{} over {}, {}", nameOf(c.step.kind), mesh.axes[c.step.axis].name,
                             nameOf(c.phase))];
    return counts;
}

void printText(const SmallModel& small, const std::vector<Outcome>& outcomes) {
    const Graph& graph = *small.context->graph;
    fmt::print("{}, shrunk from {} ops and {:.4g} parameters to {} ops and {:.4g} parameters, "
               "on {}\n",
               graph.name, small.opsBefore, small.parametersBefore, graph.ops().size(),
               graph.parameterCount(), small.context->mesh.toString());
    for (const auto& [name, result] : outcomes) {
        fmt::print("{}: {} (largest difference {:.2g}{}; {} tensors compared)\n", name,
                   result.agrees() ? "equals the whole model" : "DIFFERS", result.difference,
                   result.worst.empty() ? "" : " in the " + result.worst, result.tensors);
        for (const auto& [what, count] : counted(result, small.context->mesh))
            fmt::print("  {:5} {}\n", count, what);
        fmt::print("  collectives {}\n", result.mismatches.empty()
                                             ? "as predicted: kind, axis and bytes"
                                             : "not as predicted:");
        for (const std::string& mismatch : result.mismatches) fmt::print("    {}\n", mismatch);
    }
}

void printJson(const SmallModel& small, const std::vector<Outcome>& outcomes) {
    nlohmann::ordered_json json{{"model", small.context->graph->name},
                                {"mesh", small.context->mesh.toString()},
                                {"ops", small.context->graph->ops().size()},
                                {"plans", nlohmann::ordered_json::array()}};
    for (const auto& [name, result] : outcomes)
        json["plans"].push_back({{"name", name},
                                 {"agrees", result.agrees()},
                                 {"difference", result.difference},
                                 {"worst", result.worst},
                                 {"tensors", result.tensors},
                                 {"collectives", counted(result, small.context->mesh)},
                                 {"mismatches", result.mismatches}});
    fmt::print("{}\n", json.dump(2));
}

int verifyModel(const VerifyOptions& options) {
    const ModelFile file = openModelFile(options.model, options.request);
    const SmallModel small =
        shrinkForVerification(*file.bundle.graph, *file.bundle.folding, file.request);
    const std::vector<Outcome> outcomes = run(file, small, options);
    (options.json ? printJson : printText)(small, outcomes);
    return std::ranges::all_of(outcomes, [](const Outcome& o) { return o.result.agrees(); }) ? 0
                                                                                             : 1;
}

} // namespace

void addVerify(CLI::App& app, Action& action) {
    auto* command = app.add_subcommand(
        "verify", "Run a model, made small, whole and sharded, and compare the two");
    const auto options = std::make_shared<VerifyOptions>();
    command->add_option("MODEL", options->model, "Model file of any supported kind, or a session")
        ->required();
    addWorkloadOptions(*command, options->request);
    addPlanningOptions(*command, options->request);
    auto* plan = command->add_option("--plan", options->plan,
                                     "A plan to run, as `shardlens plan --json` writes it; "
                                     "without it the optimum of the real model is run");
    command->add_option("--random", options->random, "Run this many random plans instead")
        ->check(CLI::Range(1, 100000))
        ->excludes(plan);
    command->add_option("--seed", options->seed, "Of the made-up weights and of random plans");
    command->add_flag("--json", options->json, "Write JSON");
    command->callback([options, &action] { action = [options] { return verifyModel(*options); }; });
}

} // namespace shardlens::app
