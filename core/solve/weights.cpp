// SPDX-License-Identifier: Apache-2.0
// The grid is found by trying finer and finer powers of two.
#include "core/solve/weights.h"

#include <cmath>
#include <unordered_map>

namespace shardlens::solve {
namespace {

constexpr double kExactBits = 9007199254740992.0; // 2^53

/// True if the value is a multiple of 2^-shift and small enough to tell.
bool multipleOf(double value, double inverse) {
    const double scaled = value * inverse;
    return std::abs(scaled) < kExactBits && double(static_cast<std::int64_t>(scaled)) == scaled;
}

/// Calls f with the cost vector of each node and each distinct edge matrix, and how often it
/// counts.
template <class F>
void forEachCostVector(const Problem& problem, F&& f) {
    for (NodeId id = 0; id < problem.nodes.size(); ++id) {
        f(problem.nodes[id].cost, double(problem.copies(id)));
    }
    std::unordered_map<const Matrix*, std::size_t> index;
    std::vector<std::pair<const Matrix*, double>> matrices; // in the order of the edges
    for (const Edge& edge : problem.edges) {
        const auto [at, added] = index.try_emplace(edge.cost.get(), matrices.size());
        if (added) matrices.emplace_back(edge.cost.get(), 0.0);
        matrices[at->second].second +=
            double(std::max(problem.copies(edge.u), problem.copies(edge.v)));
    }
    for (const auto& [matrix, count] : matrices) f(matrix->values, count);
}

double largest(const std::vector<double>& values) {
    double most = 0;
    for (const double v : values) {
        if (v < kInfinite) most = std::max(most, std::abs(v));
    }
    return most;
}

} // namespace

Scale scaleOf(const Problem& problem) {
    Scale scale;
    int shift = 0; // costs are multiples of 2^-shift
    constexpr int kMostShift = 60;
    forEachCostVector(problem, [&](const std::vector<double>& costs, double times) {
        scale.cost += largest(costs) * times;
        for (const double cost : costs) {
            if (cost == kInfinite) continue;
            while (shift < kMostShift && !multipleOf(cost, std::ldexp(1.0, shift))) ++shift;
        }
    });
    for (NodeId id = 0; id < problem.nodes.size(); ++id) {
        scale.usage += largest(problem.nodes[id].usage) * double(problem.copies(id));
    }
    const double grid = std::ldexp(1.0, -shift);
    scale.grid = scale.cost <= kExactBits / 4 * grid ? grid : 0;
    return scale;
}

Weights costWeights(const Problem& problem) {
    Weights weights;
    for (const Node& node : problem.nodes) weights.unary.push_back(node.cost);
    return weights;
}

Weights pricedWeights(const Problem& problem, double price, const Scale& scale) {
    Weights weights = costWeights(problem);
    if (price == 0) return weights;
    const double magnitude = scale.cost + price * scale.usage;
    int exponent = 0; // of the finest grid on which sums of that magnitude stay exact
    std::frexp(magnitude / (kExactBits / 4), &exponent);
    const double step = std::ldexp(1.0, exponent);
    const bool exact = scale.grid >= step;
    weights.rounding = exact ? 0 : magnitude * 0x1p-45;
    for (NodeId id = 0; id < problem.nodes.size(); ++id) {
        const auto& used = problem.nodes[id].usage;
        for (std::size_t c = 0; c < used.size(); ++c) {
            double priced = price * used[c];
            if (exact) priced = std::floor(std::nextafter(priced, -kInfinite) / step) * step;
            weights.unary[id][c] += priced;
        }
    }
    return weights;
}

Weights usageWeights(const Problem& problem) {
    Weights weights;
    weights.edgesForbidOnly = true;
    for (const Node& node : problem.nodes) {
        auto& unary = weights.unary.emplace_back(node.usage);
        unary.resize(node.cost.size(), 0.0);
        for (std::size_t c = 0; c < unary.size(); ++c) {
            if (node.cost[c] == kInfinite) unary[c] = kInfinite;
        }
    }
    return weights;
}

Choices::Choices(const Problem& problem) {
    std::map<std::vector<std::uint16_t>, std::size_t> known;
    for (const Node& node : problem.nodes) {
        std::vector<std::uint16_t> left;
        for (std::size_t c = 0; c < node.cost.size(); ++c) {
            if (node.cost[c] < kInfinite) left.push_back(static_cast<std::uint16_t>(c));
        }
        m_none |= left.empty();
        const auto [at, added] = known.try_emplace(left, m_sets.size());
        if (added) m_sets.push_back(std::move(left));
        m_set.push_back(at->second);
    }
}

Values Choices::unary(NodeId node, const Weights& weights) const {
    const auto& left = of(node);
    auto out = std::make_shared_for_overwrite<double[]>(left.size());
    std::ranges::transform(left, out.get(),
                           [&](std::uint16_t c) { return weights.unary[node][c]; });
    return out;
}

Values Choices::pair(const MatrixPtr& matrix, NodeId u, NodeId v, bool forbidOnly) {
    const auto &rows = of(u), &cols = of(v);
    if (!forbidOnly && rows.size() == matrix->rows && cols.size() == matrix->cols) {
        return {matrix, matrix->values.data()};
    }
    Values& known = m_pairs[{matrix.get(), m_set[u], m_set[v], forbidOnly}];
    if (known) return known;
    auto out = std::make_shared_for_overwrite<double[]>(rows.size() * cols.size());
    double* next = out.get();
    for (const std::uint16_t r : rows) {
        for (const std::uint16_t c : cols) {
            const double cost = matrix->at(r, c);
            *next++ = forbidOnly && cost < kInfinite ? 0.0 : cost;
        }
    }
    return known = std::move(out);
}

Values Choices::diagonal(const Matrix& matrix, NodeId node, bool forbidOnly) const {
    const auto& left = of(node);
    auto out = std::make_shared_for_overwrite<double[]>(left.size());
    std::ranges::transform(left, out.get(), [&](std::uint16_t c) {
        const double cost = matrix.at(c, c);
        return forbidOnly && cost < kInfinite ? 0.0 : cost;
    });
    return out;
}

} // namespace shardlens::solve
