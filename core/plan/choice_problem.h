// SPDX-License-Identifier: Apache-2.0
// Writes a context as a choice problem in folded form, and reads an assignment back. Every run of
// the folding is cut into segments of equal instances: a pin on one layer makes that layer a
// segment of its own, and the others stay folded.
#pragma once

#include "core/plan/planner.h"
#include "core/plan/pricing.h"

namespace shardlens {

/// What the pins fix: a choice index per op, -1 where free.
using FixedChoices = std::vector<int>;

class ProblemBuilder {
public:
    /// @param fixed    by OpId
    /// @param isolate  an op whose instance must be a segment of its own, or kNoOp
    ProblemBuilder(const Pricing& pricing, FixedChoices fixed, OpId isolate = kNoOp);

    const solve::Problem& problem() const { return m_problem; }
    solve::Problem& problem() { return m_problem; }

    /// The node that stands for an op, and which of its copies.
    struct Place {
        solve::NodeId node;
        std::size_t copy;
    };
    Place placeOf(OpId op) const;
    Place placeOfHandover(TensorId tensor) const;

    /// Nodes that stand for the same op of a block, one group for each op and hand-over of a run:
    /// what is tied for "one plan for all layers".
    std::vector<std::vector<solve::NodeId>> layerGroups() const;

    Decisions decisions(const solve::Assignment& assignment) const;
    std::vector<std::string> nodeNames() const;

private:
    struct Segment {
        std::size_t first, count;          ///< instances
        std::size_t run;                   ///< index into the folding's runs
        int problemRun;                    ///< index into the problem's runs, -1 if single
        std::vector<solve::NodeId> opNode; ///< by local place
        std::vector<std::vector<solve::NodeId>> handoverNode; ///< [local][result]
    };
    struct End {
        solve::NodeId node;
        solve::At at;
    };

    void cutRuns(OpId isolate);
    void addNodes();
    void addOpNodes(OpId op, int problemRun, std::vector<solve::NodeId>& opNode,
                    std::vector<std::vector<solve::NodeId>>& handoverNode);
    void addInnerEdges(OpId op);
    void addReads();
    void addRead(OpId reader, std::uint32_t port);
    void addRepeatedRead(const Segment& segment, std::size_t local, std::uint32_t port);
    const Segment* segmentOf(OpId op) const;
    /// The node a reader of the tensor is joined to: its hand-over, else its producer.
    End sourceEnd(TensorId tensor) const;
    solve::MatrixPtr readMatrix(TensorId tensor, const Graph::Use& use) const;

    const Pricing& m_pricing;
    FixedChoices m_fixed;
    solve::Problem m_problem;
    std::vector<Segment> m_segments;
    std::vector<std::vector<std::size_t>> m_segmentAt; ///< [run][instance] -> segment
    std::vector<solve::NodeId> m_plainNode;            ///< by OpId, for ops outside runs
    std::vector<std::vector<solve::NodeId>> m_plainHandover;
};

} // namespace shardlens
