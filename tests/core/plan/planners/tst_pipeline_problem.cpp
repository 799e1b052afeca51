// SPDX-License-Identifier: Apache-2.0
// The choice of stages against brute force, and against Alpa's stage division where both apply.
#include "core/plan/planners/pipeline_problem.h"
#include "tests/core/plan/planners/stage_problems.h"
#include "tests/test_program.h"

#include <QTest>

#include <functional>
#include <map>
#include <set>

namespace tst_pipeline_problem {

using namespace shardlens;
using namespace shardlens::test;

class TestPipelineProblem : public QObject {
    Q_OBJECT
private slots:
    void bruteForce_data();
    void bruteForce();
    void spared();
    void enumeratedGates();
    void likeStageDivision();
    void tolerance();
    void incumbent();
    void dominated();
};

namespace {

struct Shape {
    int units;
    DeviceCounts devices;
    bool memory;
    int exact;
    bool once = false;
};

PipelineProblem randomProblem(std::mt19937& random, const Shape& shape) {
    PipelineProblem problem(shape.units, shape.devices);
    problem.exactStages = shape.exact;
    std::uniform_real_distribution<double> seconds(0.1, 2);
    for (int first = 0; first < shape.units; ++first)
        for (int last = first; last < shape.units; ++last) {
            std::vector<StageCandidate> list;
            for (int c = int(random() % 4); c-- > 0;) {
                const double once = shape.once ? 5 * seconds(random) : 0;
                list.push_back(
                    {seconds(random), once + 10 * seconds(random) * (last - first + 1),
                     1 + int(random() % 4), std::uint8_t(shape.devices[1] > 0 && random() % 2),
                     shape.memory ? int(random() % 4) : 100, std::uint32_t(random() % 1000), once});
            }
            problem.use(first, last, problem.addList(list));
        }
    return problem;
}

double bruteOptimum(const PipelineProblem& problem) {
    double best = std::numeric_limits<double>::infinity();
    std::vector<StageCandidate> taken;
    const std::function<void(int)> extend = [&](int unit) {
        if (unit == problem.units()) {
            DeviceCounts used{};
            double longest = -1e18, once = 0;
            const int count = int(taken.size());
            if (problem.exactStages > 0 && count != problem.exactStages) return;
            for (int i = 0; i < count; ++i) {
                const StageCandidate& c = taken[std::size_t(i)];
                if (c.mostBehind < count - 1 - i) return;
                used[c.pool] += c.devices;
                once = std::max(once, c.once);
                const double gate = c.gate - c.once;
                double sum = gate;
                for (int other = 0; other < count; ++other) {
                    const StageCandidate& o = taken[std::size_t(other)];
                    const double quicker = std::max(gate - (o.gate - o.once), 0.0);
                    sum += o.fill - quicker * (other > i ? problem.spare : problem.spareAhead);
                }
                longest = std::max(longest, sum);
            }
            if (used[0] <= problem.devices()[0] && used[1] <= problem.devices()[1])
                best = std::min(best, longest + once);
            return;
        }
        for (int last = unit; last < problem.units(); ++last)
            for (const StageCandidate& c : problem.candidates(unit, last)) {
                taken.push_back(c);
                extend(last + 1);
                taken.pop_back();
            }
    };
    extend(0);
    return best;
}

/// Alpa's way: for each gate in turn the least fill by stages behind, units and devices left.
double enumeratedOptimum(const PipelineProblem& problem) {
    const int n = problem.units(), devices = problem.devices()[0];
    std::set<double> gates;
    for (int list = 0; list < problem.lists(); ++list)
        for (const StageCandidate& c : problem.list(list)) gates.insert(c.gate);
    double best = std::numeric_limits<double>::infinity();
    for (const double gate : gates) {
        std::map<std::tuple<int, int, int>, double> fill{{{0, n, 0}, 0.0}}; // behind, unit, used
        for (int behind = 0; behind < n; ++behind)
            for (int unit = n; unit > 0; --unit)
                for (int used = 0; used <= devices; ++used) {
                    const auto here = fill.find({behind, unit, used});
                    if (here == fill.end()) continue;
                    for (int first = 0; first < unit; ++first)
                        for (const StageCandidate& c : problem.candidates(first, unit - 1)) {
                            if (c.gate > gate || c.mostBehind < behind) continue;
                            if (used + c.devices > devices) continue;
                            const double sum = here->second + c.fill;
                            auto& next =
                                fill.try_emplace({behind + 1, first, used + c.devices}, sum)
                                    .first->second;
                            next = std::min(next, sum);
                        }
                }
        for (const auto& [state, sum] : fill)
            if (std::get<1>(state) == 0) best = std::min(best, sum + gate);
    }
    return best;
}

void checkStages(const PipelineProblem& problem, const PipelineSolution& solution) {
    int unit = 0;
    for (const PipelineStage& stage : solution.stages) {
        QCOMPARE(stage.first, unit);
        unit = stage.last + 1;
    }
    QCOMPARE(unit, problem.units());
    QCOMPARE(pipelineSeconds(solution.stages), solution.seconds);
}

} // namespace

void TestPipelineProblem::bruteForce_data() {
    QTest::addColumn<int>("kind");
    for (int kind = 0; kind < 16; ++kind) QTest::addRow("kind %d", kind) << kind;
}

void TestPipelineProblem::bruteForce() {
    QFETCH(int, kind);
    std::mt19937 random{unsigned(kind + 1)};
    for (int round = 0; round < 40; ++round) {
        const Shape shape{2 + int(random() % 5),
                          {2 + int(random() % 7), kind & 1 ? 1 + int(random() % 4) : 0},
                          (kind & 2) != 0,
                          kind & 4 ? 2 : 0,
                          (kind & 8) != 0};
        const PipelineProblem problem = randomProblem(random, shape);
        const double expected = bruteOptimum(problem);
        const PipelineSolution solution = solvePipeline(problem);
        if (!std::isfinite(expected)) {
            QVERIFY(solution.stages.empty());
            continue;
        }
        QVERIFY(std::abs(solution.seconds - expected) < 1e-9);
        QVERIFY(std::abs(solution.bound - expected) < 1e-9);
        checkStages(problem, solution);
    }
}

/// Where quicker stages save something the bound holds and what is found is the best nearly always:
/// labels are compared by one of the stages that may be waited for.
void TestPipelineProblem::spared() {
    std::mt19937 random(5);
    int best = 0, all = 0;
    for (int trial = 0; trial < 300; ++trial) {
        const int units = 2 + trial % 5, exact = trial % 3 == 0 ? 2 : 0;
        PipelineProblem problem = randomProblem(
            random, {units, {8, trial % 2 * 4}, trial % 4 == 1, exact, trial % 3 == 1});
        problem.spare = trial % 2 ? 0.15 : 0.05;
        problem.spareAhead = problem.spare * (trial % 5) / 5;
        const double optimum = bruteOptimum(problem);
        const PipelineSolution solution = solvePipeline(problem);
        QVERIFY(solution.bound <= optimum * (1 + 1e-9));
        if (std::isinf(optimum)) continue;
        QVERIFY(solution.seconds >= optimum * (1 - 1e-9));
        QCOMPARE(pipelineSeconds(solution.stages, problem.spare, problem.spareAhead),
                 solution.seconds);
        ++all;
        best += solution.seconds <= optimum * (1 + 1e-9);
    }
    QVERIFY2(best * 20 >= all * 19, qPrintable(QString("%1 of %2").arg(best).arg(all)));
}

/// Longer chains, in which stages and lists are like each other, as in a run of equal layers.
void TestPipelineProblem::enumeratedGates() {
    std::mt19937 random(11);
    for (int round = 0; round < 12; ++round) {
        const int n = 10 + int(random() % 5), devices = 8 + int(random() % 5);
        PipelineProblem problem(n, {devices, 0});
        std::uniform_real_distribution<double> share(1, 1.2);
        for (int length = 1; length <= n; ++length) {
            std::vector<StageCandidate> list;
            for (const int used : {1, 2, 4}) {
                const double t = length * share(random) / used + 0.05 * used;
                list.push_back({t, 15 * t, used, 0, round % 2 ? 6 - length : 100});
                list.push_back({1.3 * t, 19.5 * t, used, 0, 100});
            }
            const int number = problem.addList(undominated(list));
            for (int first = 0; first + length <= n; ++first)
                problem.use(first, first + length - 1, number);
        }
        const double expected = enumeratedOptimum(problem);
        const PipelineSolution solution = solvePipeline(problem);
        QVERIFY(std::abs(solution.seconds - expected) < 1e-9);
        QVERIFY(std::abs(solution.bound - expected) < 1e-9);
        checkStages(problem, solution);
    }
}

/// The same optimum as Alpa's division where all devices can be used up.
void TestPipelineProblem::likeStageDivision() {
    for (const int B : {1, 8, 64}) {
        const StageProblem alpa = unitLayers(12, 2, 4, B);
        PipelineProblem problem(12, {8, 0});
        eachCell(alpa, [&](int first, int last, int m) {
            if (m > 0) return;
            std::vector<StageCandidate> list;
            for (std::size_t n = 0; n < alpa.submeshDevices().size(); ++n) {
                const double t = alpa.options(first, last, int(n)).front().seconds;
                list.push_back({t, (B - 1) * t, alpa.submeshDevices()[n]});
            }
            problem.use(first, last, problem.addList(undominated(list)));
        });
        const auto expected = divideStages(alpa);
        const PipelineSolution solution = solvePipeline(problem);
        QVERIFY(solution.seconds <= expected->seconds + 1e-9);
        int used = 0;
        for (const PipelineStage& stage : solution.stages) used += stage.candidate.devices;
        if (used == 8) QVERIFY(std::abs(solution.seconds - expected->seconds) < 1e-9);
    }
}

void TestPipelineProblem::tolerance() {
    std::mt19937 random(5);
    for (int round = 0; round < 60; ++round) {
        const PipelineProblem problem = randomProblem(random, {6, {8, 0}, round % 2 == 0, 0});
        const double expected = bruteOptimum(problem);
        const PipelineSolution solution =
            solvePipeline(problem, {.tolerance = 0.02, .resolution = 0.01});
        if (!std::isfinite(expected)) continue;
        QVERIFY(solution.bound <= expected + 1e-9);
        QVERIFY(solution.seconds >= expected - 1e-9);
        QVERIFY(solution.seconds - solution.bound <= 0.05 * solution.seconds);
    }
}

void TestPipelineProblem::incumbent() {
    std::mt19937 random(6);
    const PipelineProblem problem = randomProblem(random, {5, {8, 0}, false, 0});
    const double best = bruteOptimum(problem);
    const PipelineSolution none = solvePipeline(problem, {.incumbent = best * 0.99});
    QVERIFY(none.stages.empty());
    QVERIFY(none.bound <= best * 0.99);
    QVERIFY(!solvePipeline(problem, {.incumbent = best * 1.01}).stages.empty());
}

void TestPipelineProblem::dominated() {
    const auto kept = undominated({{1, 2, 2, 0, 5, 0},
                                   {1, 2, 1, 0, 5, 1},
                                   {1, 1, 2, 0, 5, 2},
                                   {1, 2, 1, 0, 4, 3},
                                   {1, 2, 1, 1, 5, 4}});
    std::vector<std::uint32_t> ids;
    for (const StageCandidate& c : kept) ids.push_back(c.id);
    QCOMPARE(ids, (std::vector<std::uint32_t>{1, 2, 4}));
}

SHARDLENS_TEST(TestPipelineProblem)

} // namespace tst_pipeline_problem

#include "tst_pipeline_problem.moc"
