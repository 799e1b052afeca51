// SPDX-License-Identifier: Apache-2.0
// Alpa's own expectations under Alpa's cost formulas (planners.md section 13, checks 1 to 3;
// sources alpa-projects/alpa: playground/auto_sharding_solver/test_solver_mlp.py,
// tests/shard_parallel/ test_mlp.py and test_bert.py).
#include "tests/core/support/graphs.h"
#include "tests/core/support/planning.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_alpa_checks {

using namespace shardlens;

namespace {

/// Alpa's all-reduce (planners.md section 3.4).
double allReduce(double bytes, int n, double beta) {
    return 1 + 2 * beta * (n - 1) / n * bytes + 0.01;
}

void compareWithin(double value, double expected, double relative) {
    QVERIFY2(std::abs(value - expected) <= relative * expected,
             qPrintable(QString("%1, expected %2").arg(value, 0, 'f', 3).arg(expected, 0, 'f', 3)));
}

} // namespace

class TestAlpaChecks : public QObject {
    Q_OBJECT

private slots:
    void tiedLayersCostHalfAsMuchAgain();
    void mlpClosedForms_data() {
        QTest::addColumn<int>("layers");
        QTest::addColumn<int>("batch");
        QTest::addColumn<int>("width");
        QTest::addColumn<int>("n0");
        QTest::addColumn<int>("n1");
        QTest::addColumn<double>("beta1");
        QTest::addColumn<double>("optimum");
        QTest::newRow("data parallel (4,1)") << 2 << 1024 << 128 << 4 << 1 << 1.0 << 196610.02;
        QTest::newRow("data parallel (1,4)") << 2 << 1024 << 128 << 1 << 4 << 1.0 << 196610.02;
        QTest::newRow("model parallel (4,1)") << 2 << 128 << 1024 << 4 << 1 << 1.0 << 786433.01;
        QTest::newRow("model parallel (1,4)") << 2 << 128 << 1024 << 1 << 4 << 1.0 << 786433.01;
        QTest::newRow("12 weight all-reduces") << 12 << 1024 << 128 << 4 << 1 << 1.0 << 1179660.12;
        QTest::newRow("11 activation all-reduces")
            << 12 << 128 << 1024 << 1 << 4 << 1.0 << 8650763.11;
        QTest::newRow("hybrid (4,8)") << 2 << 1024 << 128 << 4 << 8 << 0.01 << 26872.03;
        QTest::newRow("hybrid (8,4)") << 2 << 1024 << 128 << 8 << 4 << 0.01 << 58330.03;
        QTest::newRow("hybrid (3,4)") << 2 << 1024 << 128 << 3 << 4 << 0.01 << 46314.03;
        QTest::newRow("hybrid 6 layers (4,8)") << 6 << 1024 << 128 << 4 << 8 << 0.01 << 85204.11;
    }
    /// Check 1, tolerance 0.1 %.
    void mlpClosedForms() {
        QFETCH(int, layers);
        QFETCH(int, batch);
        QFETCH(int, width);
        QFETCH(int, n0);
        QFETCH(int, n1);
        QFETCH(double, beta1);
        QFETCH(double, optimum);
        const Graph graph = test::mlp(layers, batch, width);
        const PlanRequest request = test::alpaRequest(n0, n1, 1, 1, beta1);
        const Plan plan = optimise(test::contextOf(graph, request));
        QVERIFY(plan.optimal);
        compareWithin(plan.totals.time, optimum, 1e-3);
        // Folded and exact: the same problem without folding has the same optimum, to the bit.
        const Plan unfolded = optimise(test::contextOf(graph, request, false));
        QCOMPARE(plan.totals.time, unfolded.totals.time);
        QCOMPARE(plan.bound, plan.totals.time);
    }
    /// Check 2: column/row alternation, five all-reduces and nothing else.
    void columnRowAlternation_data() {
        QTest::addColumn<int>("n0");
        QTest::addColumn<int>("n1");
        QTest::newRow("(4,1)") << 4 << 1;
        QTest::newRow("(1,4)") << 1 << 4;
    }
    void columnRowAlternation() {
        QFETCH(int, n0);
        QFETCH(int, n1);
        const Plan plan = optimise(
            test::contextOf(test::mlp(6, 32, 256, true), test::alpaRequest(n0, n1, 1, 1, 1)));
        compareWithin(plan.totals.time, 245765.05, 0.01);
        QCOMPARE(plan.collectives.size(), std::size_t{5});
        QCOMPARE(test::countCollectives(plan, CollectiveKind::AllReduce, 32768), std::size_t{5});
        const std::string axis = n0 > 1 ? "@x" : "@y";
        for (int i = 0; i < 6; ++i) {
            QCOMPARE(test::choiceOf(plan, fmt::format("layer{}", i)),
                     (i % 2 == 0 ? "n" : "k") + axis);
            QCOMPARE(test::choiceOf(plan, fmt::format("layer{}.weight", i)),
                     (i % 2 == 0 ? "d1" : "d0") + axis);
        }
    }
    /// Check 2, second half: column/row on the fast axis, replicated on the slow one.
    void columnRowOnTwoAxes() {
        const Plan plan = optimise(
            test::contextOf(test::mlp(6, 256, 32, true), test::alpaRequest(2, 2, 1, 1, 0.1)));
        compareWithin(plan.totals.time, 21265.17, 0.01);
        for (int i = 0; i < 6; ++i)
            QCOMPARE(test::choiceOf(plan, fmt::format("layer{}.weight", i)),
                     std::string(i % 2 == 0 ? "d1@y" : "d0@y"));
    }
    /// Check 3: Megatron's pattern, 4L-1 all-reduces of the activations.
    void megatronPattern() {
        for (const auto& [n0, n1] : {std::pair{4, 1}, std::pair{1, 4}}) {
            const Plan plan = optimise(test::contextOf(test::bertStack(2, 8, 8, 128, 8),
                                                       test::alpaRequest(n0, n1, 1, 1, 1)));
            compareWithin(plan.totals.time, 344071.07, 0.01);
            QCOMPARE(plan.collectives.size(), std::size_t{7});
            QCOMPARE(test::countCollectives(plan, CollectiveKind::AllReduce, 32768),
                     std::size_t{7});
            const std::string axis = n0 > 1 ? "@x" : "@y";
            for (int layer = 0; layer < 2; ++layer) {
                const auto weight = [&](const char* name) {
                    return test::choiceOf(plan, fmt::format("layer{}.{}.weight", layer, name));
                };
                for (const char* column : {"q", "k", "v", "up"})
                    QCOMPARE(weight(column), "d1" + axis);
                for (const char* row : {"out", "down"}) QCOMPARE(weight(row), "d0" + axis);
            }
        }
    }
    /// Check 3: many tokens and little width is data parallel: only gradient all-reduces.
    void dataParallelPattern() {
        const Graph graph = test::bertStack(2, 64, 64, 32, 8);
        const Plan plan = optimise(test::contextOf(graph, test::alpaRequest(4, 1, 1, 1, 1)));
        for (const PlannedCollective& c : plan.collectives) {
            QCOMPARE(c.phase, Phase::Step);
            QCOMPARE(c.step.kind, CollectiveKind::AllReduce);
        }
        double expected = 0; // one all-reduce a parameter
        for (const Op& op : graph.ops())
            if (op.kind == OpKind::Parameter) {
                QCOMPARE(test::choiceOf(plan, op.name), std::string("replicated"));
                expected += allReduce(bytesOf(graph.tensor(op.outputs[0]).spec), 4, 1);
            }
        compareWithin(plan.totals.time, expected, 1e-6);
    }
    /// Check 3: tensor parallel wins exactly while tokens < 3 x hidden. Looked at in the middle
    /// layer: the first one's input has no gradient, which makes its column-parallel products
    /// cheaper.
    void crossover_data() {
        QTest::addColumn<int>("batch");
        QTest::addColumn<bool>("tensor");
        QTest::newRow("1024 tokens") << 8 << true;
        QTest::newRow("16384 tokens") << 128 << false;
    }
    void crossover() {
        QFETCH(int, batch);
        QFETCH(bool, tensor);
        const Plan plan = optimise(test::contextOf(test::bertStack(3, batch, 128, 4096, 32),
                                                   test::alpaRequest(1, 8, 1, 1, 1)));
        for (const char* column : {"layer1.q", "layer1.k", "layer1.v", "layer1.up"})
            QCOMPARE(test::choiceOf(plan, column), std::string(tensor ? "n@y" : "b@y"));
        for (const char* row : {"layer1.out", "layer1.down"})
            QCOMPARE(test::choiceOf(plan, row), std::string(tensor ? "k@y" : "b@y"));
    }
};

