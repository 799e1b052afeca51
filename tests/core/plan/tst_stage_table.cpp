// SPDX-License-Identifier: Apache-2.0
// Stages of real models: units, and the figures of stretches against the planner's own optimum of
// the whole model, against each other, and against closed forms of memory.
#include "core/error.h"
#include "core/plan/planner.h"
#include "core/plan/stage_table.h"
#include "tests/core/support/graphs.h"
#include "tests/core/support/models.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_stage_table {

using namespace shardlens;
using namespace shardlens::test;

class TestStageTable : public QObject {
    Q_OBJECT
private slots:
    void units_data();
    void units();
    void wholeModelIsTheOptimum_data();
    void wholeModelIsTheOptimum();
    void stretches();
    void passes();
    void recomputation();
    void backwardIncluded();
};

namespace {

struct Staged {
    ModelBundle bundle;
    std::shared_ptr<const StagedModel> model;
};

Staged staged(const std::string& name, int layers = 0) {
    PlanRequest request = onCluster("dgx-a100", 1, "tp=8", 4, 512);
    Staged result{sample(name, request, layers), nullptr};
    result.model = stagedModel(result.bundle.graph, result.bundle.folding);
    return result;
}

StageTable tableOf(const Staged& s, std::string_view mesh, const StageWeights& weights = {}) {
    int devices = 1;
    for (const AxisSize& axis : parseMesh(mesh)) devices *= axis.size;
    const Cluster cluster = clusterByName("dgx-a100", 1, devices);
    return {s.model, layMesh(cluster, parseMesh(mesh)), rooflineModel(cluster), weights};
}

} // namespace

void TestStageTable::units_data() {
    QTest::addColumn<int>("units");
    QTest::addColumn<int>("layers");
    // embedding, layers, head
    QTest::newRow("gpt3-175b") << 98 << 96;
    QTest::newRow("llama3-8b") << 34 << 32;
    QTest::newRow("mixtral-8x7b") << 34 << 32;
}

void TestStageTable::units() {
    QFETCH(int, units);
    QFETCH(int, layers);
    const Staged s = staged(QTest::currentDataTag());
    QCOMPARE(int(s.model->units.units.size()), units);
    QCOMPARE(int(std::ranges::count_if(s.model->units.units,
                                       [](const StageUnit& u) { return u.run >= 0; })),
             layers);
    QCOMPARE(s.model->units.kinds, 5u); // embedding, first, inner, last layer, head
    std::vector<int> seen(s.bundle.graph->ops().size(), 0);
    for (const StageUnit& unit : s.model->units.units)
        for (const OpId id : unit.ops) ++seen[id];
    for (OpId id = 0; id < seen.size(); ++id) {
        const bool source = s.bundle.graph->op(id).inputs.empty();
        QVERIFY(source ? seen[id] >= 1 : seen[id] == 1);
    }
}

void TestStageTable::wholeModelIsTheOptimum_data() {
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<int>("layers");
    for (const char* name : {"llama3-8b", "mixtral-8x7b", "t5-small", "vit-b16", "gpt3-175b"})
        for (const char* mesh : {"tp=1", "tp=4", "dp=2,tp=2"})
            QTest::addRow("%s %s", name, mesh) << QString::fromLatin1(mesh) << 4;
    for (const char* mesh : {"tp=4", "dp=2,tp=2"}) // products of equal units are not multiplied out
        QTest::addRow("llama3-8b %s, long", mesh) << QString::fromLatin1(mesh) << 60;
}

/// One stage on one mesh, gradients counted once, is what the planner finds for the whole model;
/// parameters that two units read are there twice, tensors that skip units cross on the wire.
void TestStageTable::wholeModelIsTheOptimum() {
    QFETCH(QString, mesh);
    QFETCH(int, layers);
    const std::string name =
        QString::fromLatin1(QTest::currentDataTag()).split(' ')[0].toStdString();
    const Staged s = staged(name, layers);
    StageTable table = tableOf(s, mesh.toStdString(), {.sync = 1, .memory = 0});
    const StageFigures whole = table.figures(0, table.units() - 1);
    PlanRequest request = onCluster("dgx-a100", 1, mesh.toStdString(), 4, 512);
    request.devicesPerNode = 1;
    for (const AxisSize& axis : request.mesh) request.devicesPerNode *= axis.size;
    request.memoryLimitBytes = 1e18;
    const Plan plan = optimise(makeContext(s.bundle.graph, s.bundle.folding, request));
    const double seconds = whole.seconds() + whole.sync + whole.optimizer;
    bool passes = !s.model->units.tied.empty();
    for (const StageUnit& unit : s.model->units.units) passes |= !unit.passes.empty();
    PartialDecisions chosen(table.prices()->pricing);
    table.decide(0, table.units() - 1, chosen);
    QVERIFY(std::ranges::find(chosen.decided, false) == chosen.decided.end());
    const double evaluated = evaluate(plan.context, chosen.decisions).totals.time;
    QVERIFY(evaluated >= plan.totals.time * (1 - 1e-9));
    if (passes) {
        QVERIFY(seconds >= plan.totals.time * (1 - 1e-9));
        QVERIFY(seconds <= plan.totals.time * 1.15);
    } else {
        QVERIFY(std::abs(seconds / plan.totals.time - 1) < 1e-9);
        QVERIFY(std::abs(evaluated / plan.totals.time - 1) < 1e-9); // its choices are as good
        if (mesh == "tp=1")
            QVERIFY(std::abs(whole.kept / plan.totals.memory.activations - 1) < 1e-9);
    }
}

