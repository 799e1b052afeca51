// SPDX-License-Identifier: Apache-2.0
// The figures of any stretch of units on one mesh and one size of micro-batch. A stretch is the
// (min, +) product of the transfer matrices of its units. Inside a run all starts look alike, so
// that one row of products serves every stage that lies in it: the table grows with the lengths
// that are asked for, not with the number of stretches.
#pragma once

#include "core/plan/stage_transfer.h"

namespace shardlens {

class StageTable {
public:
    /// @param mesh of one stage's replica; its devices share every micro-batch
    StageTable(std::shared_ptr<const StagedModel> model, Mesh mesh,
               std::shared_ptr<const CostModel> cost, const StageWeights& weights = {});

    const StagedModel& model() const { return *m_model; }
    const Mesh& mesh() const { return m_pricing.mesh(); }
    std::size_t units() const { return m_model->units.units.size(); }

    /// Units first … last, both included, as one stage: the choices that cost least by the weights.
    StageFigures figures(std::size_t first, std::size_t last);
    /// No stretch that holds the unit costs less for it, by the weights.
    double floor(std::size_t unit);
    /// Kept bytes of the unit that keeps most: what lives while it is recomputed.
    double largestUnit(std::size_t first, std::size_t last);

private:
    /// Products from a start on: by state, cost and figures.
    struct Front {
        std::vector<double> cost;
        std::vector<StageFigures> figures;
    };
    struct Row {
        std::vector<Front> fronts;       ///< by length - 1
        std::vector<StageFigures> ended; ///< with the ending
        std::vector<double> largest;
    };
    const UnitTransfer& transfer(std::size_t unit, bool starts);
    Front begin(std::size_t unit);
    Front extend(const Front& front, std::size_t unit);
    StageFigures end(const Front& front, std::size_t unit);
    /// The row that stretches from `first` to `last` are in, and where in it unit 0 of it is.
    Row& rowOf(std::size_t first, std::size_t last);
    void grow(Row& row, std::size_t first, std::size_t length);

    std::shared_ptr<const StagedModel> m_model;
    Pricing m_pricing;
    StageWeights m_weights;
    PhasedConversions m_conversions;
    std::map<std::pair<std::size_t, bool>, std::unique_ptr<UnitTransfer>> m_transfers; ///< by kind
    std::map<std::size_t, Row> m_inner; ///< by kind: stretches inside a run
    std::map<std::size_t, Row> m_own;   ///< by first unit: the others
};

} // namespace shardlens
