// SPDX-License-Identifier: Apache-2.0
// The solver against brute force on thousands of small random problems: trees, cycles, grids, runs
// with every kind of edge, forbidden choices, with and without a limit.
#include "core/solve/solver.h"
#include "core/solve/tie.h"
#include "tests/core/solve/random_problem.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_solve_brute_force {

using namespace shardlens::solve;
using shardlens::test::kSanitized;
using namespace shardlens::solve::test;

namespace {

/// Checks a solution of a problem without a limit, or one whose limit is slack.
void checkExact(const Problem& problem, double optimum, const Options& options = {}) {
    const Solution solution = solve(problem, options);
    if (optimum == kInfinite) {
        QCOMPARE(int(solution.status), int(Status::Infeasible));
        QVERIFY(solution.assignment.choice.empty());
        return;
    }
    QCOMPARE(int(solution.status), int(Status::Optimal));
    QCOMPARE(solution.cost, optimum);
    QCOMPARE(solution.bound, optimum);
    QCOMPARE(solution.gap(), 0.0);
    const Evaluation value = evaluate(problem, solution.assignment);
    QCOMPARE(value.cost, solution.cost);
    QCOMPARE(value.usage, solution.usage);
}

Problem makeProblem(Random& random, const Shape& shape, int kind) {
    switch (kind % 4) {
    case 0:
        return randomGraph(random, shape, random.pick(1, 8), random.pick(0, 4));
    case 1:
        return randomGrid(random, shape, 3, 3);
    default:
        return randomRuns(random, shape, 3, 3, 5, 2);
    }
}

} // namespace

