// SPDX-License-Identifier: Apache-2.0
// Whole blocks run sharded: transformer blocks of the sample models, an encoder-decoder pair and a
// residual block of a convolutional network, each under random plans and under the optimum, must
// equal the whole model; and shrinking keeps what it promises.
#include "core/execute/verify_model.h"
#include "core/plan/planner.h"
#include "tests/core/support/graphs.h"
#include "tests/core/support/models.h"
#include "tests/test_program.h"

#include <fmt/format.h>

#include <QTest>

namespace tst_blocks {

using namespace shardlens;

class TestBlocks : public QObject {
    Q_OBJECT
private slots:
    void shrunkSizesDivideAlike();
    void shrinkingKeepsTheStructure();
    void plans_data();
    void plans();
};

namespace {

constexpr std::size_t kRandomPlans = test::kSanitized ? 20 : 200;

/// conv - norm - relu - conv - norm, added to a projected short cut: a block of a ResNet with
/// stride (He et al. 2016).
Graph residualBlock() {
    test::Builder b;
    const auto conv = [&](const std::string& name, TensorId x, std::int64_t out,
                          std::int64_t kernel, std::int64_t stride) {
        const std::int64_t in = b.graph.tensor(x).spec.shape[1], pad = kernel / 2;
        return b.add(OpKind::Conv, name,
                     {x, b.parameter(name + ".weight", {out, in, kernel, kernel})},
                     {{"strides", std::vector<std::int64_t>{stride, stride}},
                      {"pads", std::vector<std::int64_t>{pad, pad, pad, pad}}});
    };
    const auto norm = [&](const std::string& name, TensorId x) {
        const std::int64_t c = b.graph.tensor(x).spec.shape[1];
        return b.add(OpKind::Norm, name,
                     {x, b.parameter(name + ".weight", {c}), b.parameter(name + ".bias", {c})},
                     {{"mode", std::string("batch")}, {"training", std::int64_t{1}}});
    };
    const TensorId x = b.input("image", {12, 3, 6, 6});
    const TensorId stem =
        b.elementwise("relu", "stem.relu", {norm("stem.norm", conv("stem", x, 12, 3, 1))});
    const TensorId first =
        b.elementwise("relu", "relu1", {norm("norm1", conv("conv1", stem, 24, 3, 2))});
    const TensorId second = norm("norm2", conv("conv2", first, 24, 3, 1));
    const TensorId shortcut = norm("norm3", conv("shortcut", stem, 24, 1, 2));
    const TensorId sum = b.elementwise("add", "add", {second, shortcut});
    const TensorId out = b.elementwise("relu", "relu2", {sum});
    const TensorId pooled =
        b.add(OpKind::GlobalPool, "pool", {out}, {{"mode", std::string("average")}});
    const TensorId flat = b.reshape("flat", pooled, {12, 24});
    const TensorId logits = b.linear("classifier", flat, 12);
    b.graph.markOutput(
        b.add(OpKind::CrossEntropy, "loss", {logits, b.input("labels", {12}, DType::I64)}));
    return b.graph;
}

ModelBundle modelFor(const std::string& name, const PlanRequest& request) {
    if (name == "residual block") return bundleOf(residualBlock());
    return test::sample(name, request);
}

} // namespace

void TestBlocks::shrunkSizesDivideAlike() {
    // By hand: the smallest size of at least 2 that 2 and 4 divide just as they divide the old one.
    QCOMPARE(shrunkSize(4096, 4, 2), 4);
    QCOMPARE(shrunkSize(126, 4, 2), 2);
    QCOMPARE(shrunkSize(50257, 4, 2), 3);
    QCOMPARE(shrunkSize(128256, 6, 2), 6);
    QCOMPARE(shrunkSize(1, 4, 2), 1);
    QCOMPARE(shrunkSize(3, 4, 2), 3);
}

void TestBlocks::shrinkingKeepsTheStructure() {
    const PlanRequest request = test::onCluster("dgx-h100", 1, "dp=2,tp=4", 8, 512);
    const ModelBundle model = test::sample("llama3-8b", request);
    const SmallModel small = shrinkForVerification(*model.graph, *model.folding, request);
    // The same ops outside the layers, and two layers of 32.
    std::size_t perLayer = 0, outside = 0;
    for (const OpClass& c : model.folding->classes) (c.multiplicity > 1 ? perLayer : outside) += 1;
    QCOMPARE(model.graph->ops().size(), outside + 32 * perLayer);
    QCOMPARE(small.context->graph->ops().size(), outside + 2 * perLayer);
    QVERIFY(small.context->graph->parameterCount() < 1e5);
    // Heads, key-value heads and the vocabulary are still cut as in the real model.
    const auto legal = [&](const PlanContext& context, OpId op) {
        return context.pricing->op(op).choices.size();
    };
    const auto big = makeContext(model.graph, model.folding, request);
    for (OpId id = 0; id < small.context->graph->ops().size(); ++id) {
        const auto like = model.graph->findOp(small.context->graph->op(id).name);
        QVERIFY(like);
        QCOMPARE(legal(*small.context, id), legal(*big, *like));
    }
}

void TestBlocks::plans_data() {
    QTest::addColumn<QString>("model");
    for (const char* model : {"llama3-8b", "gpt2", "mixtral-8x7b", "t5-small", "residual block"})
        QTest::newRow(model) << model;
}

void TestBlocks::plans() {
    QFETCH(QString, model);
    std::size_t collectives = 0;
    for (const char* mesh : {"x=2", "x=4", "x=2,y=2", "x=2,y=3"}) {
        const PlanRequest request = test::onCluster("dgx-h100", 1, mesh, 12, 24);
        const ModelBundle bundle = modelFor(model.toStdString(), request);
        const SmallModel small = shrinkForVerification(*bundle.graph, *bundle.folding, request);
        std::mt19937_64 random(3);
        for (int i = -1; i < static_cast<int>(kRandomPlans / 4); ++i) {
            const Plan plan =
                i < 0 ? optimise(small.context)
                      : evaluate(small.context, randomDecisions(*small.context->pricing, random));
            const Verification result = verify(plan, static_cast<std::uint64_t>(i) + 2);
            const std::string what = fmt::format(
                "plan {} on {}: differs by {} in the {}; {}", i, mesh, result.difference,
                result.worst, result.mismatches.empty() ? "" : result.mismatches.front());
            QVERIFY2(result.agrees(), what.c_str());
            collectives += result.collectives.size();
        }
    }
    QVERIFY(collectives > 5 * kRandomPlans); // random plans convert a lot
}

SHARDLENS_TEST(TestBlocks)

} // namespace tst_blocks

#include "tst_blocks.moc"
