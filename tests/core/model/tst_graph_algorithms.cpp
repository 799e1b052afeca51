// SPDX-License-Identifier: Apache-2.0
// Orders, reachability and gradients on graphs made by hand.
#include "core/model/graph_algorithms.h"
#include "tests/core/model/hand_made.h"
#include "tests/test_program.h"

#include <QTest>

#include <numeric>

namespace tst_graph_algorithms {

using namespace shardlens;
using shardlens::test::add;
using shardlens::test::namesOf;

class TestGraphAlgorithms : public QObject {
    Q_OBJECT

private slots:
    void topologicalOrderKeepsIds();
    void structuralOrderIgnoresIdsAndNames();
    void sourcesComeBeforeTheirFirstReader();
    void deepChainsDoNotOverflowTheStack();
    void deadOpsComeLast();
    void reachability();
    void gradients();
};

namespace {

using Names = std::vector<std::string>;
const TensorSpec kSpec{DType::F32, {4, 4}};
const TensorSpec kInts{DType::I64, {4, 4}};

/// y = (x w1) + (x w2), with the ops added in a chosen order and names behind a prefix.
Graph diamond(bool rightFirst, const std::string& prefix) {
    Graph graph;
    TensorId w2 = kNoTensor;
    if (rightFirst) w2 = add(graph, prefix + "w2", OpKind::Parameter, {}, kSpec);
    const TensorId x = add(graph, prefix + "x", OpKind::Input, {}, kSpec);
    TensorId right = kNoTensor;
    if (rightFirst) right = add(graph, prefix + "right", OpKind::MatMul, {x, w2}, kSpec);
    const TensorId w1 = add(graph, prefix + "w1", OpKind::Parameter, {}, kSpec);
    const TensorId left = add(graph, prefix + "left", OpKind::MatMul, {x, w1}, kSpec);
    if (!rightFirst) {
        w2 = add(graph, prefix + "w2", OpKind::Parameter, {}, kSpec);
        right = add(graph, prefix + "right", OpKind::MatMul, {x, w2}, kSpec);
    }
    graph.markOutput(add(graph, prefix + "sum", OpKind::Elementwise, {left, right}, kSpec));
    return graph;
}

} // namespace

void TestGraphAlgorithms::topologicalOrderKeepsIds() {
    const Graph graph = diamond(true, "");
    std::vector<OpId> ids(graph.ops().size());
    std::iota(ids.begin(), ids.end(), OpId{0});
    QCOMPARE(topologicalOrder(graph), ids);
}

void TestGraphAlgorithms::structuralOrderIgnoresIdsAndNames() {
    const Names expected{"x", "w1", "left", "w2", "right", "sum"};
    const Graph graph = diamond(false, "");
    QCOMPARE(namesOf(graph, structuralOrder(graph)), expected);
    const Graph shuffled = diamond(true, "");
    QVERIFY(namesOf(shuffled) != namesOf(graph));
    QCOMPARE(namesOf(shuffled, structuralOrder(shuffled)), expected);
    const Graph renamed = diamond(true, "zz.");
    QCOMPARE(namesOf(renamed, structuralOrder(renamed))[2], "zz.left");
}

void TestGraphAlgorithms::sourcesComeBeforeTheirFirstReader() {
    // The bias is the first operand, yet it must not come before the matmul's own block.
    Graph graph;
    const TensorId bias = add(graph, "bias", OpKind::Parameter, {}, kSpec);
    const TensorId x = add(graph, "x", OpKind::Input, {}, kSpec);
    const TensorId w = add(graph, "w", OpKind::Parameter, {}, kSpec);
    const TensorId product = add(graph, "product", OpKind::MatMul, {x, w}, kSpec);
    const TensorId sum = add(graph, "sum", OpKind::Elementwise, {bias, product}, kSpec);
    graph.markOutput(sum);
    graph.markOutput(bias);
    QCOMPARE(namesOf(graph, structuralOrder(graph)), (Names{"x", "w", "product", "bias", "sum"}));
}

void TestGraphAlgorithms::deepChainsDoNotOverflowTheStack() {
    Graph graph;
    TensorId last = add(graph, "x", OpKind::Input, {}, kSpec);
    for (int i = 0; i < 200'000; ++i)
        last = add(graph, "", OpKind::Elementwise, {last, last}, kSpec);
    graph.markOutput(last);
    QCOMPARE(structuralOrder(graph), topologicalOrder(graph));
    const std::vector<bool> reached = reachesOutput(graph);
    QCOMPARE(std::ranges::count(reached, true), std::ptrdiff_t{200'001});
}

void TestGraphAlgorithms::deadOpsComeLast() {
    Graph graph;
    const TensorId unread = add(graph, "unread", OpKind::Parameter, {}, kSpec);
    const TensorId x = add(graph, "x", OpKind::Input, {}, kSpec);
    add(graph, "dead", OpKind::Elementwise, {unread}, kSpec);
    graph.markOutput(add(graph, "live", OpKind::Elementwise, {x}, kSpec));
    QCOMPARE(namesOf(graph, structuralOrder(graph)), (Names{"x", "live", "unread", "dead"}));
}

void TestGraphAlgorithms::reachability() {
    Graph graph;
    const TensorId x = add(graph, "x", OpKind::Input, {}, kSpec);
    const TensorId a = add(graph, "a", OpKind::Elementwise, {x, kNoTensor}, kSpec);
    add(graph, "dead", OpKind::Elementwise, {a}, kSpec);
    graph.markOutput(a);
    graph.markOutput(a);
    QCOMPARE(reachesOutput(graph), (std::vector<bool>{true, true, false}));
}

void TestGraphAlgorithms::gradients() {
    Graph graph;
    const TensorId x = add(graph, "x", OpKind::Input, {}, kSpec);
    const TensorId c = add(graph, "c", OpKind::Constant, {}, kSpec);
    const TensorId w = add(graph, "w", OpKind::Parameter, {}, kSpec);
    const TensorId data = add(graph, "data", OpKind::Elementwise, {x, c}, kSpec);
    const TensorId y = add(graph, "y", OpKind::MatMul, {data, w}, kSpec);
    const TensorId best = add(graph, "best", OpKind::ArgReduce, {y}, kInts);
    const TensorId cast = add(graph, "cast", OpKind::Elementwise, {best}, kSpec);
    const TensorId z = add(graph, "z", OpKind::Elementwise, {cast, y}, kSpec);
    const TensorId unused = add(graph, "unused", OpKind::Elementwise, {y}, kSpec);
    graph.markOutput(z);
    const std::vector<bool> needs = needsGradient(graph);
    QVERIFY2(!needs[unused], "no gradient comes back from where nothing is read");
    QVERIFY(!needs[x] && !needs[c] && !needs[data]);
    QVERIFY(needs[w] && needs[y] && needs[z]);
    QVERIFY2(!needs[best] && !needs[cast], "whole numbers stop the gradient");
}

SHARDLENS_TEST(TestGraphAlgorithms)

} // namespace tst_graph_algorithms

#include "tst_graph_algorithms.moc"
