// SPDX-License-Identifier: Apache-2.0
// Small random choice problems for the solver's tests, and the reference they are judged by: every
// assignment, priced one by one on the unfolded problem with code of its own.
#pragma once

#include "core/solve/problem.h"

#include <algorithm>
#include <random>

namespace shardlens::solve::test {

class Random {
public:
    explicit Random(unsigned seed) : m_engine(seed) {}
    /// Uniform in [low, high].
    int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(m_engine); }
    bool chance(double p) { return std::bernoulli_distribution(p)(m_engine); }

private:
    std::mt19937 m_engine;
};

struct Shape {
    int maxChoices = 3;
    double forbidden = 0.05; ///< share of infinite entries
    bool usage = false;
    int maxCost = 20;
};

inline double randomCost(Random& random, const Shape& shape) {
    return random.chance(shape.forbidden) ? kInfinite : random.pick(0, shape.maxCost);
}

inline MatrixPtr randomMatrix(Random& random, const Shape& shape, std::size_t rows,
                              std::size_t cols) {
    auto m = std::make_shared<Matrix>();
    m->rows = static_cast<std::uint32_t>(rows);
    m->cols = static_cast<std::uint32_t>(cols);
    for (std::size_t i = 0; i < rows * cols; ++i) m->values.push_back(randomCost(random, shape));
    return m;
}

inline NodeId addNode(Problem& problem, Random& random, const Shape& shape, int run = -1) {
    Node node;
    node.run = run;
    const int choices = random.pick(1, shape.maxChoices);
    for (int c = 0; c < choices; ++c) {
        node.cost.push_back(randomCost(random, shape));
        if (shape.usage) node.usage.push_back(random.pick(0, 9));
    }
    if (shape.usage && random.chance(0.2)) node.usage.clear();
    const auto id = static_cast<NodeId>(problem.nodes.size());
    problem.nodes.push_back(std::move(node));
    if (run >= 0) problem.runs[static_cast<std::size_t>(run)].body.push_back(id);
    return id;
}

inline void addEdge(Problem& problem, Random& random, const Shape& shape, NodeId u, NodeId v,
                    At atU = At::Each, At atV = At::Each, bool carry = false) {
    problem.edges.push_back(
        {u, v,
         randomMatrix(random, shape, problem.nodes[u].cost.size(), problem.nodes[v].cost.size()),
         atU, atV, carry});
}

/// Plain nodes on a tree with some extra edges.
inline Problem randomGraph(Random& random, const Shape& shape, int nodes, int extraEdges) {
    Problem problem;
    for (int i = 0; i < nodes; ++i) {
        const NodeId id = addNode(problem, random, shape);
        if (id > 0) addEdge(problem, random, shape, NodeId(random.pick(0, int(id) - 1)), id);
    }
    for (int i = 0; i < extraEdges; ++i) { // repeats and self edges happen
        addEdge(problem, random, shape, NodeId(random.pick(0, nodes - 1)),
                NodeId(random.pick(0, nodes - 1)));
    }
    return problem;
}

inline Problem randomGrid(Random& random, const Shape& shape, int rows, int cols) {
    Problem problem;
    for (int i = 0; i < rows * cols; ++i) {
        const NodeId id = addNode(problem, random, shape);
        if (i % cols > 0) addEdge(problem, random, shape, id - 1, id);
        if (i >= cols) addEdge(problem, random, shape, id - NodeId(cols), id);
    }
    return problem;
}

