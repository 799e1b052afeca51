// SPDX-License-Identifier: Apache-2.0
// The solver against other people's: toulbar2 (weighted constraint satisfaction) and CBC (Alpa's
// integer program) on problems of 30 to 60 nodes, folded ones unfolded by the exporters. Skipped
// where the programs are not installed.
#include "core/solve/interval_solver.h"
#include "core/solve/solver.h"
#include "tests/core/solve/interval_problems.h"
#include "tests/core/solve/joined.h"
#include "tests/core/solve/random_problem.h"
#include "tests/core/support/reference_solvers.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_solve_reference {

using namespace shardlens::solve;
using namespace shardlens::solve::test;
using shardlens::test::installed;
using shardlens::test::kSanitized;
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

bool attained(const Problem& problem, const Solution& solution) {
    const Evaluation value = evaluate(problem, solution.assignment);
    return value.cost == solution.cost && value.usage <= problem.limit;
}

bool attained(const IntervalProblem& problem, const IntervalSolution& solution) {
    const IntervalEvaluation value = evaluate(problem, solution.choices);
    return value.cost == solution.cost && value.peak <= problem.limit;
}

/// Solves problems one by one and has some of them at a time judged together (see joined.h); those
/// with no solution are judged by themselves.
template <class P>
void judge(const std::vector<P>& problems, std::size_t together, auto&& reference) {
    std::vector<P> group;
    double sum = 0;
    const auto settle = [&] {
        if (!group.empty()) QCOMPARE(sum, reference(joined(std::span<const P>(group))));
        group.clear();
        sum = 0;
    };
    for (const P& problem : problems) {
        const auto solution = solve(problem);
        if (solution.status == Status::Infeasible) {
            QCOMPARE(reference(problem), kInfinite);
            continue;
        }
        QCOMPARE(int(solution.status), int(Status::Optimal));
        QVERIFY(attained(problem, solution));
        group.push_back(problem);
        sum += solution.cost;
        if (group.size() == together) settle();
        if (QTest::currentTestFailed()) return;
    }
    settle();
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
    std::vector<Problem> problems;
    for (unsigned seed = 0; seed < (kSanitized ? 10U : 45U); ++seed)
        problems.push_back(medium(seed));
    judge(problems, 5, [&](const Problem& p) { return references.toulbar2(p); });
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
    std::vector<Problem> problems;
    for (unsigned seed = 0; seed < 12; ++seed) {
        Random random(seed + 200);
        const Shape shape{.maxChoices = 5, .maxCost = 1000};
        problems.push_back(seed % 2 ? randomRuns(random, shape, 2, 4, 8, 2)
                                    : randomGraph(random, shape, 40, 4));
    }
    judge(problems, 4, [&](const Problem& p) { return references.cbc(p); });
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
    std::vector<IntervalProblem> problems;
    for (unsigned seed = 0; seed < (kSanitized ? 20U : 120U); ++seed) {
        IntervalShape shape = shapeOf(seed);
        shape.tightness = -1;
        shape.nodes = 15 + seed % 26;
        shape.mostChoices = 7;
        shape.mostCost = 1000;
        if (shape.net == Net::Any) shape.nodes = 15;
        problems.push_back(IntervalMaker(seed).make(shape));
    }
    judge(problems, 10, [&](const IntervalProblem& p) { return references.toulbar2(p); });
}

void TestSolveReference::cbcOverTime() {
    if (!installed("cbc")) QSKIP("cbc is not installed");
    ReferenceSolvers references;
    std::vector<IntervalProblem> problems;
    for (unsigned seed = 0; seed < (kSanitized ? 12U : 80U); ++seed) {
        IntervalShape shape = shapeOf(5 * (seed % 7 + 5) + seed % 4); // with a limit, connected
        shape.tightness = 0.1 + 0.1 * (seed % 5);
        shape.nodes = 10 + seed % 16;
        shape.mostChoices = 5;
        shape.mostCost = 1000;
        shape.mostUsage = 50;
        if (shape.net == Net::Any) shape.nodes = 10;
        problems.push_back(IntervalMaker(seed + 1000).make(shape));
    }
    judge(problems, 4, [&](const IntervalProblem& p) { return references.cbc(p); });
}

SHARDLENS_TEST(TestSolveReference)

} // namespace tst_solve_reference

#include "tst_solve_reference.moc"
