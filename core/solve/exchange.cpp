// SPDX-License-Identifier: Apache-2.0
// The gain of a pair of moves is at most price * slack less their reduced costs, so only moves of
// small reduced cost are kept. Estimates ignore that two moves may touch each other: each is made
// on trial and taken back if it does not hold what it promised.
#include "core/solve/exchange.h"

#include "core/solve/instances.h"
#include "core/solve/monitor.h"

#include <algorithm>
#include <tuple>

namespace shardlens::solve {
namespace {

constexpr std::size_t kMostMoves = 20'000;
constexpr std::size_t kMostTrials = 200; ///< of pairs, for each look at all moves
constexpr int kMostRounds = 60;
constexpr std::size_t kMostLooks = 8'000'000; ///< at pairs of choices, altogether

struct Step {
    NodeId node = 0;
    std::size_t copy = 0;
    std::uint16_t choice = 0;
};

/// One step or two, with what they change if nothing else does.
struct Move {
    double cost = 0, usage = 0;
    Step first, second;
    bool both = false;

    /// By usage; the rest makes the order the same everywhere.
    auto key() const {
        return std::tuple(usage, cost, first.node, first.copy, first.choice, second.node,
                          second.copy, second.choice);
    }
};

class Exchange {
public:
    Exchange(const Problem& problem, Assignment start, double price, Monitor& monitor)
        : m_problem(problem), m_moves(problem, std::move(start)), m_price(price),
          m_monitor(monitor) {}

    Assignment run() {
        for (int round = 0; round < kMostRounds && m_looks < kMostLooks; ++round) {
            collect();
            if (!single() && !pairs()) break;
        }
        return m_moves.assignment();
    }

private:
    double slack() const { return m_problem.limit - m_moves.usage(); }

    void collect() {
        m_found.clear();
        m_single.assign(m_problem.nodes.size(), {});
        for (NodeId id = 0; id < m_problem.nodes.size(); ++id) {
            const std::size_t choices = m_problem.nodes[id].cost.size();
            for (std::size_t copy = 0; copy < m_problem.copies(id); ++copy) {
                m_monitor.tick(16 * choices);
                auto& changes = m_single[id].emplace_back();
                for (std::uint32_t c = 0; c < choices; ++c) {
                    const auto choice = static_cast<std::uint16_t>(c);
                    changes.push_back(m_moves.change(id, copy, choice));
                    consider(changes.back(), {id, copy, choice}, {}, false);
                }
            }
        }
        for (const Edge& edge : m_problem.edges) {
            forEachInstance(m_problem, edge, [&](std::size_t i, std::size_t j) {
                if (edge.u != edge.v || i != j) collectPairs(edge, i, j);
            });
        }
        if (m_found.size() > kMostMoves) {
            std::ranges::nth_element(m_found, m_found.begin() + kMostMoves, {},
                                     [&](const Move& m) { return m.cost + m_price * m.usage; });
            m_found.resize(kMostMoves);
        }
    }

    void collectPairs(const Edge& edge, std::size_t i, std::size_t j) {
        const auto& choice = m_moves.assignment().choice;
        const std::uint16_t u = choice[edge.u][i], v = choice[edge.v][j];
        const Matrix& m = *edge.cost;
        m_monitor.tick(2 * m.values.size());
        m_looks += m.values.size();
        for (std::uint32_t a = 0; a < m.rows; ++a) {
            if (a == u) continue;
            for (std::uint32_t b = 0; b < m.cols; ++b) {
                if (b == v) continue;
                Moves::Change sum = m_single[edge.u][i][a];
                sum += m_single[edge.v][j][b];
                sum.swap(m.at(a, v), m.at(a, b)); // the edge itself was priced twice
                sum.swap(m.at(u, b), m.at(u, v));
                consider(sum, {edge.u, i, static_cast<std::uint16_t>(a)},
                         {edge.v, j, static_cast<std::uint16_t>(b)}, true);
            }
        }
    }

    void consider(const Moves::Change& change, const Step& first, const Step& second, bool both) {
        if (change.forbidden > 0) return;
        if (change.cost >= 0 && change.usage >= 0) return;
        if (change.cost + m_price * change.usage >= m_price * slack()) return;
        m_found.push_back({change.cost, change.usage, first, second, both});
    }

    void make(const Move& move) {
        m_moves.set(move.first.node, move.first.copy, move.first.choice);
        if (move.both) m_moves.set(move.second.node, move.second.copy, move.second.choice);
    }
    Move inverse(const Move& move) const {
        Move back = move;
        const auto& choice = m_moves.assignment().choice;
        back.first.choice = choice[move.first.node][move.first.copy];
        if (move.both) back.second.choice = choice[move.second.node][move.second.copy];
        return back;
    }

    /// Makes the moves if together they are for the better.
    bool attempt(const Move& one, const Move* other) {
        const double before = m_moves.cost();
        const Move back = inverse(one);
        make(one);
        Move otherBack;
        if (other) {
            otherBack = inverse(*other);
            make(*other);
        }
        if (m_moves.cost() < before && m_moves.usage() <= m_problem.limit) return true;
        if (other) make(otherBack);
        make(back);
        return false;
    }

    /// All moves that pay by themselves, best ratio first.
    bool single() {
        std::vector<const Move*> good;
        for (const Move& move : m_found) {
            if (move.cost < 0 && move.usage <= slack()) good.push_back(&move);
        }
        std::ranges::sort(good, {}, [](const Move* move) {
            return std::pair(move->usage > 0 ? move->cost / move->usage : -kInfinite, move);
        });
        bool any = false;
        for (const Move* move : good) any |= attempt(*move, nullptr);
        return any;
    }

    /// The best pairs, until one holds.
    bool pairs() {
        std::ranges::sort(m_found, {}, &Move::key);
        std::vector<std::size_t> cheapest; // among the moves up to each
        for (std::size_t i = 0; i < m_found.size(); ++i) {
            const bool better = i == 0 || m_found[i].cost < m_found[cheapest.back()].cost;
            cheapest.push_back(better ? i : cheapest.back());
        }
        struct Pair {
            double cost;
            std::size_t one, other;
        };
        std::vector<Pair> found;
        for (std::size_t i = 0; i < m_found.size(); ++i) {
            const auto end =
                std::ranges::upper_bound(m_found, slack() - m_found[i].usage, {}, &Move::usage);
            if (end == m_found.begin()) continue;
            const std::size_t other = cheapest[static_cast<std::size_t>(end - m_found.begin()) - 1];
            const double cost = m_found[i].cost + m_found[other].cost;
            if (cost < 0) found.push_back({cost, i, other});
        }
        std::ranges::sort(found, {},
                          [](const Pair& pair) { return std::pair(pair.cost, pair.one); });
        if (found.size() > kMostTrials) found.resize(kMostTrials);
        bool any = false;
        for (const Pair& pair : found) {
            any |= attempt(m_found[pair.one], &m_found[pair.other]);
        }
        return any;
    }

    const Problem& m_problem;
    Moves m_moves;
    double m_price;
    Monitor& m_monitor;
    std::vector<std::vector<std::vector<Moves::Change>>> m_single; ///< [node][copy][choice]
    std::vector<Move> m_found;
    std::size_t m_looks = 0;
};

} // namespace

Assignment exchange(const Problem& problem, Assignment start, double price, Monitor& monitor) {
    return Exchange(problem, std::move(start), price, monitor).run();
}

} // namespace shardlens::solve
