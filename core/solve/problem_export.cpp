// SPDX-License-Identifier: Apache-2.0
// The .wcsp format: http://miat.inrae.fr/toulbar2 ("WCSP format"). Costs at or above the stated
// upper bound forbid.
#include "core/solve/problem_export.h"

#include "core/error.h"

#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <tuple>

namespace shardlens::solve {
namespace {

/// The least finite value of a cost function and the largest above it.
struct Range {
    double least = kInfinite, most = -kInfinite;

    explicit Range(const std::vector<double>& costs) {
        for (const double cost : costs) {
            if (cost == kInfinite) continue;
            if (cost != std::floor(cost)) {
                throw Error(fmt::format("the cost {} is not an integer", cost), "wcsp export",
                            "scale the costs to integers first");
            }
            least = std::min(least, cost);
            most = std::max(most, cost);
        }
        if (least == kInfinite) least = most = 0; // all forbidden
    }
};

class WcspWriter {
public:
    WcspWriter(std::ostream& out, const IntervalProblem& problem)
        : m_out(out), m_problem(problem) {}

    double write() {
        double span = 0, offset = 0;
        const auto add = [&](const std::vector<double>& costs) {
            const Range range(costs);
            span += range.most - range.least;
            offset += range.least;
        };
        std::size_t functions = m_problem.nodes.size(), largest = 1;
        for (const auto& node : m_problem.nodes) {
            add(node.cost);
            largest = std::max(largest, node.cost.size());
        }
        for (const IntervalProblem::Pair& edge : m_problem.pairs) {
            add(functionOf(edge));
            ++functions;
        }
        constexpr double kMost = 4e18;
        if (span > kMost) throw Error("costs add up beyond 64 bits", "wcsp export");
        m_top = static_cast<std::int64_t>(span) + 1;
        fmt::print(m_out, "shardlens {} {} {} {}\n", m_problem.nodes.size(), largest, functions,
                   m_top);
        for (const auto& node : m_problem.nodes) fmt::print(m_out, "{} ", node.cost.size());
        fmt::print(m_out, "\n");
        for (NodeId id = 0; id < m_problem.nodes.size(); ++id) {
            writeUnary(id, m_problem.nodes[id].cost);
        }
        for (const IntervalProblem::Pair& edge : m_problem.pairs) writeEdge(edge);
        return offset;
    }

private:
    /// The values of an edge: of a self edge, its diagonal.
    static std::vector<double> functionOf(const IntervalProblem::Pair& edge) {
        if (edge.u != edge.v) return edge.cost->values;
        std::vector<double> diagonal;
        for (std::size_t c = 0; c < edge.cost->rows; ++c) {
            diagonal.push_back(edge.cost->at(c, c));
        }
        return diagonal;
    }

    std::int64_t shifted(double cost, double least) const {
        return cost == kInfinite ? m_top : static_cast<std::int64_t>(cost - least);
    }

    void writeUnary(NodeId id, const std::vector<double>& costs) {
        const double least = Range(costs).least;
        fmt::print(m_out, "1 {} 0 {}\n", id, costs.size());
        for (std::size_t c = 0; c < costs.size(); ++c) {
            fmt::print(m_out, "{} {}\n", c, shifted(costs[c], least));
        }
    }

    void writeEdge(const IntervalProblem::Pair& edge) {
        const std::vector<double> costs = functionOf(edge);
        if (edge.u == edge.v) return writeUnary(edge.u, costs);
        const double least = Range(costs).least;
        fmt::print(m_out, "2 {} {} 0 {}\n", edge.u, edge.v, costs.size());
        for (std::size_t i = 0; i < costs.size(); ++i) {
            fmt::print(m_out, "{} {} {}\n", i / edge.cost->cols, i % edge.cost->cols,
                       shifted(costs[i], least));
        }
    }

    std::ostream& m_out;
    const IntervalProblem& m_problem;
    std::int64_t m_top = 0;
};

class LpWriter {
public:
    LpWriter(std::ostream& out, const IntervalProblem& problem) : m_out(out), m_problem(problem) {
        for (const auto& node : problem.nodes) m_unary.push_back(node.cost);
        for (const IntervalProblem::Pair& edge : problem.pairs) {
            if (edge.u != edge.v) continue;
            auto& unary = m_unary[edge.u];
            for (std::size_t c = 0; c < unary.size(); ++c) unary[c] += edge.cost->at(c, c);
        }
    }

