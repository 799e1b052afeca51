// SPDX-License-Identifier: Apache-2.0
// Prices the two things a plan is made of: what an op does under a choice, and what it takes to
// turn one layout into another between a producer and a reader. Both the choice problem (folded,
// for the solver) and evaluate() (unfolded, for the truth) are built from these and from nothing
// else.
//
// A tensor with several readers has a hand-over: a node of its own with a layout, so that one
// conversion that serves several readers is paid once. What the backward pass needs again (the
// stash) is kept at the hand-over if there is one, else at the reader; a reader that had to gather
// from a hand-over or a stored parameter gathers again in the backward pass.
//
// Times are rounded to the cost model's quantum one by one, so that sums are exact in any order.
#pragma once

#include "core/plan/choice_filter.h"
#include "core/plan/plan.h"
#include "core/solve/problem.h"

#include <map>
#include <mutex>
#include <span>
#include <tuple>

namespace shardlens {

/// One side of a conversion: the layout a tensor is produced in, and for parameters the axes over
/// which gradient and optimizer state are sharded while the value is not (ZeRO-1/2).
struct ProducerSide {
    Layout layout;
    std::uint8_t stateAxes = 0; ///< bit a = mesh axis a
    auto operator<=>(const ProducerSide&) const = default;
};

/// The way of a gradient from a reader back to the producer: a conversion between two layouts, then
/// one step per state axis, outermost first: a reduce-scatter where the sum is still partial, else
/// a slice. State is cut from the flattened local tensor.
struct GradientWay {
    SideLayout from{}, to{};
    std::array<bool, kMaxMeshAxes> scattered{}; ///< by state axis
};
GradientWay gradientWay(const ProducerSide& producer, const Layout& reader);

struct PhasedStep {
    CollectiveStep step;
    Phase phase = Phase::Forward;
    double time = 0; ///< cost model units, a multiple of the quantum
};

/// What a conversion moves.
struct EdgeTraits {
    double bytes = 0;       ///< of the whole tensor
    bool gradient = false;  ///< a gradient flows back
    bool parameter = false; ///< the producer is a parameter: its gradient is reduced once a step
    bool regather = false;  ///< the reader needs the value again in the backward pass
    auto operator<=>(const EdgeTraits&) const = default;
};

/// An op (or a hand-over) under one choice.
struct NodePrice {
    OpTime compute;                     ///< multiples of the quantum
    std::vector<PhasedStep> statistics; ///< the op's own collectives
    MemorySplit memory;                 ///< whole bytes, without the workspace
    double recomputable = 0; ///< of the activations: results of memory-bound ops, cheap to repeat
    double time() const;
};

/// An op class with everything that does not depend on the choice.
struct PricedOp {
    FactorRule rule;
    std::vector<Choice> choices;
    std::vector<LegalChoices::Illegal> illegal;
    std::vector<NodePrice> prices;                      ///< by choice
    std::vector<std::vector<Layout>> operandLayouts;    ///< [operand][choice]
    std::vector<std::vector<ProducerSide>> resultSides; ///< [result][choice]

    int choiceIndex(const Choice& choice) const; ///< -1 if not legal
};

/// The hand-over of one tensor class.
struct PricedHandover {
    std::vector<Layout> layouts;
    std::vector<NodePrice> prices; ///< by layout

    int layoutIndex(const Layout& layout) const;
};

class Pricing {
public:
    /// @param filter takes choices away; none by default
    Pricing(std::shared_ptr<const Graph> graph, std::shared_ptr<const Folding> folding, Mode mode,
            Mesh mesh, std::shared_ptr<const CostModel> cost,
            std::shared_ptr<const ChoiceFilter> filter = nullptr);

    const Graph& graph() const { return *m_graph; }
    const Folding& folding() const { return *m_folding; }
    const Mesh& mesh() const { return m_mesh; }
    const CostModel& cost() const { return *m_cost; }
    const ChoiceFilter* filter() const { return m_filter.get(); }

    bool hasGradient(TensorId id) const { return m_gradient[id]; } ///< never, in inference
    bool training() const { return m_training; }
    /// What is kept of a tensor may be recomputed cheaply: a memory-bound op made it.
    bool cheap(TensorId id) const { return m_cheap[id]; }

    const PricedOp& op(OpId id) const { return m_ops[m_folding->classOf[id]]; }
    bool hasHandover(TensorId id) const { return m_hasHandover[id]; }
    const PricedHandover& handover(TensorId id) const; ///< only where hasHandover

    /// Traits of producer -> hand-over (or, without one, producer -> reader `use`).
    EdgeTraits producerEdge(TensorId id, const Graph::Use* use) const;
    /// Traits of hand-over -> reader.
    EdgeTraits readerEdge(TensorId id, const Graph::Use& use) const;

    std::vector<PhasedStep> convert(const ProducerSide& from, const Layout& to,
                                    const EdgeTraits& traits) const;
    double convertTime(const ProducerSide& from, const Layout& to, const EdgeTraits& traits) const;

    /// The conversions of every pair, in quanta (rows: `from`, columns: `to`); nullptr when all are
    /// free. Kept, so that problems which differ in pins share their matrices; thread-safe.
    solve::MatrixPtr conversionMatrix(std::span<const ProducerSide> from,
                                      std::span<const Layout> to, const EdgeTraits& traits) const;

private:
    void findHandovers();
    void findCheap();
    void priceClass(ClassId id);
    void barReplicated(PricedOp& priced) const;
    NodePrice priceOp(OpId id, const PricedOp& op, const Choice& choice, const OpView& view,
                      const OpWork& work) const;
    NodePrice priceParameter(OpId id, const Choice& choice) const;
    void priceHandover(TensorId id);
    bool readerSaves(const Graph::Use& use) const;
    bool readerReturnsGradient(const Graph::Use& use) const;
    double quantised(double time) const;
    PhasedStep phased(CollectiveStep step, Phase phase) const;
    double localBytes(TensorId id, const Layout& layout) const;

    std::shared_ptr<const Graph> m_graph;
    std::shared_ptr<const Folding> m_folding;
    bool m_training;
    Mesh m_mesh;
    std::shared_ptr<const CostModel> m_cost;
    std::shared_ptr<const ChoiceFilter> m_filter;
    std::vector<bool> m_gradient;      ///< by tensor
    std::vector<bool> m_hasHandover;   ///< by tensor
    std::vector<bool> m_cheap;         ///< by tensor: what of it is kept may be recomputed cheaply
    std::vector<SavedTensors> m_saved; ///< by class
    std::vector<PricedOp> m_ops;       ///< by class
    std::vector<std::vector<PricedHandover>> m_handovers; ///< [class][result]

    using MatrixKey = std::tuple<std::vector<ProducerSide>, std::vector<Layout>, EdgeTraits>;
    mutable std::mutex m_matrixGuard;
    mutable std::map<MatrixKey, solve::MatrixPtr> m_matrices;
};

} // namespace shardlens
