// SPDX-License-Identifier: Apache-2.0
// What canonicalise() removes and what it must keep, on graphs made by hand.
#include "core/model/canonical.h"
#include "tests/core/model/hand_made.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_canonical {

using namespace shardlens;
using shardlens::test::add;
using shardlens::test::namesOf;

class TestCanonical : public QObject {
    Q_OBJECT

private slots:
    void identitiesAreForwarded();
    void chainsOfIdentitiesEndInTheOutput();
    void realOpsStay();
    void shapeArithmeticGoes();
    void knownNumbersReadAsDataBecomeConstants();
    void deadOpsAndUnreadParametersGo();
    void factsStay();
    void isIdempotent();
};

namespace {

using Names = std::vector<std::string>;
const TensorSpec kSpec{DType::F32, {4, 6}};

Attributes function(std::string name) {
    return {{"function", std::move(name)}};
}
Attributes integers(std::string name, std::vector<std::int64_t> values) {
    return {{std::move(name), std::move(values)}};
}

Graph withShapeArithmetic(bool readAsData) {
    Graph graph;
    const TensorId x = add(graph, "x", OpKind::Input, {}, kSpec);
    const TensorId shape = add(graph, "shape", OpKind::Opaque, {x}, {DType::I64, {2}});
    graph.setKnownValue(shape, {4, 6});
    const TensorId doubled = add(graph, "doubled", OpKind::Elementwise, {shape, shape},
                                 {DType::I64, {2}}, function("add"));
    graph.setKnownValue(doubled, {8, 12});
    const TensorId flat =
        add(graph, "flat", OpKind::Reshape, {x}, {DType::F32, {24}}, integers("shape", {24}));
    graph.markOutput(flat);
    if (readAsData) {
        const TensorId real =
            add(graph, "real", OpKind::Elementwise, {doubled}, {DType::F32, {2}}, function("cast"));
        graph.markOutput(real);
    }
    return graph;
}

} // namespace

void TestCanonical::identitiesAreForwarded() {
    Graph graph;
    const TensorId x = add(graph, "x", OpKind::Input, {}, kSpec);
    const TensorId same = add(graph, "same", OpKind::Elementwise, {x}, kSpec, function("identity"));
    const TensorId reshaped =
        add(graph, "reshaped", OpKind::Reshape, {same}, kSpec, integers("shape", {4, 6}));
    const TensorId permuted =
        add(graph, "permuted", OpKind::Transpose, {reshaped}, kSpec, integers("perm", {0, 1}));
    const TensorId cast =
        add(graph, "cast", OpKind::Elementwise, {permuted}, kSpec, function("cast"));
    const TensorId y = add(graph, "y", OpKind::Elementwise, {cast, same}, kSpec, function("add"));
    graph.markOutput(y);
    const Graph canonical = canonicalise(graph);
    QCOMPARE(namesOf(canonical), (Names{"x", "y"}));
    QCOMPARE(canonical.op(1).inputs, (std::vector<TensorId>{0, 0}));
    QCOMPARE(canonical.uses(0).size(), std::size_t{2});
}

void TestCanonical::chainsOfIdentitiesEndInTheOutput() {
    Graph graph;
    const TensorId x = add(graph, "x", OpKind::Input, {}, kSpec);
    const TensorId a = add(graph, "a", OpKind::Elementwise, {x}, kSpec, function("identity"));
    const TensorId b = add(graph, "b", OpKind::Elementwise, {a}, kSpec, function("identity"));
    graph.markOutput(b);
    const Graph canonical = canonicalise(graph);
    QCOMPARE(namesOf(canonical), (Names{"x"}));
    QCOMPARE(canonical.outputs().size(), std::size_t{1});
    QCOMPARE(canonical.outputs().front(), TensorId{0});
}

void TestCanonical::realOpsStay() {
    const TensorSpec square{DType::F32, {4, 4}};
    Graph graph;
    const TensorId x = add(graph, "x", OpKind::Input, {}, square);
    const TensorId dropped = add(graph, "dropped", OpKind::Dropout, {x}, square);
    const TensorId turned =
        add(graph, "turned", OpKind::Transpose, {dropped}, square, integers("perm", {1, 0}));
    const TensorId half =
        add(graph, "half", OpKind::Elementwise, {turned}, {DType::F16, {4, 4}}, function("cast"));
    const TensorId curved =
        add(graph, "curved", OpKind::Elementwise, {half}, {DType::F16, {4, 4}}, function("gelu"));
    const TensorId flat =
        add(graph, "flat", OpKind::Reshape, {curved}, {DType::F16, {16}}, integers("shape", {16}));
    graph.markOutput(flat);
    QCOMPARE(namesOf(canonicalise(graph)), namesOf(graph));
}

void TestCanonical::shapeArithmeticGoes() {
    QCOMPARE(namesOf(canonicalise(withShapeArithmetic(false))), (Names{"x", "flat"}));
}

void TestCanonical::knownNumbersReadAsDataBecomeConstants() {
    const Graph canonical = canonicalise(withShapeArithmetic(true));
    QCOMPARE(namesOf(canonical), (Names{"x", "doubled", "flat", "real"}));
    const Op& doubled = canonical.op(1);
    QCOMPARE(doubled.kind, OpKind::Constant);
    QVERIFY(doubled.inputs.empty() && doubled.attributes.values().empty());
    QVERIFY(canonical.tensor(doubled.outputs.front()).value == (KnownInts{8, 12}));
}

void TestCanonical::deadOpsAndUnreadParametersGo() {
    Graph graph;
    add(graph, "unread", OpKind::Parameter, {}, kSpec);
    const TensorId x = add(graph, "x", OpKind::Input, {}, kSpec);
    const TensorId w = add(graph, "w", OpKind::Parameter, {}, kSpec);
    add(graph, "dead", OpKind::Elementwise, {x, w}, kSpec, function("add"));
    graph.markOutput(add(graph, "live", OpKind::Elementwise, {x}, kSpec, function("gelu")));
    QCOMPARE(namesOf(canonicalise(graph)), (Names{"x", "live"}));
}

void TestCanonical::factsStay() {
    Graph graph = withShapeArithmetic(true);
    graph.name = "model";
    graph.format = "by hand";
    graph.warnings = {"careful"};
    graph.bindings = {{"b", 4}};
    graph.facts = {{"nodes", "5"}};
    const Graph canonical = canonicalise(graph);
    QCOMPARE(canonical.name, "model");
    QCOMPARE(canonical.format, "by hand");
    QCOMPARE(canonical.warnings, graph.warnings);
    QCOMPARE(canonical.bindings, graph.bindings);
    QCOMPARE(canonical.facts, graph.facts);
    QCOMPARE(canonical.tensor(0).name, "x");
}

void TestCanonical::isIdempotent() {
    const Graph once = canonicalise(withShapeArithmetic(true));
    QCOMPARE(namesOf(canonicalise(once)), namesOf(once));
}

SHARDLENS_TEST(TestCanonical)

} // namespace tst_canonical

#include "tst_canonical.moc"
