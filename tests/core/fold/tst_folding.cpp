// SPDX-License-Identifier: Apache-2.0
// Folding on networks whose repeats are known by construction.
#include "core/fold/folding.h"
#include "core/fold/sections.h"
#include "tests/core/support/graphs.h"
#include "tests/test_program.h"

#include <QTest>

#include <algorithm>
#include <set>

namespace tst_folding {

using namespace shardlens;

namespace {

/// Every property that Folding promises, checked without the code that made it.
void verify(const Graph& graph, const Folding& folding) {
    const std::size_t n = graph.ops().size();
    QCOMPARE(folding.order.size(), n);
    QCOMPARE(std::set<OpId>(folding.order.begin(), folding.order.end()).size(), n);
    for (OpId id = 0; id < n; ++id)
        for (const TensorId in : graph.op(id).inputs)
            if (in != kNoTensor)
                QVERIFY(folding.position[graph.tensor(in).producer] < folding.position[id]);
    std::size_t members = 0;
    for (ClassId c = 0; c < folding.classes.size(); ++c)
        for (std::size_t i = 0; i < folding.classes[c].multiplicity; ++i, ++members) {
            const OpId id = folding.member(c, i);
            QCOMPARE(folding.classOf[id], c);
            QCOMPARE(std::size_t{folding.instanceOf[id]}, i);
            QVERIFY(graph.op(id).kind == graph.op(folding.classes[c].representative).kind);
            QVERIFY(graph.outputSpecs(id) == graph.outputSpecs(folding.classes[c].representative));
            QVERIFY(graph.op(id).attributes ==
                    graph.op(folding.classes[c].representative).attributes);
        }
    QCOMPARE(members, n);
}

/// The same graph with ops added in reverse-ish topological order and meaningless names.
Graph anonymous(const Graph& graph) {
    Graph result;
    std::vector<TensorId> now(graph.tensors().size(), kNoTensor);
    for (OpId id = 0; id < graph.ops().size(); ++id) {
        Op op = graph.op(id);
        op.name = fmt::format("x{}", (id * 7919u) % 104729u);
        for (TensorId& in : op.inputs)
            if (in != kNoTensor) in = now[in];
        const std::vector<TensorId> before = op.outputs;
        op.outputs.clear();
        const OpId added = result.addOp(op, graph.outputSpecs(id));
        for (std::size_t r = 0; r < before.size(); ++r)
            now[before[r]] = result.op(added).outputs[r];
    }
    for (const TensorId out : graph.outputs()) result.markOutput(now[out]);
    return result;
}

} // namespace

class TestFolding : public QObject {
    Q_OBJECT

private slots:
    void stacks_data() {
        QTest::addColumn<int>("layers");
        for (const int layers : {4, 8, 16, 24, 48}) QTest::addRow("%d", layers) << layers;
    }
    /// planners.md check 10 (a): classes do not grow with depth.
    void stacks() {
        QFETCH(int, layers);
        const Graph graph = test::bertStack(layers, 8, 8, 128, 8);
        const Folding folding = fold(graph);
        verify(graph, folding);
        QCOMPARE(folding.runs.size(), std::size_t{1});
        QCOMPARE(folding.runs[0].count, static_cast<std::size_t>(layers));
        QCOMPARE(folding.classes.size(), fold(test::bertStack(4, 8, 8, 128, 8)).classes.size());
        QCOMPARE(folding.runs[0].hash, fold(test::bertStack(4, 8, 8, 128, 8)).runs[0].hash);
    }
    void plainMlp() {
        const Folding folding = fold(test::mlp(12, 128, 1024));
        QCOMPARE(folding.runs.size(), std::size_t{1});
        QCOMPARE(folding.runs[0].count, std::size_t{12});
        QCOMPARE(folding.runs[0].period, std::size_t{2}); // weight and product
    }
    /// Check 10 (d): names do not matter.
    void namesIgnored() {
        const Graph graph = test::bertStack(12, 8, 8, 128, 8);
        const Folding named = fold(graph), unnamed = fold(anonymous(graph));
        verify(anonymous(graph), unnamed);
        QCOMPARE(unnamed.classes.size(), named.classes.size());
        QCOMPARE(unnamed.runs.size(), named.runs.size());
        QCOMPARE(unnamed.runs[0].hash, named.runs[0].hash);
    }
    /// Check 10 (d): a layer that differs leaves the class; the others on each side stay folded.
    void oddLayerSplits() {
        test::Builder b;
        TensorId x = b.input("hidden_states", {8, 8, 128});
        for (int i = 0; i < 12; ++i)
            x = test::bertLayer(b, fmt::format("layer{}", i), x, 8, i == 5 ? 256 : 512);
        b.meanSquaredError(x);
        const Folding folding = fold(b.graph);
        verify(b.graph, folding);
        QCOMPARE(folding.runs.size(), std::size_t{2});
        QCOMPARE(folding.runs[0].count, std::size_t{5});
        QCOMPARE(folding.runs[1].count, std::size_t{6});
        QCOMPARE(folding.runs[0].hash, folding.runs[1].hash);
    }
    /// One tensor read by every block (a mask) does not spoil the run.
    void sharedOperand() {
        test::Builder b;
        const TensorId mask = b.input("mask", {8, 8, 128});
        TensorId x = b.input("x", {8, 8, 128});
        for (int i = 0; i < 6; ++i) {
            x = b.linear(fmt::format("a{}", i), x, 128);
            x = b.elementwise("mul", fmt::format("m{}", i), {x, mask});
            x = b.layerNorm(fmt::format("n{}", i), x);
        }
        b.meanSquaredError(x);
        const Folding folding = fold(b.graph);
        verify(b.graph, folding);
        QCOMPARE(folding.runs.size(), std::size_t{1});
        QCOMPARE(folding.runs[0].count, std::size_t{6});
    }
    /// A wire from two blocks back is no repeat of the same block.
    void skipOverTwoBlocksIsNotFolded() {
        test::Builder b;
        std::vector<TensorId> x{b.input("x", {8, 8, 128})};
        for (int i = 0; i < 6; ++i) {
            const TensorId y = b.linear(fmt::format("a{}", i), x.back(), 128);
            const TensorId skip = x.size() >= 3 ? x[x.size() - 3] : x.front();
            x.push_back(b.elementwise("add", fmt::format("s{}", i), {y, skip}));
        }
        b.meanSquaredError(x.back());
        const Folding folding = fold(b.graph);
        verify(b.graph, folding);
        for (const FoldRun& run : folding.runs) QVERIFY(run.count < 6);
    }
    /// A wider second operand changes shapes: equal kinds alone are not enough.
    void shapesMatter() {
        test::Builder b;
        TensorId x = b.input("x", {8, 64});
        for (const std::int64_t width : {64, 128, 256, 512, 1024})
            x = b.linear(fmt::format("w{}", width), x, width);
        b.meanSquaredError(x);
        QVERIFY(fold(b.graph).runs.empty());
    }
    /// A train step with its backward pass: forward layers, backward layers in reverse that read
    /// what the forward ones computed, and an update a weight. Classes do not grow with depth.
    void backwardReadsForward() {
        const auto step = [](int layers) {
            test::Builder b;
            b.graph.backwardIncluded = true;
            TensorId x = b.input("x", {8, 64});
            std::vector<TensorId> weights, kept, gradients;
            for (int i = 0; i < layers; ++i) {
                const auto name = [&](const char* what) { return fmt::format("{}{}", what, i); };
                weights.push_back(b.parameter(name("w"), {64, 64}));
                kept.push_back(x);
                x = b.add(OpKind::MatMul, name("y"), {x, weights.back()});
                x = b.elementwise("tanh", name("t"), {x});
            }
            TensorId g = b.elementwise("neg", "loss", {x});
            for (int i = layers; i-- > 0;) {
                const auto name = [&](const char* what) { return fmt::format("{}{}", what, i); };
                const auto at = static_cast<std::size_t>(i);
                gradients.push_back(b.add(OpKind::MatMul, name("dw"), {kept[at], g},
                                          {{"transA", std::int64_t{1}}}));
                g = b.add(OpKind::MatMul, name("dx"), {g, weights[at]},
                          {{"transB", std::int64_t{1}}});
                g = b.elementwise("mul", name("g"), {g, kept[at]});
                g = b.elementwise("exp", name("e"), {g});
            }
            for (std::size_t i = 0; i < weights.size(); ++i) {
                const TensorId gradient = gradients[weights.size() - 1 - i];
                const TensorId scaled = b.elementwise("abs", fmt::format("s{}", i), {gradient});
                const TensorId update =
                    b.elementwise("sub", fmt::format("u{}", i), {weights[i], scaled});
                b.graph.markOutput(update);
            }
            return b.graph;
        };
        const Graph graph = step(12);
        const Folding folding = fold(graph);
        verify(graph, folding);
        std::size_t linked = 0;
        for (const FoldRun& run : folding.runs) {
            QVERIFY(run.count >= 10);
            linked += run.linked;
        }
        QVERIFY(linked >= 2);
        QCOMPARE(fold(step(24)).classes.size(), folding.classes.size());
        // Without a backward pass of its own a graph keeps to blocks that are interchangeable.
        Graph forward = graph;
        forward.backwardIncluded = false;
        for (const FoldRun& run : fold(forward).runs) QVERIFY(!run.linked);
    }
    /// Layers that cut their weights from one stacked tensor are equal when they step through it.
    void slicesStep() {
        const auto stack = [](const std::vector<std::int64_t>& rows) {
            test::Builder b;
            const TensorId weights = b.parameter("w", {16, 8, 8});
            TensorId x = b.input("x", {4, 8});
            for (std::size_t i = 0; i < rows.size(); ++i) {
                const auto name = [&](const char* what) { return fmt::format("{}{}", what, i); };
                const TensorId cut = b.add(OpKind::Slice, name("c"), {weights},
                                           {{"starts", std::vector{rows[i]}},
                                            {"ends", std::vector{rows[i] + 1}},
                                            {"axes", std::vector<std::int64_t>{0}},
                                            {"steps", std::vector<std::int64_t>{1}}});
                x = b.add(OpKind::MatMul, name("y"), {x, b.reshape(name("r"), cut, {8, 8})});
                x = b.elementwise("tanh", name("t"), {x});
            }
            b.graph.markOutput(x);
            return b.graph;
        };
        const Folding up = fold(stack({0, 1, 2, 3, 4, 5, 6, 7}));
        QCOMPARE(up.runs.size(), std::size_t{1});
        QCOMPARE(up.runs[0].count, std::size_t{8});
        QVERIFY(!up.runs[0].linked);
        QCOMPARE(fold(stack({7, 6, 5, 4, 3, 2, 1, 0})).runs[0].count, std::size_t{8});
        for (const FoldRun& run : fold(stack({0, 1, 2, 3, 9, 5, 6, 7})).runs)
            QVERIFY(run.count < 8);
    }
    /// What a file computes in its first layer and all layers read is no part of that layer.
    void tableMadeInFirstLayer() {
        test::Builder b;
        TensorId x = b.input("x", {8, 64});
        const TensorId positions = b.input("p", {8, 64});
        TensorId table = kNoTensor;
        for (int i = 0; i < 8; ++i) {
            const auto name = [&](const char* what) { return fmt::format("{}{}", what, i); };
            x = b.linear(name("a"), x, 64);
            if (i == 0)
                table = b.elementwise("cos", "table", {b.elementwise("abs", "q", {positions})});
            x = b.elementwise("mul", name("m"), {x, table});
            x = b.elementwise("tanh", name("t"), {x});
        }
        b.meanSquaredError(x);
        const Folding folding = fold(b.graph);
        verify(b.graph, folding);
        QCOMPARE(folding.runs.size(), std::size_t{1});
        QCOMPARE(folding.runs[0].count, std::size_t{8});
    }
    void trivial() {
        const Graph graph = test::bertStack(4, 8, 8, 128, 8);
        const Folding folding = trivialFolding(graph);
        verify(graph, folding);
        QVERIFY(folding.runs.empty());
        QCOMPARE(folding.classes.size(), graph.ops().size());
    }

