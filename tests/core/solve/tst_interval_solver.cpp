// SPDX-License-Identifier: Apache-2.0
// Interval problems: reductions and solver against trying everything, bounds against the optimum.
#include "core/error.h"
#include "core/solve/interval_solver.h"
#include "core/solve/level.h"
#include "core/solve/monitor.h"
#include "core/solve/reduction.h"
#include "tests/core/solve/interval_problems.h"
#include "tests/test_program.h"

#include <QElapsedTimer>
#include <QTest>

#include <array>
#include <thread>

namespace tst_interval_solver {

using namespace shardlens::solve;
using namespace shardlens::solve::test;
using shardlens::test::kSanitized;

namespace {

constexpr unsigned kProblems = kSanitized ? 1'200 : 12'000;

/// The core of a reduction as an interval problem cannot be written, so this tries it by itself.
double coreOptimum(const CoreProblem& core, CoreChoices* best = nullptr) {
    const Options options;
    Monitor monitor(options);
    const CoreGraph graph(core, monitor);
    CoreChoices value(core.nodes.size(), 0);
    double out = kInfinite;
    for (bool more = true; more;) {
        const std::vector<double> usage = graph.usageOf(value);
        const double cost = graph.costOf(value);
        if (cost < out && std::ranges::equal(usage, core.room, std::less_equal<>{})) {
            out = cost;
            if (best) *best = value;
        }
        more = false;
        for (std::size_t i = 0; i < value.size() && !more; ++i) {
            more = ++value[i] < core.nodes[i].cost.size();
            if (!more) value[i] = 0;
        }
    }
    return out;
}

} // namespace

class TestIntervalSolver : public QObject {
    Q_OBJECT

private slots:
    void evaluationOfTheContestsExample();
    void reductionsKeepTheOptimum();
    void boundsStayBelow();
    void tighteningKeepsBetterAnswers();
    void solverEqualsBruteForce();
    void threadsAndSeedsDoNotChangeTheOptimum();
    void sameSeedSameAnswer();
    void foldedLimitIsOneMoment();
    void infeasibleLimitNamesTimeAndNodes();
    void infeasiblePairsAreFound();
    void startIsUsed();
    void stopsAtOnce();
    void looksForAStopOften();
    void stoppedAnywhereTheAnswerHolds();
    void badProblemsAreRefused();
};

/// The contest's toy problem: optimum 445 with [0, 0, 2, 1, 0] at limit 50.
static IntervalProblem example() {
    IntervalProblem p;
    p.limit = 50;
    p.nodes = {{{30, 70}, {15}, {10}},
               {{40, 70}, {55, 65}, {25, 25}},
               {{50, 120}, {25, 45, 35}, {15, 20, 15}},
               {{110, 140}, {85, 75}, {10, 10}},
               {{110, 150}, {95}, {15}}};
    const auto add = [&](NodeId u, NodeId v, std::vector<double> costs) {
        const auto rows = std::uint32_t(p.nodes[u].cost.size());
        const auto cols = std::uint32_t(p.nodes[v].cost.size());
        p.pairs.push_back({u, v, std::make_shared<Matrix>(Matrix{rows, cols, std::move(costs)})});
    };
    add(0, 1, {30, 40});
    add(0, 2, {50, 10, 40});
    add(1, 3, {90, 10, 20, 80});
    add(2, 4, {60, 20, 30});
    add(3, 4, {70, 60});
    return p;
}

void TestIntervalSolver::evaluationOfTheContestsExample() {
    const IntervalProblem p = example();
    const ChoiceList published = {0, 0, 2, 1, 0};
    const IntervalEvaluation value = evaluate(p, published);
    QCOMPARE(value.cost, 445.0);
    QCOMPARE(value.peak, 50.0);
    QCOMPARE(value.peakTime, Time{50});
    const IntervalSolution solution = solve(p);
    QCOMPARE(solution.cost, 445.0);
    QCOMPARE(int(solution.status), int(Status::Optimal));
    QCOMPARE(solution.choices, published);
}

void TestIntervalSolver::reductionsKeepTheOptimum() {
    Options options;
    int empty = 0;
    for (unsigned seed = 0; seed < kProblems; ++seed) {
        const IntervalProblem p = IntervalMaker(seed).make(shapeOf(seed));
        const double best = optimum(p);
        Monitor monitor(options);
        const Reduction reduction(makeCore(p, monitor).problem, monitor);
        if (reduction.conflict()) {
            QCOMPARE(best, kInfinite);
            continue;
        }
        CoreChoices core;
        QCOMPARE(coreOptimum(reduction.core(), &core), best);
        empty += reduction.core().nodes.empty();
        if (best == kInfinite) continue;
        const IntervalEvaluation value = evaluate(p, reduction.restore(core));
        QCOMPARE(value.cost, best);
        QVERIFY(value.peak <= p.limit);
    }
    QVERIFY(empty > int(kProblems / 4)); // small ones should often vanish
}

void TestIntervalSolver::boundsStayBelow() {
    Options options;
    for (unsigned seed = 0; seed < kProblems; seed += 12) {
        const IntervalProblem p = IntervalMaker(seed).make(shapeOf(seed));
        Monitor monitor(options);
        const Reduction reduction(makeCore(p, monitor).problem, monitor);
        if (reduction.conflict() || reduction.core().nodes.empty()) continue;
        const double best = optimum(p);
        const CoreGraph graph(reduction.core(), monitor);
        for (const bool exact : {false, true}) {
            PriceBound bound(graph);
            if (exact) bound.makeExact(reduction.core(), 1e9, monitor);
            for (int i = 0; i < 40; ++i) {
                QVERIFY(bound.pass(monitor) <= best + 1e-6);
                bound.movePrices(best < kInfinite ? best : bound.bound() + 10);
            }
        }
    }
}

/// No assignment below the cutoff may be lost, by messages or by exact min-marginals.
void TestIntervalSolver::tighteningKeepsBetterAnswers() {
    Options options;
    std::size_t struckInAll = 0;
    for (unsigned seed = 0; seed < kProblems; seed += 8) {
        const IntervalProblem p = IntervalMaker(seed).make(shapeOf(seed));
        Monitor monitor(options);
        const Reduction reduction(makeCore(p, monitor).problem, monitor);
        if (reduction.conflict() || reduction.core().nodes.empty()) continue;
        const double best = optimum(p);
        if (best == kInfinite) continue;
        const CoreGraph graph(reduction.core(), monitor);
        for (const bool exact : {false, true}) {
            PriceBound bound(graph);
            if (exact) bound.makeExact(reduction.core(), 1e9, monitor);
            for (int i = 0; i < 20; ++i) {
                bound.pass(monitor);
                bound.movePrices(best + 2);
            }
            std::size_t struck = 0;
            const CoreProblem less = bound.tighten(reduction.core(), best + 0.5, struck, monitor);
            QCOMPARE(coreOptimum(less), best);
            struckInAll += struck;
            // With the cutoff below the optimum everything may go, but nothing may appear.
            const CoreProblem none = bound.tighten(reduction.core(), best - 0.5, struck, monitor);
            QVERIFY(coreOptimum(none) >= best);
        }
    }
    QVERIFY(kSanitized ? struckInAll > 0 : struckInAll > 1000);
}

void TestIntervalSolver::solverEqualsBruteForce() {
    int branched = 0;
    for (unsigned seed = 0; seed < kProblems; ++seed) {
        const IntervalProblem p = IntervalMaker(seed + 50'000).make(shapeOf(seed));
        const double best = optimum(p);
        const IntervalSolution solution = solve(p);
        QCOMPARE(solution.cost, best);
        if (best == kInfinite) {
            QCOMPARE(int(solution.status), int(Status::Infeasible));
            QVERIFY(!solution.explanation.empty());
            continue;
        }
        QCOMPARE(int(solution.status), int(Status::Optimal));
        QCOMPARE(solution.bound, best);
        const IntervalEvaluation value = evaluate(p, solution.choices);
        QCOMPARE(value.cost, best);
        QVERIFY(value.peak <= p.limit);
        QCOMPARE(value.peak, solution.peak);
        branched += solution.statistics.branches > 0;
    }
    qInfo("%d of %u problems were branched on", branched, kProblems);
}

void TestIntervalSolver::threadsAndSeedsDoNotChangeTheOptimum() {
    IntervalShape shape{.net = Net::Grid, .nodes = 9, .forbidden = 0.05, .tightness = 0.15};
    for (unsigned seed = 0; seed < 20; ++seed) {
        const IntervalProblem p = IntervalMaker(seed).make(shape);
        IntervalOptions options;
        options.threads = 3;
        options.seed = seed;
        QCOMPARE(solve(p, options).cost, optimum(p));
    }
}

void TestIntervalSolver::sameSeedSameAnswer() {
    IntervalShape shape{.nodes = 30, .mostChoices = 6, .mostCost = 1000, .tightness = 0.2};
    for (unsigned seed = 0; seed < 3; ++seed) {
        const IntervalProblem p = IntervalMaker(seed).make(shape);
        IntervalOptions options;
        options.threads = 2;
        options.relativeGap = 0.05;
        const IntervalSolution a = solve(p, options), b = solve(p, options);
        QCOMPARE(a.choices, b.choices);
        QCOMPARE(a.bound, b.bound);
        QCOMPARE(a.statistics.windows, b.statistics.windows);
    }
}

void TestIntervalSolver::foldedLimitIsOneMoment() {
    Problem folded;
    folded.nodes = {{{0, 5}, {4, 1}, 0}, {{1, 3}, {-2, -3}, -1}};
    folded.runs = {{{0}, 3}};
    folded.limit = 4;
    const IntervalProblem p = unfold(folded);
    QCOMPARE(p.nodes.size(), std::size_t{4});
    QCOMPARE(p.limit, 7.0); // raised by 3, as the negative usages are
    // 3 copies use 3 … 12, the last node -3 or -2: only one copy may use 4.
    QCOMPARE(solve(p).cost, solve(folded).cost);
    QCOMPARE(solve(p).cost, optimum(p));
}

void TestIntervalSolver::infeasibleLimitNamesTimeAndNodes() {
    IntervalProblem p = example();
    p.limit = 49;
    const IntervalSolution solution = solve(p);
    QCOMPARE(int(solution.status), int(Status::Infeasible));
    QVERIFY(solution.choices.empty());
    const QString why = QString::fromStdString(solution.explanation);
    QVERIFY2(why.contains("time 50 to 70") && why.contains("50 where the limit is 49") &&
                 why.contains("nodes 1, 2, 0"),
             qPrintable(why));
}

void TestIntervalSolver::infeasiblePairsAreFound() {
    IntervalProblem p = example();
    p.limit = kInfinite;
    p.pairs.push_back(
        {1, 3, std::make_shared<Matrix>(Matrix{2, 2, std::vector<double>(4, kInfinite)})});
    const IntervalSolution solution = solve(p);
    QCOMPARE(int(solution.status), int(Status::Infeasible));
    QVERIFY(QString::fromStdString(solution.explanation).contains("node"));
}

void TestIntervalSolver::startIsUsed() {
    const IntervalProblem p = example();
    IntervalOptions options;
    options.start = {0, 1, 0, 0, 0};
    std::stop_source stop;
    stop.request_stop();
    options.stop = stop.get_token();
    const IntervalSolution solution = solve(p, options);
    QCOMPARE(solution.choices, options.start);
    QCOMPARE(solution.cost, evaluate(p, options.start).cost);
    QCOMPARE(int(solution.status), int(Status::Feasible));
}

void TestIntervalSolver::stopsAtOnce() {
    IntervalShape shape{.nodes = 2000, .mostChoices = 12, .mostCost = 1000, .tightness = 0.05};
    const IntervalProblem p = IntervalMaker(1).make(shape);
    for (const int milliseconds : {0, 30, 200, 700}) {
        std::stop_source stop;
        IntervalOptions options;
        options.threads = 2;
        options.stop = stop.get_token();
        QElapsedTimer since;
        std::jthread stopper([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
            since.start();
            stop.request_stop();
        });
        solve(p, options);
        stopper.join();
        // A guard against not stopping, not a measurement: machines that run tests are slow.
        QVERIFY(since.elapsed() < 5000);
    }
}

/// Work between two looks at the stop token, as the loops count it, on problems with large
/// matrices, many nodes, and much branching: 10 million elementary steps are some 10 ms.
void TestIntervalSolver::looksForAStopOften() {
    const std::array shapes = {
        IntervalShape{.nodes = 10, .mostChoices = 300, .mostCost = 1000, .tightness = 0.2},
        IntervalShape{.net = Net::Tree, .nodes = 15, .mostChoices = 400, .tightness = 0.1},
        IntervalShape{.nodes = kSanitized ? 1000U : 3000U,
                      .mostChoices = 12,
                      .mostCost = 1000,
                      .tightness = 0.05},
        IntervalShape{.nodes = 24, .mostChoices = 8, .mostCost = 1000, .tightness = 0.3}};
    for (const IntervalShape& shape : shapes) {
        const IntervalProblem p = IntervalMaker(7).make(shape);
        std::stop_source stop;
        IntervalOptions options;
        options.stop = stop.get_token();
        int reports = 0;
        options.progress = [&](const Progress&) {
            if (++reports == 4) stop.request_stop();
        };
        const IntervalSolution solution = solve(p, options);
        QVERIFY(solution.statistics.largestStep > 0);
        QVERIFY2(solution.statistics.largestStep < 10'000'000,
                 qPrintable(QString::number(solution.statistics.largestStep)));
    }
}

/// Stopped after a random while: what is returned is within the limit, priced right, and on the
/// right sides of the optimum.
void TestIntervalSolver::stoppedAnywhereTheAnswerHolds() {
    const IntervalShape shape{.nodes = 20, .mostChoices = 6, .mostCost = 1000, .tightness = 0.25};
    const IntervalProblem p = IntervalMaker(5).make(shape);
    const IntervalSolution whole = solve(p);
    QCOMPARE(int(whole.status), int(Status::Optimal));
    QVERIFY(whole.statistics.branches > 0);
    int stopped = 0;
    for (unsigned seed = 0; seed < (kSanitized ? 6U : 24U); ++seed) {
        std::stop_source stop;
        IntervalOptions options;
        options.stop = stop.get_token();
        options.threads = 1 + seed % 2;
        const auto least = std::chrono::duration<double>(whole.statistics.seconds);
        std::jthread stopper([&] {
            std::this_thread::sleep_for(least * std::fmod(0.37 * seed, 1.0));
            stop.request_stop();
        });
        const IntervalSolution part = solve(p, options);
        stopper.join();
        QVERIFY(part.bound <= whole.cost && part.cost >= whole.cost);
        stopped += part.status != Status::Optimal;
        if (part.choices.empty()) continue;
        const IntervalEvaluation value = evaluate(p, part.choices);
        QVERIFY(value.cost == part.cost && value.peak <= p.limit);
    }
    QVERIFY(stopped > 0);
}

void TestIntervalSolver::badProblemsAreRefused() {
    const auto refused = [](auto&& change) {
        IntervalProblem p = example();
        change(p);
        try {
            solve(p);
        } catch (const shardlens::Error&) {
            return true;
        }
        return false;
    };
    QVERIFY(!refused([](auto&) {}));
    QVERIFY(refused([](auto& p) { p.limit = std::nan(""); }));
    QVERIFY(refused([](auto& p) { p.nodes[1].cost[0] = std::nan(""); }));
    QVERIFY(refused([](auto& p) { p.nodes[1].cost[0] = -kInfinite; }));
    QVERIFY(refused([](auto& p) { p.nodes[1].cost.clear(); }));
    QVERIFY(refused([](auto& p) { p.nodes[1].usage[0] = -1; }));
    QVERIFY(refused([](auto& p) { p.nodes[1].usage[0] = kInfinite; }));
    QVERIFY(refused([](auto& p) { p.nodes[1].usage.push_back(1); }));
    QVERIFY(refused([](auto& p) { p.pairs[0].u = 5; }));
    QVERIFY(refused([](auto& p) { p.pairs[0].cost = nullptr; }));
    QVERIFY(refused([](auto& p) { p.pairs[0].cost = p.pairs[2].cost; }));
}

SHARDLENS_TEST(TestIntervalSolver)

} // namespace tst_interval_solver

#include "tst_interval_solver.moc"
