// SPDX-License-Identifier: Apache-2.0
// The state of a reduction under way and its rules.
#pragma once

#include "core/solve/monitor.h"
#include "core/solve/reduction.h"

#include <deque>

namespace shardlens::solve {

class Reduction::Worker {
public:
    Worker(CoreProblem problem, Reduction& out, Monitor& monitor);

    void run();

private:
    using Part = CoreProblem::Part;
    struct Node {
        std::vector<Choice> ids; ///< choices left
        std::vector<double> cost;
        std::vector<Part> parts;   ///< disjoint, ascending
        std::vector<Part> pending; ///< of nodes merged into this, to be added to the parts
        std::vector<std::uint32_t> pairs;
        bool gone = false, queued = false;
        bool compare = false; ///< changed since its choices were compared
        std::size_t size() const { return ids.size(); }
    };
    struct Pair {
        Var u = 0, v = 0;
        std::vector<double> cost;
        bool gone = false;
        bool checked = false;                ///< nothing changed since it was looked at
        bool consistent[2] = {false, false}; ///< each choice of u, of v, is allowed with some other
    };
    /// A pair as one of its ends sees it: at(own choice, other's choice).
    struct View {
        const double* values;
        std::size_t own, other; ///< strides
        double at(std::size_t a, std::size_t b) const { return values[a * own + b * other]; }
    };

    // reduction_worker.cpp: nodes and pairs
    void load(CoreProblem problem);
    void addPair(Var u, Var v, std::vector<double> cost);
    void dropPair(std::uint32_t pair);
    void queue(Var node);
    void queueAround(Var node);
    void keep(Var node, const std::vector<std::uint32_t>& places);
    Var otherEnd(std::uint32_t pair, Var node) const {
        return m_pairs[pair].u == node ? m_pairs[pair].v : m_pairs[pair].u;
    }
    std::size_t weight(Var node) const {
        const Node& n = m_nodes[node];
        return n.pairs.size() + n.parts.size() + n.pending.size();
    }
    View view(std::uint32_t pair, Var node) const;
    void remove(Var node, Rule rule);
    void finish();

    // reduction_time.cpp: usage and moments
    bool reduceMoments();
    void takeLeastUsage();
    bool forbidByRoom();
    bool dropMoments();
    std::vector<char> bindingMoments() const;
    void renumber(const std::vector<std::uint32_t>& kept);
    void tidy(Node& node) const;
    static void normalise(std::vector<Part>& parts);
    std::vector<Part> sum(std::span<Part> parts) const;
    static std::vector<Part> sum(const std::vector<Part>& a, const std::vector<Part>& b);

    // reduction_rules.cpp
    void drain();
    void visit(Var node);
    void dropForbidden(Var node);
    bool absorbSeparable(std::uint32_t pair);
    bool mergeFunctional(std::uint32_t pair, Var node);
    bool eliminate(Var node);
    bool eliminateTwo(Var node);
    bool eliminateFrugal(Var node);
    void dropDominated(Var node);
    bool beats(Var node, std::size_t better, std::size_t worse) const;
    void mergeInto(Var node, Var into, const std::vector<std::uint32_t>& map);

    Reduction& m_out;
    Monitor& m_monitor;
    ReductionStatistics& m_statistics;
    std::vector<Node> m_nodes;
    std::vector<Pair> m_pairs;
    std::vector<double> m_room;           ///< by moment
    std::vector<std::uint32_t> m_moments; ///< their numbers in the whole problem
    double m_constant = 0;
    std::deque<Var> m_queue;
};

} // namespace shardlens::solve
