// SPDX-License-Identifier: Apache-2.0
// The Plan document: one choice for every op, and what follows from it: local shapes, collectives,
// time and memory, each figure with its provenance. Whatever made the plan, this is its form, and
// evaluate() is the one place that prices it.
#pragma once

#include "core/cost/cost_model.h"
#include "core/fold/folding.h"
#include "core/plan/request.h"
#include "core/solve/solver.h"

#include <functional>
#include <map>

namespace shardlens {

enum class Phase : std::uint8_t {
    Forward,
    Backward,
    Step, ///< once a step: gradients and parameters
};
std::string_view nameOf(Phase phase) noexcept;

enum class Provenance : std::uint8_t { Modelled, Measured, Published };
std::string_view nameOf(Provenance provenance) noexcept;

class Pricing;

/// Everything fixed before choices are made. Shared, immutable.
struct PlanContext {
    std::shared_ptr<const Graph> graph; ///< canonical (see model/canonical.h)
    std::shared_ptr<const Folding> folding;
    PlanRequest request;
    Cluster cluster;
    Mesh mesh;
    std::shared_ptr<const CostModel> cost;
    std::shared_ptr<const Pricing> pricing; ///< prices of every choice, shared by contexts that
                                            ///< differ in pins or limit only
    double memoryLimitBytes = 0;            ///< per device; infinite if there is none
};

/// Validates a request against a graph: cluster, mesh, model. @throws PlanError
std::shared_ptr<const PlanContext> makeContext(std::shared_ptr<const Graph> graph,
                                               std::shared_ptr<const Folding> folding,
                                               const PlanRequest& request);
/// The same with other pins; shares all prices.
std::shared_ptr<const PlanContext> withPins(const PlanContext& context, std::vector<Pin> pins);

/// The choices of a whole model: one per op, and a layout per tensor that has a hand-over.
struct Decisions {
    std::vector<Choice> op;       ///< by OpId
    std::vector<Layout> handover; ///< by TensorId; meaningful where hasHandover
    std::vector<bool> hasHandover;
    friend bool operator==(const Decisions&, const Decisions&) = default;
};

struct PlannedCollective {
    CollectiveStep step;
    Phase phase = Phase::Forward;
    double seconds = 0;
    TensorId tensor = kNoTensor;   ///< what is moved; kNoTensor for an op's own statistics
    OpId from = kNoOp, to = kNoOp; ///< `to` is kNoOp for tensor -> its hand-over
};

struct MemorySplit {
    double parameters = 0, gradients = 0, optimizer = 0, activations = 0, workspace = 0;
    double total() const { return parameters + gradients + optimizer + activations + workspace; }
};

struct OpFigures {
    OpTime compute;           ///< seconds
    double communication = 0; ///< seconds: its own statistics and the conversions of its operands
    MemorySplit memory;       ///< bytes a device
};

struct PlanTotals {
    double time = 0; ///< seconds a step = compute + exposed communication
    double compute = 0;
    double communication = 0;
    MemorySplit memory;    ///< bytes, per device
    double modelFlops = 0; ///< of the whole step, all devices
};

struct Plan {
    std::shared_ptr<const PlanContext> context;
    Decisions decisions;
    std::vector<OpFigures> figures;             ///< by OpId
    std::vector<PlannedCollective> collectives; ///< in op order
    PlanTotals totals;
    Provenance provenance = Provenance::Modelled; ///< of times and memory
    std::string madeBy;                           ///< "optimum", "pins", "template megatron"

    // The certificate; meaningful when a solver made the plan.
    double bound = 0;
    double gap = 0;
    bool optimal = false;
    double buildMilliseconds = 0; ///< making the choice problem
    double solveMilliseconds = 0;
    std::string method;
    solve::Statistics effort; ///< of the solver that made it
    /// Of a plan whose layers are tied to one choice: the time of the best plan without that tie.
    std::optional<double> untiedTime;
    double memoryPrice = 0; ///< seconds a byte, 0 when memory does not bind
    /// False when nobody set a limit and no plan at all fits the device: the plan is then the
    /// fastest one without a limit, and `notes` says how much memory the leanest would need.
    bool fitsMemory = true;
    std::vector<std::string> notes; ///< for people, one sentence each
    std::vector<bool> pinned;       ///< by OpId
};

/// Prices decisions on the unfolded graph, from nothing but the rules and the cost model.
Plan evaluate(std::shared_ptr<const PlanContext> context, Decisions decisions);

/// The report: at least time_s, bound_s, gap, optimal, memory_bytes, solve_ms, classes, ops[],
/// collectives[]. Deterministic.
std::string toJson(const Plan& plan);
std::string toText(const Plan& plan); ///< for the terminal

} // namespace shardlens
