// SPDX-License-Identifier: Apache-2.0
// Building graphs: names, ids, uses; and the tables of element types and op kinds.
#include "core/model/graph.h"
#include "tests/core/model/hand_made.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_graph {

using namespace shardlens;
using shardlens::test::add;

class TestGraph : public QObject {
    Q_OBJECT

private slots:
    void namesAreMadeUnique();
    void manyEqualNamesAreQuick();
    void resultsAreNamedAfterTheOp();
    void usesAndProducersAgree();
    void operandsMustExist();
    void parametersAreCountedOnce();
    void elementTypes();
    void kindNamesRoundTrip();
    void attributesAreTyped();
};

namespace {

const TensorSpec kVector{DType::F32, {4}};

std::string addedName(Graph& graph, std::string name, std::string type = {}) {
    Op op;
    op.name = std::move(name);
    op.type = std::move(type);
    op.kind = OpKind::Input;
    return graph.op(graph.addOp(std::move(op), {kVector})).name;
}

} // namespace

void TestGraph::namesAreMadeUnique() {
    Graph graph;
    QCOMPARE(addedName(graph, "add"), "add");
    QCOMPARE(addedName(graph, "add"), "add#2");
    QCOMPARE(addedName(graph, "add#3"), "add#3");
    QCOMPARE(addedName(graph, "add"), "add#4");
    QCOMPARE(addedName(graph, ""), "Input_4");
    QCOMPARE(addedName(graph, "", "Placeholder"), "Placeholder_5");
    QCOMPARE(graph.findOp("add#2"), std::optional<OpId>(1));
    QCOMPARE(graph.findOp("nothing"), std::optional<OpId>());
}

void TestGraph::manyEqualNamesAreQuick() {
    Graph graph;
    for (int i = 0; i < 50'000; ++i) addedName(graph, "x");
    QCOMPARE(graph.op(49'999).name, "x#50000");
}

void TestGraph::resultsAreNamedAfterTheOp() {
    Graph graph;
    Op op;
    op.name = "split";
    op.kind = OpKind::Split;
    const OpId id = graph.addOp(op, {kVector, kVector, kVector}, {"left", "", "right"});
    const std::vector<TensorId> outputs = graph.op(id).outputs;
    QCOMPARE(graph.tensor(outputs[0]).name, "left");
    QCOMPARE(graph.tensor(outputs[1]).name, "split:1");
    QCOMPARE(graph.tensor(outputs[2]).name, "right");
}

void TestGraph::usesAndProducersAgree() {
    Graph graph;
    const TensorId x = add(graph, "x", OpKind::Input, {}, kVector);
    const TensorId w = add(graph, "w", OpKind::Parameter, {}, kVector);
    const TensorId y = add(graph, "y", OpKind::Elementwise, {x, kNoTensor, x}, kVector);
    const TensorId z = add(graph, "z", OpKind::Elementwise, {y, w}, kVector);
    const std::vector<Graph::Use> expected{{2, 0}, {2, 2}};
    QVERIFY(std::ranges::equal(graph.uses(x), expected));
    QCOMPARE(graph.uses(w).size(), std::size_t{1});
    QVERIFY(graph.uses(z).empty());
    QCOMPARE(graph.tensor(z).producer, OpId{3});
    const std::vector<TensorSpec> specs = graph.inputSpecs(2);
    QCOMPARE(specs.size(), std::size_t{3});
    QVERIFY(specs[0] == kVector);
    QVERIFY(specs[1].dtype == DType::Unknown && specs[1].shape.empty());
}

void TestGraph::operandsMustExist() {
    Graph graph;
    QVERIFY_EXCEPTION_THROWN(add(graph, "x", OpKind::Elementwise, {7}, kVector), std::out_of_range);
}

void TestGraph::parametersAreCountedOnce() {
    Graph graph;
    const TensorId w = add(graph, "w", OpKind::Parameter, {}, {DType::BF16, {1000, 16}});
    add(graph, "s", OpKind::Parameter, {}, {DType::F32, {}});
    add(graph, "c", OpKind::Constant, {}, {DType::F32, {9, 9}});
    add(graph, "y", OpKind::Elementwise, {w, w}, {DType::BF16, {1000, 16}});
    QCOMPARE(graph.parameterCount(), 16001.0);
}

void TestGraph::elementTypes() {
    QCOMPARE(bitsOf(DType::F4E2M1), 4);
    QCOMPARE(bitsOf(DType::C128), 128);
    QCOMPARE(bitsOf(DType::Unknown), 0);
    QVERIFY(isFloat(DType::F8E5M2) && isFloat(DType::BF16));
    QVERIFY(!isFloat(DType::Bool) && !isFloat(DType::I64));
    QCOMPARE(bytesOf({DType::I4, {3, 3}}), 4.5);
    QCOMPARE(bytesOf({DType::F32, {}}), 4.0);
    QCOMPARE(bytesOf({DType::BF16, {8, 0}}), 0.0);
    QCOMPARE(toString(Shape{8, 2048, 4096}), "[8,2048,4096]");
    QCOMPARE(toString(Shape{}), "[]");
    for (int i = 0; i <= static_cast<int>(DType::C128); ++i) {
        const auto dtype = static_cast<DType>(i);
        QCOMPARE(dtypeFromName(nameOf(dtype)), std::optional(dtype));
    }
    QVERIFY(!dtypeFromName("float"));
}

void TestGraph::kindNamesRoundTrip() {
    for (int i = 0; i <= static_cast<int>(OpKind::Opaque); ++i) {
        const auto kind = static_cast<OpKind>(i);
        QCOMPARE(opKindFromName(nameOf(kind)), std::optional(kind));
    }
    QCOMPARE(nameOf(OpKind::CrossEntropy), "CrossEntropy");
    QCOMPARE(nameOf(OpKind::GlobalPool), "GlobalPool");
    QVERIFY(!opKindFromName("Gemm"));
}

void TestGraph::attributesAreTyped() {
    const Attributes attributes{{"axis", std::int64_t{1}},
                                {"ratio", 0.25},
                                {"mode", "rms"},
                                {"perm", std::vector<std::int64_t>{1, 0}}};
    QCOMPARE(attributes.integer("axis", 7), std::int64_t{1});
    QCOMPARE(attributes.integer("ratio", 7), std::int64_t{7});
    QCOMPARE(attributes.number("axis", 7), 1.0);
    QCOMPARE(attributes.number("ratio", 7), 0.25);
    QCOMPARE(attributes.text("mode"), "rms");
    QCOMPARE(attributes.text("axis", "none"), "none");
    QCOMPARE(attributes.integers("perm"), (std::vector<std::int64_t>{1, 0}));
    QVERIFY(attributes.integers("absent").empty());
    QVERIFY(!attributes.has("absent"));
}

SHARDLENS_TEST(TestGraph)

} // namespace tst_graph

#include "tst_graph.moc"
