// SPDX-License-Identifier: Apache-2.0
// Random interval problems of real size in shapes unlike each other, for the benchmark: what the
// solver was not tuned on. All are feasible by construction, unless said: a hidden assignment keeps
// the limit.
#pragma once

#include "core/solve/interval_problem.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

namespace shardlens::solve::bench {

struct LargeShape {
    std::string name;
    std::size_t nodes = 1000;
    std::size_t choices = 6; ///< mean of a node
    std::size_t back = 30;   ///< pairs reach this far back in the order of nodes
    double pairs = 1.2;      ///< a node
    std::size_t hubs = 0;    ///< nodes that a tenth of all others is joined to
    double forbidden = 0.2;  ///< share of entries of a matrix
    double life = 100;       ///< mean length of an interval
    double room = 0.3;       ///< of the limit, between the hidden assignment and the largest peak
    bool conflicting = true; ///< cheap choices use much
    bool infeasible = false; ///< limit just under the least usage of one moment
};

class LargeMaker {
public:
    explicit LargeMaker(unsigned seed) : m_random(seed) {}

    IntervalProblem make(const LargeShape& shape) {
        IntervalProblem p;
        p.name = shape.name;
        for (std::size_t i = 0; i < shape.nodes; ++i) p.nodes.push_back(node(shape, Time(i)));
        ChoiceList hidden;
        for (const auto& n : p.nodes) {
            // Of two random choices the more frugal one: a tight yet not extreme peak.
            const std::size_t a = below(n.cost.size()), b = below(n.cost.size());
            hidden.push_back(Choice(n.usage[a] < n.usage[b] ? a : b));
        }
        for (std::size_t i = 1; i < shape.nodes; ++i) {
            for (double left = shape.pairs; left > 0 && chance(left); left -= 1) {
                join(p, hidden, shape, i - 1 - below(std::min(i, shape.back)), i);
            }
            if (shape.hubs > 0 && i >= shape.hubs && chance(0.1)) {
                join(p, hidden, shape, below(shape.hubs), i);
            }
        }
        const double used = evaluate(p, hidden).peak, most = peakOf(p, true);
        p.limit = std::floor(used + shape.room * (most - used));
        if (shape.infeasible) p.limit = std::ceil(peakOf(p, false)) - 1;
        return p;
    }

private:
    std::size_t below(std::size_t n) { return m_random() % n; }
    bool chance(double p) { return std::uniform_real_distribution<double>(0, 1)(m_random) < p; }
    double amount(double scale) {
        return std::floor(scale * std::exp(std::normal_distribution<double>()(m_random)));
    }

    IntervalProblem::Node node(const LargeShape& shape, Time at) {
        IntervalProblem::Node n;
        const auto length =
            Time(std::exponential_distribution<double>(1 / shape.life)(m_random)) + 1;
        n.alive = {at, at + length};
        const std::size_t count = 1 + below(2 * shape.choices - 1);
        for (std::size_t c = 0; c < count; ++c) {
            n.usage.push_back(amount(1000));
            n.cost.push_back(amount(10'000));
        }
        if (shape.conflicting) {
            std::ranges::sort(n.usage);
            std::ranges::sort(n.cost, std::greater<>{});
        }
        return n;
    }

    void join(IntervalProblem& p, const ChoiceList& hidden, const LargeShape& shape, std::size_t u,
              std::size_t v) {
        const std::size_t rows = p.nodes[u].cost.size(), cols = p.nodes[v].cost.size();
        Matrix m{std::uint32_t(rows), std::uint32_t(cols), {}};
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t c = 0; c < cols; ++c) {
                const bool kept = r == hidden[u] && c == hidden[v];
                m.values.push_back(!kept && chance(shape.forbidden) ? kInfinite
                                   : chance(0.4)                    ? 0
                                                                    : amount(5000));
            }
        }
        p.pairs.push_back({NodeId(u), NodeId(v), std::make_shared<const Matrix>(std::move(m))});
    }

    static double peakOf(const IntervalProblem& p, bool most) {
        IntervalProblem extreme;
        for (const auto& n : p.nodes) {
            extreme.nodes.push_back(
                {n.alive, {0}, {most ? std::ranges::max(n.usage) : std::ranges::min(n.usage)}});
        }
        return evaluate(extreme, ChoiceList(p.nodes.size(), 0)).peak;
    }

    std::mt19937_64 m_random;
};

inline std::vector<LargeShape> largeShapes() {
    return {{.name = "tiny", .nodes = 5, .life = 3},
            {.name = "one node", .nodes = 1, .choices = 400},
            {.name = "sparse 20,000", .nodes = 20'000, .pairs = 1.05},
            {.name = "sparse 20,000, tight", .nodes = 20'000, .pairs = 1.05, .room = 0.0},
            {.name = "dense 3,000", .nodes = 3000, .back = 2999, .pairs = 6, .forbidden = 0.05},
            {.name = "dense 3,000, tight",
             .nodes = 3000,
             .back = 2999,
             .pairs = 6,
             .forbidden = 0.05,
             .room = 0.0},
            {.name = "hubs 10,000", .nodes = 10'000, .hubs = 20, .room = 0.1},
            {.name = "many choices", .nodes = 1500, .choices = 120, .room = 0.1},
            {.name = "no pairs 30,000", .nodes = 30'000, .pairs = 0, .room = 0.1},
            {.name = "all alive 5,000", .nodes = 5000, .life = 1e6, .room = 0.1},
            {.name = "nothing forbidden", .nodes = 5000, .pairs = 2, .forbidden = 0, .room = 0.0},
            {.name = "much forbidden", .nodes = 5000, .pairs = 2, .forbidden = 0.7, .room = 0.0},
            {.name = "infeasible 20,000", .nodes = 20'000, .infeasible = true}};
}

} // namespace shardlens::solve::bench
