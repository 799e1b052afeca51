// SPDX-License-Identifier: Apache-2.0
// A pair joins so many copies of its ends. If both ends are tied, its costs count that often; if
// one is, they count as often as it meets each copy of the other.
#include "core/solve/tie.h"

#include "core/solve/instances.h"
#include "core/solve/problem_checks.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

namespace shardlens::solve {
namespace {

constexpr NodeId kNoNode = ~NodeId{0};

void addTimes(std::vector<double>& sum, const std::vector<double>& values, double times) {
    if (values.empty()) return;
    sum.resize(values.size(), 0.0);
    for (std::size_t i = 0; i < values.size(); ++i) sum[i] += times * values[i];
}

class Tying {
public:
    Tying(const Problem& problem, const std::vector<std::vector<NodeId>>& groups)
        : m_whole(problem), m_tied(problem.nodes.size(), 0) {
        m_out.node.assign(problem.nodes.size(), kNoNode);
        m_out.problem.limit = problem.limit;
        for (const Run& run : problem.runs) m_out.problem.runs.push_back({{}, run.count});
        for (const auto& group : groups) addGroup(group);
        for (NodeId id = 0; id < problem.nodes.size(); ++id) {
            if (m_out.node[id] == kNoNode) m_out.node[id] = add(problem.nodes[id]);
        }
        dropEmptyRuns();
        for (const Edge& edge : problem.edges) addEdge(edge);
        addJoined();
    }

    TiedProblem take() { return std::move(m_out); }

private:
    NodeId add(Node node) {
        const auto id = static_cast<NodeId>(m_out.problem.nodes.size());
        if (node.run >= 0) m_out.problem.runs[std::size_t(node.run)].body.push_back(id);
        m_out.problem.nodes.push_back(std::move(node));
        return id;
    }

    void addGroup(const std::vector<NodeId>& group) {
        if (group.empty()) return;
        Node sum;
        for (const NodeId id : group) {
            const std::string where = fmt::format("node {}", id);
            if (id >= m_whole.nodes.size()) failCheck("a tied node does not exist", where);
            if (m_tied[id]) failCheck("a node is tied twice", where);
            const Node& node = m_whole.nodes[id];
            if (node.cost.size() != m_whole.nodes[group[0]].cost.size()) {
                failCheck("nodes with different numbers of choices are tied", where);
            }
            m_tied[id] = 1;
            addTimes(sum.cost, node.cost, double(m_whole.copies(id)));
            addTimes(sum.usage, node.usage, double(m_whole.copies(id)));
        }
        const NodeId made = add(std::move(sum));
        for (const NodeId id : group) m_out.node[id] = made;
    }

    void dropEmptyRuns() {
        std::vector<int> place;
        std::vector<Run> kept;
        for (Run& run : m_out.problem.runs) {
            place.push_back(run.body.empty() ? -1 : int(kept.size()));
            if (!run.body.empty()) kept.push_back(std::move(run));
        }
        for (Node& node : m_out.problem.nodes) {
            if (node.run >= 0) node.run = place[std::size_t(node.run)];
        }
        m_out.problem.runs = std::move(kept);
    }

    void addEdge(const Edge& edge) {
        const bool tiedU = m_tied[edge.u], tiedV = m_tied[edge.v];
        Edge made = edge;
        made.u = m_out.node[edge.u];
        made.v = m_out.node[edge.v];
        if (!tiedU && !tiedV) return m_out.problem.edges.push_back(std::move(made));
        const EdgeEnd u = edgeEnd(m_whole, edge.u, edge.atU),
                      v = edgeEnd(m_whole, edge.v, edge.atV);
        const double joined =
            edge.carry ? double(u.count - 1)
                       : double(std::max(u.single ? 1 : u.count, v.single ? 1 : v.count));
        if (joined == 0) return;
        if (tiedU && tiedV) {
            auto& [count, matrix] = m_joined[{made.u, made.v, edge.cost.get()}];
            count += joined;
            matrix = edge.cost;
            return;
        }
        if (edge.carry) failCheck("a pair carried from copy to copy has one end tied", "tie");
        // The tied end is a plain node now. One copy of the other end is met by all copies of this
        // one, or each copy by one.
        const EdgeEnd& other = tiedU ? v : u;
        (tiedU ? made.atU : made.atV) = At::Each;
        made.cost = times(edge.cost, other.single ? joined : 1.0);
        m_out.problem.edges.push_back(std::move(made));
    }

    void addJoined() {
        for (const auto& [key, value] : m_joined) {
            const auto& [u, v, matrix] = key;
            m_out.problem.edges.push_back(
                {u, v, times(value.second, value.first), At::Each, At::Each, false});
        }
    }

    MatrixPtr times(const MatrixPtr& matrix, double factor) {
        if (factor == 1) return matrix;
        MatrixPtr& known = m_scaled[{matrix.get(), factor}];
        if (!known) {
            auto made = std::make_shared<Matrix>(*matrix);
            for (double& value : made->values) value *= factor;
            known = std::move(made);
        }
        return known;
    }

    const Problem& m_whole;
    std::vector<char> m_tied;
    TiedProblem m_out;
    /// Pairs of tied nodes and how often their costs count.
    std::map<std::tuple<NodeId, NodeId, const Matrix*>, std::pair<double, MatrixPtr>> m_joined;
    std::map<std::pair<const Matrix*, double>, MatrixPtr> m_scaled;
};

} // namespace

TiedProblem tieChoices(const Problem& problem, const std::vector<std::vector<NodeId>>& groups) {
    validate(problem);
    return Tying(problem, groups).take();
}

Assignment TiedProblem::untie(const Problem& whole, const Assignment& tied) const {
    Assignment out;
    for (NodeId id = 0; id < whole.nodes.size(); ++id) {
        const auto& choices = tied.choice[node[id]];
        const std::size_t copies = whole.copies(id);
        out.choice.push_back(
            choices.size() == copies ? choices : std::vector<std::uint16_t>(copies, choices[0]));
    }
    return out;
}

} // namespace shardlens::solve
