// SPDX-License-Identifier: Apache-2.0
// The figures of any stretch of units on one mesh and one size of micro-batch. A stretch is the
// (min, +) product of the transfer matrices of its units. Along equal units such products soon grow
// by the same amount from unit to unit, whatever the state (the cyclicity theorem of max-plus
// algebra, Baccelli et al. 1992, with cycles of length one); once two steps in a row did, all that
// follow are known, so that a run of a thousand layers takes a handful of products. Inside a run
// all starts look alike, and so do all that lie far from its end, but for what the units between
// add: the table grows with the kinds of units, not with their number.
#pragma once

#include "core/plan/stage_transfer.h"

namespace shardlens {

/// The prices of one mesh and one size of micro-batch, shared by tables with other weights.
struct MeshPrices {
    /// @param filter takes choices away; none by default
    MeshPrices(const StagedModel& model, Mesh mesh, std::shared_ptr<const CostModel> cost,
               std::shared_ptr<const ChoiceFilter> filter = nullptr)
        : pricing(model.graph, model.folding, Mode::Train, std::move(mesh), std::move(cost),
                  std::move(filter)),
          conversions(pricing) {}
    Pricing pricing;
    PhasedConversions conversions;
};

class StageTable {
public:
    /// @param mesh of one stage's replica; its devices share every micro-batch
    StageTable(std::shared_ptr<const StagedModel> model, Mesh mesh,
               std::shared_ptr<const CostModel> cost, const StageWeights& weights = {});
    StageTable(std::shared_ptr<const StagedModel> model, std::shared_ptr<MeshPrices> prices,
               const StageWeights& weights);

    const StagedModel& model() const { return *m_model; }
    const std::shared_ptr<MeshPrices>& prices() const { return m_prices; }
    const Mesh& mesh() const { return m_prices->pricing.mesh(); }
    std::size_t units() const { return m_model->units.units.size(); }

    /// Units first … last, both included, as one stage: the choices that cost least by the weights.
    StageFigures figures(std::size_t first, std::size_t last) { return stretch(first, last).ended; }
    /// The choices that those figures are of.
    void decide(std::size_t first, std::size_t last, PartialDecisions& result);
    /// No stretch that holds the unit costs less for it, by the weights.
    double floor(std::size_t unit);
    /// Kept bytes of the unit that keeps most: what lives while it is recomputed.
    double largestUnit(std::size_t first, std::size_t last) { return stretch(first, last).largest; }

private:
    /// Products from a start on: by state, cost and figures.
    struct Front {
        std::vector<double> cost;
        std::vector<StageFigures> figures;
    };
    struct Stretch {
        StageFigures ended; ///< with the ending
        double largest = 0;
    };
    struct Growth {
        double cost = 0;
        StageFigures figures;
    };
    /// Stretches with one start that end in one group of equal units, by how many of them they
    /// hold.
    struct Segment {
        std::vector<Front> fronts;
        std::vector<Stretch> stretches;
        std::optional<Growth> growth; ///< of each further unit, once it is known
    };
    using Row = std::vector<Segment>; ///< by group, from the start's on
    /// Units of one kind in a row.
    struct Group {
        std::size_t first = 0, last = 0;
    };

    const UnitTransfer& transfer(std::size_t unit, bool starts);
    Front begin(std::size_t unit);
    Front extend(const Front& front, std::size_t unit);
    /// The state that a stretch is ended in, and what ending it there takes.
    std::pair<std::size_t, StageFigures> ending(const std::vector<double>& cost, std::size_t unit);
    /// The entry that is left by an exit for least.
    static std::size_t entryFor(const std::vector<double>& cost, const UnitTransfer& step,
                                std::size_t exit);
    Stretch stretch(std::size_t first, std::size_t last);
    /// How many units of a group stretches with the start hold that go beyond it.
    std::size_t lengthIn(std::size_t group, std::size_t first) const;
    const Segment& segment(std::size_t first, std::size_t group, std::size_t length);
    void grow(Row& row, std::size_t first, std::size_t group, std::size_t length);
    static std::optional<Growth> growthOf(const std::vector<Front>& fronts);
    static Front frontAt(const Segment& segment, std::size_t length);
    static Stretch stretchAt(const Segment& segment, std::size_t length);

    std::shared_ptr<const StagedModel> m_model;
    std::shared_ptr<MeshPrices> m_prices;
    StageWeights m_weights;
    std::vector<Group> m_groups;
    std::vector<std::size_t> m_groupOf;                                                ///< by unit
    std::map<std::pair<std::size_t, bool>, std::unique_ptr<UnitTransfer>> m_transfers; ///< by kind
    std::map<std::size_t, Row> m_rows; ///< by first unit
};

} // namespace shardlens
