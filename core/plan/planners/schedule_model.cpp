// SPDX-License-Identifier: Apache-2.0
// See schedule_model.h.
#include "core/plan/planners/schedule_model.h"

#include "core/error.h"
#include "core/plan/planners/critical_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace shardlens {

namespace {

constexpr int kAny = std::numeric_limits<int>::max();
constexpr std::array kNames{std::pair{ScheduleKind::GPipe, std::string_view("gpipe")},
                            std::pair{ScheduleKind::OneFOneB, std::string_view("1f1b")},
                            std::pair{ScheduleKind::Interleaved, std::string_view("interleaved")},
                            std::pair{ScheduleKind::ZeroBubbleH1, std::string_view("zb-h1")}};

} // namespace

ScheduleModel ScheduleModel::named(std::string_view name, int chunks, bool blocking) {
    for (const auto& [kind, known] : kNames) {
        if (known != name) continue;
        if (blocking && kind == ScheduleKind::ZeroBubbleH1)
            throw PlanError("zb-h1 is searched for with overlapped transfers only", "schedule",
                            "use another schedule, or overlapped transfers");
        return {kind, kind == ScheduleKind::Interleaved ? chunks : 1, blocking};
    }
    throw PlanError(fmt::format("no schedule '{}' can be searched for", name), "schedule",
                    "use gpipe, 1f1b, interleaved or zb-h1");
}

std::string_view ScheduleModel::name() const {
    return std::ranges::find(kNames, kind, &std::pair<ScheduleKind, std::string_view>::first)
        ->second;
}

/// Seconds between the first micro-batch's arrival here and at the next stage, and back, without
/// the wire.
double ScheduleModel::ownFill(const StagePrice& price) const {
    switch (kind) {
    case ScheduleKind::GPipe:
    case ScheduleKind::OneFOneB:
        return price.seconds();
    case ScheduleKind::Interleaved:
        return price.seconds() / chunks;
    case ScheduleKind::ZeroBubbleH1: // weight gradients are put off and fill the end
        return std::max(price.seconds() - 2 * price.weightGrad, price.forward);
    }
    return price.seconds();
}

/// The first micro-batch leaves a device as often as that has chunks. In ZB-H1 the wire also delays
/// weight gradients put off.
double ScheduleModel::fill(const StagePrice& price) const {
    const int times = kind == ScheduleKind::ZeroBubbleH1 ? 2 : chunks;
    return ownFill(price) + times * price.send;
}

/// Seconds that one chunk of a micro-batch at least keeps its device from computing, on its way to
/// the next.
double ScheduleModel::blocked(const StagePrice& price) const {
    return blocking ? price.send / 2 : 0;
}

double ScheduleModel::gate(const StagePrice& price, double microBatches) const {
    return microBatches * price.seconds() + (microBatches * chunks - 1) * blocked(price) +
           price.step - ownFill(price);
}

/// A second pass is one of all chunks. In GPipe all stages wait for the last one in between.
double ScheduleModel::spare(double microBatches) const {
    const bool twice = kind == ScheduleKind::OneFOneB || kind == ScheduleKind::Interleaved;
    return twice && microBatches > 1 ? 1 / (microBatches - 1.0 / chunks) : 0;
}

/// The chunks but one are passed again before the slowest stage, too.
double ScheduleModel::spareAhead(double microBatches) const {
    return spare(microBatches) * (chunks - 1) / chunks;
}

double ScheduleModel::inFlight(int behind, int stages, double microBatches) const {
    switch (kind) {
    case ScheduleKind::GPipe:
        return microBatches;
    case ScheduleKind::OneFOneB:
        return std::min(microBatches, behind + 1.0);
    case ScheduleKind::Interleaved:
        return std::min(microBatches, ((chunks - 1.0) * stages + 2.0 * behind + 1) / chunks);
    case ScheduleKind::ZeroBubbleH1:
        return std::min<double>(microBatches, stages);
    }
    return microBatches;
}

int ScheduleModel::mostBehind(double room, int stages, double microBatches) const {
    if (room >= microBatches) return kAny;
    switch (kind) {
    case ScheduleKind::GPipe:
        return -1;
    case ScheduleKind::OneFOneB:
        return static_cast<int>(std::floor(room)) - 1;
    case ScheduleKind::Interleaved:
        return static_cast<int>(
            std::floor((room * chunks - (chunks - 1.0) * stages - 1) / 2 + 1e-9));
    case ScheduleKind::ZeroBubbleH1:
        return room >= stages ? kAny : -1;
    }
    return -1;
}

bool ScheduleModel::needsStages() const {
    return kind == ScheduleKind::Interleaved || kind == ScheduleKind::ZeroBubbleH1;
}

bool ScheduleModel::runs(int stages, int microBatches) const {
    if (kind == ScheduleKind::Interleaved) return microBatches % stages == 0;
    return kind != ScheduleKind::ZeroBubbleH1 || microBatches >= stages;
}

std::string_view transfersText(bool blocking) {
    return blocking ? "blocking" : "overlapped";
}

bool areBlocking(std::string_view transfers) {
    for (const bool blocking : {false, true})
        if (transfers == transfersText(blocking)) return blocking;
    throw PlanError(fmt::format("transfers cannot be '{}'", transfers), "transfers",
                    "use overlapped or blocking");
}

double wrapSeconds(const std::vector<StagePrice>& prices) {
    return prices.size() > 1 ? prices[prices.size() - 2].send / 2 : 0;
}

double stepSeconds(const ScheduleModel& schedule, const std::vector<StagePrice>& prices,
                   double microBatches) {
    double once = 0;
    for (const StagePrice& price : prices) once = std::max(once, price.step);
    return criticalPath(schedule, prices, microBatches) + once;
}

} // namespace shardlens
