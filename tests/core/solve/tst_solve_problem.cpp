// SPDX-License-Identifier: Apache-2.0
// The problem itself (validation, evaluation, expansion, export) on hand-made cases, closed forms
// that the solver must reach, and its behaviour: stop, deadline, progress, table limit,
// determinism.
#include "core/error.h"
#include "core/solve/problem_export.h"
#include "core/solve/solver.h"
#include "tests/core/solve/random_problem.h"
#include "tests/test_program.h"

#include <QElapsedTimer>
#include <QTest>

#include <sstream>
#include <thread>

namespace tst_solve_problem {

using shardlens::Cancelled;
using shardlens::Error;
using namespace shardlens::solve;
using namespace shardlens::solve::test;

namespace {

MatrixPtr matrix(std::uint32_t rows, std::uint32_t cols, std::vector<double> values) {
    return std::make_shared<Matrix>(Matrix{rows, cols, std::move(values)});
}

/// One node of two choices, n copies; a carry that wants neighbours to differ.
Problem alternating(std::size_t n) {
    Problem p;
    p.nodes = {{{0, 0}, {1, 2}, 0}};
    p.runs = {{{0}, n}};
    p.edges = {{0, 0, matrix(2, 2, {1, 0, 0, 1}), At::Each, At::Each, true}};
    return p;
}

/// A grid too wide for any table that memory holds.
Problem wideGrid(int side) {
    Random random(11);
    return randomGrid(random, {.maxChoices = 12, .forbidden = 0, .maxCost = 1000}, side, side);
}

void expectError(const Problem& problem, const char* words) {
    try {
        validate(problem);
        QFAIL("accepted");
    } catch (const Error& error) {
        QVERIFY2(QString(error.what()).contains(words), error.what());
    }
}

} // namespace

class TestSolveProblem : public QObject {
    Q_OBJECT

private slots:
    void evaluatesByHand();
    void alternatesAlongARun();
    void usesTheLimitToTheLastCopy();
    void refusesBadProblems();
    void exportsByHand();
    void stops();
    void obeysTheDeadline();
    void reportsProgress();
    void isDeterministic();
    void handlesNumbersThatAreNotIntegers();
};

/// Two runs of two and three copies between plain nodes, one edge of every kind, each with a value
/// of its own power of ten: the sum tells which instances were counted.
void TestSolveProblem::evaluatesByHand() {
    const auto one = [](double v) { return matrix(1, 1, {v}); };
    Problem p;
    p.nodes = {{{1}, {5}, -1}, {{1}, {}, 0}, {{1}, {7}, 0}, {{1}, {}, 1}};
    p.runs = {{{1, 2}, 3}, {{3}, 2}};
    p.edges = {{1, 2, one(1e2), At::Each, At::Each, false},   // 3
               {2, 1, one(1e3), At::Each, At::Each, true},    // 2
               {0, 1, one(1e4), At::Each, At::Each, false},   // 3
               {0, 1, one(1e5), At::Each, At::First, false},  // 1
               {2, 3, one(1e6), At::Last, At::First, false},  // 1
               {2, 3, one(1e7), At::Last, At::Each, false},   // 2
               {1, 2, one(1e8), At::First, At::Last, false},  // 1
               {3, 3, one(1e9), At::Each, At::Each, true},    // 1
               {3, 3, one(1e10), At::Each, At::Each, false}}; // 2, diagonal
    validate(p);
    const Assignment only{{{0}, {0, 0, 0}, {0, 0, 0}, {0, 0}}};
    const Evaluation value = evaluate(p, only);
    QCOMPARE(value.cost, 9 + 3e2 + 2e3 + 3e4 + 1e5 + 1e6 + 2e7 + 1e8 + 1e9 + 2e10);
    QCOMPARE(value.usage, 5.0 + 3 * 7);
    const Expanded unfolded = expand(p);
    QCOMPARE(unfolded.problem.nodes.size(), std::size_t{9});
    QCOMPARE(unfolded.problem.edges.size(), std::size_t{16});
    QCOMPARE(solve(p).cost, value.cost);
    QCOMPARE(solve(p).assignment, only);
    QVERIFY_THROWS_EXCEPTION(Error, evaluate(p, Assignment{{{0}}}));
}

/// Tying all copies to one choice would cost n - 1; free copies alternate at no cost.
void TestSolveProblem::alternatesAlongARun() {
    for (const std::size_t n :
         std::initializer_list<std::size_t>{1, 2, 3, 4, 7, 64, 126, 1023, 1024, 100'000}) {
        const Problem p = alternating(n);
        const Solution solution = solve(p);
        QCOMPARE(solution.cost, 0.0);
        QCOMPARE(int(solution.status), int(Status::Optimal));
        const auto& choice = solution.assignment.choice[0];
        QCOMPARE(choice.size(), n);
        QVERIFY(std::ranges::adjacent_find(choice) == choice.end());
    }
}

/// Without edges between copies, each of n copies costs 3 less for 2 units more: exactly as many
/// are upgraded as the limit has room for.
void TestSolveProblem::usesTheLimitToTheLastCopy() {
    Problem p;
    p.nodes = {{{5, 2}, {1, 3}, 0}};
    p.runs = {{{0}, 100}};
    p.limit = 100 + 2 * 37 + 1;
    Options options;
    options.relativeGap = 0;
    const Solution solution = solve(p, options);
    QCOMPARE(solution.cost, 500.0 - 3 * 37);
    QVERIFY(solution.usage <= p.limit);
    QVERIFY(solution.bound <= solution.cost && solution.bound > solution.cost - 3);
    QVERIFY(std::abs(solution.price - 1.5) < 1e-9);
    p.limit = 99;
    QCOMPARE(int(solve(p, options).status), int(Status::Infeasible));
    p.limit = 300;
    QCOMPARE(int(solve(p, options).status), int(Status::Optimal));
    QCOMPARE(solve(p, options).price, 0.0);
}

void TestSolveProblem::refusesBadProblems() {
    Problem good = alternating(3);
    validate(good);
    Problem p = good;
    p.nodes[0].cost.clear();
    expectError(p, "no choice");
    p = good;
    p.nodes[0].cost[0] = std::nan("");
    expectError(p, "not a number");
    p = good;
    p.nodes[0].usage = {1};
    expectError(p, "1 usages for 2 choices");
    p = good;
    p.nodes[0].run = 4;
    expectError(p, "run 4");
    p = good;
    p.runs[0].count = 0;
    expectError(p, "0 copies");
    p = good;
    p.runs[0].body.clear();
    expectError(p, "missing");
    p = good;
    p.edges[0].v = 9;
    expectError(p, "no node");
    p = good;
    p.edges[0].cost = matrix(1, 2, {0, 0});
    expectError(p, "1x2 matrix");
    p = good;
    p.edges[0].cost = nullptr;
    expectError(p, "no cost matrix");
    p = good;
    p.edges[0].atU = At::Last;
    expectError(p, "carry");
    p = good;
    p.limit = std::nan("");
    expectError(p, "limit");
}

void TestSolveProblem::exportsByHand() {
    Problem p;
    p.nodes = {{{3, kInfinite}, {4, 0}, -1}, {{-1, 2}, {}, -1}};
    p.edges = {{0, 1, matrix(2, 2, {0, 5, kInfinite, 7}), At::Each, At::Each, false}};
    p.limit = 6;
    std::ostringstream wcsp, lp;
    QCOMPARE(writeWcsp(wcsp, p), 2.0);
    QCOMPARE(wcsp.str(), "shardlens 2 2 3 11\n2 2 \n1 0 0 2\n0 0\n1 11\n1 1 0 2\n0 0\n1 3\n"
                         "2 0 1 0 4\n0 0 0\n0 1 5\n1 0 11\n1 1 7\n");
    writeLp(lp, p);
    const QString text = QString::fromStdString(lp.str()).simplified();
    QVERIFY(text.contains("+ 3 s_0_0 - 1 s_1_0 + 2 s_1_1 + 5 e_0_0_1"));
    QVERIFY(text.contains("r_0_0: - s_0_0 + 1 e_0_0_0 + 1 e_0_0_1 = 0"));
    QVERIFY(text.contains("limit_1: 0 one + 4 s_0_0 <= 6"));
    p.nodes[0].cost[0] = 0.5;
    QVERIFY_THROWS_EXCEPTION(Error, writeWcsp(wcsp, p));
}

void TestSolveProblem::stops() {
    const Problem problem = wideGrid(60);
    std::stop_source source;
    Options options;
    options.stop = source.get_token();
    QElapsedTimer timer;
    timer.start();
    std::jthread stopper([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        source.request_stop();
    });
    const Solution solution = solve(problem, options);
    QVERIFY(timer.elapsed() < 20'000);
    QVERIFY(solution.status == Status::Cancelled || solution.status == Status::Feasible);
    QCOMPARE(int(solve(problem, options).status), int(Status::Cancelled)); // stopped from the start
    QVERIFY_THROWS_EXCEPTION(Cancelled, minMarginal(alternating(9), 0, 4, 0, options));
}

void TestSolveProblem::obeysTheDeadline() {
    const Problem problem = wideGrid(40);
    Options options;
    options.deadlineSeconds = 0.5;
    QElapsedTimer timer;
    timer.start();
    const Solution solution = solve(problem, options);
    QVERIFY(timer.elapsed() < 20'000);
    if (solution.status == Status::Feasible) {
        QVERIFY(solution.bound <= solution.cost);
        QCOMPARE(evaluate(problem, solution.assignment).cost, solution.cost);
    }
}

void TestSolveProblem::reportsProgress() {
    Problem problem = wideGrid(12);
    Options options;
    options.maxTableEntries = 1000;
    std::vector<Progress> seen;
    options.progress = [&](const Progress& progress) { seen.push_back(progress); };
    const Solution solution = solve(problem, options);
    QVERIFY(seen.size() >= 3);
    QCOMPARE(seen.front().stage, std::string("preparation"));
    QCOMPARE(seen.back().stage, std::string("done"));
    QCOMPARE(seen.back().incumbent, solution.cost);
    for (std::size_t i = 1; i < seen.size(); ++i) {
        QVERIFY(seen[i].seconds >= seen[i - 1].seconds);
        QVERIFY(seen[i].incumbent <= seen[i - 1].incumbent);
    }
    QVERIFY(solution.gap() < 0.1);
    QVERIFY_THROWS_EXCEPTION(Error, minMarginal(problem, 0, 0, 0, options)); // too wide to be exact
}

void TestSolveProblem::isDeterministic() {
    Random random(3);
    Problem problem = randomRuns(random, {.maxChoices = 5, .usage = true}, 3, 4, 20, 2);
    problem.limit = 0.8 * solve(problem).usage;
    const Solution first = solve(problem), second = solve(problem);
    QCOMPARE(first.assignment, second.assignment);
    QCOMPARE(first.bound, second.bound);
}

/// Thirds have no exact sums: the certificate must still hold up to rounding, and be claimed.
void TestSolveProblem::handlesNumbersThatAreNotIntegers() {
    for (unsigned seed = 0; seed < 100; ++seed) {
        Random random(seed + 40);
        Problem problem = randomRuns(random, {.maxChoices = 3, .usage = true}, 2, 2, 4, 1);
        if (unfoldedSize(problem) > 5'000) continue;
        for (Node& node : problem.nodes) {
            for (double& cost : node.cost) cost /= 3;
        }
        const double optimum = bruteForce(problem).cost;
        const Solution solution = solve(problem);
        if (optimum == kInfinite) {
            QCOMPARE(int(solution.status), int(Status::Infeasible));
            continue;
        }
        QCOMPARE(int(solution.status), int(Status::Optimal));
        QVERIFY(std::abs(solution.cost - optimum) < 1e-9);
        problem.limit = std::floor(0.9 * solution.usage);
        const double limited = bruteForce(problem).cost;
        const Solution second = solve(problem);
        if (limited == kInfinite) continue;
        QVERIFY(second.bound <= limited + 1e-9 && limited <= second.cost + 1e-9);
    }
}

SHARDLENS_TEST(TestSolveProblem)

} // namespace tst_solve_problem

#include "tst_solve_problem.moc"
