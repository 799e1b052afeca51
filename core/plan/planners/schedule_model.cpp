// SPDX-License-Identifier: Apache-2.0
// See schedule_model.h.
#include "core/plan/planners/schedule_model.h"

#include "core/error.h"

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

ScheduleModel ScheduleModel::named(std::string_view name, int chunks) {
    for (const auto& [kind, known] : kNames)
        if (known == name) return {kind, kind == ScheduleKind::Interleaved ? chunks : 1};
    throw PlanError(fmt::format("no schedule '{}' can be searched for", name), "schedule",
                    "use gpipe, 1f1b, interleaved or zb-h1");
}

std::string_view ScheduleModel::name() const {
    return std::ranges::find(kNames, kind, &std::pair<ScheduleKind, std::string_view>::first)
        ->second;
}

/// Seconds between the first micro-batch's arrival here and at the next stage, and back.
double ScheduleModel::ownFill(const StagePrice& price) const {
    switch (kind) {
    case ScheduleKind::GPipe:
    case ScheduleKind::OneFOneB:
        return price.seconds();
    case ScheduleKind::Interleaved:
        return price.seconds() / chunks;
    case ScheduleKind::ZeroBubbleH1:
        return std::max(price.seconds() - 2 * price.weightGrad, 0.0);
    }
    return price.seconds();
}

/// With the wire, as the event engine has it: a delay that nothing else notices. A device of an
/// interleaved schedule is left `chunks` times; in ZB-H1 it also delays weight gradients put off.
double ScheduleModel::fill(const StagePrice& price) const {
    const int times = kind == ScheduleKind::ZeroBubbleH1 ? 2 : chunks;
    return ownFill(price) + times * price.send;
}

/// Only in 1F1B, where the next forward waits for the backward before it, does every micro-batch
/// wait for the wire; the others have something else to do meanwhile.
double ScheduleModel::gate(const StagePrice& price, double microBatches) const {
    const double waits = kind == ScheduleKind::OneFOneB ? price.send : 0;
    return microBatches * price.seconds() + (microBatches - 1) * waits + price.step -
           ownFill(price);
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

double stepSeconds(const ScheduleModel& schedule, const std::vector<StagePrice>& prices,
                   double microBatches) {
    double fill = 0, gate = 0;
    for (const StagePrice& price : prices) {
        fill += schedule.fill(price);
        gate = std::max(gate, schedule.gate(price, microBatches));
    }
    return fill + gate;
}

} // namespace shardlens