class TestSolveBruteForce : public QObject {
    Q_OBJECT

private slots:
    void smallProblems() {
        int solved = 0;
        for (unsigned seed = 0; solved < 2400; ++seed) {
            Random random(seed);
            const Shape shape{.maxChoices = random.pick(2, 4), .forbidden = seed % 5 * 0.06};
            const Problem problem = makeProblem(random, shape, int(seed));
            if (unfoldedSize(problem) > 20'000) continue;
            checkExact(problem, bruteForce(problem).cost);
            if (QTest::currentTestFailed()) qFatal("seed %u", seed);
            ++solved;
        }
    }
    void withLimit();
    void withoutTables();
    void foldedEqualsExpanded();
    void longRunsSettle();
    void everyWayToUnfold();
    void tiedChoices();
    void tiedLayersOfAlternatingPlans();
};

void TestSolveBruteForce::withLimit() {
    int solved = 0, infeasible = 0, closed = 0;
    for (unsigned seed = 0; solved < 1200; ++seed) {
        Random random(seed + 1'000'000);
        const Shape shape{.maxChoices = 4, .forbidden = seed % 3 * 0.05, .usage = true};
        Problem problem = makeProblem(random, shape, int(seed));
        if (unfoldedSize(problem) > 20'000) continue;
        problem.limit = random.pick(0, 4 * int(expand(problem).problem.nodes.size()));
        const double optimum = bruteForce(problem).cost;
        const Solution solution = solve(problem, {.relativeGap = 0});
        ++solved;
        if (optimum == kInfinite) {
            QCOMPARE(int(solution.status), int(Status::Infeasible));
            ++infeasible;
            continue;
        }
        const Evaluation value = evaluate(problem, solution.assignment);
        QVERIFY2(solution.bound <= optimum, qPrintable(QString("seed %1").arg(seed)));
        QVERIFY(optimum <= solution.cost && solution.cost < kInfinite);
        QVERIFY(value.usage <= problem.limit && value.usage == solution.usage);
        QCOMPARE(value.cost, solution.cost);
        QCOMPARE(solution.status == Status::Optimal, solution.cost == solution.bound);
        if (solution.status == Status::Optimal) QCOMPARE(solution.cost, optimum);
        closed += solution.status == Status::Optimal;
    }
    QVERIFY(infeasible > 50);
    QCOMPARE(closed, solved - infeasible); // branch and bound closes all of this size
}

/// The other road: no table may be built, so that choices are struck out by message passing until
/// what is left can be eliminated. The optimum is that of plain elimination.
void TestSolveBruteForce::withoutTables() {
    const int problems = kSanitized ? 150 : 1500;
    int proven = 0, feasible = 0;
    for (unsigned seed = 0; int(seed) < problems; ++seed) {
        Random random(seed + 4'000'000);
        const Shape shape{.maxChoices = 5, .forbidden = seed % 3 * 0.05, .maxCost = 100};
        const Problem problem =
            seed % 2 ? randomGraph(random, shape, 20, 12) : randomRuns(random, shape, 3, 4, 8, 2);
        const double optimum = solve(problem).cost;
        const Solution solution = solve(problem, {.maxTableEntries = 1});
        QVERIFY2(solution.bound <= optimum && optimum <= solution.cost,
                 qPrintable(QString("seed %1").arg(seed)));
        if (solution.status == Status::Optimal) QVERIFY(solution.cost == optimum);
        if (optimum == kInfinite) continue;
        ++feasible;
        proven += solution.status == Status::Optimal;
    }
    QVERIFY(3 * feasible > 2 * problems);
    QCOMPARE(proven, feasible);
}

void TestSolveBruteForce::foldedEqualsExpanded() {
    for (unsigned seed = 0; seed < (kSanitized ? 30U : 150U); ++seed) { // too long for brute force
        Random random(seed + 2'000'000);
        const Shape shape{.maxChoices = 5, .forbidden = 0.1};
        const Problem problem = randomRuns(random, shape, 3, 4, 40, 2);
        const Solution folded = solve(problem), unfolded = solve(expand(problem).problem);
        QCOMPARE(int(folded.status), int(unfolded.status));
        QVERIFY(folded.cost == unfolded.cost); // to the bit
        if (folded.status == Status::Infeasible) continue;
        QVERIFY(evaluate(problem, folded.assignment).cost == folded.cost);
    }
}

/// Runs long enough for the powers of their blocks to settle, with nodes that all copies share.
/// Lengths next to each other need other products, and cycles of two or three layers other ends.
void TestSolveBruteForce::longRunsSettle() {
    const int seeds = kSanitized ? 10 : 40;
    int feasible = 0;
    for (unsigned seed = 0; int(seed) < seeds; ++seed) {
        for (std::size_t count = 61; count < 67; ++count) {
            Random random(seed + 5'000'000);
            const Shape shape{.maxChoices = 4, .forbidden = seed % 2 * 0.2};
            Problem problem;
            problem.runs = {{{}, count}};
            const NodeId shared = addNode(problem, random, shape);
            const NodeId first = addNode(problem, random, shape, 0);
            const NodeId second = addNode(problem, random, shape, 0);
            const NodeId end = addNode(problem, random, shape);
            addEdge(problem, random, shape, shared, second);
            addEdge(problem, random, shape, first, second);
            addEdge(problem, random, shape, second, first, At::Each, At::Each, true);
            addEdge(problem, random, shape, first, second, At::Each, At::Each, true);
            addEdge(problem, random, shape, second, end, At::Last);
            const Solution folded = solve(problem), unfolded = solve(expand(problem).problem);
            QVERIFY(folded.cost == unfolded.cost); // to the bit
            if (folded.status == Status::Infeasible) continue;
            QVERIFY(evaluate(problem, folded.assignment).cost == folded.cost);
            ++feasible;
        }
    }
    QVERIFY(4 * feasible > 15 * seeds);
}

/// Runs whose carried nodes have more and more joint choices: first powers are best, then chains of
/// copies, then plain unrolling. All must agree with the unfolded problem.
void TestSolveBruteForce::everyWayToUnfold() {
    const Shape shape{.maxChoices = 1, .forbidden = 0.05, .maxCost = 1000};
    for (const auto& [carried, choices, variables] :
         {std::tuple(1, 10, 6), std::tuple(2, 12, 83), std::tuple(3, 9, 200)}) {
        Random random(static_cast<unsigned>(carried));
        Problem problem;
        problem.runs = {{{}, 40}};
        for (int i = 0; i < 5; ++i) {
            const NodeId id = addNode(problem, random, shape, 0);
            problem.nodes[id].cost.clear();
            for (int c = 0; c < choices; ++c) problem.nodes[id].cost.push_back(random.pick(0, 99));
            if (id > 0) addEdge(problem, random, shape, id - 1, id);
        }
        for (NodeId id = 0; id < NodeId(carried); ++id) {
            addEdge(problem, random, shape, id, id, At::Each, At::Each, true);
        }
        const Solution folded = solve(problem);
        QCOMPARE(int(folded.statistics.variables), variables);
        QCOMPARE(int(folded.status), int(Status::Optimal));
        QVERIFY(folded.cost == solve(expand(problem).problem).cost);
        QVERIFY(evaluate(problem, folded.assignment).cost == folded.cost);
    }
}

/// Least cost of the assignments in which every run's copies agree, by trying all of these on the
/// whole problem.
static double tiedOptimum(const Problem& problem) {
    Assignment value;
    for (NodeId id = 0; id < problem.nodes.size(); ++id) {
        value.choice.emplace_back(problem.copies(id), std::uint16_t{0});
    }
    double best = kInfinite;
    for (bool more = true; more;) {
        const Evaluation e = evaluate(problem, value);
        if (e.usage <= problem.limit) best = std::min(best, e.cost);
        more = false;
        for (NodeId id = 0; id < problem.nodes.size() && !more; ++id) {
            const auto next = static_cast<std::uint16_t>(value.choice[id][0] + 1);
            more = next < problem.nodes[id].cost.size();
            std::ranges::fill(value.choice[id], more ? next : std::uint16_t{0});
        }
    }
    return best;
}

void TestSolveBruteForce::tiedChoices() {
    int dearer = 0;
    for (unsigned seed = 0; seed < 600; ++seed) {
        Random random(seed + 3'000'000);
        const Shape shape{.maxChoices = 3, .forbidden = 0.03, .usage = seed % 2 == 0};
        Problem problem = randomRuns(random, shape, 2, 3, 5, 2);
        if (shape.usage) problem.limit = 4.0 * double(expand(problem).problem.nodes.size());
        std::vector<std::vector<NodeId>> groups;
        for (NodeId id = 0; id < problem.nodes.size(); ++id) {
            if (problem.nodes[id].run >= 0) groups.push_back({id});
        }
        const TiedProblem tied = tieChoices(problem, groups);
        QVERIFY(tied.problem.runs.empty());
        const Solution solution = solve(tied.problem, {.relativeGap = 0});
        const double best = tiedOptimum(problem);
        QVERIFY(solution.cost == best);
        if (best == kInfinite) continue;
        const Assignment whole = tied.untie(problem, solution.assignment);
        QVERIFY(evaluate(problem, whole).cost == best);
        QVERIFY(evaluate(problem, whole).usage == solution.usage);
        const double free = solve(problem, {.relativeGap = 0}).cost;
        QVERIFY(free <= best);
        dearer += free < best;
    }
    QVERIFY(dearer > 100);
}

/// Equal dense layers cut by columns or by rows. Columns then rows need nothing in between; rows
/// then columns, or the same twice, an all-reduce forward and one backward; rows at the end one
/// more. Figures of planners.md section 2.6: 12 layers 11 all-reduces, tied 22; 13 layers 12 and
/// 24; each 1 + 2 * 3/4 * 524288 + 0.01.
void TestSolveBruteForce::tiedLayersOfAlternatingPlans() {
    const double reduce = 786'433;
    for (const std::size_t layers : {std::size_t{12}, std::size_t{13}}) {
        Problem problem;
        problem.runs = {{{0}, layers}};
        problem.nodes = {{{0, 0}, {}, 0}, {{0}, {}, -1}};
        problem.edges.push_back(
            {0, 0, std::make_shared<Matrix>(Matrix{2, 2, {2 * reduce, 0, 2 * reduce, 2 * reduce}}),
             At::Each, At::Each, true});
        problem.edges.push_back(
            {0, 1, std::make_shared<Matrix>(Matrix{2, 1, {0, reduce}}), At::Last, At::Each});
        const Solution free = solve(problem);
        const Solution tied = solve(tieChoices(problem, {{0}}).problem);
        const double published = layers == 12 ? 8'650'767 : 9'437'198;
        const double publishedTied = layers == 12 ? 17'301'541 : 18'874'409;
        QVERIFY(std::abs(free.cost - published) < 1e-5 * published);
        QVERIFY(std::abs(tied.cost - publishedTied) < 1e-5 * publishedTied);
        QVERIFY(tied.cost == 2 * free.cost);
    }
}

SHARDLENS_TEST(TestSolveBruteForce)

} // namespace tst_solve_brute_force

#include "tst_solve_brute_force.moc"