/// Runs with inner, carry, shared, First and Last edges, linked to plain nodes and to each other.
inline Problem randomRuns(Random& random, const Shape& shape, int maxRuns, int maxBody,
                          int maxCount, int maxPlain) {
    Problem problem;
    const int plain = random.pick(0, maxPlain), runs = random.pick(1, maxRuns);
    for (int i = 0; i < plain; ++i) addNode(problem, random, shape);
    for (int r = 0; r < runs; ++r) {
        problem.runs.push_back({{}, static_cast<std::size_t>(random.pick(1, maxCount))});
        const int body = random.pick(1, maxBody);
        for (int i = 0; i < body; ++i) addNode(problem, random, shape, r);
        const auto& ids = problem.runs.back().body;
        const auto any = [&] { return ids[std::size_t(random.pick(0, body - 1))]; };
        for (int i = 1; i < body; ++i) {
            addEdge(problem, random, shape, ids[std::size_t(random.pick(0, i - 1))],
                    ids[std::size_t(i)]);
        }
        if (random.chance(0.3)) addEdge(problem, random, shape, any(), any());
        for (int i = random.pick(0, 2); i > 0; --i) {
            addEdge(problem, random, shape, any(), any(), At::Each, At::Each, true);
        }
        const At ends[] = {At::First, At::Last};
        const auto end = [&] { return ends[random.pick(0, 1)]; };
        if (random.chance(0.15)) addEdge(problem, random, shape, any(), any(), end(), end());
        if (random.chance(0.15)) addEdge(problem, random, shape, any(), any(), end(), At::Each);
        for (int i = 0; i < plain; ++i) {
            if (random.chance(0.5)) addEdge(problem, random, shape, NodeId(i), any());
            if (random.chance(0.3)) {
                addEdge(problem, random, shape, any(), NodeId(i), end(), At::Each);
            }
        }
        if (r == 0) continue;
        const auto& before = problem.runs[std::size_t(r) - 1];
        const NodeId other = before.body[std::size_t(random.pick(0, int(before.body.size()) - 1))];
        if (random.chance(0.8)) {
            addEdge(problem, random, shape, other, any(), At::Last, At::First);
        }
        if (random.chance(0.15)) addEdge(problem, random, shape, any(), other, At::Each, At::Last);
        if (before.count == problem.runs.back().count && random.chance(0.1)) {
            addEdge(problem, random, shape, other, any()); // copy by copy
        }
    }
    return problem;
}

inline double unfoldedSize(const Problem& problem) {
    double size = 1;
    for (NodeId id = 0; id < problem.nodes.size(); ++id) {
        for (std::size_t i = 0; i < problem.copies(id); ++i) {
            size *= double(problem.nodes[id].cost.size());
        }
    }
    return size;
}

struct BruteForce {
    double cost = kInfinite;                                ///< least within the limit
    std::vector<std::vector<std::vector<double>>> marginal; ///< [node][copy][choice], no limit
};

/// All assignments of the unfolded problem, by an odometer.
inline BruteForce bruteForce(const Problem& folded, bool marginals = false, double price = 0) {
    const Expanded unfolded = expand(folded);
    const Problem& p = unfolded.problem;
    BruteForce out;
    std::vector<std::vector<double>> least(p.nodes.size());
    for (std::size_t i = 0; i < p.nodes.size(); ++i) {
        least[i].assign(p.nodes[i].cost.size(), kInfinite);
    }
    std::vector<std::size_t> value(p.nodes.size(), 0);
    for (bool more = true; more;) {
        double cost = 0, usage = 0;
        for (std::size_t i = 0; i < value.size(); ++i) {
            cost += p.nodes[i].cost[value[i]];
            if (!p.nodes[i].usage.empty()) usage += p.nodes[i].usage[value[i]];
        }
        for (const Edge& e : p.edges) {
            cost += e.cost->values[value[e.u] * e.cost->cols + value[e.v]];
        }
        if (usage <= folded.limit) out.cost = std::min(out.cost, cost);
        for (std::size_t i = 0; marginals && i < value.size(); ++i) {
            least[i][value[i]] = std::min(least[i][value[i]], cost + price * usage);
        }
        more = false;
        for (std::size_t i = 0; i < value.size() && !more; ++i) {
            more = ++value[i] < p.nodes[i].cost.size();
            if (!more) value[i] = 0;
        }
    }
    out.marginal.resize(folded.nodes.size());
    for (NodeId id = 0; id < folded.nodes.size(); ++id) {
        for (const NodeId copy : unfolded.node[id]) out.marginal[id].push_back(least[copy]);
    }
    return out;
}

} // namespace shardlens::solve::test
