// SPDX-License-Identifier: Apache-2.0
// The interaction graph is a Boost graph; the greedy elimination works on flat sets of neighbours,
// since it joins and removes all the time.
#include "core/solve/elimination_order.h"

#include "core/solve/monitor.h"

#include <boost/container/flat_set.hpp>
#include <boost/graph/adjacency_list.hpp>

#include <queue>

#include <cmath>

namespace shardlens::solve {
namespace {

using InteractionGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;
using Neighbours = boost::container::flat_set<Var>;

enum class Rule { MinSize, MinFill };
constexpr std::size_t kFillLimit = 4000; ///< variables above which min-fill is not tried
/// Neighbours beyond which the fill is not counted but taken to be all pairs: no table could have
/// so many, so the variable waits anyway, and its fill would be counted again at each elimination.
constexpr std::size_t kHub = 64;

InteractionGraph interactionGraph(std::size_t variables, std::span<const Scope> scopes) {
    InteractionGraph graph(variables);
    for (const Scope& scope : scopes) {
        for (std::size_t i = 0; i < scope.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                if (scope[i] != scope[j]) boost::add_edge(scope[i], scope[j], graph);
            }
        }
    }
    return graph;
}

class Greedy {
public:
    Greedy(Dims dims, const InteractionGraph& graph, std::span<const Var> kept, Rule rule,
           Monitor& monitor)
        : m_dims(dims), m_monitor(monitor), m_rule(rule), m_adjacent(dims.size()),
          m_weight(dims.size()), m_score(dims.size()), m_open(dims.size(), 1) {
        for (Var v = 0; v < dims.size(); ++v) {
            m_weight[v] = std::log2(double(dims[v]) + 0.01);
            const auto [first, last] = boost::adjacent_vertices(v, graph);
            std::vector<Var> neighbours;
            for (auto it = first; it != last; ++it) neighbours.push_back(static_cast<Var>(*it));
            m_adjacent[v] = Neighbours(neighbours.begin(), neighbours.end());
        }
        for (const Var v : kept) m_open[v] = 0;
        for (Var v = 0; v < dims.size(); ++v) update(v);
    }

    EliminationOrder run(const OrderLimits& limits) {
        EliminationOrder out;
        while (!m_queue.empty()) {
            const auto [score, v] = m_queue.top();
            m_queue.pop();
            if (!m_open[v] || score != m_score[v]) continue;
            const double result = tableOf(v);
            if (result > limits.table || m_adjacent[v].size() > limits.degree) {
                out.complete = false;
                if (limits.degree == ~std::size_t{0}) return out;
                continue; // comes back when a neighbour goes
            }
            out.order.push_back(v);
            out.work += result * m_dims[v];
            out.entries += result;
            out.largestTable = std::max(out.largestTable, result);
            out.width = std::max(out.width, static_cast<int>(m_adjacent[v].size()));
            eliminate(v);
        }
        return out;
    }

private:
    using Score = std::pair<double, double>;
    using Entry = std::pair<Score, Var>;

    double tableOf(Var v) const {
        double size = 1;
        for (const Var u : m_adjacent[v]) size *= m_dims[u];
        return size;
    }

    Score scoreOf(Var v) const {
        const std::size_t degree = m_adjacent[v].size();
        const bool counted = m_rule == Rule::MinFill && degree <= kHub;
        m_monitor.tick(16 * degree * (counted ? degree : 1));
        double size = m_weight[v];
        for (const Var u : m_adjacent[v]) size += m_weight[u];
        if (m_rule == Rule::MinSize) return {size, double(degree)};
        if (!counted) return {size * size / 2, size};
        double fill = 0;
        for (auto a = m_adjacent[v].begin(); a != m_adjacent[v].end(); ++a) {
            for (auto b = m_adjacent[v].begin(); b != a; ++b) {
                if (!m_adjacent[*a].contains(*b)) fill += m_weight[*a] * m_weight[*b];
            }
        }
        return {fill, size};
    }

    void update(Var v) {
        if (!m_open[v]) return;
        m_score[v] = scoreOf(v);
        m_queue.push({m_score[v], v});
    }

    void eliminate(Var v) {
        m_open[v] = 0;
        const Neighbours around = std::move(m_adjacent[v]);
        m_adjacent[v].clear();
        for (const Var u : around) {
            m_adjacent[u].erase(v);
            m_adjacent[u].insert(boost::container::ordered_unique_range, around.begin(),
                                 around.end());
            m_adjacent[u].erase(u);
        }
        Neighbours changed = around;
        if (m_rule == Rule::MinFill) {
            for (const Var u : around) {
                changed.insert(boost::container::ordered_unique_range, m_adjacent[u].begin(),
                               m_adjacent[u].end());
            }
        }
        for (const Var u : changed) update(u);
    }

    Dims m_dims;
    Monitor& m_monitor;
    Rule m_rule;
    std::vector<Neighbours> m_adjacent;
    std::vector<double> m_weight;
    std::vector<Score> m_score;
    std::vector<char> m_open;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> m_queue;
};

} // namespace

EliminationOrder eliminationOrder(Dims dims, std::span<const Scope> scopes,
                                  std::span<const Var> kept, const OrderLimits& limits,
                                  Monitor& monitor) {
    const InteractionGraph graph = interactionGraph(dims.size(), scopes);
    EliminationOrder best = Greedy(dims, graph, kept, Rule::MinSize, monitor).run(limits);
    if (dims.size() > kFillLimit || best.width <= 1) return best;
    EliminationOrder other = Greedy(dims, graph, kept, Rule::MinFill, monitor).run(limits);
    const auto rank = [](const EliminationOrder& o) {
        return std::make_tuple(!o.complete, -static_cast<long>(o.complete ? 0 : o.order.size()),
                               o.work);
    };
    return rank(other) < rank(best) ? other : best;
}

} // namespace shardlens::solve
