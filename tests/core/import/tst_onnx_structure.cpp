// SPDX-License-Identifier: Apache-2.0
// What is around the ops of an ONNX file: shape arithmetic, functions, branches and loops, symbolic
// dimensions, what counts as a parameter, the order of nodes.
#include "core/model/canonical.h"
#include "tests/core/import/onnx_writer.h"
#include "tests/test_program.h"

#include <fmt/format.h>

#include <QTest>

#include <algorithm>

namespace tst_onnx_structure {

using namespace shardlens;
using namespace shardlens::test;

class TestOnnxStructure : public QObject {
    Q_OBJECT

private slots:
    void shapeArithmeticIsCarriedOut();
    void nonZeroOfKnownValues();
    void intValues_data();
    void intValues();
    void knownBranchIsInlined();
    void unknownBranchIsAChoice();
    void loopIsWrittenOut();
    void otherLoopsAreOpaque();
    void scanFollowsItsAxes();
    void bodiesHoldParameters();
    void functionsAreInlined();
    void functionsSeeOnlyTheirOwnNames();
    void functionAttributesReachBranches();
    void statisticsAreSeenThroughFunctions();
    void absentOptionalOfAFunction();
    void symbolsByName_data();
    void symbolsByName();
    void expressionsAreEvaluated();
    void conflictingSizesAreExplained();
    void constantsOfShapeAreParameters();
    void initializersListedAsInputs();
    void nodesInAnyOrder();
    void declaredOutputsAreHints();
};

namespace {

Message output(const std::string& name) {
    return Message().text(1, name);
}

const Ints* known(const Graph& graph, const std::string& name) {
    const Tensor* tensor = findTensor(graph, name);
    return tensor != nullptr && tensor->value ? &*tensor->value : nullptr;
}

Message function(const std::string& name, const Names& inputs, const Names& outputs,
                 const std::vector<Message>& nodes, const Names& attributes = {}) {
    Message message;
    message.text(1, name);
    for (const auto& input : inputs) message.text(4, input);
    for (const auto& result : outputs) message.text(5, result);
    for (const auto& a : attributes) message.text(6, a);
    for (const auto& n : nodes) message.message(7, n);
    return message.message(9, opset(17)).text(10, "local");
}

bool has(const Graph& graph, OpKind kind) {
    return std::ranges::find(graph.ops(), kind, &Op::kind) != graph.ops().end();
}

} // namespace

void TestOnnxStructure::shapeArithmeticIsCarriedOut() {
    // x.view(batch, -1, heads, width / heads), the way exporters write it.
    GraphParts parts;
    parts.inputs = {value("x", kF32, {"b", "7", "24"})};
    parts.initializers = {ints("zero", {}, {0}), ints("two", {}, {2}), ints("heads", {}, {4}),
                          vectorOf("axis", {0}), vectorOf("minus", {-1})};
    parts.nodes = {
        node("Shape", {"x"}, {"s"}),
        node("Gather", {"s", "zero"}, {"batch"}),
        node("Gather", {"s", "two"}, {"width"}),
        node("Div", {"width", "heads"}, {"each"}),
        node("Unsqueeze", {"batch", "axis"}, {"b1"}),
        node("Unsqueeze", {"heads", "axis"}, {"h1"}),
        node("Unsqueeze", {"each", "axis"}, {"e1"}),
        node("Concat", {"b1", "minus", "h1", "e1"}, {"target"}, {intAttribute("axis", 0)}),
        node("Reshape", {"x", "target"}, {"y"})};
    parts.outputs = {output("y")};
    ImportOptions options;
    options.bindings["b"] = 3;
    const Graph graph = importBytes(onnxFile(parts), options);
    QCOMPARE(*known(graph, "target"), (Ints{3, -1, 4, 6}));
    QCOMPARE(specText(graph, "y"), QString("f32[3,7,4,6]"));
    QVERIFY(graph.warnings.empty());
    // Of all that, the canonical graph keeps the input and the reshape.
    QCOMPARE(canonicalise(graph).ops().size(), std::size_t{2});
}

void TestOnnxStructure::nonZeroOfKnownValues() {
    // torch.ones(n).nonzero() as PyTorch 1.x exports it: 0 .. n-1.
    GraphParts parts;
    parts.inputs = {value("x", kF32, {"5", "2"})};
    parts.initializers = {vectorOf("start", {0}), vectorOf("end", {1})};
    parts.nodes = {
        node("Shape", {"x"}, {"s"}), node("Slice", {"s", "start", "end"}, {"n"}),
        node("ConstantOfShape", {"n"}, {"ones"}, {tensorAttribute("value", vectorOf("", {1}))}),
        node("NonZero", {"ones"}, {"y"})};
    parts.outputs = {output("y")};
    const Graph graph = importBytes(onnxFile(parts));
    QCOMPARE(specText(graph, "y"), QString("i64[1,5]"));
    QCOMPARE(*known(graph, "y"), (Ints{0, 1, 2, 3, 4}));
    QVERIFY(graph.warnings.empty());
}

void TestOnnxStructure::intValues_data() {
    QTest::addColumn<QString>("type");
    QTest::addColumn<QList<qint64>>("expected");
    const auto row = [](const char* type, const QList<qint64>& expected) {
        QTest::newRow(type) << type << expected;
    };
    // of a = [7, -7, 6] and b = [2, 2, -4]
    row("Add", {9, -5, 2});
    row("Sub", {5, -9, 10});
    row("Mul", {14, -14, -24});
    row("Div", {3, -3, -1}); // towards zero, as ONNX Runtime divides
    row("Mod", {1, 1, -2});  // sign of the divisor, as the specification says
    row("Max", {7, 2, 6});
    row("Min", {2, -7, -4});
    row("Equal", {0, 0, 0});
    row("Greater", {1, 0, 1});
    row("LessOrEqual", {0, 1, 0});
}

void TestOnnxStructure::intValues() {
    QFETCH(QString, type);
    QFETCH(QList<qint64>, expected);
    GraphParts parts;
    parts.initializers = {vectorOf("a", {7, -7, 6}), vectorOf("b", {2, 2, -4})};
    parts.nodes = {node(type.toStdString(), {"a", "b"}, {"y"})};
    parts.outputs = {output("y")};
    const Graph graph = importBytes(onnxFile(parts));
    QVERIFY(known(graph, "y") != nullptr);
    const Ints& value = *known(graph, "y");
    QCOMPARE(QList<qint64>(value.begin(), value.end()), expected);
}

namespace {

/// then: Relu, [4]; else: Concat with itself, [8].
std::vector<Message> branches(bool sameShape = false) {
    GraphParts yes, no;
    yes.nodes = {node("Relu", {"x"}, {"out"})};
    yes.outputs = {output("out")};
    no.nodes = {sameShape ? node("Neg", {"x"}, {"out"})
                          : node("Concat", {"x", "x"}, {"out"}, {intAttribute("axis", 0)})};
    no.outputs = {output("out")};
    return {graphAttribute("then_branch", yes.message()),
            graphAttribute("else_branch", no.message())};
}

} // namespace

void TestOnnxStructure::knownBranchIsInlined() {
    for (const std::int64_t condition : {0, 1}) {
        GraphParts parts;
        parts.inputs = {value("x", kF32, {"4"})};
        parts.initializers = {ints("c", {}, {condition}, kBool)};
        parts.nodes = {node("If", {"c"}, {"y"}, branches())};
        parts.outputs = {output("y")};
        const Graph graph = importBytes(onnxFile(parts));
        QCOMPARE(specText(graph, "y"), condition ? QString("f32[4]") : QString("f32[8]"));
        QCOMPARE(has(graph, OpKind::Concat), condition == 0);
        QVERIFY(!has(graph, OpKind::Opaque));
    }
}

void TestOnnxStructure::unknownBranchIsAChoice() {
    for (const bool same : {true, false}) {
        GraphParts parts;
        parts.inputs = {value("x", kF32, {"4"}), value("c", kBool, {})};
        parts.nodes = {node("If", {"c"}, {"y"}, branches(same))};
        parts.outputs = {output("y")};
        const Graph graph = importBytes(onnxFile(parts));
        QCOMPARE(specText(graph, "y"), same ? QString("f32[4]") : QString("unknown[]"));
        const Op& op = producerOf(graph, "y"); // of the condition and both results
        QCOMPARE(op.kind, same ? OpKind::Elementwise : OpKind::Opaque);
        QCOMPARE(op.inputs.size(), std::size_t{3});
        QCOMPARE(op.attributes.text("function"), std::string(same ? "where" : ""));
    }
}

namespace {

/// Carries c, and stacks the carried value's sum with x.
GraphParts loopBody() {
    GraphParts body;
    body.inputs = {output("i"), output("go"), value("c", kF32, {"4"})};
    body.initializers = {tensor("w", kF32, {4, 4})};
    body.nodes = {node("MatMul", {"c", "w"}, {"cw"}), node("Add", {"cw", "x"}, {"next"}, {}, "sum"),
                  node("Concat", {"c", "x"}, {"both"}, {intAttribute("axis", 0)}),
                  node("Identity", {"go"}, {"still"})};
    body.outputs = {output("still"), output("next"), output("both")};
    return body;
}

} // namespace

void TestOnnxStructure::loopIsWrittenOut() {
    GraphParts parts;
    parts.inputs = {value("x", kF32, {"4"}), value("c0", kF32, {"4"})};
    parts.initializers = {ints("m", {}, {5}), ints("t", {}, {1}, kBool)};
    parts.nodes = {node("Loop", {"m", "t", "c0"}, {"last", "stack"},
                        {graphAttribute("body", loopBody().message())}, "loop")};
    parts.outputs = {output("last"), output("stack")};
    const Graph graph = importBytes(onnxFile(parts));
    QCOMPARE(specText(graph, "last"), QString("f32[4]"));
    QCOMPARE(specText(graph, "stack"), QString("f32[5,8]"));
    QCOMPARE(graph.parameterCount(), 16.0); // the body's weights are those of every round
    for (int round = 0; round < 5; ++round)
        QVERIFY(graph.findOp(fmt::format("loop/{}/sum", round)).has_value());
    QVERIFY(!graph.findOp("loop/5/sum").has_value());
    QVERIFY(!has(graph, OpKind::Opaque));
}

/// A count that only the data tell, or a condition that may end the loop: opaque.
void TestOnnxStructure::otherLoopsAreOpaque() {
    for (const bool counted : {true, false}) {
        GraphParts body = loopBody();
        if (counted) body.nodes.back() = node("Not", {"go"}, {"still"});
        GraphParts parts;
        parts.inputs = {value("x", kF32, {"4"}), value("c0", kF32, {"4"})};
        parts.initializers = {ints("t", {}, {1}, kBool)};
        if (counted)
            parts.initializers.push_back(ints("m", {}, {5}));
        else
            parts.inputs.push_back(value("m", kI64, {}));
        parts.nodes = {node("Loop", {"m", "t", "c0"}, {"last", "stack"},
                            {graphAttribute("body", body.message())})};
        parts.outputs = {output("last"), output("stack")};
        const Graph graph = importBytes(onnxFile(parts));
        QCOMPARE(specText(graph, "last"), QString("f32[4]"));
        QCOMPARE(specText(graph, "stack"), counted ? QString("f32[5,8]") : QString("unknown[]"));
        const Op& op = producerOf(graph, "last");
        QCOMPARE(op.kind, OpKind::Opaque);
        QCOMPARE(op.inputs.size(), std::size_t{5}); // x is read from outside, w is the body's
        QCOMPARE(graph.parameterCount(), 16.0);
    }
}

void TestOnnxStructure::scanFollowsItsAxes() {
    GraphParts body;
    body.inputs = {value("state", kF32, {"3"}), value("each", kF32, {"2", "3"})};
    body.nodes = {node("ReduceSum", {"each"}, {"sum"}, {intAttribute("keepdims", 0)}),
                  node("Add", {"state", "sum"}, {"after"}),
                  node("Transpose", {"each"}, {"turned"})};
    body.outputs = {output("after"), output("turned")};
    GraphParts parts;
    parts.inputs = {value("s0", kF32, {"3"}), value("xs", kF32, {"2", "9", "3"})};
    parts.nodes = {
        node("Scan", {"s0", "xs"}, {"end", "stack"},
             {graphAttribute("body", body.message()), intAttribute("num_scan_inputs", 1),
              intsAttribute("scan_input_axes", {1}), intsAttribute("scan_output_axes", {-1})})};
    parts.outputs = {output("end"), output("stack")};
    const Graph graph = importBytes(onnxFile(parts));
    QCOMPARE(specText(graph, "end"), QString("f32[3]"));
    QCOMPARE(specText(graph, "stack"), QString("f32[3,2,9]"));
    QVERIFY(!has(graph, OpKind::Opaque));
    std::size_t splits = 0, rounds = 0;
    for (const Op& op : graph.ops()) {
        splits += op.kind == OpKind::Split ? 1 : 0;
        rounds += op.kind == OpKind::Reduce ? 1 : 0;
    }
    QCOMPARE(splits, std::size_t{1});
    QCOMPARE(rounds, std::size_t{9});
}

void TestOnnxStructure::bodiesHoldParameters() {
    GraphParts body;
    body.inputs = {output("i"), output("go"), value("c", kF32, {"2", "4"})};
    body.initializers = {tensor("inner", kF32, {4, 4})};
    body.nodes = {node("MatMul", {"c", "inner"}, {"t"}), node("MatMul", {"t", "outer"}, {"next"}),
                  node("Identity", {"go"}, {"still"})};
    body.outputs = {output("still"), output("next")};
    GraphParts parts;
    parts.inputs = {value("c0", kF32, {"2", "4"})};
    parts.initializers = {tensor("outer", kF32, {4, 4})};
    parts.nodes = {
        node("Loop", {"", "", "c0"}, {"y"}, {graphAttribute("body", body.message())}, "loop")};
    parts.outputs = {output("y")};
    const Graph graph = importBytes(onnxFile(parts));
    QCOMPARE(graph.parameterCount(), 32.0);
    QCOMPARE(specText(graph, "y"), QString("f32[2,4]"));
    QCOMPARE(canonicalise(graph).parameterCount(), 32.0); // both are read by the loop
}

void TestOnnxStructure::functionsAreInlined() {
    const Message twice =
        function("Twice", {"a"}, {"b"}, {node("Add", {"a", "a"}, {"b"}, {}, "sum")});
    const Message four = function("Four", {"a"}, {"c"},
                                  {node("Twice", {"a"}, {"b"}, {}, "first", "local"),
                                   node("Twice", {"b"}, {"c"}, {}, "second", "local")});
    GraphParts parts;
    parts.inputs = {value("x", kF32, {"4"})};
    parts.nodes = {node("Four", {"x"}, {"y"}, {}, "call", "local")};
    parts.outputs = {output("y")};
    const Graph graph = importBytes(onnxFile(parts, 17, {twice, four}));
    QCOMPARE(specText(graph, "y"), QString("f32[4]"));
    QVERIFY(graph.findOp("call/first/sum").has_value());
    QVERIFY(graph.findOp("call/second/sum").has_value());
    QCOMPARE(canonicalise(graph).ops().size(), std::size_t{3}); // input and two sums
    QCOMPARE(graph.facts.at("functions"), std::string("2"));
    QCOMPARE(graph.facts.at("nodes"), std::string("1"));
}

void TestOnnxStructure::functionsSeeOnlyTheirOwnNames() {
    const Message bad = function("Bad", {"a"}, {"b"}, {node("Add", {"a", "x"}, {"b"})});
    GraphParts parts;
    parts.inputs = {value("x", kF32, {"4"})};
    parts.nodes = {node("Bad", {"x"}, {"y"}, {}, "call", "local")};
    parts.outputs = {output("y")};
    QVERIFY(refusalOf(onnxFile(parts, 17, {bad})).contains("reads the value 'x', which nothing"));
}

void TestOnnxStructure::functionAttributesReachBranches() {
    // keepdims of a reduction inside a branch inside a function.
    GraphParts yes;
    yes.nodes = {node("ReduceSum", {"a"}, {"out"}, {referenceAttribute("keepdims", "keep", 2)})};
    yes.outputs = {output("out")};
    const Message sum =
        function("Sum2", {"a"}, {"b"},
                 {node("Constant", {}, {"t"}, {tensorAttribute("value", ints("", {}, {1}, kBool))}),
                  node("If", {"t"}, {"b"},
                       {graphAttribute("then_branch", yes.message()),
                        graphAttribute("else_branch", yes.message())})},
                 {"keep"});
    for (const std::int64_t keep : {0, 1}) {
        GraphParts parts;
        parts.inputs = {value("x", kF32, {"4", "5"})};
        parts.nodes = {node("Sum2", {"x"}, {"y"}, {intAttribute("keep", keep)}, "call", "local")};
        parts.outputs = {output("y")};
        const Graph graph = importBytes(onnxFile(parts, 17, {sum}));
        QCOMPARE(specText(graph, "y"), keep ? QString("f32[1,1]") : QString("f32[]"));
    }
}

void TestOnnxStructure::statisticsAreSeenThroughFunctions() {
    const Message norm = function("Norm", {"a", "s", "b", "m", "v"}, {"c"},
                                  {node("BatchNormalization", {"a", "s", "b", "m", "v"}, {"c"})});
    GraphParts parts;
    parts.inputs = {value("x", kF32, {"2", "3", "5"})};
    for (const char* name : {"s", "b", "m", "v"})
        parts.initializers.push_back(tensor(name, kF32, {3}));
    parts.nodes = {node("Norm", {"x", "s", "b", "m", "v"}, {"y"}, {}, "call", "local")};
    parts.outputs = {output("y")};
    const Graph graph = importBytes(onnxFile(parts, 17, {norm}));
    QCOMPARE(graph.parameterCount(), 6.0);
    QCOMPARE(producerOf(graph, "m").kind, OpKind::Constant);
}

void TestOnnxStructure::absentOptionalOfAFunction() {
    const Message clip =
        function("Cut", {"a", "lo", "hi"}, {"b"}, {node("Clip", {"a", "lo", "hi"}, {"b"})});
    GraphParts parts;
    parts.inputs = {value("x", kF32, {"4"})};
    parts.initializers = {floats("top", {}, {6})};
    parts.nodes = {node("Cut", {"x", "", "top"}, {"y"}, {}, "call", "local")};
    parts.outputs = {output("y")};
    QCOMPARE(specText(importBytes(onnxFile(parts, 17, {clip})), "y"), QString("f32[4]"));
}

void TestOnnxStructure::symbolsByName_data() {
    QTest::addColumn<QString>("dim");
    QTest::addColumn<int>("dtype");
    QTest::addColumn<qint64>("expected");
    QTest::addColumn<bool>("warned");
    QTest::newRow("batch") << "batch_size" << int{kF32} << qint64{8} << false;
    QTest::newRow("N") << "N" << int{kF32} << qint64{8} << false;
    QTest::newRow("sequence") << "Sequence" << int{kF32} << qint64{2048} << false;
    QTest::newRow("tokens") << "num_tokens" << int{kF32} << qint64{2048} << false;
    QTest::newRow("ort dim 0") << "inputs_ids_dim0" << int{kI64} << qint64{8} << false;
    QTest::newRow("ort dim 1") << "inputs_ids_dim1" << int{kI64} << qint64{2048} << false;
    QTest::newRow("ort dim 1 of no ids") << "features_dim1" << int{kF32} << qint64{1} << true;
    QTest::newRow("unnamed") << "" << int{kI64} << qint64{8} << false; // x.dim0
    QTest::newRow("height") << "height" << int{kF32} << qint64{1} << true;
    QTest::newRow("past") << "past_sequence_length" << int{kF32} << qint64{0} << true;
    QTest::newRow("minus one") << "-1" << int{kF32} << qint64{8} << false;
}

void TestOnnxStructure::symbolsByName() {
    QFETCH(QString, dim);
    QFETCH(int, dtype);
    QFETCH(qint64, expected);
    QFETCH(bool, warned);
    GraphParts parts;
    parts.inputs = {value("x", dtype, {dim.toStdString(), "3"})};
    parts.nodes = {node("Identity", {"x"}, {"y"})};
    parts.outputs = {output("y")};
    const Graph graph = importBytes(onnxFile(parts));
    QCOMPARE(findTensor(graph, "x")->spec.shape, (Shape{expected, 3}));
    QCOMPARE(!graph.warnings.empty(), warned);
    const std::string name = dim.isEmpty() || dim == "-1" ? "x.dim0" : dim.toStdString();
    QCOMPARE(graph.bindings.at(name), std::int64_t{expected});
    if (warned) QVERIFY(graph.warnings[0].find("--bind " + name + "=N") != std::string::npos);
    ImportOptions options;
    options.bindings[name] = 17;
    QCOMPARE(findTensor(importBytes(onnxFile(parts), options), "x")->spec.shape, (Shape{17, 3}));
}

void TestOnnxStructure::expressionsAreEvaluated() {
    GraphParts parts;
    parts.inputs = {value("mask", kI64, {"batch", "past_sequence_length + sequence_length"}),
                    value("x", kF32, {"2*batch", "(sequence_length - 1) // 2"}),
                    value("z", kF32, {"batch-size"})}; // a name, not a difference
    parts.nodes = {node("Identity", {"x"}, {"y"})};
    parts.outputs = {output("y")};
    ImportOptions options;
    options.bindings = {{"batch", 3}, {"past_sequence_length", 4}, {"sequence_length", 8}};
    const Graph graph = importBytes(onnxFile(parts), options);
    QCOMPARE(findTensor(graph, "mask")->spec.shape, (Shape{3, 12}));
    QCOMPARE(findTensor(graph, "x")->spec.shape, (Shape{6, 3}));
    QCOMPARE(findTensor(graph, "z")->spec.shape, (Shape{8}));
    QCOMPARE(graph.bindings.size(), std::size_t{4});
    // The whole text can be bound too; the names in it are then not asked for.
    options.bindings = {{"batch", 3}, {"past_sequence_length + sequence_length", 5}};
    QCOMPARE(findTensor(importBytes(onnxFile(parts), options), "mask")->spec.shape, (Shape{3, 5}));
    options.bindings = {{"sequence_length", 0}}; // (0 - 1) // 2 is negative
    QVERIFY(refusalOf(onnxFile(parts), options).contains("cannot be told"));
}

void TestOnnxStructure::conflictingSizesAreExplained() {
    GraphParts parts;
    parts.inputs = {value("x", kF32, {"rows", "4"}), value("z", kF32, {"7", "4"})};
    parts.nodes = {node("Add", {"x", "z"}, {"y"}, {}, "sum")};
    parts.outputs = {output("y")};
    ImportOptions options;
    options.bindings["rows"] = 5;
    const QString message = refusalOf(onnxFile(parts), options);
    QVERIFY2(message.startsWith("model.onnx, node 0 'sum' (Add): "), message.toUtf8());
    QVERIFY(message.contains("[5,4]") && message.contains("[7,4]"));
}

void TestOnnxStructure::constantsOfShapeAreParameters() {
    GraphParts parts;
    parts.inputs = {value("x", kF32, {"3", "4"})};
    parts.initializers = {vectorOf("s", {4, 5}), vectorOf("one", {1})};
    parts.nodes = {
        node("ConstantOfShape", {"s"}, {"w"}),
        node("ConstantOfShape", {"one"}, {"c"}),
        node("ConstantOfShape", {"s"}, {"i"}, {tensorAttribute("value", vectorOf("", {3}))}),
        node("Shape", {"x"}, {"like"}),
        node("ConstantOfShape", {"like"}, {"zeros"}),
        node("Add", {"x", "zeros"}, {"x2"}),
        node("MatMul", {"x2", "w"}, {"y"})};
    parts.outputs = {output("y"), output("c"), output("i")};
    const Graph graph = importBytes(onnxFile(parts));
    QCOMPARE(producerOf(graph, "w").kind, OpKind::Parameter);
    QCOMPARE(producerOf(graph, "c").kind, OpKind::Constant);     // one element
    QCOMPARE(producerOf(graph, "i").kind, OpKind::Constant);     // integers
    QCOMPARE(producerOf(graph, "zeros").kind, OpKind::Generate); // depends on an input
    QCOMPARE(graph.parameterCount(), 20.0);
    QCOMPARE(*known(graph, "i"), Ints(20, 3));
}

void TestOnnxStructure::initializersListedAsInputs() {
    GraphParts parts; // as files of IR 3 and older do
    parts.inputs = {value("x", kF32, {"3", "4"}), value("w", kF32, {"4", "5"})};
    parts.initializers = {tensor("w", kF32, {4, 5})};
    parts.nodes = {node("MatMul", {"x", "w"}, {"y"})};
    parts.outputs = {output("y")};
    const Graph graph = importBytes(onnxFile(parts));
    QCOMPARE(producerOf(graph, "w").kind, OpKind::Parameter);
    QCOMPARE(graph.facts.at("inputs"), std::string("1"));
    QCOMPARE(graph.facts.at("inputs_listed"), std::string("2"));
}

void TestOnnxStructure::nodesInAnyOrder() {
    GraphParts parts;
    parts.inputs = {value("x", kF32, {"4"})};
    parts.nodes = {node("Add", {"b", "a"}, {"y"}), node("Relu", {"a"}, {"b"}),
                   node("Neg", {"x"}, {"a"})};
    parts.outputs = {output("y")};
    const Graph graph = importBytes(onnxFile(parts));
    QCOMPARE(specText(graph, "y"), QString("f32[4]"));
}

void TestOnnxStructure::declaredOutputsAreHints() {
    GraphParts parts;
    parts.inputs = {value("x", kF32, {"4"})};
    parts.nodes = {node("Neg", {"x"}, {"y"})};
    parts.outputs = {value("y", kF32, {"9"})};
    const Graph graph = importBytes(onnxFile(parts));
    QCOMPARE(specText(graph, "y"), QString("f32[4]"));
    QCOMPARE(graph.warnings.size(), std::size_t{1});
    QVERIFY(graph.warnings[0].find("declared as f32[9]") != std::string::npos);
}

SHARDLENS_TEST(TestOnnxStructure)

} // namespace tst_onnx_structure

#include "tst_onnx_structure.moc"
