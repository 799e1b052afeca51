// SPDX-License-Identifier: Apache-2.0
// Random interval problems and their optimum by trying everything, written without any of the
// solver's code.
#pragma once

#include "core/solve/interval_problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace shardlens::solve::test {

enum class Net { Tree, Cycle, Grid, Any, Isolated };

struct IntervalShape {
    Net net = Net::Any;
    std::size_t nodes = 6;
    std::size_t mostChoices = 4;
    int mostCost = 20, mostUsage = 6, times = 8;
    double forbidden = 0;  ///< share of pairs and choices
    double functional = 0; ///< share of pairs in which one end determines the other
    double separable = 0;  ///< share of matrices that are a sum of two parts
    double tightness = -1; ///< of the limit between least and largest peak; negative: no limit
};

class IntervalMaker {
public:
    explicit IntervalMaker(unsigned seed) : m_random(seed) {}

    IntervalProblem make(const IntervalShape& shape) {
        IntervalProblem p;
        for (std::size_t i = 0; i < shape.nodes; ++i) {
            IntervalProblem::Node node;
            const auto choices = std::size_t(pick(1, int(shape.mostChoices)));
            for (std::size_t c = 0; c < choices; ++c) {
                node.cost.push_back(chance(shape.forbidden) ? kInfinite : pick(0, shape.mostCost));
                node.usage.push_back(pick(0, shape.mostUsage));
            }
            const int begin = pick(0, shape.times - 1);
            node.alive = {begin, pick(begin, shape.times)};
            p.nodes.push_back(std::move(node));
        }
        for (const auto& [u, v] : pairs(shape)) p.pairs.push_back({u, v, matrix(p, shape, u, v)});
        if (shape.tightness >= 0) {
            const double low = peak(p, false), high = peak(p, true);
            p.limit = std::floor(low + shape.tightness * (high - low));
        }
        return p;
    }
    int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(m_random); }
    bool chance(double p) { return std::uniform_real_distribution<double>(0, 1)(m_random) < p; }

private:
    std::vector<std::pair<NodeId, NodeId>> pairs(const IntervalShape& shape) {
        std::vector<std::pair<NodeId, NodeId>> out;
        const auto n = static_cast<NodeId>(shape.nodes);
        const auto any = [&] { return static_cast<NodeId>(pick(0, int(n) - 1)); };
        switch (shape.net) {
        case Net::Isolated:
            break;
        case Net::Tree:
            for (NodeId v = 1; v < n; ++v) out.emplace_back(NodeId(pick(0, int(v) - 1)), v);
            break;
        case Net::Cycle:
            for (NodeId v = 0; v < n; ++v) out.emplace_back(v, (v + 1) % n);
            break;
        case Net::Grid:
            for (NodeId v = 0; v < n; ++v) {
                if (v % 3 != 0) out.emplace_back(v - 1, v);
                if (v >= 3) out.emplace_back(v, v - 3);
            }
            break;
        case Net::Any: // parallel and self pairs too
            for (NodeId e = 0; e < 2 * n; ++e) out.emplace_back(any(), any());
            break;
        }
        return out;
    }

    MatrixPtr matrix(const IntervalProblem& p, const IntervalShape& shape, NodeId u, NodeId v) {
        const std::size_t rows = p.nodes[u].cost.size(), cols = p.nodes[v].cost.size();
        auto m = std::make_shared<Matrix>(Matrix{std::uint32_t(rows), std::uint32_t(cols), {}});
        const bool separable = chance(shape.separable), functional = chance(shape.functional);
        std::vector<int> row, column, image;
        for (std::size_t r = 0; r < rows; ++r) {
            row.push_back(pick(0, shape.mostCost));
            image.push_back(pick(0, int(cols) - 1));
        }
        for (std::size_t c = 0; c < cols; ++c) column.push_back(pick(0, shape.mostCost));
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t c = 0; c < cols; ++c) {
                double cost = separable ? row[r] + column[c] : pick(0, shape.mostCost);
                if (functional ? image[r] != int(c) : chance(shape.forbidden)) cost = kInfinite;
                m->values.push_back(cost);
            }
        }
        return m;
    }

    static double peak(const IntervalProblem& p, bool most) {
        double out = 0;
        for (Time t = 0; t < 64; ++t) {
            double sum = 0;
            for (const auto& node : p.nodes) {
                if (node.alive.begin > t || node.alive.end <= t) continue;
                sum += most ? *std::ranges::max_element(node.usage)
                            : *std::ranges::min_element(node.usage);
            }
            out = std::max(out, sum);
        }
        return out;
    }

    std::mt19937 m_random;
};

/// Calls f with the choices, their cost and whether they are within the limit, for all choices.
template <class F>
void forAllChoices(const IntervalProblem& p, F&& f) {
    std::vector<Choice> value(p.nodes.size(), 0);
    for (bool more = true; more;) {
        double cost = 0;
        for (std::size_t i = 0; i < value.size(); ++i) cost += p.nodes[i].cost[value[i]];
        for (const auto& pair : p.pairs) {
            cost += pair.cost->values[std::size_t{value[pair.u]} * pair.cost->cols + value[pair.v]];
        }
        bool within = true;
        for (Time t = 0; t < 64 && within && p.limit < kInfinite; ++t) {
            double sum = 0;
            for (std::size_t i = 0; i < value.size(); ++i) {
                const auto& node = p.nodes[i];
                if (node.alive.begin <= t && t < node.alive.end) sum += node.usage[value[i]];
            }
            within = sum <= p.limit;
        }
        f(value, cost, within);
        more = false;
        for (std::size_t i = 0; i < value.size() && !more; ++i) {
            more = ++value[i] < p.nodes[i].cost.size();
            if (!more) value[i] = 0;
        }
    }
}

/// kInfinite if nothing is feasible.
inline double optimum(const IntervalProblem& p) {
    double best = kInfinite;
    forAllChoices(p, [&](const auto&, double cost, bool within) {
        if (within) best = std::min(best, cost);
    });
    return best;
}

/// The shapes that tests go through, by number.
inline IntervalShape shapeOf(unsigned seed) {
    constexpr std::array nets = {Net::Tree, Net::Cycle, Net::Grid, Net::Any, Net::Isolated};
    constexpr std::array tightness = {-1.0, 0.0, 0.1, 0.3, 0.6};
    IntervalShape shape;
    shape.net = nets[seed % nets.size()];
    shape.tightness = tightness[seed / 5 % tightness.size()];
    shape.nodes = 2 + seed / 25 % 6;
    shape.forbidden = seed % 3 == 0 ? 0.15 : 0.0;
    shape.functional = seed % 4 == 1 ? 0.4 : 0.0;
    shape.separable = seed % 7 < 2 ? 0.5 : 0.0;
    return shape;
}

} // namespace shardlens::solve::test
