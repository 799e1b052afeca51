// SPDX-License-Identifier: Apache-2.0
// The JSON form of whole-plan documents; see pipeline_document.h.
#include "core/error.h"
#include "core/plan/planners/pipeline_document.h"
#include "core/plan/planners/stage_plans.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

namespace shardlens {

namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;
constexpr std::array kLayouts{"free", "megatron", "megatron-sp"}; ///< by InsideLayout

[[noreturn]] void refuse(const std::string& problem) {
    throw InputError(problem, "pipeline plan",
                     "write it as `shardlens plan --pipeline --json` does");
}

Json stageJson(const PipelineDocument::Stage& stage) {
    Json mesh = Json::array();
    for (const AxisSize& axis : stage.option.replica.axes)
        mesh.push_back({{"axis", axis.name}, {"size", axis.size}});
    return {{"first", stage.first},
            {"last", stage.last},
            {"pool", stage.option.replica.pool},
            {"replicas", stage.option.replicas},
            {"mesh", std::move(mesh)},
            {"samples", stage.option.replica.samples},
            {"inside", stage.option.replica.variant},
            {"layout", kLayouts[static_cast<std::size_t>(stage.option.replica.layout)]},
            {"zero", stage.policy.zero},
            {"selective", stage.policy.selective},
            {"full_share", stage.policy.fullShare}};
}

Json asJson(const PipelineDocument& d) {
    Json stages = Json::array();
    for (const PipelineDocument::Stage& stage : d.stages) stages.push_back(stageJson(stage));
    return {{"version", kVersion},
            {"kind", "pipeline"},
            {"model", d.model},
            {"cluster", d.cluster},
            {"nodes", d.nodes},
            {"batch", d.batch},
            {"made_by", d.madeBy},
            {"schedule", d.schedule.name()},
            {"chunks", d.schedule.chunks},
            {"transfers", transfersText(d.schedule.blocking)},
            {"micro_batches", d.microBatches},
            {"stages", std::move(stages)},
            {"provenance", Json(d.provenance)}};
}

std::int64_t whole(const Json& object, const char* key, std::int64_t least,
                   std::int64_t most = std::numeric_limits<int>::max()) {
    const auto at = object.find(key);
    if (at == object.end() || !at->is_number_integer() ||
        (at->is_number_unsigned() && at->get<std::uint64_t>() > static_cast<std::uint64_t>(most)) ||
        at->get<std::int64_t>() < least || at->get<std::int64_t>() > most)
        refuse(fmt::format("'{}' must be a whole number from {} to {}", key, least, most));
    return at->get<std::int64_t>();
}

int number(const Json& object, const char* key, int least,
           int most = std::numeric_limits<int>::max()) {
    return static_cast<int>(whole(object, key, least, most));
}

std::string textOf(const Json& object, const char* key) {
    const auto at = object.find(key);
    if (at == object.end() || !at->is_string()) refuse(fmt::format("'{}' must be a text", key));
    return at->get<std::string>();
}

void checkKeys(const Json& object, const std::set<std::string>& known) {
    for (const auto& [key, value] : object.items())
        if (!known.contains(key)) refuse(fmt::format("the key '{}' is unknown", key));
}

PipelineDocument::Stage stageFrom(const Json& json) {
    if (!json.is_object()) refuse("a stage must be an object");
    checkKeys(json, {"first", "last", "pool", "replicas", "mesh", "samples", "inside", "layout",
                     "zero", "selective", "full_share", "figures"});
    PipelineDocument::Stage stage;
    stage.first = number(json, "first", 0);
    stage.last = number(json, "last", 0);
    stage.option.replicas = number(json, "replicas", 1);
    ReplicaKey& key = stage.option.replica;
    key.pool = static_cast<std::uint8_t>(number(json, "pool", 0, kDevicePools - 1));
    key.samples = whole(json, "samples", 1);
    key.variant = number(json, "inside", 0, static_cast<int>(StagePricer::variants().size()) - 1);
    if (!json.contains("mesh") || !json.at("mesh").is_array()) refuse("'mesh' must be a list");
    if (json.contains("layout")) {
        const auto at = std::ranges::find(kLayouts, textOf(json, "layout"));
        if (at == kLayouts.end())
            refuse("'layout' must be \"free\", \"megatron\" or \"megatron-sp\"");
        key.layout = static_cast<InsideLayout>(at - kLayouts.begin());
    }
    for (const Json& axis : json.at("mesh")) {
        if (!axis.is_object()) refuse("a mesh axis must be an object");
        checkKeys(axis, {"axis", "size"});
        key.axes.push_back({textOf(axis, "axis"), number(axis, "size", 1, 1 << 20)});
    }
    stage.policy.zero = number(json, "zero", 0, 3);
    if (!json.contains("selective") || !json.at("selective").is_boolean())
        refuse("'selective' must be true or false");
    stage.policy.selective = json.at("selective").get<bool>();
    if (!json.contains("full_share") || !json.at("full_share").is_number() ||
        !(json.at("full_share").get<double>() >= 0 && json.at("full_share").get<double>() <= 1))
        refuse("'full_share' must be a number from 0 to 1");
    stage.policy.fullShare = json.at("full_share").get<double>();
    return stage;
}

Json insideJson(const StagePlan& plan, const StageUnits& units,
                const std::vector<VirtualStage>& pieces, int stage) {
    Json list = Json::array();
    for (const UnitChoices& unit : choicesOf(plan, units, pieces, stage)) {
        Json choices = Json::object();
        for (const auto& [op, choice] : unit.choices)
            choices[plan.plan->context->graph->op(op).name] = choice;
        list.push_back({{"first", unit.first}, {"last", unit.last}, {"choices", choices}});
    }
    return list;
}

} // namespace

