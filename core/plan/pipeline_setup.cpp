// SPDX-License-Identifier: Apache-2.0
// The JSON form of the pipeline block; see pipeline_setup.h. Canonical: every key is written, in
// one order.
#include "core/plan/pipeline_setup.h"

#include "core/error.h"
#include "core/plan/planners/schedule_model.h"
#include "core/plan/planners/stage_pricer.h"
#include "core/plan/request_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shardlens::request_json {

namespace {

constexpr int kMostChunks = 1024;
constexpr int kMostInsideAxes = 2;
constexpr std::array kRecompute{std::pair{Recompute::None, std::string_view("none")},
                                std::pair{Recompute::Selective, std::string_view("selective")},
                                std::pair{Recompute::Full, std::string_view("full")}};

Json orNull(const std::optional<int>& value) {
    return value ? Json(*value) : Json(nullptr);
}

std::optional<int> numberOrNull(const Json& value, std::string_view key, int least,
                                int most = std::numeric_limits<int>::max()) {
    if (value.is_null()) return std::nullopt;
    return static_cast<int>(integerOf(value, fmt::format("pipeline.{}", key), least, most));
}

std::optional<bool> switchOrNull(const Json& value, std::string_view key) {
    if (value.is_null()) return std::nullopt;
    if (!value.is_boolean()) refuse(fmt::format("'pipeline.{}' must be true, false or null", key));
    return value.get<bool>();
}

std::string plannerOf(const Json& value) {
    const std::string name = textOf(value, "pipeline.planner");
    if (name != "optimum" && name != "alpa" && name != "megatron")
        refuse(fmt::format("'pipeline.planner' must be \"optimum\", \"alpa\" or \"megatron\", "
                           "not \"{}\"",
                           name));
    return name;
}

std::vector<std::string> schedulesOf(const Json& value) {
    std::vector<std::string> names;
    for (const Json& entry : arrayOf(value, "pipeline.schedules")) {
        names.push_back(textOf(entry, "pipeline.schedules"));
        try {
            (void)ScheduleModel::named(names.back());
        } catch (const PlanError& error) {
            refuse(error.problem());
        }
    }
    return names;
}

std::vector<int> cutsOf(const Json& value) {
    std::vector<int> cuts;
    for (const Json& entry : arrayOf(value, "pipeline.cuts")) {
        cuts.push_back(static_cast<int>(
            integerOf(entry, "pipeline.cuts", 1, std::numeric_limits<int>::max())));
        if (cuts.size() > 1 && cuts.back() <= cuts[cuts.size() - 2])
            refuse("'pipeline.cuts' must ascend");
    }
    return cuts;
}

std::optional<Recompute> recomputeOf(const Json& value) {
    if (value.is_null()) return std::nullopt;
    const std::string name = textOf(value, "pipeline.recompute");
    for (const auto& [kind, known] : kRecompute)
        if (known == name) return kind;
    refuse(fmt::format("'pipeline.recompute' must be \"none\", \"selective\" or \"full\", "
                       "not \"{}\"",
                       name));
}

bool blockingOf(const Json& value) {
    try {
        return areBlocking(textOf(value, "pipeline.transfers"));
    } catch (const PlanError& error) {
        refuse(error.problem());
    }
}

/// Sets one field. @return false if the key is not one of ours
bool readField(PipelineSetup& setup, std::string_view key, const Json& value) {
    if (key == "planner")
        setup.planner = plannerOf(value);
    else if (key == "schedules")
        setup.schedules = schedulesOf(value);
    else if (key == "chunks")
        setup.chunks = numberOrNull(value, key, 1, kMostChunks);
    else if (key == "transfers")
        setup.blockingTransfers = blockingOf(value);
    else if (key == "inside_axes")
        setup.insideAxes =
            static_cast<int>(integerOf(value, fmt::format("pipeline.{}", key), 1, kMostInsideAxes));
    else if (key == "micro_batches")
        setup.microBatches = numberOrNull(value, key, 1);
    else if (key == "stages")
        setup.stages = numberOrNull(value, key, 1);
    else if (key == "cuts")
        setup.cuts = cutsOf(value);
    else if (key == "tensor")
        setup.pins.tensor = numberOrNull(value, key, 1);
    else if (key == "data")
        setup.pins.data = numberOrNull(value, key, 1);
    else if (key == "context")
        setup.pins.context = numberOrNull(value, key, 1);
    else if (key == "expert")
        setup.pins.expert = numberOrNull(value, key, 1);
    else if (key == "sequence_parallel")
        setup.pins.sequenceParallel = switchOrNull(value, key);
    else if (key == "zero")
        setup.pins.zero = numberOrNull(value, key, 0, 3);
    else if (key == "recompute")
        setup.pins.recompute = recomputeOf(value);
    else if (key == "inside")
        setup.pins.inside =
            numberOrNull(value, key, 0, static_cast<int>(StagePricer::variants().size()) - 1);
    else
        return false;
    return true;
}

} // namespace

Json pipelineJson(const std::optional<PipelineSetup>& setup) {
    if (!setup) return nullptr;
    const StagePins& pins = setup->pins;
    Json recompute = nullptr;
    if (pins.recompute)
        recompute = std::ranges::find(kRecompute, *pins.recompute,
                                      &std::pair<Recompute, std::string_view>::first)
                        ->second;
    return {{"planner", setup->planner},
            {"schedules", setup->schedules},
            {"chunks", orNull(setup->chunks)},
            {"transfers", transfersText(setup->blockingTransfers)},
            {"inside_axes", setup->insideAxes},
            {"micro_batches", orNull(setup->microBatches)},
            {"stages", orNull(setup->stages)},
            {"cuts", setup->cuts},
            {"tensor", orNull(pins.tensor)},
            {"data", orNull(pins.data)},
            {"zero", orNull(pins.zero)},
            {"recompute", std::move(recompute)},
            {"inside", orNull(pins.inside)},
            {"context", orNull(pins.context)},
            {"expert", orNull(pins.expert)},
            {"sequence_parallel", pins.sequenceParallel ? Json(*pins.sequenceParallel) : Json()}};
}

std::optional<PipelineSetup> pipelineOf(const Json& json) {
    if (json.is_null()) return std::nullopt;
    if (!json.is_object()) refuse("'pipeline' must be an object, or null");
    PipelineSetup setup;
    for (const auto& [key, value] : json.items())
        if (!readField(setup, key, value))
            refuse(fmt::format("the key 'pipeline.{}' is unknown", key),
                   "remove it or correct its spelling");
    return setup;
}

} // namespace shardlens::request_json
