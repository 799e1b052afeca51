// SPDX-License-Identifier: Apache-2.0
// The solver against other people's: toulbar2 (weighted constraint satisfaction) and CBC (Alpa's
// integer program) on problems of 30 to 60 nodes, folded ones unfolded by the exporters. Skipped
// where the programs are not installed.
#include "core/solve/interval_solver.h"
#include "core/solve/solver.h"
#include "tests/core/solve/interval_problems.h"
#include "tests/core/solve/random_problem.h"
#include "tests/core/support/reference_solvers.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_solve_reference {

using namespace shardlens::solve;
using namespace shardlens::solve::test;
using shardlens::test::installed;
using shardlens::test::ReferenceSolvers;

namespace {

Problem medium(unsigned seed) {
    Random random(seed);
    const Shape shape{.maxChoices = 8, .forbidden = 0.05, .maxCost = 1000};
    switch (seed % 3) {
    case 0:
        return randomGraph(random, shape, random.pick(30, 60), 6);
    case 1:
        return randomGrid(random, shape, 4, 10);
    default:
        return randomRuns(random, shape, 3, 5, 12, 2);
    }
}

} // namespace

class TestSolveReference : public QObject {
    Q_OBJECT

private slots:
    void toulbar2();
    void toulbar2Wide();
    void cbc();
    void cbcWithLimit();
    void toulbar2OverTime();
    void cbcOverTime();
};

void TestSolveReference::toulbar2() {
    if (!installed("toulbar2")) QSKIP("toulbar2 is not installed");
    ReferenceSolvers references;
    for (unsigned seed = 0; seed < 45; ++seed) {
        const Problem problem = medium(seed);
        const Solution solution = solve(problem);
        QCOMPARE(solution.cost, references.toulbar2(problem));
        QCOMPARE(solution.status == Status::Infeasible, solution.cost == kInfinite);
    }
}

/// Tables are kept so small that the wide solver takes over: the true optimum must lie in its gap.
void TestSolveReference::toulbar2Wide() {
    if (!installed("toulbar2")) QSKIP("toulbar2 is not installed");
    ReferenceSolvers references;
    int optimal = 0, found = 0, count = 0;
    for (unsigned seed = 0; seed < 24; ++seed) {
        Random random(seed + 100);
        const Shape shape{.maxChoices = 6, .forbidden = seed % 2 * 0.05, .maxCost = 1000};
        const Problem problem = seed % 4 == 3 ? randomRuns(random, shape, 3, 5, 12, 2)
                                              : randomGraph(random, shape, 30, 30);
        Options options;
        options.maxTableEntries = 1;
        const Solution solution = solve(problem, options);
        const double optimum = references.toulbar2(problem);
        QVERIFY(solution.bound <= optimum);
        QVERIFY(solution.cost >= optimum);
        if (optimum == kInfinite) continue;
        ++count;
        if (solution.assignment.choice.empty()) continue;
        QCOMPARE(evaluate(problem, solution.assignment).cost, solution.cost);
        if (solution.status == Status::Optimal) QCOMPARE(solution.cost, optimum);
        optimal += solution.status == Status::Optimal;
        found += solution.cost == optimum;
    }
    qInfo("of %d wide problems the optimum was found in %d and proven in %d", count, found,
          optimal);
    QVERIFY(2 * found > count);
}

void TestSolveReference::cbc() {
    if (!installed("cbc")) QSKIP("cbc is not installed");
    ReferenceSolvers references;
    for (unsigned seed = 0; seed < 12; ++seed) {
        Random random(seed + 200);
        const Shape shape{.maxChoices = 5, .maxCost = 1000};
        const Problem problem =
            seed % 2 ? randomRuns(random, shape, 2, 4, 8, 2) : randomGraph(random, shape, 40, 4);
        QCOMPARE(solve(problem).cost, references.cbc(problem));
    }
}

void TestSolveReference::cbcWithLimit() {
    if (!installed("cbc")) QSKIP("cbc is not installed");
    ReferenceSolvers references;
    for (unsigned seed = 0; seed < 12; ++seed) {
        Random random(seed + 300);
        const Shape shape{.maxChoices = 4, .forbidden = 0, .usage = true, .maxCost = 1000};
        Problem problem =
            seed % 2 ? randomRuns(random, shape, 2, 3, 8, 2) : randomGraph(random, shape, 30, 3);
        problem.limit = std::floor(0.8 * solve(problem).usage);
        const double optimum = references.cbc(problem);
        Options options;
        options.relativeGap = 0;
        const Solution solution = solve(problem, options);
        if (optimum == kInfinite) {
            QCOMPARE(int(solution.status), int(Status::Infeasible));
            continue;
        }
        QCOMPARE(int(solution.status), int(Status::Optimal));
        QCOMPARE(solution.cost, optimum);
        QVERIFY(solution.usage <= problem.limit);
    }
}

/// Problems with usage over time, 15 to 40 nodes, without a limit.
void TestSolveReference::toulbar2OverTime() {
    if (!installed("toulbar2")) QSKIP("toulbar2 is not installed");
    ReferenceSolvers references;
    for (unsigned seed = 0; seed < 120; ++seed) {
        IntervalShape shape = shapeOf(seed);
        shape.tightness = -1;
        shape.nodes = 15 + seed % 26;
        shape.mostChoices = 7;
        shape.mostCost = 1000;
        if (shape.net == Net::Any) shape.nodes = 15;
        const IntervalProblem problem = IntervalMaker(seed).make(shape);
        const IntervalSolution solution = solve(problem);
        QCOMPARE(solution.cost, references.toulbar2(problem));
        QCOMPARE(int(solution.status),
                 int(solution.cost == kInfinite ? Status::Infeasible : Status::Optimal));
    }
}

void TestSolveReference::cbcOverTime() {
    if (!installed("cbc")) QSKIP("cbc is not installed");
    ReferenceSolvers references;
    for (unsigned seed = 0; seed < 80; ++seed) {
        IntervalShape shape = shapeOf(5 * (seed % 7 + 5) + seed % 4); // with a limit, connected
        shape.tightness = 0.1 + 0.1 * (seed % 5);
        shape.nodes = 10 + seed % 16;
        shape.mostChoices = 5;
        shape.mostCost = 1000;
        shape.mostUsage = 50;
        if (shape.net == Net::Any) shape.nodes = 10;
        const IntervalProblem problem = IntervalMaker(seed + 1000).make(shape);
        const IntervalSolution solution = solve(problem);
        QCOMPARE(solution.cost, references.cbc(problem));
        QCOMPARE(int(solution.status),
                 int(solution.cost == kInfinite ? Status::Infeasible : Status::Optimal));
    }
}

SHARDLENS_TEST(TestSolveReference)

} // namespace tst_solve_reference

#include "tst_solve_reference.moc"
