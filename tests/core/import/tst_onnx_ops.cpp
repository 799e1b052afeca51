// SPDX-License-Identifier: Apache-2.0
// ONNX ops one by one, in hand-written files: where opsets differ, where attributes have defaults,
// and where a result's shape is not simply an operand's. Expected shapes are those of the ONNX
// operator specification (github.com/onnx/onnx, docs/Operators.md).
#include "core/model/catalogue.h"
#include "tests/core/import/onnx_cases.h"
#include "tests/test_program.h"

#include <QTest>

#include <algorithm>

namespace tst_onnx_ops {

using namespace shardlens;
using namespace shardlens::test;

class TestOnnxOps : public QObject {
    Q_OBJECT

private slots:
    void shapes_data();
    void shapes();
    void softmaxAxesFollowTheOpset();
    void einsumIsNormalised();
    void gemmBecomesAProduct();
    void slicesAsCounted();
    void normalisedAttributesDoNotDependOnTheForm();
    void lossPutsClassesLast();
    void quantisedProductsReduceBeforeRounding();
    void packedWeightsAreShownUnpacked();
    void dropoutMask();
    void groupedAttention();
    void opaqueOpsAreReported();
    void unknownShapesUseDeclarations();
    void unusedInitializersAreLeftOut();
    void oldBroadcastAttribute();
};

namespace {

Graph importCase(const Case& c) {
    GraphParts parts;
    parts.inputs = c.inputs;
    parts.initializers = c.initializers;
    parts.nodes = {node(c.type, c.operands, c.outputs, c.attributes, "the_node", c.domain)};
    for (const auto& output : c.outputs)
        if (!output.empty()) parts.outputs.push_back(Message().text(1, output));
    return importBytes(onnxFile(parts, c.version));
}

} // namespace

void TestOnnxOps::shapes_data() {
    QTest::addColumn<int>("index");
    int index = 0;
    for (const auto& [name, unused] : cases()) QTest::newRow(name.toUtf8()) << index++;
}

void TestOnnxOps::shapes() {
    QFETCH(int, index);
    Case c = cases()[static_cast<std::size_t>(index)].second;
    if (std::ranges::find(c.operands, "axes") != c.operands.end())
        c.initializers.push_back(vectorOf("axes", {1}));
    const Graph graph = importCase(c);
    QCOMPARE(specText(graph, "y"), c.expected);
    QCOMPARE(nameOf(producerOf(graph, "y").kind).data(), nameOf(c.kind).data());
    for (OpId id = 0; id < graph.ops().size(); ++id) factorRule(viewOf(graph, id));
}

void TestOnnxOps::softmaxAxesFollowTheOpset() {
    const auto axes = [](std::int64_t version, std::vector<Message> attributes) {
        const Case c{"Softmax", {x({"2", "3", "4"})}, {},     {"x"}, std::move(attributes),
                     "",        OpKind::Softmax,      version};
        return producerOf(importCase(c), "y").attributes.integers("axes");
    };
    QCOMPARE(axes(11, {}), (Ints{1, 2})); // all dims from axis 1 on
    QCOMPARE(axes(12, {intAttribute("axis", 0)}), (Ints{0, 1, 2}));
    QCOMPARE(axes(11, {intAttribute("axis", -1)}), (Ints{2}));
    QCOMPARE(axes(13, {}), (Ints{2}));
    QCOMPARE(axes(13, {intAttribute("axis", 1)}), (Ints{1}));
}

void TestOnnxOps::einsumIsNormalised() {
    const auto equation = [](const std::string& text, const Names& a, const Names& b) {
        const Case c{"Einsum",      {x(a), value("z", kF32, b)},       {},
                     {"x", "z"},    {textAttribute("equation", text)}, "",
                     OpKind::Einsum};
        const Graph graph = importCase(c);
        return QString::fromStdString(producerOf(graph, "y").attributes.text("equation")) + " " +
               specText(graph, "y");
    };
    QCOMPARE(equation("bij, bjk -> bik", {"2", "3", "4"}, {"2", "4", "5"}),
             QString("abc,acd->abd f32[2,3,5]"));
    // Without an arrow: letters that occur once, in alphabetical order.
    QCOMPARE(equation("ji,jk", {"3", "4"}, {"3", "5"}), QString("ab,ac->bc f32[4,5]"));
    // Dots are batch dims and broadcast.
    QCOMPARE(equation("...ij,...jk->...ik", {"7", "2", "3", "4"}, {"2", "4", "5"}),
             QString("abcd,bde->abce f32[7,2,3,5]"));
    QCOMPARE(equation("...ij,...jk->...ik", {"7", "1", "3", "4"}, {"7", "2", "4", "5"}),
             QString("abc,adce->adbe f32[7,2,3,5]"));
    QCOMPARE(equation("Zz,zQ->ZQ", {"3", "4"}, {"4", "5"}), QString("ab,bc->ac f32[3,5]"));
}

void TestOnnxOps::gemmBecomesAProduct() {
    const auto gemm = [](const Ints& c, std::vector<Message> attributes) {
        return importCase({"Gemm",
                           {x({"4", "6"})},
                           {tensor("w", kF32, {8, 6}), tensor("c", kF32, c)},
                           {"x", "w", "c"},
                           std::move(attributes),
                           "",
                           OpKind::MatMul});
    };
    const Message transB = intAttribute("transB", 1);
    Graph graph = gemm({8}, {transB});
    QCOMPARE(producerOf(graph, "y").kind, OpKind::MatMul);
    QCOMPARE(producerOf(graph, "y").inputs.size(), std::size_t{3}); // a row is the bias
    QCOMPARE(specText(graph, "y"), QString("f32[4,8]"));
    graph = gemm({1, 8}, {transB});
    QCOMPARE(producerOf(graph, "y").inputs.size(), std::size_t{3});
    graph = gemm({4, 8}, {transB}); // a matrix is added
    QCOMPARE(producerOf(graph, "y").kind, OpKind::Elementwise);
    graph = gemm({4, 1}, {transB});
    QCOMPARE(producerOf(graph, "y").attributes.text("function"), std::string("add"));
    graph = gemm({8}, {transB, floatAttribute("alpha", 0.5F)});
    QCOMPARE(producerOf(graph, "y").kind, OpKind::Elementwise);
    graph = gemm({8}, {transB, floatAttribute("beta", 0)});
    QCOMPARE(producerOf(graph, "y").inputs.size(), std::size_t{2});
}

void TestOnnxOps::slicesAsCounted() {
    // Against Python's meaning of a slice, element by element, on a vector of known numbers.
    const std::int64_t size = 5;
    for (std::int64_t start = -7; start <= 7; ++start)
        for (std::int64_t end = -7; end <= 7; ++end)
            for (const std::int64_t step : {-3, -1, 1, 2}) {
                Ints expected;
                const auto at = [&](std::int64_t i) { return i < 0 ? i + size : i; };
                std::int64_t i = at(start);
                std::int64_t stop = at(end);
                if (step > 0) {
                    i = std::clamp<std::int64_t>(i, 0, size);
                    stop = std::clamp<std::int64_t>(stop, 0, size);
                    for (; i < stop; i += step) expected.push_back(10 * i);
                } else {
                    i = std::clamp<std::int64_t>(i, 0, size - 1);
                    stop = std::clamp<std::int64_t>(stop, -1, size - 1);
                    for (; i > stop; i += step) expected.push_back(10 * i);
                }
                GraphParts parts;
                parts.initializers = {vectorOf("v", {0, 10, 20, 30, 40}), vectorOf("s", {start}),
                                      vectorOf("e", {end}), vectorOf("a", {0}),
                                      vectorOf("t", {step})};
                parts.nodes = {node("Slice", {"v", "s", "e", "a", "t"}, {"y"})};
                parts.outputs = {Message().text(1, "y")};
                const Graph graph = importBytes(onnxFile(parts));
                const auto& value = findTensor(graph, "y")->value;
                QVERIFY(value.has_value());
                QCOMPARE(*value, expected);
            }
}

void TestOnnxOps::normalisedAttributesDoNotDependOnTheForm() {
    const Case byAttribute{"Slice",
                           {x({"4", "6"})},
                           {},
                           {"x"},
                           {intsAttribute("starts", {-3, 0}), intsAttribute("ends", {6, 4}),
                            intsAttribute("axes", {1, 0})},
                           "",
                           OpKind::Slice,
                           9};
    const Case byOperand{"Slice",
                         {x({"4", "6"})},
                         {vectorOf("s", {3}), vectorOf("e", {999}), vectorOf("a", {-1})},
                         {"x", "s", "e", "a"},
                         {},
                         "",
                         OpKind::Slice,
                         17};
    const Graph first = importCase(byAttribute), second = importCase(byOperand);
    QVERIFY(producerOf(first, "y").attributes == producerOf(second, "y").attributes);
    QCOMPARE(producerOf(second, "y").inputs.size(), std::size_t{1});
}

void TestOnnxOps::lossPutsClassesLast() {
    const Graph graph = importCase({"SoftmaxCrossEntropyLoss",
                                    {x({"4", "6", "9"}), value("l", kI64, {"4", "9"})},
                                    {},
                                    {"x", "l"},
                                    {},
                                    "",
                                    OpKind::CrossEntropy,
                                    17,
                                    "",
                                    {"y", "logs"}});
    QCOMPARE(graph.tensor(producerOf(graph, "y").inputs[0]).spec.shape, (Shape{4, 9, 6}));
    QCOMPARE(specText(graph, "logs"), QString("f32[4,6,9]"));
    QCOMPARE(producerOf(graph, "logs").attributes.integers("axes"), (Ints{1}));
}

void TestOnnxOps::quantisedProductsReduceBeforeRounding() {
    const Graph graph =
        importCase({"QLinearMatMul",
                    {x({"4", "6"}, kU8)},
                    {tensor("s", kF32, {}), ints("z", {}, {0}, kU8), tensor("w", kI8, {6, 8})},
                    {"x", "s", "z", "w", "s", "z", "s", "z"},
                    {},
                    "",
                    OpKind::Elementwise});
    const Op& rounding = producerOf(graph, "y");
    QCOMPARE(rounding.attributes.text("function"), std::string("quantize"));
    QCOMPARE(specText(graph, "y"), QString("u8[4,8]"));
    const Tensor& sums = graph.tensor(rounding.inputs[0]);
    QCOMPARE(sums.spec.dtype, DType::I32);
    QCOMPARE(graph.op(sums.producer).kind, OpKind::MatMul);
    QCOMPARE(producerOf(graph, "w").kind, OpKind::Parameter);
}

void TestOnnxOps::packedWeightsAreShownUnpacked() {
    // N = 8 rows of K = 60 weights in blocks of 32, four bits each: [8, 2, 16] bytes.
    const Graph graph = importCase({"MatMulNBits",
                                    {x({"3", "60"}, kF16)},
                                    {tensor("w", kU8, {8, 2, 16}), tensor("s", kF16, {16})},
                                    {"x", "w", "s"},
                                    {intAttribute("N", 8), intAttribute("K", 60),
                                     intAttribute("bits", 4), intAttribute("block_size", 32)},
                                    "",
                                    OpKind::MatMul,
                                    17,
                                    "com.microsoft"});
    QCOMPARE(specText(graph, "y"), QString("f16[3,8]"));
    QCOMPARE(specText(graph, "w"), QString("u4[8,2,32]"));
    QCOMPARE(producerOf(graph, "w").kind, OpKind::Parameter);
    QCOMPARE(producerOf(graph, "y").kind, OpKind::MatMul);
}

void TestOnnxOps::dropoutMask() {
    const Graph graph = importCase({"Dropout",
                                    {x({"4", "6"})},
                                    {floats("r", {}, {0.25F})},
                                    {"x", "r"},
                                    {},
                                    "",
                                    OpKind::Dropout,
                                    13,
                                    "",
                                    {"y", "mask"}});
    QCOMPARE(specText(graph, "mask"), QString("bool[4,6]"));
    QCOMPARE(producerOf(graph, "y").attributes.number("ratio", 0), 0.25);
    const Graph old = importCase({"Dropout",
                                  {x({"4", "6"})},
                                  {},
                                  {"x"},
                                  {floatAttribute("ratio", 0.125F)},
                                  "",
                                  OpKind::Dropout,
                                  10});
    QCOMPARE(producerOf(old, "y").attributes.number("ratio", 0), 0.125);
    QCOMPARE(producerOf(old, "y").outputs.size(), std::size_t{1});
}

void TestOnnxOps::groupedAttention() {
    GraphParts parts;
    parts.inputs = {value("q", kF16, {"2", "5", "64"}),
                    value("k", kF16, {"2", "5", "16"}),
                    value("v", kF16, {"2", "5", "16"}),
                    value("pk", kF16, {"2", "2", "11", "8"}),
                    value("pv", kF16, {"2", "2", "11", "8"}),
                    value("n", kI32, {"2"}),
                    value("t", kI32, {"1"})};
    parts.nodes = {node("GroupQueryAttention", {"q", "k", "v", "pk", "pv", "n", "t"},
                        {"y", "nk", "nv"},
                        {intAttribute("num_heads", 8), intAttribute("kv_num_heads", 2),
                         intAttribute("do_rotary", 1)},
                        "gqa", "com.microsoft")};
    for (const char* name : {"y", "nk", "nv"}) parts.outputs.push_back(Message().text(1, name));
    const Graph graph = importBytes(onnxFile(parts));
    QCOMPARE(specText(graph, "y"), QString("f16[2,5,64]"));
    QCOMPARE(specText(graph, "nk"), QString("f16[2,2,16,8]")); // 11 cached and 5 new
    const auto attention = std::ranges::find(graph.ops(), OpKind::Attention, &Op::kind);
    QVERIFY(attention != graph.ops().end());
    QCOMPARE(attention->attributes.integer("causal", 0), std::int64_t{1});
    QCOMPARE(graph.tensor(attention->inputs[1]).spec.shape, (Shape{2, 16, 2, 8}));
    QCOMPARE(std::ranges::count(graph.ops(), OpKind::Rotary, &Op::kind), 2);
}

void TestOnnxOps::opaqueOpsAreReported() {
    GraphParts parts;
    parts.inputs = {x({"4"})};
    parts.nodes = {node("Mystery", {"x"}, {"a"}, {}, "m1", "com.acme"),
                   node("Mystery", {"a"}, {"y"}, {}, "m2", "com.acme")};
    parts.outputs = {value("y", kF32, {"4"})};
    parts.values = {value("a", kF32, {"4"})};
    const Graph graph = importBytes(onnxFile(parts));
    QCOMPARE(graph.warnings.size(), std::size_t{1});
    QCOMPARE(QString::fromStdString(graph.warnings[0]),
             QString("com.acme::Mystery is not understood: 2 opaque ops, replicated on every "
                     "device."));
    QCOMPARE(specText(graph, "y"), QString("f32[4]"));
}

void TestOnnxOps::unknownShapesUseDeclarations() {
    GraphParts parts;
    parts.inputs = {x({"batch", "4"})};
    parts.nodes = {node("Mystery", {"x"}, {"a"}, {}, "", "com.acme"),
                   node("Mystery", {"x"}, {"b"}, {}, "", "com.acme"), node("Relu", {"a"}, {"c"}),
                   node("Relu", {"b"}, {"d"}), node("Add", {"d", "c"}, {"y"})};
    parts.values = {value("a", kF32, {"2*batch", "4"}), value("y", kF16, {"batch", "batch + 1"})};
    parts.outputs = {Message().text(1, "y"), Message().text(1, "d")};
    ImportOptions options;
    options.bindings["batch"] = 3;
    const Graph graph = importBytes(onnxFile(parts), options);
    QCOMPARE(specText(graph, "c"), QString("f32[6,4]"));
    QCOMPARE(specText(graph, "d"), QString("unknown[]"));
    QCOMPARE(producerOf(graph, "d").kind, OpKind::Opaque);
    QCOMPARE(specText(graph, "y"), QString("f16[3,4]"));
    QVERIFY(QString::fromStdString(graph.warnings.back()).contains("'b' first"));
}

void TestOnnxOps::unusedInitializersAreLeftOut() {
    GraphParts parts;
    parts.inputs = {x({"4"}), value("unread", kF32, {"2"})};
    parts.initializers = {tensor("w", kF32, {1000}), tensor("one", kF32, {1}),
                          tensor("scalar", kF32, {}), tensor("i", kI64, {9000})};
    parts.nodes = {node("Add", {"x", "one"}, {"a"}), node("Add", {"a", "scalar"}, {"y"})};
    parts.outputs = {Message().text(1, "y"), Message().text(1, "i")};
    const Graph graph = importBytes(onnxFile(parts));
    QCOMPARE(graph.parameterCount(), 0.0);
    QVERIFY(findTensor(graph, "w") == nullptr);
    QCOMPARE(producerOf(graph, "one").kind, OpKind::Constant);
    QCOMPARE(producerOf(graph, "unread").kind, OpKind::Input);
    QVERIFY(!findTensor(graph, "i")->value.has_value()); // more than 4096 elements
}

void TestOnnxOps::oldBroadcastAttribute() {
    const Graph graph = importCase({"Add",
                                    {x({"2", "3", "4", "5"}), value("z", kF32, {"3", "4"})},
                                    {},
                                    {"x", "z"},
                                    {intAttribute("broadcast", 1), intAttribute("axis", 1)},
                                    "",
                                    OpKind::Elementwise,
                                    6});
    QCOMPARE(specText(graph, "y"), QString("f32[2,3,4,5]"));
    QCOMPARE(graph.tensor(producerOf(graph, "y").inputs[1]).spec.shape, (Shape{3, 4, 1}));
}

SHARDLENS_TEST(TestOnnxOps)

} // namespace tst_onnx_ops

#include "tst_onnx_ops.moc"
