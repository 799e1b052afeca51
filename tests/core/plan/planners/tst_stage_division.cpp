// SPDX-License-Identifier: Apache-2.0
// Alpa's stage division against brute force, against another dynamic program, on the fixed table
// of reference/planners.md check 7, and on equal layers.
#include "core/error.h"
#include "tests/core/plan/planners/stage_problems.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_stage_division {

using namespace shardlens;
using namespace shardlens::test;

class TestStageDivision : public QObject {
    Q_OBJECT
private slots:
    void random_data();
    void random();
    void fixedTable_data();
    void fixedTable();
    void memory();
    void memoryRule();
    void equalLayers();
    void impossible();
    void filter();
};

namespace {

void checkDivision(const StageProblem& problem, const StageDivision& division) {
    int layer = 0, devices = 0;
    for (std::size_t i = 0; i < division.stages.size(); ++i) {
        const DividedStage& stage = division.stages[i];
        QCOMPARE(stage.first, layer);
        layer = stage.last + 1;
        devices += problem.submeshDevices()[std::size_t(stage.submesh)];
        QVERIFY(stage.option.mostSuccessors >= int(division.stages.size() - 1 - i));
    }
    QCOMPARE(layer, problem.layers());
    QCOMPARE(devices, problem.devices());
    QCOMPARE(pipelineSeconds(division.stages, problem.microBatches()), division.seconds);
}

} // namespace

void TestStageDivision::random_data() {
    QTest::addColumn<int>("layers");
    QTest::addColumn<int>("hosts");
    QTest::addColumn<int>("devicesPerHost");
    QTest::addColumn<int>("microBatches");
    QTest::addColumn<bool>("memory");
    for (const int layers : {4, 6, 8})
        for (const int hosts : {1, 4})
            for (const int perHost : {1, 4})
                for (const int B : {1, 16, 512})
                    for (const bool memory : {false, true})
                        QTest::addRow("%d layers, %d x %d, B=%d%s", layers, hosts, perHost, B,
                                      memory ? ", memory" : "")
                            << layers << hosts << perHost << B << memory;
}

void TestStageDivision::random() {
    QFETCH(int, layers);
    QFETCH(int, hosts);
    QFETCH(int, devicesPerHost);
    QFETCH(int, microBatches);
    QFETCH(bool, memory);
    std::mt19937 engine(unsigned(layers * 1000 + hosts * 100 + devicesPerHost * 10 + memory));
    for (int round = 0; round < 4; ++round) {
        const StageProblem problem =
            randomProblem(engine, layers, hosts, devicesPerHost, microBatches, memory);
        const double expected = frontOptimum(problem);
        if (layers <= 6 && hosts * devicesPerHost <= 4)
            QCOMPARE(BruteForce(problem).best(), expected);
        const auto best = divideStages(problem);
        QCOMPARE(best.has_value(), std::isfinite(expected));
        if (!best) continue;
        QVERIFY(std::abs(best->seconds - expected) <= 1e-9 * expected);
        checkDivision(problem, *best);
        for (const DivisionOptions options :
             {DivisionOptions{1e-6, false}, DivisionOptions{0, true}, DivisionOptions{0, false}})
            QCOMPARE(divideStages(problem, options)->seconds, best->seconds);
    }
}

void TestStageDivision::fixedTable_data() {
    QTest::addColumn<int>("microBatches");
    QTest::addColumn<double>("seconds");
    QTest::addColumn<int>("stages");
    QTest::newRow("B=1") << 1 << 1.4 << 1;
    QTest::newRow("B=4") << 4 << 5.6 << 1;
    QTest::newRow("B=8") << 8 << 10.8 << 2;
    QTest::newRow("B=16") << 16 << 19.0 << 4;
    QTest::newRow("B=32") << 32 << 35.0 << 4;
    QTest::newRow("B=64") << 64 << 67.0 << 4;
}

void TestStageDivision::fixedTable() {
    QFETCH(int, microBatches);
    QFETCH(double, seconds);
    QFETCH(int, stages);
    const StageProblem problem = unitLayers(4, 1, 4, microBatches);
    const auto best = divideStages(problem);
    QVERIFY(best);
    QVERIFY(std::abs(best->seconds - seconds) < 1e-9);
    QCOMPARE(int(best->stages.size()), stages);
    QVERIFY(std::abs(BruteForce(problem).best() - seconds) < 1e-9);
}

/// Two layers, two devices: the split is better until the first stage cannot keep two
/// micro-batches.
void TestStageDivision::memory() {
    for (const int most : {0, 1}) {
        StageProblem problem(2, 2, {1, 2}, 8);
        problem.offer(0, 0, 0, {1, most, 0});
        problem.offer(1, 1, 0, {1, 0, 0});
        problem.offer(0, 1, 1, {1.3, 0, 0});
        const auto best = divideStages(problem);
        QVERIFY(best);
        QCOMPARE(best->stages.size(), most == 1 ? 2u : 1u);
        QVERIFY(std::abs(best->seconds - (most == 1 ? 9 : 10.4)) < 1e-9);
    }
}

void TestStageDivision::memoryRule() {
    const double peak = 3, initial = 2, intermediate = 1.5;
    for (int s = 1; s < 12; ++s) {
        const double needed = peak + initial + s * intermediate;
        for (const double available : {needed - 0.01, needed, needed + 0.01})
            QCOMPARE(s - 1 <= mostSuccessors(available, peak, initial, intermediate),
                     needed <= available);
    }
    QCOMPARE(mostSuccessors(4, peak, initial, intermediate), -1);
    QCOMPARE(mostSuccessors(100, peak, initial, 0), 1 << 20);
}

/// On a homogeneous GPT the equal cut is the optimum (paper, section 8.3).
void TestStageDivision::equalLayers() {
    const auto best = divideStages(unitLayers(16, 8, 8, 1024));
    QVERIFY(best);
    const int each = best->stages.front().last + 1;
    for (const DividedStage& stage : best->stages) {
        QCOMPARE(stage.last - stage.first + 1, each);
        QCOMPARE(stage.submesh, best->stages.front().submesh);
    }
    // the best of the equal cuts, by hand: 16 stages of 4 devices, t = (1 / 4)(1 + 0.2 * 2)
    QVERIFY(std::abs(best->seconds - (16 + 1023) * 0.35) < 1e-9);
}

void TestStageDivision::impossible() {
    StageProblem problem(2, 4, {1, 2}, 1);
    problem.offer(0, 1, 1, {1});
    QVERIFY(!divideStages(problem)); // two devices are left over
    QVERIFY_THROWS_EXCEPTION(PlanError, StageProblem(0, 1, {1}, 1));
    QVERIFY_THROWS_EXCEPTION(PlanError, StageProblem(1, 1, {1}, 0.5));
}

void TestStageDivision::filter() {
    QVERIFY(sharesMatch(0.25, 0.25, 0));
    QVERIFY(sharesMatch(0.25, 0.5, 1));
    QVERIFY(!sharesMatch(0.25, 0.51, 1));
    QVERIFY(!sharesMatch(0.25, 0.19, 0.25));
    QVERIFY(sharesMatch(0.25, 0.2, 0.25));
}

SHARDLENS_TEST(TestStageDivision)

} // namespace tst_stage_division

#include "tst_stage_division.moc"
