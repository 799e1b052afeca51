// SPDX-License-Identifier: Apache-2.0
// Model Explorer graphs: the published test graph, texts of shapes, kinds that can be proven,
// damage.
#include "core/error.h"
#include "core/import/model_explorer.h"
#include "tests/test_program.h"

#include <QTest>

#include <filesystem>

namespace tst_model_explorer {

using namespace shardlens;
namespace fs = std::filesystem;

class TestModelExplorer : public QObject {
    Q_OBJECT

private slots:
    void publishedGraph();
    void specs_data();
    void specs();
    void provenKinds();
    void otherFrames();
    void refusals_data();
    void refusals();
    void cutOffAnywhere();
};

namespace {

Graph import(const std::string& json) {
    return importModelExplorer(json, "graph.json", {});
}

QString refusalOf(const std::string& json) {
    try {
        import(json);
    } catch (const InputError& error) {
        return QString::fromUtf8(error.what());
    }
    return "accepted";
}

const std::string kSmall = R"({"label": "g", "graphs": [{"id": "g", "nodes": [
  {"id": "3", "label": "aten.relu.default", "namespace": "mlp", "incomingEdges":
      [{"sourceNodeId": "2", "sourceNodeOutputId": "0", "targetNodeInputId": "0"}],
   "outputsMetadata": [{"id": "0", "attrs": [{"key": "shape", "value": "float32[2,4]"}]}]},
  {"id": "1", "label": "Input", "namespace": "",
   "outputsMetadata": [{"id": "0", "attrs": [{"key": "tensor_shape", "value": "float32[2,3]"}]}]},
  {"id": "w", "label": "weights", "namespace": "mlp",
   "outputsMetadata": [{"id": "0", "attrs": [{"key": "tensor_shape", "value": "float32[3,4]"}]}]},
  {"id": "2", "label": "stablehlo.matmul", "namespace": "mlp", "incomingEdges":
      [{"sourceNodeId": "w", "sourceNodeOutputId": "0", "targetNodeInputId": "1"},
       {"sourceNodeId": "1", "sourceNodeOutputId": "0", "targetNodeInputId": "0"}],
   "outputsMetadata": [{"id": "0", "attrs": [{"key": "shape", "value": "tensor<2x4xf32>"}]}]},
  {"id": "4", "label": "add", "namespace": "mlp", "incomingEdges":
      [{"sourceNodeId": "3", "sourceNodeOutputId": "0", "targetNodeInputId": "0"},
       {"sourceNodeId": "w", "sourceNodeOutputId": "0", "targetNodeInputId": "1"}],
   "outputsMetadata": [{"id": "0", "attrs": [{"key": "shape", "value": "float32[2,4]"}]}]}
]}]})";

} // namespace

void TestModelExplorer::publishedGraph() {
    const fs::path path = fs::path(SHARDLENS_SHARED) / "data" / "models" / "other" /
                          "model_explorer_test_graph_original.json";
    if (!fs::exists(path)) QSKIP("the shared folder of real models is not beside the checkout");
    const Graph graph = importModel(path);
    QCOMPARE(graph.facts.at("nodes"), std::string("12"));
    QCOMPARE(graph.ops().size(), std::size_t{12});
    QCOMPARE(graph.op(*graph.findOp("pseudo_const")).kind, OpKind::Constant);
    // root2 reads root1 and the constant, and has two results; root3_n2 reads the second.
    const Op& root2 = graph.op(*graph.findOp("root2"));
    QCOMPARE(root2.inputs.size(), std::size_t{2});
    QCOMPARE(root2.outputs.size(), std::size_t{2});
    QCOMPARE(graph.op(*graph.findOp("root3/root3_n2")).inputs[0], root2.outputs[1]);
    QVERIFY(graph.findOp("root3/layer1/root3_layer1_n3"));
    QCOMPARE(graph.warnings.size(), std::size_t{1});
    QVERIFY(graph.warnings[0].find("for viewing") != std::string::npos);
}

void TestModelExplorer::specs_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* text, const char* expected) {
        QTest::newRow(text) << text << expected;
    };
    row("float32[1,224,224,3]", "f32[1,224,224,3]");
    row("float32[1x224x3]", "f32[1,224,3]");
    row("tensor<1x2xbf16>", "bf16[1,2]");
    row("tensor<f32>", "f32[]");
    row("tensor<?x4xi32>", "i32[1,4]");
    row("int8[-1, 7]", "i8[1,7]");
    row("(3, 4)", "unknown[3,4]");
    row("[]", "unknown[]");
    row("complex thing[2]", "unknown[2]");
    row("hello", "none");
    row("float32[a]", "none");
    row("float32[99999999999999999999]", "none");
    row("float32[1099511627776,1099511627776]", "none");
}

