// SPDX-License-Identifier: Apache-2.0
// The op catalogue against shapes, factor mappings and FLOPs known from elsewhere: closed forms,
// ONNX operator definitions, and the mappings that openxla/shardy publishes for its sharding rules.
#include "core/error.h"
#include "core/model/catalogue.h"
#include "tests/core/support/graphs.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_op_catalogue {

using namespace shardlens;

namespace {

struct Made {
    Graph graph;
    OpId id;
    FactorRule rule() const { return factorRule(viewOf(graph, id)); }
    Shape shape(std::size_t result = 0) const { return graph.outputSpecs(id).at(result).shape; }
    OpWork work() const { return forwardWork(viewOf(graph, id), rule()); }
};

Made make(OpKind kind, const std::vector<Shape>& operands, Attributes attributes = {},
          DType dtype = DType::F32) {
    test::Builder b;
    std::vector<TensorId> inputs;
    for (std::size_t i = 0; i < operands.size(); ++i)
        inputs.push_back(b.input(fmt::format("in{}", i), operands[i], dtype));
    const OpId id = addInferred(b.graph, {"op", kind, {}, std::move(attributes), inputs, {}});
    return {b.graph, id};
}

using Ints = std::vector<std::int64_t>;
using Text = std::string;

} // namespace

class TestCatalogue : public QObject {
    Q_OBJECT

private slots:
    void matMul() {
        const Made m = make(OpKind::MatMul, {{8, 128, 64}, {64, 32}, {32}});
        QCOMPARE(m.shape(), (Shape{8, 128, 32}));
        QCOMPARE(QString::fromStdString(m.rule().toString()),
                 QString("([b,m,k],[k,n],[n])->([b,m,n]) r={k}"));
        QCOMPARE(m.work().flops, 2.0 * 8 * 128 * 64 * 32);
        QCOMPARE(m.work().reduceSize, 64.0);
        QCOMPARE(make(OpKind::MatMul, {{64}, {8, 64, 3}}).shape(), (Shape{8, 3}));
        QCOMPARE(
            make(OpKind::MatMul, {{5, 1, 2, 64}, {7, 64}}, {{"transB", std::int64_t{1}}}).shape(),
            (Shape{5, 1, 2, 7}));
        QVERIFY_EXCEPTION_THROWN(make(OpKind::MatMul, {{8, 63}, {64, 32}}), InputError);
    }
    void einsumIsItsOwnRule() {
        const Made m = make(OpKind::Einsum, {{4, 8, 16, 32}, {4, 32, 64}},
                            {{"equation", Text("ebch,ehf->ebcf")}});
        QCOMPARE(m.shape(), (Shape{4, 8, 16, 64}));
        QCOMPARE(m.work().flops, 2.0 * 4 * 8 * 16 * 32 * 64);
        QCOMPARE(m.work().reduceSize, 32.0);
        const FactorRule rule = m.rule();
        for (const Factor& f : rule.factors)
            QCOMPARE(f.kind == FactorKind::Reduction, f.name == "h");
    }
    /// Attention FLOPs: 4 b s² h forward, half of it when causal (planners.md section 1).
    void attention() {
        const double b = 2, s = 1024, heads = 8, d = 64;
        const Shape q{2, 1024, 8, 64}, kv{2, 1024, 2, 64};
        const Made full = make(OpKind::Attention, {q, kv, kv});
        QCOMPARE(full.work().flops, 4 * b * s * s * heads * d);
        const Made causal = make(OpKind::Attention, {q, kv, kv}, {{"causal", std::int64_t{1}}});
        QCOMPARE(causal.work().flops, 2 * b * s * s * heads * d);
        const FactorRule rule = full.rule();
        QCOMPARE(rule.operands[0][2].size(), std::size_t{2}); // key-value head major, group minor
        QCOMPARE(rule.factors[static_cast<std::size_t>(rule.operands[0][2][0])].size,
                 std::int64_t{2});
        QCOMPARE(rule.operands[1][2], DimFactors{rule.operands[0][2][0]});
        QVERIFY_EXCEPTION_THROWN(make(OpKind::Attention, {q, {2, 1024, 3, 64}, {2, 1024, 3, 64}}),
                                 InputError);
    }
    /// ResNet's stem: 7x7/2 pad 3 on 224 gives 112; FLOPs 2·64·3·49·112².
    void convolution() {
        const Made m = make(OpKind::Conv, {{1, 3, 224, 224}, {64, 3, 7, 7}},
                            {{"strides", Ints{2, 2}}, {"pads", Ints{3, 3, 3, 3}}});
        QCOMPARE(m.shape(), (Shape{1, 64, 112, 112}));
        QCOMPARE(m.work().reduceSize, 3.0 * 49); // K of the product it becomes
        QCOMPARE(m.work().flops, 2.0 * 64 * 3 * 49 * 112 * 112);
        const Made depthwise = make(OpKind::Conv, {{1, 32, 56, 56}, {32, 1, 3, 3}},
                                    {{"pads", Ints{1, 1, 1, 1}}, {"group", std::int64_t{32}}});
        QCOMPARE(depthwise.shape(), (Shape{1, 32, 56, 56}));
        QCOMPARE(depthwise.work().flops, 2.0 * 32 * 9 * 56 * 56);
        const Made transposed = make(OpKind::ConvTranspose, {{1, 1, 3, 3}, {1, 2, 3, 3}},
                                     {{"strides", Ints{3, 2}}, {"output_padding", Ints{1, 1}}});
        QCOMPARE(transposed.shape(),
                 (Shape{1, 2, 10, 8})); // ONNX, test_convtranspose_pad's sibling
        const Made pooled = make(OpKind::Pool, {{1, 3, 4, 4}},
                                 {{"mode", Text("max")},
                                  {"kernel", Ints{3, 3}},
                                  {"strides", Ints{2, 2}},
                                  {"ceil_mode", std::int64_t{1}}});
        QCOMPARE(pooled.shape(), (Shape{1, 3, 2, 2})); // ONNX, test_maxpool_2d_ceil
    }
    void reshape_data() {
        QTest::addColumn<QVector<int>>("from");
        QTest::addColumn<QVector<int>>("to");
        QTest::addColumn<QVector<int>>("shared"); // sizes of factors on both sides, in order
        // Facts of openxla/shardy, op_sharding_rule_registry.mlir (reshape cases).
        QTest::newRow("split") << QVector<int>{8} << QVector<int>{2, 4} << QVector<int>{2, 4};
        QTest::newRow("merge") << QVector<int>{2, 4, 32} << QVector<int>{8, 32}
                               << QVector<int>{2, 4, 32};
        QTest::newRow("gcd") << QVector<int>{6, 4} << QVector<int>{4, 6} << QVector<int>{2};
        QTest::newRow("regroup") << QVector<int>{8, 4} << QVector<int>{4, 8}
                                 << QVector<int>{4, 2, 4};
        QTest::newRow("ones") << QVector<int>{1, 8, 1} << QVector<int>{8, 1} << QVector<int>{8};
        QTest::newRow("heads") << QVector<int>{8, 2048, 4096} << QVector<int>{8, 2048, 32, 128}
                               << QVector<int>{8, 2048, 32, 128};
    }
    void reshape() {
        QFETCH(QVector<int>, from);
        QFETCH(QVector<int>, to);
        QFETCH(QVector<int>, shared);
        const Made m = make(OpKind::Reshape, {Shape(from.begin(), from.end())},
                            {{"shape", Ints(to.begin(), to.end())}});
        const FactorRule rule = m.rule();
        QVector<int> found;
        for (std::size_t f = 0; f < rule.factors.size(); ++f)
            if (rule.factors[f].kind == FactorKind::Parallel)
                found.push_back(static_cast<int>(rule.factors[f].size));
        QCOMPARE(found, shared);
        for (const auto* side :
             {&rule.operands[0], &rule.results[0]}) // each dim is the product of its factors
            for (std::size_t d = 0; d < side->size(); ++d) {
                std::int64_t product = 1;
                for (const int f : (*side)[d])
                    product *= rule.factors[static_cast<std::size_t>(f)].size;
                QCOMPARE(product,
                         (side == &rule.operands[0] ? from : to)[static_cast<qsizetype>(d)]);
            }
    }
    void normAndSoftmaxAxesAreInternal() {
        test::Builder b;
        const TensorId y = b.layerNorm("n", b.input("x", {4, 16, 64}));
        const FactorRule rule = factorRule(viewOf(b.graph, b.graph.tensor(y).producer));
        QCOMPARE(rule.factors[2].kind, FactorKind::Internal);
        QVERIFY(rule.factors[2].exchanges);
        QCOMPARE(rule.forwardStatistics.size(), std::size_t{1}); // sum and sum of squares, fp32
        QCOMPARE(rule.forwardStatistics[0].bytes(), 2.0 * 4 * 4 * 16);
        QCOMPARE(rule.operands[1][0], rule.operands[0][2]); // scale follows the width
        const Made softmax = make(OpKind::Softmax, {{4, 16, 64}}, {{"axes", Ints{2}}});
        QCOMPARE(softmax.rule().factors[2].kind, FactorKind::Internal);
    }
    void embedding() {
        const Made m = make(OpKind::Gather, {{32000, 512}, {4, 128}}, {{"axis", std::int64_t{0}}});
        QCOMPARE(m.shape(), (Shape{4, 128, 512}));
        const FactorRule rule = m.rule();
        QCOMPARE(rule.factors[static_cast<std::size_t>(rule.operands[0][0][0])].kind,
                 FactorKind::Reduction);
        QCOMPARE(rule.results[0][2], rule.operands[0][1]);
    }
    void movement() {
        QCOMPARE(make(OpKind::Transpose, {{2, 3, 4}}, {{"perm", Ints{2, 0, 1}}}).shape(),
                 (Shape{4, 2, 3}));
        QCOMPARE(make(OpKind::Concat, {{2, 3}, {2, 5}}, {{"axis", std::int64_t{1}}}).shape(),
                 (Shape{2, 8}));
        QCOMPARE(make(OpKind::Split, {{2, 8}}, {{"axis", std::int64_t{1}}, {"sizes", Ints{3, 5}}})
                     .shape(1),
                 (Shape{2, 5}));
        QCOMPARE(make(OpKind::Expand, {{3, 1}}, {{"shape", Ints{2, 1, 6}}}).shape(),
                 (Shape{2, 3, 6}));
        QCOMPARE(make(OpKind::Pad, {{3, 4}}, {{"pads", Ints{0, 1, 0, 2}}}).shape(), (Shape{3, 7}));
        QCOMPARE(make(OpKind::Tile, {{3, 4}}, {{"repeats", Ints{2, 1}}}).shape(), (Shape{6, 4}));
        QVERIFY_EXCEPTION_THROWN(make(OpKind::Concat, {{2, 3}, {2}}, {{"axis", std::int64_t{0}}}),
                                 InputError);
    }
    void slice_data() {
        QTest::addColumn<int>("start");
        QTest::addColumn<int>("end");
        QTest::addColumn<int>("step");
        QTest::addColumn<int>("size"); // len(range(10)[start:end:step]) in Python
        QTest::newRow("plain") << 2 << 7 << 1 << 5;
        QTest::newRow("step") << 0 << 10 << 3 << 4;
        QTest::newRow("negative start") << -3 << 100 << 1 << 3;
        QTest::newRow("empty") << 5 << 5 << 1 << 0;
        QTest::newRow("backwards") << 20 << 0 << -4 << 3;
        QTest::newRow("whole backwards") << -1 << -100 << -1 << 10;
        QTest::newRow("far below") << -100 << 4 << 1 << 4;
    }
    void slice() {
        QFETCH(int, start);
        QFETCH(int, end);
        QFETCH(int, step);
        QFETCH(int, size);
        const Made m = make(OpKind::Slice, {{10}},
                            {{"starts", Ints{start}},
                             {"ends", Ints{end}},
                             {"axes", Ints{0}},
                             {"steps", Ints{step}}});
        QCOMPARE(m.shape(), (Shape{size}));
    }
    void reductions() {
        const Made mean =
            make(OpKind::Reduce, {{4, 8, 16}},
                 {{"function", Text("mean")}, {"axes", Ints{1}}, {"keepdims", std::int64_t{0}}});
        QCOMPARE(mean.shape(), (Shape{4, 16}));
        QCOMPARE(QString::fromStdString(mean.rule().toString()),
                 QString("([b,s,h])->([b,h]) r={s}"));
        const Made max =
            make(OpKind::Reduce, {{4, 8}}, {{"function", Text("max")}, {"axes", Ints{-1}}});
        QCOMPARE(max.shape(), (Shape{4, 1}));
        // Reduced whole by the op itself: its backward pass needs the value.
        QCOMPARE(max.rule().factors[1].kind, FactorKind::Internal);
        QCOMPARE(max.rule().forwardStatistics[0].reduce, ReduceOp::Max);
    }
    /// Balanced routing: E·b·c rows are exactly tokens·top_k (GShard with capacity factor 1).
    void experts() {
        const Made m =
            make(OpKind::MoeDispatch, {{2, 2048, 64}, {2, 2048, 8}}, {{"top_k", std::int64_t{2}}});
        QCOMPARE(m.shape(), (Shape{8, 2, 512, 64}));
        const FactorRule rule = m.rule();
        const int experts = rule.results[0][0][0];
        QVERIFY(std::ranges::none_of(rule.operands[0], [&](const DimFactors& d) {
            return std::ranges::find(d, experts) != d.end();
        }));
        const Made back = make(OpKind::MoeCombine, {{8, 2, 512, 64}, {2, 2048, 8}});
        QCOMPARE(back.shape(), (Shape{2, 2048, 64}));
        QCOMPARE(back.rule().factors[static_cast<std::size_t>(back.rule().operands[0][0][0])].kind,
                 FactorKind::Reduction);
    }
    void crossEntropy() {
        test::Builder b;
        const TensorId logits = b.input("logits", {4, 128, 32000}),
                       labels = b.input("labels", {4, 128}, DType::I64);
        const TensorId loss = b.add(OpKind::CrossEntropy, "loss", {logits, labels});
        QCOMPARE(b.graph.tensor(loss).spec, (TensorSpec{DType::F32, {}}));
        const FactorRule rule = factorRule(viewOf(b.graph, b.graph.tensor(loss).producer));
        QCOMPARE(QString::fromStdString(rule.factors.back().name), QString("v"));
        QCOMPARE(rule.factors.back().kind, FactorKind::Internal);
    }
};

SHARDLENS_TEST(TestCatalogue)

} // namespace tst_op_catalogue

#include "tst_op_catalogue.moc"