    void write() {
        fmt::print(m_out, "\\ choice problem of Shardlens\nMinimize\n cost: 0 one");
        for (NodeId i = 0; i < m_problem.nodes.size(); ++i) {
            forEachChoice(
                i, [&](std::size_t c) { term(m_unary[i][c], fmt::format("s_{}_{}", i, c)); });
        }
        for (std::size_t k = 0; k < m_problem.pairs.size(); ++k) {
            forEachPair(k, [&](std::size_t a, std::size_t b) {
                term(m_problem.pairs[k].cost->at(a, b), fmt::format("e_{}_{}_{}", k, a, b));
            });
        }
        fmt::print(m_out, "\nSubject To\n");
        for (NodeId i = 0; i < m_problem.nodes.size(); ++i) writeChoice(i);
        for (std::size_t k = 0; k < m_problem.pairs.size(); ++k) writeEdge(k);
        writeLimit();
        fmt::print(m_out, "Bounds\n 0 <= one <= 0\nBinary\n");
        for (NodeId i = 0; i < m_problem.nodes.size(); ++i) {
            forEachChoice(i, [&](std::size_t c) { fmt::print(m_out, " s_{}_{}\n", i, c); });
        }
        fmt::print(m_out, "End\n");
    }

private:
    template <class F>
    void forEachChoice(NodeId i, F&& f) const {
        for (std::size_t c = 0; c < m_unary[i].size(); ++c) {
            if (m_unary[i][c] < kInfinite) f(c);
        }
    }
    template <class F>
    void forEachPair(std::size_t k, F&& f) const {
        const IntervalProblem::Pair& edge = m_problem.pairs[k];
        if (edge.u == edge.v) return;
        forEachChoice(edge.u, [&](std::size_t a) {
            forEachChoice(edge.v, [&](std::size_t b) {
                if (edge.cost->at(a, b) < kInfinite) f(a, b);
            });
        });
    }

    /// One term of a sum, on a line of its own: readers limit the length of lines.
    void term(double factor, const std::string& name) {
        if (factor != 0) {
            fmt::print(m_out, "\n {} {} {}", factor < 0 ? '-' : '+', std::abs(factor), name);
        }
    }

    void writeChoice(NodeId i) {
        fmt::print(m_out, " n_{}: 0 one", i);
        forEachChoice(i, [&](std::size_t c) { term(1, fmt::format("s_{}_{}", i, c)); });
        fmt::print(m_out, " = 1\n");
    }

    void writeEdge(std::size_t k) {
        const IntervalProblem::Pair& edge = m_problem.pairs[k];
        if (edge.u == edge.v) return;
        forEachChoice(edge.u, [&](std::size_t a) {
            fmt::print(m_out, " r_{}_{}: - s_{}_{}", k, a, edge.u, a);
            forEachChoice(edge.v, [&](std::size_t b) { pairTerm(k, a, b); });
            fmt::print(m_out, " = 0\n");
        });
        forEachChoice(edge.v, [&](std::size_t b) {
            fmt::print(m_out, " c_{}_{}: - s_{}_{}", k, b, edge.v, b);
            forEachChoice(edge.u, [&](std::size_t a) { pairTerm(k, a, b); });
            fmt::print(m_out, " = 0\n");
        });
    }

    void pairTerm(std::size_t k, std::size_t a, std::size_t b) {
        if (m_problem.pairs[k].cost->at(a, b) < kInfinite) {
            term(1, fmt::format("e_{}_{}_{}", k, a, b));
        }
    }

    /// A row before each time at which a node ends, if one has begun since the row before: these
    /// are the largest sets of nodes alive together.
    void writeLimit() {
        if (m_problem.limit == kInfinite) return;
        std::vector<std::tuple<Time, bool, NodeId>> events; // ends come before beginnings
        for (NodeId i = 0; i < m_problem.nodes.size(); ++i) {
            const auto& node = m_problem.nodes[i];
            if (node.alive.empty() || node.usage.empty()) continue;
            events.emplace_back(node.alive.end, false, i);
            events.emplace_back(node.alive.begin, true, i);
        }
        std::ranges::sort(events);
        std::set<NodeId> alive;
        bool begun = false;
        for (const auto& [time, begins, node] : events) {
            if (begins) {
                alive.insert(node);
            } else {
                if (begun) writeLimitAt(time, alive);
                alive.erase(node);
            }
            begun = begins;
        }
    }

    /// @param end  the first time after the row's
    void writeLimitAt(Time end, const std::set<NodeId>& alive) {
        fmt::print(m_out, " limit_{}: 0 one", end);
        for (const NodeId i : alive) {
            const auto& usage = m_problem.nodes[i].usage;
            forEachChoice(i, [&](std::size_t c) { term(usage[c], fmt::format("s_{}_{}", i, c)); });
        }
        fmt::print(m_out, " <= {}\n", m_problem.limit);
    }

    std::ostream& m_out;
    const IntervalProblem& m_problem;
    std::vector<std::vector<double>> m_unary; ///< with the diagonals of self edges
};

} // namespace

double writeWcsp(std::ostream& out, const IntervalProblem& problem) {
    validate(problem);
    return WcspWriter(out, problem).write();
}

void writeLp(std::ostream& out, const IntervalProblem& problem) {
    validate(problem);
    LpWriter(out, problem).write();
}

double writeWcsp(std::ostream& out, const Problem& problem) {
    validate(problem);
    return writeWcsp(out, unfold(problem));
}

void writeLp(std::ostream& out, const Problem& problem) {
    validate(problem);
    writeLp(out, unfold(problem));
}

} // namespace shardlens::solve
