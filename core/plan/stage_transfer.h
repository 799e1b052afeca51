// SPDX-License-Identifier: Apache-2.0
// One unit of a model as a transfer matrix between the layouts it is entered with and those it is
// left with: the least cost of the unit, its inner choices minimised out by bucket elimination
// (core/solve), from the prices that plans of one mesh are made of. The figures of an entry are
// read back by decoding it, and only where a path takes it. A stage that begins with the unit
// receives its operands over the wire, sharded as far as the mesh allows; one that ends with it
// sends them so. What that takes inside the mesh is part of the cost, the wire itself is not.
#pragma once

#include "core/plan/dim_labels.h"
#include "core/plan/plan.h"
#include "core/plan/pricing.h"
#include "core/plan/stage_figures.h"
#include "core/plan/stage_units.h"
#include "core/solve/bucket_tree.h"

#include <memory>

namespace shardlens {

/// A model made ready for stages: its units, and which share of each op's backward pass is the
/// gradient of weights. Shared by all meshes.
struct StagedModel {
    std::shared_ptr<const Graph> graph;
    std::shared_ptr<const Folding> folding;
    StageUnits units;
    std::vector<double> weightShare; ///< by ClassId
    std::shared_ptr<const DimLabels> labels;
};
std::shared_ptr<const StagedModel> stagedModel(std::shared_ptr<const Graph> graph,
                                               std::shared_ptr<const Folding> folding);

/// What choices of a stage are ranked by: seconds of a micro-batch + sync * those of a step +
/// memory * bytes.
struct StageWeights {
    double time = 1;
    double sync = 1.0 / 64;
    double memory = 1e-15; ///< seconds a byte: of equally quick choices the leaner one
    double weightGrad = 1; ///< of `time`, for the weight gradient's seconds
    double of(const StageFigures& figures) const;
};

/// Seconds of the conversions between two lists of layouts, by phase; kept for all units of a mesh.
class PhasedConversions {
public:
    explicit PhasedConversions(const Pricing& pricing) : m_pricing(pricing) {}
    struct Times {
        double forward = 0, backward = 0, step = 0;
    };
    using Matrix = std::shared_ptr<const std::vector<Times>>; ///< rows: from
    Matrix matrix(const std::vector<ProducerSide>& from, const std::vector<Layout>& to,
                  const EdgeTraits& traits);
    Times times(const ProducerSide& from, const Layout& to, const EdgeTraits& traits) const;
    const Pricing& pricing() const { return m_pricing; }

private:
    const Pricing& m_pricing;
    using Key = std::tuple<std::vector<ProducerSide>, std::vector<Layout>, EdgeTraits>;
    std::map<Key, Matrix> m_known;
};

/// Choices of some ops of a model, those of the others being any.
struct PartialDecisions {
    /// All undecided. @param pricing of the mesh, with all ops of the model
    explicit PartialDecisions(const Pricing& pricing);
    Decisions decisions;
    std::vector<bool> decided; ///< by OpId
};

class UnitTransfer {
public:
    /// @param starts the unit is the first of a stage: it has a single entry state
    /// @throws PlanError when the mesh has too many layouts to eliminate
    UnitTransfer(const StagedModel& model, PhasedConversions& conversions, std::size_t unit,
                 bool starts, const StageWeights& weights);
    ~UnitTransfer();

    std::size_t entries() const { return m_entries; }
    std::size_t exits() const { return m_exits; }
    double cost(std::size_t entry, std::size_t exit) const {
        return m_cost[entry * m_exits + exit];
    }
    const StageFigures& figures(std::size_t entry, std::size_t exit) const;
    /// Decides the ops of a unit of this kind, but for those decided before: parameters that
    /// several units read.
    void decide(const StageUnit& unit, const Pricing& pricing, std::size_t entry, std::size_t exit,
                PartialDecisions& result) const;
    /// What it takes to end a stage here, by exit state.
    const std::vector<StageFigures>& endings() const { return m_endings; }

private:
    class Builder;
    struct Edge {
        solve::Var u = 0, v = 0;
        PhasedConversions::Matrix times;
    };
    struct Result {
        std::size_t op = 0, port = 0; ///< place in StageUnit::ops
        solve::Var handover = 0;
    };
    /// By variable: the choices of the quickest way from an entry state to an exit state.
    std::vector<std::uint32_t> decode(std::size_t entry, std::size_t exit) const;

    std::size_t m_entries = 1, m_exits = 1;
    std::vector<double> m_cost;
    std::vector<StageFigures> m_endings;
    // For decoding.
    std::vector<std::uint32_t> m_dims;
    std::vector<std::vector<StageFigures>> m_unary; ///< [variable][choice]
    std::vector<Edge> m_edges;
    std::vector<solve::Var> m_ops; ///< by place in StageUnit::ops
    std::vector<Result> m_handovers;
    solve::Scope m_entryScope, m_exitScope;
    std::unique_ptr<solve::BucketTree> m_tree;
    mutable std::vector<std::optional<StageFigures>> m_known;
};

} // namespace shardlens
