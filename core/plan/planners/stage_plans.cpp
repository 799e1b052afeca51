// SPDX-License-Identifier: Apache-2.0
// See stage_plans.h.
#include "core/plan/planners/stage_plans.h"

#include "core/plan/pricing.h"

#include <algorithm>

namespace shardlens {

namespace {

bool isOfOneReplica(const PlannedStage& a, const PlannedStage& b) {
    const ReplicaKey &x = a.option.replica, &y = b.option.replica;
    return x.pool == y.pool && x.samples == y.samples && x.layout == y.layout &&
           std::ranges::equal(x.axes, y.axes, [](const AxisSize& one, const AxisSize& other) {
               return one.name == other.name && one.size == other.size;
           });
}

std::shared_ptr<const PlanContext> contextOf(StagePricer::Replica& replica, const ReplicaKey& key) {
    const std::shared_ptr<MeshPrices>& prices = replica.table().prices();
    auto context = std::make_shared<PlanContext>();
    context->graph = replica.model().graph;
    context->folding = replica.model().folding;
    context->request.cluster = replica.pool().name;
    context->request.mesh = key.axes;
    context->request.batch = key.samples;
    context->cluster = replica.pool();
    context->mesh = prices->pricing.mesh();
    context->cost = rooflineModel(replica.pool());
    context->pricing = {prices, &prices->pricing};
    context->memoryLimitBytes = replica.pool().device.memoryBytes;
    return context;
}

/// By op: which of the pieces it is in; -1 for none.
std::vector<int> pieceOfOps(const StagedModel& model, const std::vector<VirtualStage>& pieces) {
    std::vector<int> of(model.graph->ops().size(), -1);
    for (std::size_t i = 0; i < pieces.size(); ++i)
        for (int u = pieces[i].first; u <= pieces[i].last; ++u)
            for (const OpId op : model.units.units[static_cast<std::size_t>(u)].ops)
                if (of[op] < 0) of[op] = static_cast<int>(i);
    return of;
}

/// What undecided ops would have to do with each other and with the rest is none of this plan.
void dropBetweenPieces(Plan& plan, const std::vector<int>& pieceOf) {
    std::erase_if(plan.collectives, [&](const PlannedCollective& c) {
        const OpId at = c.to == kNoOp ? c.from : c.to;
        const bool inside = pieceOf[at] >= 0 && (c.from == kNoOp || pieceOf[c.from] == pieceOf[at]);
        if (!inside) plan.figures[at].communication -= c.seconds;
        return !inside;
    });
    for (OpId op = 0; op < pieceOf.size(); ++op)
        if (pieceOf[op] < 0) plan.figures[op] = {};
}

/// @param pieces of stages of one replica
std::shared_ptr<const StagePlan> planOf(StagePricer& pricer,
                                        const std::vector<PlannedStage>& stages,
                                        const std::vector<VirtualStage>& pieces) {
    const auto keyOf = [&](const VirtualStage& piece) -> const ReplicaKey& {
        return stages[static_cast<std::size_t>(piece.stage)].option.replica;
    };
    StagePricer::Replica& any = pricer.replica(keyOf(pieces.front()));
    PartialDecisions chosen(any.table().prices()->pricing);
    for (const VirtualStage& piece : pieces)
        if (piece.first <= piece.last)
            pricer.replica(keyOf(piece))
                .table()
                .decide(static_cast<std::size_t>(piece.first), static_cast<std::size_t>(piece.last),
                        chosen);
    Plan plan = evaluate(contextOf(any, keyOf(pieces.front())), std::move(chosen.decisions));
    plan.madeBy = "stages";
    dropBetweenPieces(plan, pieceOfOps(any.model(), pieces));
    return std::make_shared<const StagePlan>(
        StagePlan{std::make_shared<const Plan>(std::move(plan)), std::move(chosen.decided)});
}

bool choseAlike(const StagePlan& plan, const StageUnit& a, const StageUnit& b) {
    const std::vector<Choice>& choices = plan.plan->decisions.op;
    return a.kind == b.kind && std::ranges::equal(a.ops, b.ops, [&](OpId x, OpId y) {
               return choices[x] == choices[y];
           });
}

} // namespace

std::vector<std::shared_ptr<const StagePlan>>
stagePlans(StagePricer& pricer, const std::vector<PlannedStage>& stages, int chunks) {
    std::vector<std::shared_ptr<const StagePlan>> plans(stages.size());
    for (std::size_t s = 0; s < stages.size(); ++s) {
        if (plans[s]) continue;
        const auto isMember = [&](std::size_t other) {
            return isOfOneReplica(stages[s], stages[other]);
        };
        std::vector<VirtualStage> pieces =
            virtualStages(pricer.model(stages[s].option.replica.samples)->units, stages, chunks);
        std::erase_if(pieces, [&](const VirtualStage& piece) {
            return !isMember(static_cast<std::size_t>(piece.stage));
        });
        const auto plan = planOf(pricer, stages, pieces);
        for (std::size_t other = s; other < stages.size(); ++other)
            if (isMember(other)) plans[other] = plan;
    }
    return plans;
}

std::vector<UnitChoices> choicesOf(const StagePlan& plan, const StageUnits& units,
                                   const std::vector<VirtualStage>& pieces, int stage) {
    std::vector<UnitChoices> found;
    const Graph& graph = *plan.plan->context->graph;
    const auto unit = [&](int u) -> const StageUnit& {
        return units.units[static_cast<std::size_t>(u)];
    };
    const auto add = [&](int u) {
        found.push_back({u, u, {}});
        for (const OpId op : unit(u).ops) {
            const FactorRule rule = factorRule(viewOf(graph, op));
            std::string choice =
                toString(plan.plan->decisions.op[op], rule, plan.plan->context->mesh);
            if (choice != "replicated") found.back().choices.emplace_back(op, std::move(choice));
        }
    };
    for (const VirtualStage& piece : pieces)
        for (int u = piece.first; piece.stage == stage && u <= piece.last; ++u) {
            if (u > piece.first && choseAlike(plan, unit(u - 1), unit(u)))
                found.back().last = u;
            else
                add(u);
        }
    return found;
}

} // namespace shardlens
