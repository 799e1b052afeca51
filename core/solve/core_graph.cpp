// SPDX-License-Identifier: Apache-2.0
// Matrices are looked up by content, since reductions make equal ones again and again.
#include "core/solve/core_graph.h"

#include "core/solve/monitor.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace shardlens::solve {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

/// Distinct matrices one after the other.
class MatrixPool {
public:
    /// @param most  entries; room that stays unused costs no memory
    explicit MatrixPool(std::size_t most) { m_values.reserve(most); }

    /// @return where it begins
    std::size_t add(const std::vector<double>& values) {
        const std::string_view bytes(reinterpret_cast<const char*>(values.data()),
                                     values.size() * sizeof(double));
        const std::size_t hash = std::hash<std::string_view>()(bytes);
        const auto [first, last] = m_known.equal_range(hash);
        for (auto it = first; it != last; ++it) {
            const auto& [at, size] = it->second;
            if (size == values.size() &&
                std::equal(values.begin(), values.end(), m_values.begin() + std::ptrdiff_t(at))) {
                return at;
            }
        }
        const std::size_t at = m_values.size();
        m_known.emplace(hash, std::pair(at, values.size()));
        m_values.insert(m_values.end(), values.begin(), values.end());
        return at;
    }
    std::vector<double> take() { return std::move(m_values); }

private:
    std::vector<double> m_values;
    std::unordered_multimap<std::size_t, std::pair<std::size_t, std::size_t>> m_known;
};

} // namespace

CoreGraph::CoreGraph(const CoreProblem& problem, Monitor& monitor, double forbidden)
    : m_room(problem.room), m_constant(problem.constant) {
    const std::size_t count = problem.nodes.size();
    m_first.assign(1, 0);
    m_firstPart.assign(1, 0);
    std::vector<std::size_t> usageAt;
    for (const auto& node : problem.nodes) {
        m_cost.insert(m_cost.end(), node.cost.begin(), node.cost.end());
        m_first.push_back(m_cost.size());
        m_mostChoices = std::max(m_mostChoices, static_cast<std::uint32_t>(node.cost.size()));
        for (const auto& part : node.parts) {
            usageAt.push_back(m_usage.size());
            m_usage.insert(m_usage.end(), part.usage.begin(), part.usage.end());
            m_parts.push_back({part.first, part.last, nullptr});
        }
        m_firstPart.push_back(m_parts.size());
    }
    for (std::size_t p = 0; p < m_parts.size(); ++p) m_parts[p].usage = m_usage.data() + usageAt[p];

    std::size_t entries = 0;
    for (const auto& pair : problem.pairs) entries += pair.cost.size();
    MatrixPool pool(2 * entries);
    std::vector<std::size_t> straight, crossed;
    m_firstLink.assign(count + 1, 0);
    for (const auto& pair : problem.pairs) {
        monitor.tick(8 * pair.cost.size());
        std::vector<double> costs = pair.cost;
        for (double& cost : costs) cost = std::min(cost, forbidden);
        m_entries += costs.size();
        straight.push_back(pool.add(costs));
        const std::size_t rows = problem.choices(pair.u), cols = problem.choices(pair.v);
        std::vector<double> turned(pair.cost.size());
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t c = 0; c < cols; ++c) turned[c * rows + r] = costs[r * cols + c];
        }
        crossed.push_back(pool.add(turned));
        ++m_firstLink[pair.u + 1];
        ++m_firstLink[pair.v + 1];
    }
    m_matrices = pool.take();
    for (std::size_t v = 0; v < count; ++v) m_firstLink[v + 1] += m_firstLink[v];
    m_links.resize(2 * problem.pairs.size());
    std::vector<std::size_t> next(m_firstLink.begin(), m_firstLink.end() - 1);
    for (std::uint32_t p = 0; p < problem.pairs.size(); ++p) {
        const Var u = problem.pairs[p].u, v = problem.pairs[p].v;
        const std::size_t toU = m_messages, toV = toU + choices(u);
        m_messages = toV + choices(v);
        const double *rows = m_matrices.data() + straight[p],
                     *columns = m_matrices.data() + crossed[p];
        m_links[next[u]++] = {v, p, rows, columns, toU, toV};
        m_links[next[v]++] = {u, p, columns, rows, toV, toU};
    }
}

std::size_t CoreGraph::bytes() const {
    return (m_cost.size() + m_usage.size() + m_matrices.size() + m_room.size()) * sizeof(double) +
           m_links.size() * sizeof(Link) + m_parts.size() * sizeof(Part) +
           3 * m_first.size() * sizeof(std::size_t);
}

double CoreGraph::costOf(const CoreChoices& choices) const {
    double sum = m_constant;
    for (Var v = 0; v < nodes(); ++v) {
        sum += cost(v)[choices[v]];
        for (const Link& link : links(v)) {
            if (link.to < v) continue;
            sum += link.rows[std::size_t{choices[v]} * this->choices(link.to) + choices[link.to]];
        }
    }
    return sum == sum ? sum : kNone;
}

std::vector<double> CoreGraph::usageOf(const CoreChoices& choices) const {
    std::vector<double> usage(moments(), 0.0);
    for (Var v = 0; v < nodes(); ++v) {
        for (const Part& part : parts(v)) {
            const double used = part.usage[choices[v]];
            for (std::uint32_t t = part.first; used != 0 && t < part.last; ++t) usage[t] += used;
        }
    }
    return usage;
}

} // namespace shardlens::solve
