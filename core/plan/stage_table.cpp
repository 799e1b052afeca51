// SPDX-License-Identifier: Apache-2.0
// See stage_table.h.
#include "core/plan/stage_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shardlens {

namespace {

/// Sums of the same numbers in another order.
bool same(double a, double b, double scale) {
    return std::abs(a - b) <= 1e-12 * std::abs(scale);
}

} // namespace

StageTable::StageTable(std::shared_ptr<const StagedModel> model, Mesh mesh,
                       std::shared_ptr<const CostModel> cost, const StageWeights& weights)
    : StageTable(model, std::make_shared<MeshPrices>(*model, std::move(mesh), std::move(cost)),
                 weights) {
}

StageTable::StageTable(std::shared_ptr<const StagedModel> model, std::shared_ptr<MeshPrices> prices,
                       const StageWeights& weights)
    : m_model(std::move(model)), m_prices(std::move(prices)), m_weights(weights) {
    const auto& all = m_model->units.units;
    for (std::size_t unit = 0; unit < all.size(); ++unit) {
        if (unit == 0 || all[unit].kind != all[unit - 1].kind) m_groups.push_back({unit, unit});
        m_groups.back().last = unit;
        m_groupOf.push_back(m_groups.size() - 1);
    }
}

const UnitTransfer& StageTable::transfer(std::size_t unit, bool starts) {
    auto& known = m_transfers[{m_model->units.units[unit].kind, starts}];
    if (!known)
        known = std::make_unique<UnitTransfer>(*m_model, m_prices->conversions, unit, starts,
                                               m_weights);
    return *known;
}

StageTable::Front StageTable::begin(std::size_t unit) {
    const UnitTransfer& step = transfer(unit, true);
    Front front;
    for (std::size_t exit = 0; exit < step.exits(); ++exit) {
        front.cost.push_back(step.cost(0, exit));
        front.figures.push_back(step.figures(0, exit));
    }
    return front;
}

StageTable::Front StageTable::extend(const Front& front, std::size_t unit) {
    const UnitTransfer& step = transfer(unit, false);
    Front next;
    for (std::size_t exit = 0; exit < step.exits(); ++exit) {
        const std::size_t best = entryFor(front.cost, step, exit);
        next.cost.push_back(front.cost[best] + step.cost(best, exit));
        next.figures.push_back(front.figures[best] + step.figures(best, exit));
    }
    return next;
}

std::size_t StageTable::entryFor(const std::vector<double>& cost, const UnitTransfer& step,
                                 std::size_t exit) {
    std::size_t best = 0;
    double least = solve::kInfinite;
    for (std::size_t entry = 0; entry < step.entries(); ++entry) {
        const double now = cost[entry] + step.cost(entry, exit);
        if (now >= least) continue;
        least = now;
        best = entry;
    }
    return best;
}

std::pair<std::size_t, StageFigures> StageTable::ending(const std::vector<double>& cost,
                                                        std::size_t unit) {
    const auto& endings = transfer(unit, false).endings();
    std::size_t best = 0;
    double least = solve::kInfinite;
    for (std::size_t state = 0; state < cost.size(); ++state) {
        const double now = cost[state] + m_weights.of(endings[state]);
        if (now >= least) continue;
        least = now;
        best = state;
    }
    return {best, endings[best]};
}

void StageTable::decide(std::size_t first, std::size_t last, PartialDecisions& result) {
    std::vector<std::vector<double>> costs; // by unit, before it
    std::vector<double> cost(1, 0.0);
    for (std::size_t unit = first; unit <= last; ++unit) {
        const UnitTransfer& step = transfer(unit, unit == first);
        std::vector<double> next;
        for (std::size_t exit = 0; exit < step.exits(); ++exit) {
            const std::size_t best = entryFor(cost, step, exit);
            next.push_back(cost[best] + step.cost(best, exit));
        }
        costs.push_back(std::exchange(cost, std::move(next)));
    }
    std::size_t exit = ending(cost, last).first;
    for (std::size_t unit = last + 1; unit-- > first;) {
        const UnitTransfer& step = transfer(unit, unit == first);
        const std::size_t entry = entryFor(costs[unit - first], step, exit);
        step.decide(m_model->units.units[unit], m_prices->pricing, entry, exit, result);
        exit = entry;
    }
}

// --- equal units --------------------------------------------------------------------------------