    void smallGraphsKeepTheirLooseOps() {
        const Graph graph = test::bertStack(4, 8, 8, 128, 8);
        const Folding plain = fold(graph), page = withSections(graph, plain);
        QCOMPARE(page.runs.size(), plain.runs.size());
        QCOMPARE(page.classes.size(), plain.classes.size());
    }

    void looseOpsGoIntoSections() {
        // A chain of adds. Every tenth starts from the chain alone, in between a second tensor is
        // carried along: the cheapest cuts.
        test::Builder b;
        TensorId now = b.input("x", {8});
        TensorId beside = now;
        for (int i = 0; i < 200; ++i) {
            if (i % 10 == 0) beside = now;
            now = b.elementwise("add", fmt::format("add{}", i), {now, beside});
        }
        b.graph.markOutput(now);
        const Graph& graph = b.graph;
        const Folding page = withSections(graph, trivialFolding(graph));
        verify(graph, page);
        std::size_t inside = 0;
        for (const FoldRun& section : page.runs) {
            QCOMPARE(section.count, std::size_t{1});
            QVERIFY(section.period <= 60);
            inside += section.period;
            if (section.end() == page.order.size()) continue;
            // A cut with one tensor across: the next op reads nothing but the last one.
            const Op& next = graph.op(page.order[section.end()]);
            QCOMPARE(graph.tensor(next.inputs[0]).producer, page.order[section.end() - 1]);
            QCOMPARE(next.inputs[1], next.inputs[0]);
        }
        QCOMPARE(inside, graph.ops().size());
    }
};

SHARDLENS_TEST(TestFolding)

} // namespace tst_folding

#include "tst_folding.moc"