/// Equal layers forced to equal plans cannot alternate between columns and rows: each gathers its
/// output and reduces the gradient of its input, 11 times. (Where outputs are never gathered, as in
/// planners.md section 2.6, it is 22 all-reduces; tst_solve_brute_force has that case.)
void TestAlpaChecks::tiedLayersCostHalfAsMuchAgain() {
    const Graph graph = test::mlp(12, 128, 1024);
    const auto context = test::contextOf(graph, test::alpaRequest(1, 4, 1, 1, 1));
    PlannerOptions options;
    options.tieLayers = true;
    const Plan tied = optimise(context, options);
    QVERIFY(tied.optimal && tied.untiedTime);
    const double bytes = 4.0 * 128 * 1024, gather = 1 + 3.0 / 4 * bytes + 0.1;
    compareWithin(tied.totals.time, 11 * (gather + allReduce(bytes, 4, 1)), 1e-6);
    compareWithin(*tied.untiedTime, 11 * allReduce(bytes, 4, 1), 1e-6);
    QVERIFY(*tied.untiedTime == optimise(context).totals.time);
    QVERIFY(QString::fromStdString(toText(tied)).contains("1.5000 times as much"));
    for (int layer = 1; layer < 12; ++layer) {
        QCOMPARE(test::choiceOf(tied, "layer" + std::to_string(layer)),
                 test::choiceOf(tied, "layer0"));
    }
}

SHARDLENS_TEST(TestAlpaChecks)

} // namespace tst_alpa_checks

#include "tst_alpa_checks.moc"
