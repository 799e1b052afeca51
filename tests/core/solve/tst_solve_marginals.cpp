// SPDX-License-Identifier: Apache-2.0
// Min-marginals against brute force, against problems in which the choice is pinned, and against
// each other.
#include "core/solve/solver.h"
#include "tests/core/solve/random_problem.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_solve_marginals {

using namespace shardlens::solve;
using namespace shardlens::solve::test;

class TestSolveMarginals : public QObject {
    Q_OBJECT

private slots:
    void bruteForceAgrees();
    void pricedBruteForceAgrees();
    void pinnedSolvesAgree();
    void refusesWhatDoesNotExist();
};

void TestSolveMarginals::bruteForceAgrees() {
    int checked = 0;
    for (unsigned seed = 0; checked < 300; ++seed) {
        Random random(seed + 5'000'000);
        const Shape shape{.maxChoices = 4, .forbidden = seed % 4 * 0.08};
        const Problem problem =
            seed % 3 ? randomRuns(random, shape, 3, 3, 5, 2) : randomGraph(random, shape, 6, 3);
        if (unfoldedSize(problem) > 5'000) continue;
        ++checked;
        const BruteForce truth = bruteForce(problem, true);
        std::vector<std::size_t> copies;
        for (const Run& run : problem.runs) {
            copies.push_back(std::size_t(random.pick(0, int(run.count) - 1)));
        }
        const auto all = minMarginals(problem, copies);
        for (NodeId id = 0; id < problem.nodes.size(); ++id) {
            const int run = problem.nodes[id].run;
            const std::size_t copy = run < 0 ? 0 : copies[std::size_t(run)];
            QCOMPARE(all[id].cost, truth.marginal[id][copy]);
            const Marginal one = minMarginal(problem, id, copy);
            QCOMPARE(one.cost, truth.marginal[id][copy]);
        }
    }
}

/// A price of a quarter keeps all sums exact in binary.
void TestSolveMarginals::pricedBruteForceAgrees() {
    int checked = 0;
    for (unsigned seed = 0; checked < 80; ++seed) {
        Random random(seed + 6'000'000);
        const Shape shape{.maxChoices = 4, .usage = true};
        const Problem problem = randomRuns(random, shape, 2, 3, 5, 2);
        if (unfoldedSize(problem) > 5'000) continue;
        ++checked;
        const BruteForce truth = bruteForce(problem, true, 0.25);
        for (NodeId id = 0; id < problem.nodes.size(); ++id) {
            const std::size_t copy = std::size_t(random.pick(0, int(problem.copies(id)) - 1));
            const Marginal one = minMarginal(problem, id, copy, 0.25);
            for (std::size_t c = 0; c < one.cost.size(); ++c) {
                const double least = truth.marginal[id][copy][c];
                if (least == kInfinite) {
                    QCOMPARE(one.cost[c], kInfinite);
                } else {
                    QVERIFY(std::abs(one.cost[c] - least) < 1e-9);
                }
            }
        }
    }
}

void TestSolveMarginals::pinnedSolvesAgree() {
    for (unsigned seed = 0; seed < 60; ++seed) {
        Random random(seed + 7'000'000);
        const Shape shape{.maxChoices = 6, .forbidden = 0.05, .usage = true};
        const Problem problem = randomRuns(random, shape, 2, 4, 30, 2);
        const auto id = NodeId(random.pick(0, int(problem.nodes.size()) - 1));
        const std::size_t copy = std::size_t(random.pick(0, int(problem.copies(id)) - 1));
        const Marginal one = minMarginal(problem, id, copy);
        for (std::size_t c = 0; c < one.cost.size(); ++c) {
            Expanded pinned = expand(problem);
            Node& node = pinned.problem.nodes[pinned.node[id][copy]];
            for (std::size_t other = 0; other < node.cost.size(); ++other) {
                if (other != c) node.cost[other] = kInfinite;
            }
            QCOMPARE(one.cost[c], solve(pinned.problem).cost);
        }
        const Solution best = solve(problem);
        QCOMPARE(std::ranges::min(one.cost), best.cost);
    }
}

void TestSolveMarginals::refusesWhatDoesNotExist() {
    Random random(1);
    const Problem problem = randomRuns(random, {}, 1, 2, 3, 1);
    QVERIFY_THROWS_EXCEPTION(std::exception, minMarginal(problem, 99, 0));
    QVERIFY_THROWS_EXCEPTION(std::exception, minMarginal(problem, 0, 99));
    QVERIFY_THROWS_EXCEPTION(std::exception, minMarginals(problem, {99}));
}

SHARDLENS_TEST(TestSolveMarginals)

} // namespace tst_solve_marginals

#include "tst_solve_marginals.moc"