std::string toJson(const PipelineDocument& document) {
    return asJson(document).dump();
}

std::string toJson(const PipelineDocument& document, const PipelineAnswer& answer,
                   StagePricer& pricer) {
    Json json = asJson(document);
    const int count = static_cast<int>(answer.stages.size());
    const auto inside = stagePlans(pricer, answer.stages, answer.schedule.chunks);
    const auto unitsOf = [&](int stage) -> const StageUnits& { // of its size of micro-batch
        const PlannedStage& planned = answer.stages[static_cast<std::size_t>(stage)];
        return pricer.model(planned.option.replica.samples)->units;
    };
    const auto pieces = virtualStages(unitsOf(0), answer.stages, answer.schedule.chunks);
    for (int i = 0; i < count; ++i) {
        const StagePrice& p = answer.stages[static_cast<std::size_t>(i)].price;
        json["stages"][static_cast<std::size_t>(i)]["figures"] = {
            {"forward_s", p.forward},
            {"input_gradient_s", p.inputGrad},
            {"weight_gradient_s", p.weightGrad},
            {"recompute_s", p.recompute},
            {"send_s", p.send},
            {"step_s", p.step},
            {"resident_bytes", p.resident},
            {"micro_batch_bytes", p.perMicroBatch},
            {"memory_bytes",
             stageMemory(p, answer.schedule, count - 1 - i, count, answer.microBatches)},
            {"inside", insideJson(*inside[static_cast<std::size_t>(i)], unitsOf(i), pieces, i)}};
    }
    json["figures"] = {{"time_s", answer.seconds},
                       {"bound_s", answer.bound},
                       {"gap", answer.gap()},
                       {"simulated_s", answer.simulated},
                       {"memory_bytes", answer.peakMemory},
                       {"solve_ms", answer.milliseconds},
                       {"provenance", "modelled"}};
    return json.dump();
}

PipelineDocument pipelineFromJson(const std::string& text) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded() || !json.is_object()) refuse("the text is no JSON object");
    checkKeys(json, {"version", "kind", "model", "cluster", "nodes", "batch", "made_by", "schedule",
                     "chunks", "transfers", "micro_batches", "stages", "provenance", "figures"});
    number(json, "version", 1, kVersion);
    if (textOf(json, "kind") != "pipeline") refuse("'kind' must be \"pipeline\"");
    PipelineDocument d;
    d.model = textOf(json, "model");
    d.cluster = textOf(json, "cluster");
    d.nodes = number(json, "nodes", 1);
    d.batch = whole(json, "batch", 1);
    d.madeBy = textOf(json, "made_by");
    const std::string transfers =
        json.contains("transfers") ? textOf(json, "transfers") : std::string(transfersText(false));
    try {
        d.schedule = ScheduleModel::named(textOf(json, "schedule"), number(json, "chunks", 1, 1024),
                                          areBlocking(transfers));
    } catch (const PlanError& error) {
        refuse(error.problem());
    }
    d.microBatches = number(json, "micro_batches", 1);
    if (!json.contains("stages") || !json.at("stages").is_array() || json.at("stages").empty())
        refuse("'stages' must be a list with at least one stage");
    for (const Json& stage : json.at("stages")) d.stages.push_back(stageFrom(stage));
    if (!json.contains("provenance") || !json.at("provenance").is_object())
        refuse("'provenance' must be an object");
    for (const auto& [key, value] : json.at("provenance").items()) {
        if (!value.is_string()) refuse("'provenance' must hold texts");
        d.provenance[key] = value.get<std::string>();
    }
    return d;
}

} // namespace shardlens