void TestStageTable::stretches() {
    const Staged s = staged("gpt3-175b");
    StageTable table = tableOf(s, "tp=4");
    // all starts inside of the run are alike, and each layer adds the same
    const StageFigures one = table.figures(10, 10), two = table.figures(10, 11),
                       three = table.figures(40, 42);
    QCOMPARE(table.figures(20, 21).seconds(), two.seconds());
    QVERIFY(std::abs(three.seconds() - 2 * two.seconds() + one.seconds()) < 1e-9);
    // a cut costs something: the whole is at most the sum of its parts
    const double whole = table.figures(0, 97).seconds();
    const double parts = table.figures(0, 30).seconds() + table.figures(31, 97).seconds();
    QVERIFY(whole <= parts + 1e-12);
    QVERIFY(parts <= whole * 1.01);
    // first and last layer stand for themselves, asked in any order
    StageTable other = tableOf(s, "tp=4");
    QCOMPARE(other.figures(5, 97).seconds(), table.figures(5, 97).seconds());
    QCOMPARE(other.figures(0, 50).kept, table.figures(0, 50).kept);
    QCOMPARE(other.figures(1, 96).forward, table.figures(1, 96).forward);
}

/// Matrix products: the weight gradient takes as long as the forward pass, and the input gradient
/// too; the attention core and norms have no weight gradient to speak of.
void TestStageTable::passes() {
    const Staged s = staged("gpt3-175b");
    StageTable table = tableOf(s, "tp=1");
    const StageFigures layer = table.figures(10, 10);
    QVERIFY(layer.weightGrad < layer.forward);
    QVERIFY(layer.weightGrad > 0.9 * layer.forward);
    QVERIFY(layer.inputGrad > layer.forward);
    QVERIFY(layer.inputGrad < 1.2 * layer.forward);
    // 12 h^2 + 13 h parameters of a layer, 18 bytes each
    const double h = 12288, parameters = 12 * h * h + 13 * h;
    QVERIFY(std::abs(layer.parameters / (2 * parameters) - 1) < 1e-6);
    QVERIFY(std::abs(layer.gradients / (4 * parameters) - 1) < 1e-6);
    QVERIFY(std::abs(layer.optimizerState / (12 * parameters) - 1) < 1e-6);
}

/// Without flash statistics and masks: inputs of all products, both norms, attention's operands
/// (Megatron's 34 s b h with dropout masks, less nothing recomputed).
void TestStageTable::recomputation() {
    const Staged s = staged("gpt3-175b");
    StageTable table = tableOf(s, "tp=1");
    const double unit = 4.0 * 512 * 12288; // s b h elements
    const StageFigures layer = table.figures(10, 10);
    QVERIFY(layer.kept > 30 * unit && layer.kept < 42 * unit);
    QVERIFY(layer.recomputable > 0.3 * layer.kept && layer.recomputable < 0.7 * layer.kept);
    QVERIFY(std::abs(layer.entry - 2 * unit) < 1);
    QVERIFY(layer.cheapForward > 0 && layer.cheapForward < 0.1 * layer.forward);
    QVERIFY(table.largestUnit(10, 20) >= layer.kept - 1);
}

void TestStageTable::backwardIncluded() {
    Graph graph = mlp(4, 8, 16);
    graph.backwardIncluded = true;
    const ModelBundle bundle = bundleOf(graph);
    QVERIFY_THROWS_EXCEPTION(PlanError, stagedModel(bundle.graph, bundle.folding));
}

SHARDLENS_TEST(TestStageTable)

} // namespace tst_stage_table

#include "tst_stage_table.moc"