void TestModelExplorer::specs() {
    QFETCH(QString, text);
    QFETCH(QString, expected);
    const auto spec = specFromText(text.toStdString());
    QString got = "none";
    if (spec)
        got = QString::fromStdString((spec->dtype == DType::Unknown
                                          ? std::string("unknown")
                                          : std::string(nameOf(spec->dtype))) +
                                     toString(spec->shape));
    QCOMPARE(got, expected);
}

void TestModelExplorer::provenKinds() {
    const Graph graph = import(kSmall);
    const auto kind = [&](const char* name) { return graph.op(*graph.findOp(name)).kind; };
    QCOMPARE(kind("Input"), OpKind::Input);
    QCOMPARE(kind("mlp/weights"), OpKind::Opaque);
    QCOMPARE(kind("mlp/stablehlo.matmul"), OpKind::MatMul); // operands by targetNodeInputId
    QCOMPARE(kind("mlp/aten.relu.default"), OpKind::Elementwise);
    QCOMPARE(kind("mlp/add"), OpKind::Opaque); // [2,4] + [3,4] is not [2,4]
    QCOMPARE(graph.outputs().size(), std::size_t{1});
}

void TestModelExplorer::otherFrames() {
    const std::string graph =
        R"({"id": "g", "nodes": [{"id": "a", "label": "x", "namespace": ""}]})";
    for (const std::string& json :
         {R"({"graphCollections": [{"label": "c", "graphs": [)" + graph + "]}]}",
          "[{\"label\": \"c\", \"graphs\": [" + graph + "]}]", "[" + graph + "]"}) {
        const Graph imported = import(json);
        QCOMPARE(imported.ops().size(), std::size_t{1});
        QCOMPARE(imported.warnings.size(), std::size_t{1});
    }
    const Graph two = import(R"({"graphs": [)" + graph + "," + graph + "]}");
    QCOMPARE(two.facts.at("graphs"), std::string("2"));
    QCOMPARE(two.warnings.size(), std::size_t{2});
}

void TestModelExplorer::refusals_data() {
    QTest::addColumn<QByteArray>("json");
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* tag, const std::string& nodes, const char* expected) {
        QTest::newRow(tag) << QByteArray::fromStdString(R"({"graphs": [{"nodes": [)" + nodes +
                                                        "]}]}")
                           << expected;
    };
    const auto node = [](const std::string& id, const std::string& reads) {
        return R"({"id": ")" + id + R"(", "incomingEdges": [{"sourceNodeId": ")" + reads +
               R"(", "sourceNodeOutputId": "0", "targetNodeInputId": "0"}]})";
    };
    row("no nodes", "", "has no nodes");
    row("no id", R"({"label": "x"})", "node 0 has no id");
    row("no object", "1", "node 0 has no id");
    row("same id", R"({"id": "a"}, {"id": "a"})", "two nodes have the id 'a'");
    row("cycle", node("a", "b") + "," + node("b", "a"), "'a' is part of a cycle");
    row("reads itself", node("a", "a"), "'a' is part of a cycle");
    row("reads nothing", node("a", "b"), "accepted");
    row("deep", R"({"id": "a", "attrs": )" + std::string(100, '[') + std::string(100, ']') + "}",
        "nests too deeply");
    QTest::newRow("no graph") << QByteArray("{}") << "holds no graph";
    QTest::newRow("number") << QByteArray("1") << "holds no graph";
}

void TestModelExplorer::refusals() {
    QFETCH(QByteArray, json);
    QFETCH(QString, expected);
    const QString got = refusalOf(json.toStdString());
    QVERIFY2(got.contains(expected), got.toUtf8());
}

void TestModelExplorer::cutOffAnywhere() {
    for (std::size_t length = 0; length < kSmall.size(); ++length)
        QVERIFY(refusalOf(kSmall.substr(0, length)) != "accepted");
}

SHARDLENS_TEST(TestModelExplorer)

} // namespace tst_model_explorer

#include "tst_model_explorer.moc"
