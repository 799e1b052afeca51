// SPDX-License-Identifier: Apache-2.0
// The planner on real models: proven optima, equal to what other solvers find on the unfolded
// problem; pins on one layer of 126; prices of every choice.
#include "core/plan/planner.h"
#include "tests/core/support/models.h"
#include "tests/core/support/planning.h"
#include "tests/core/support/reference_solvers.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_models {

using namespace shardlens;

namespace {

std::shared_ptr<const PlanContext> contextOf(const ModelBundle& bundle,
                                             const PlanRequest& request) {
    return makeContext(bundle.graph, bundle.folding, request);
}

double units(double time) {
    return std::round(time * 1e12);
}

} // namespace

class TestModels : public QObject {
    Q_OBJECT

private slots:
    void provenOptimal_data() {
        QTest::addColumn<QString>("model");
        QTest::addColumn<int>("nodes");
        QTest::addColumn<QString>("mesh");
        QTest::addColumn<int>("blocks"); // equal blocks of the largest run
        QTest::newRow("llama3.1-405b dp=8,tp=8") << "llama3.1-405b" << 8 << "dp=8,tp=8" << 126;
        QTest::newRow("llama3.1-405b dp=16,tp=8") << "llama3.1-405b" << 16 << "dp=16,tp=8" << 126;
        QTest::newRow("llama3-8b") << "llama3-8b" << 1 << "dp=2,tp=4" << 32;
        QTest::newRow("mixtral-8x7b") << "mixtral-8x7b" << 8 << "dp=8,tp=8" << 32;
        QTest::newRow("deepseek-v3") << "deepseek-v3" << 8 << "dp=8,tp=8" << 58;
        QTest::newRow("gpt2") << "gpt2" << 1 << "dp=2,tp=4" << 12;
        QTest::newRow("bert-large") << "bert-large" << 1 << "dp=2,tp=4" << 24;
        QTest::newRow("t5-11b") << "t5-11b" << 8 << "dp=8,tp=8" << 24;
        QTest::newRow("vit-b16") << "vit-b16" << 1 << "dp=2,tp=4" << 12;
    }
    void provenOptimal() {
        QFETCH(QString, model);
        QFETCH(int, nodes);
        QFETCH(QString, mesh);
        QFETCH(int, blocks);
        PlanRequest request = test::onCluster("dgx-h100", nodes, mesh.toStdString(), 64, 512);
        request.memoryLimitBytes = 1e18;
        const ModelBundle bundle = test::sample(model.toStdString(), request);
        std::size_t most = 0;
        for (const FoldRun& run : bundle.folding->runs) most = std::max(most, run.count);
        QCOMPARE(most, static_cast<std::size_t>(blocks));
        const auto context = contextOf(bundle, request);
        const Plan plan = optimise(context);
        QVERIFY(plan.optimal);
        QCOMPARE(units(plan.totals.time), units(plan.bound));
        if (!test::installed("toulbar2")) QSKIP("toulbar2 is not installed");
        test::ReferenceSolvers references(100'000);
        ChoiceProblem problem = choiceProblem(*context);
        problem.problem.limit = solve::kInfinite;
        QCOMPARE(references.toulbar2(problem.problem), units(plan.bound));
    }
    /// Alpa's integer program, unfolded, through CBC: the same optimum.
    void integerProgramAgrees() {
        if (!test::installed("cbc")) QSKIP("cbc is not installed");
        PlanRequest request = test::onCluster("dgx-h100", 8, "dp=8,tp=8", 64, 2048);
        request.memoryLimitBytes = 1e18;
        const auto context = contextOf(test::sample("llama3.1-405b", request, 4), request);
        const Plan plan = optimise(context);
        ChoiceProblem problem = choiceProblem(*context);
        problem.problem.limit = solve::kInfinite;
        test::ReferenceSolvers references;
        QVERIFY(qAbs(references.cbc(problem.problem) / units(plan.bound) - 1) < 1e-9);
    }
    /// A pin on one op of layer 57: only its surroundings move, the optimum does not fall, and
    /// taking it back restores every choice.
    void pinInLayer57() {
        PlanRequest request = test::onCluster("dgx-h100", 8, "dp=8,tp=8", 64, 2048);
        request.memoryLimitBytes = 1e18;
        const auto context = contextOf(test::sample("llama3.1-405b", request), request);
        const Plan before = optimise(context);
        const std::string pinned = "model.layers.57.mlp.up_proj";
        for (const Alternative& choice : alternatives(before, *context->graph->findOp(pinned))) {
            if (!choice.legal || choice.current) continue;
            const Plan plan = optimise(withPins(*context, {{pinned, choice.text}}));
            QVERIFY(plan.optimal);
            QVERIFY(plan.totals.time >= before.totals.time);
            QCOMPARE(units(plan.totals.time), units(choice.time));
            QCOMPARE(test::choiceOf(plan, pinned), choice.text);
            // Far from the pin nothing moves: the deepest and the first layers keep their choices.
            for (const char* layer : {"model.layers.3.", "model.layers.100."})
                for (const char* op :
                     {"self_attn.q_proj", "self_attn.o_proj", "mlp.up_proj", "mlp.down_proj"})
                    QCOMPARE(test::choiceOf(plan, std::string(layer) + op),
                             test::choiceOf(before, std::string(layer) + op));
            const Plan after = optimise(withPins(*plan.context, {}));
            QVERIFY(after.totals.time == before.totals.time);
            QVERIFY(after.decisions == before.decisions);
        }
    }
    /// A binding limit on a real model: certified, feasible, close.
    void memoryLimit() {
        PlanRequest request = test::onCluster("dgx-h100", 2, "dp=2,tp=8", 32, 4096);
        request.memoryLimitBytes = 1e18;
        const ModelBundle bundle = test::sample("llama3-8b", request);
        const Plan free = optimise(contextOf(bundle, request));
        for (const double share : {0.99, 0.975}) {
            request.memoryLimitBytes = share * free.totals.memory.total();
            const Plan plan = optimise(contextOf(bundle, request));
            QVERIFY(plan.totals.memory.total() <= *request.memoryLimitBytes);
            QVERIFY(plan.bound <= plan.totals.time * (1 + 1e-12));
            QVERIFY(plan.bound >= free.bound);
            QVERIFY2(plan.gap <= 0.005, qPrintable(QString::number(plan.gap)));
        }
    }
};

SHARDLENS_TEST(TestModels)

} // namespace tst_models

#include "tst_models.moc"
