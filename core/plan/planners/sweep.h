// SPDX-License-Identifier: Apache-2.0
// Sweeps: how time, memory and bubble of a job's best plan follow one or two settings, point after
// point, or all equal-stage plans at once. A point without a plan says why and the sweep goes on.
// The table is what command line, window and files show; a row can be asked for again as a request.
#pragma once

#include "core/plan/model_bundle.h"
#include "core/plan/planners/megatron_grid.h"

#include <filesystem>
#include <functional>
#include <string_view>
#include <variant>

namespace shardlens {

enum class SweepParameter : std::uint8_t {
    Nodes,
    Batch,
    Sequence,
    MicroBatches,
    Stages,
    Tensor,
    Context,
    Expert,
    SequenceParallel,
    Data,
    Schedule,
    Zero,
    Recompute,
    MemoryLimit, ///< GiB a device
};
inline constexpr int kSweepParameters = 14;
std::string_view nameOf(SweepParameter parameter);  ///< "nodes", "micro_batches", …
std::string_view titleOf(SweepParameter parameter); ///< "Nodes", "Micro-batches", …

struct SweepAxis {
    SweepParameter parameter = SweepParameter::Nodes;
    std::vector<std::string> values; ///< as they are written
};
/// Reads "nodes=1,2,4"; "1..64" stands for powers of two, "1..9:2" for steps. @throws InputError
SweepAxis sweepAxis(std::string_view text);
/// Reads the part after "=". @throws InputError naming the value that is wrong
std::vector<std::string> sweepValues(SweepParameter parameter, std::string_view text);

struct SweepRequest {
    PlanRequest base;            ///< who plans is in its pipeline block; megatron if it has none
    std::vector<SweepAxis> axes; ///< one or two; none: the grid of all equal-stage plans
};

using SweepValue = std::variant<std::int64_t, std::string>;
std::string wordOf(const SweepValue& value);

struct SweepRow {
    std::vector<SweepValue> values{}; ///< by SweepTable::settings
    double seconds = 0;               ///< of a step
    double memory = 0;                ///< bytes, of the fullest device
    double bubble = 0;                ///< share of the step
    bool fits = false;
    bool front = false;  ///< no other row is as quick and leaner, or as lean and quicker
    std::string error{}; ///< why there is no plan; then the figures are 0
};

struct SweepTable {
    std::vector<std::string> settings; ///< "tp", "batch", …: one column each
    std::vector<SweepRow> rows;        ///< the last axis changes quickest
    double memoryLimit = 0;            ///< bytes a device, of the base request
};

/// The model that is swept. `bundle` is sized for the base request.
struct SweepSource {
    std::filesystem::path file;
    ModelBundle bundle;
};

/// One more row is known. @param all how many there will be
using SweepProgress = std::function<void(const SweepRow& row, std::size_t index, std::size_t all)>;

/// @throws PlanError where the whole request cannot be swept; Cancelled
SweepTable runSweep(const SweepSource& model, const SweepRequest& request,
                    const SweepProgress& progress = {}, std::stop_token stop = {});

/// The same for the grid of all equal-stage plans; `points` belong to the rows one by one.
struct GridSweep {
    SweepTable table;
    std::vector<GridPoint> points;
};
GridSweep runGrid(const SweepSource& model, const PlanRequest& base, std::stop_token stop = {});

/// What a row of runSweep asks for. @throws InputError
PlanRequest rowRequest(const SweepRequest& request, std::size_t row);

std::string sweepJson(const SweepTable& table);
std::string sweepCsv(const SweepTable& table); ///< RFC 4180, one head line
/// @param most rows that are listed, quickest first, those of the front in any case
std::string sweepText(const SweepTable& table, std::size_t most = 20);

} // namespace shardlens
