// SPDX-License-Identifier: Apache-2.0
// See stage_table.h.
#include "core/plan/stage_table.h"

#include <algorithm>

namespace shardlens {

StageTable::StageTable(std::shared_ptr<const StagedModel> model, Mesh mesh,
                       std::shared_ptr<const CostModel> cost, const StageWeights& weights)
    : m_model(std::move(model)),
      m_pricing(m_model->graph, m_model->folding, Mode::Train, std::move(mesh), std::move(cost)),
      m_weights(weights), m_conversions(m_pricing) {
}

const UnitTransfer& StageTable::transfer(std::size_t unit, bool starts) {
    auto& known = m_transfers[{m_model->units.units[unit].kind, starts}];
    if (!known)
        known = std::make_unique<UnitTransfer>(*m_model, m_conversions, unit, starts, m_weights);
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
        std::size_t best = 0;
        double least = solve::kInfinite;
        for (std::size_t entry = 0; entry < step.entries(); ++entry) {
            const double cost = front.cost[entry] + step.cost(entry, exit);
            if (cost >= least) continue;
            least = cost;
            best = entry;
        }
        next.cost.push_back(least);
        next.figures.push_back(front.figures[best] + step.figures(best, exit));
    }
    return next;
}

StageFigures StageTable::end(const Front& front, std::size_t unit) {
    const auto& endings = transfer(unit, false).endings();
    std::size_t best = 0;
    double least = solve::kInfinite;
    for (std::size_t state = 0; state < front.cost.size(); ++state) {
        const double cost = front.cost[state] + m_weights.of(endings[state]);
        if (cost >= least) continue;
        least = cost;
        best = state;
    }
    return front.figures[best] + endings[best];
}

StageTable::Row& StageTable::rowOf(std::size_t first, std::size_t last) {
    const auto& units = m_model->units.units;
    const bool inner = units[first].kind == units[last].kind;
    return inner ? m_inner[units[first].kind] : m_own[first];
}

void StageTable::grow(Row& row, std::size_t first, std::size_t length) {
    const auto& units = m_model->units.units;
    while (row.fronts.size() < length) {
        const std::size_t n = row.fronts.size(), unit = first + n;
        if (n > 0 && units[unit].kind == units[first].kind) { // so far as a row inside the run
            Row& inner = m_inner[units[first].kind];
            if (&inner != &row) {
                grow(inner, first, n + 1);
                row.fronts.push_back(inner.fronts[n]);
                row.ended.push_back(inner.ended[n]);
                row.largest.push_back(inner.largest[n]);
                continue;
            }
        }
        row.fronts.push_back(n == 0 ? begin(unit) : extend(row.fronts.back(), unit));
        row.ended.push_back(end(row.fronts.back(), unit));
        const double kept = row.ended.back().kept - (n > 0 ? row.ended[n - 1].kept : 0.0);
        row.largest.push_back(std::max(kept, n > 0 ? row.largest.back() : 0.0));
    }
}

StageFigures StageTable::figures(std::size_t first, std::size_t last) {
    Row& row = rowOf(first, last);
    grow(row, first, last - first + 1);
    return row.ended[last - first];
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

double StageTable::largestUnit(std::size_t first, std::size_t last) {
    Row& row = rowOf(first, last);
    grow(row, first, last - first + 1);
    return row.largest[last - first];
}

} // namespace shardlens
