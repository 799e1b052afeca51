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
        return std::max(price.seconds() - 2 * price.weightGrad, price.forward);
    }
    return price.seconds();
}

/// With the wire, as the event engine has it: a delay that nothing else notices. A device of an
/// interleaved schedule is left `chunks` times, which is hidden, but not here, where stages differ
/// by more than it takes; in ZB-H1 it also delays weight gradients put off.
double ScheduleModel::fill(const StagePrice& price) const {
    const int times = kind == ScheduleKind::ZeroBubbleH1 ? 2 : chunks;
    return ownFill(price) + times * price.send;
}

/// Only in 1F1B, where the next forward waits for the backward before it, does every micro-batch
/// wait for the wire: two neighbours alternate with it once for both of them, at least.
double ScheduleModel::gate(const StagePrice& price, double microBatches) const {
    const double waits = kind == ScheduleKind::OneFOneB ? price.send / 2 : 0;
    return microBatches * price.seconds() + (microBatches - 1) * waits + price.step -
           ownFill(price);
}

/// What only the whole pipeline tells. GPipe: another stage may be the slowest in the backward pass
/// than in the forward pass. 1F1B: any stages in a row form a loop, in which there are as many
/// micro-batches as stages and one wire less; the slowest loop sets the pace.
double ScheduleModel::beyond(const std::vector<StagePrice>& prices, double microBatches) const {
    double forward = 0, backward = 0, pace = 0, slowest = 0;
    for (std::size_t first = 0; first < prices.size(); ++first) {
        const StagePrice& price = prices[first];
        forward = std::max(forward, price.forward);
        backward = std::max(backward, price.seconds() - price.forward);
        const bool waits = kind == ScheduleKind::OneFOneB;
        pace = std::max(pace, price.seconds() + (waits ? price.send / 2 : 0));
        double loop = 0;
        for (std::size_t last = first; waits && last < prices.size(); ++last) {
            loop += prices[last].seconds();
            slowest = std::max(slowest, loop / static_cast<double>(last - first + 1));
            loop += prices[last].send;
        }
    }
    if (kind == ScheduleKind::GPipe) slowest = forward + backward;
    return (microBatches - 1) * std::max(slowest - pace, 0.0);
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

double stepSeconds(const ScheduleModel& schedule, const std::vector<StagePrice>& prices,
                   double microBatches) {
    double fill = 0, gate = 0, step = 0;
    for (const StagePrice& price : prices) {
        fill += schedule.fill(price);
        gate = std::max(gate, schedule.gate(price, microBatches) - price.step);
        step = std::max(step, price.step);
    }
    return fill + gate + step + schedule.beyond(prices, microBatches);
}

} // namespace shardlens