std::optional<StageTable::Growth> StageTable::growthOf(const std::vector<Front>& fronts) {
    constexpr std::size_t kSteps = 2;
    if (fronts.size() <= kSteps) return {};
    const std::size_t newest = fronts.size() - 1;
    std::optional<Growth> growth;
    for (std::size_t n = newest; n > newest - kSteps; --n)
        for (std::size_t state = 0; state < fronts[n].cost.size(); ++state) {
            const double now = fronts[n].cost[state], before = fronts[n - 1].cost[state];
            if (now == solve::kInfinite && before == solve::kInfinite) continue;
            Growth step{now - before, fronts[n].figures[state]};
            step.figures.add(fronts[n - 1].figures[state], -1);
            if (!growth) growth = step;
            bool equal = same(step.cost, growth->cost, now);
            StageFigures expected = fronts[n - 1].figures[state];
            expected += growth->figures;
            expected.eachWith(fronts[n].figures[state],
                              [&](double a, double b) { equal = equal && same(a, b, b); });
            if (!equal) return {};
        }
    return growth;
}

StageTable::Front StageTable::frontAt(const Segment& segment, std::size_t length) {
    const std::size_t known = std::min(length, segment.fronts.size());
    Front front = segment.fronts[known - 1];
    if (known == length) return front;
    const auto times = static_cast<double>(length - known);
    for (double& cost : front.cost) cost += times * segment.growth->cost;
    for (StageFigures& figures : front.figures) figures.add(segment.growth->figures, times);
    return front;
}

StageTable::Stretch StageTable::stretchAt(const Segment& segment, std::size_t length) {
    const std::size_t known = std::min(length, segment.stretches.size());
    Stretch stretch = segment.stretches[known - 1];
    if (known < length)
        stretch.ended.add(segment.growth->figures, static_cast<double>(length - known));
    return stretch;
}

// --- rows ---------------------------------------------------------------------------------------

std::size_t StageTable::lengthIn(std::size_t group, std::size_t first) const {
    return m_groups[group].last - std::max(m_groups[group].first, first) + 1;
}

/// All segments before the last one of a row are complete.
const StageTable::Segment& StageTable::segment(std::size_t first, std::size_t group,
                                               std::size_t length) {
    Row& row = m_rows[first];
    const std::size_t start = m_groupOf[first];
    const std::size_t from = start + std::max<std::size_t>(row.size(), 1) - 1;
    for (std::size_t g = std::min(from, group); g <= group; ++g) {
        if (row.size() <= g - start) row.emplace_back();
        grow(row, first, g, g == group ? length : lengthIn(g, first));
    }
    return row[group - start];
}

void StageTable::grow(Row& row, std::size_t first, std::size_t group, std::size_t length) {
    const std::size_t at = group - m_groupOf[first];
    Segment& segment = row[at];
    while (segment.fronts.size() < length && !segment.growth) {
        const std::size_t n = segment.fronts.size();
        const std::size_t unit = std::max(m_groups[group].first, first) + n;
        const Segment* before = n > 0 ? &segment : at > 0 ? &row[at - 1] : nullptr;
        const std::size_t till = n > 0 ? n : at > 0 ? lengthIn(group - 1, first) : 0;
        Stretch stretch;
        segment.fronts.push_back(before ? extend(frontAt(*before, till), unit) : begin(unit));
        const auto [state, ended] = ending(segment.fronts.back().cost, unit);
        stretch.ended = segment.fronts.back().figures[state] + ended;
        stretch.largest = stretch.ended.kept;
        if (before) {
            const Stretch shorter = stretchAt(*before, till);
            stretch.largest = std::max(shorter.largest, stretch.ended.kept - shorter.ended.kept);
        }
        segment.stretches.push_back(stretch);
        segment.growth = growthOf(segment.fronts);
    }
}

/// A stretch that begins in a run and leaves it begins, but for what each unit adds, as late as is
/// known of the run.
StageTable::Stretch StageTable::stretch(std::size_t first, std::size_t last) {
    const std::size_t from = m_groupOf[first], to = m_groupOf[last];
    const std::size_t length = from == to ? last - first + 1 : lengthIn(from, first);
    const Segment& inner = segment(m_groups[from].first, from, length);
    if (from == to) return stretchAt(inner, length);
    const std::size_t left = length - std::min(length, inner.fronts.size());
    Stretch result = stretchAt(segment(first + left, to, last - m_groups[to].first + 1),
                               last - m_groups[to].first + 1);
    if (left > 0) result.ended.add(inner.growth->figures, static_cast<double>(left));
    return result;
}

double StageTable::floor(std::size_t unit) {
    double least = solve::kInfinite;
    for (const bool starts : {false, true}) {
        const UnitTransfer& step = transfer(unit, starts);
        for (std::size_t entry = 0; entry < step.entries(); ++entry)
            for (std::size_t exit = 0; exit < step.exits(); ++exit)
                least = std::min(least, step.cost(entry, exit));
    }
    return least;
}

} // namespace shardlens
