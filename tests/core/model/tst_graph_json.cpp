// SPDX-License-Identifier: Apache-2.0
// The JSON snapshot: round trip to the bit, equal bytes, and clear refusal of damage.
#include "core/error.h"
#include "core/model/graph_json.h"
#include "tests/core/model/hand_made.h"
#include "tests/test_program.h"

#include <QTest>

#include <cmath>
#include <limits>

namespace tst_graph_json {

using namespace shardlens;
using shardlens::test::add;

class TestGraphJson : public QObject {
    Q_OBJECT

private slots:
    void roundTrip();
    void bytesAreStable();
    void badUtf8IsReplaced();
    void damage_data();
    void damage();
    void everyCutIsRefused();
    void everyFlippedByteIsReadOrRefused();
};

namespace {

Graph example() {
    Graph graph;
    graph.name = "example \"quoted\"";
    graph.format = "by hand";
    graph.warnings = {"one", "two"};
    graph.bindings = {{"batch", 8}};
    graph.facts = {{"nodes", "4"}};
    const TensorId x = add(graph, "x", OpKind::Input, {}, {DType::BF16, {8, 16}});
    const TensorId shape = add(graph, "shape", OpKind::Constant, {}, {DType::I64, {2}});
    graph.setKnownValue(shape, {16, -1});
    const TensorId scalar = add(graph, "one", OpKind::Constant, {}, {DType::I64, {}});
    graph.setKnownValue(scalar, {std::numeric_limits<std::int64_t>::min()});
    Op op;
    op.name = "odd";
    op.kind = OpKind::Opaque;
    op.type = "com.example::Odd";
    op.inputs = {x, kNoTensor, shape};
    op.attributes = {{"whole", std::int64_t{3}},
                     {"real", 3.0},
                     {"tiny", 0.1},
                     {"endless", -std::numeric_limits<double>::infinity()},
                     {"word", "f"},
                     {"list", std::vector<std::int64_t>{1, -2}},
                     {"none", std::vector<std::int64_t>{}},
                     {"reals", std::vector<double>{1.0, 2.5}},
                     {"no reals", std::vector<double>{}}};
    const OpId id = graph.addOp(op, {{DType::F8E4M3, {16, 8}}, {DType::Unknown, {}}}, {"out"});
    graph.markOutput(graph.op(id).outputs[1]);
    graph.markOutput(graph.op(id).outputs[0]);
    return graph;
}

QString messageOf(const std::string& json) {
    try {
        graphFromJson(json);
    } catch (const InputError& error) {
        return QString::fromUtf8(error.what());
    }
    return "accepted";
}

std::string wrap(const std::string& ops, const std::string& outputs = "[]") {
    return R"({"format":"shardlens-graph","version":1,"name":"","source":"","warnings":[],)"
           R"("bindings":{},"facts":{},"ops":)" +
           ops + R"(,"outputs":)" + outputs + "}";
}

} // namespace

void TestGraphJson::roundTrip() {
    const Graph graph = example();
    const Graph copy = graphFromJson(graphToJson(graph));
    QCOMPARE(copy.name, graph.name);
    QCOMPARE(copy.format, graph.format);
    QCOMPARE(copy.warnings, graph.warnings);
    QCOMPARE(copy.bindings, graph.bindings);
    QCOMPARE(copy.facts, graph.facts);
    QCOMPARE(copy.ops().size(), graph.ops().size());
    for (OpId id = 0; id < graph.ops().size(); ++id) {
        QCOMPARE(copy.op(id).name, graph.op(id).name);
        QCOMPARE(copy.op(id).kind, graph.op(id).kind);
        QCOMPARE(copy.op(id).type, graph.op(id).type);
        QVERIFY(copy.op(id).attributes == graph.op(id).attributes);
        QCOMPARE(copy.op(id).inputs, graph.op(id).inputs);
        QCOMPARE(copy.op(id).outputs, graph.op(id).outputs);
    }
    for (TensorId id = 0; id < graph.tensors().size(); ++id) {
        QCOMPARE(copy.tensor(id).name, graph.tensor(id).name);
        QVERIFY(copy.tensor(id).spec == graph.tensor(id).spec);
        QVERIFY(copy.tensor(id).value == graph.tensor(id).value);
        QCOMPARE(copy.tensor(id).producer, graph.tensor(id).producer);
        QVERIFY(std::ranges::equal(copy.uses(id), graph.uses(id)));
    }
    QVERIFY(std::ranges::equal(copy.outputs(), graph.outputs()));
}

void TestGraphJson::bytesAreStable() {
    const std::string json = graphToJson(example());
    QCOMPARE(graphToJson(example()), json);
    QCOMPARE(graphToJson(graphFromJson(json)), json);
    QVERIFY(json.find('\n') == std::string::npos);
}

void TestGraphJson::badUtf8IsReplaced() {
    Graph graph;
    add(graph, "a\xff", OpKind::Input, {}, {DType::F32, {1}});
    QCOMPARE(graphFromJson(graphToJson(graph)).op(0).name, "a\xEF\xBF\xBD");
}

void TestGraphJson::damage_data() {
    QTest::addColumn<std::string>("json");
    QTest::addColumn<QString>("says");
    const std::string op = R"(["a","Input","",{},[],[["a","f32",[1]]]])";
    const auto row = [](const char* tag, const std::string& json, const char* says) {
        QTest::newRow(tag) << json << QString(says);
    };
    row("empty", "", "no JSON at byte 1");
    row("other json", R"({"format":"x"})", "this is no graph snapshot");
    row("list", "[]", "this is no graph snapshot");
    row("newer", R"({"format":"shardlens-graph","version":2})", "version 2 is not the version 1");
    row("no version", R"({"format":"shardlens-graph"})", "\"version\" is missing");
    row("no ops", R"({"format":"shardlens-graph","version":1})", "\"name\" is missing");
    row("short op", wrap("[[1,2]]"), "op 0: an op needs six entries");
    row("kind", wrap(R"([["a","Gemm","",{},[],[]]])"), "op 0 \"a\": \"Gemm\" is no op kind");
    row("dtype", wrap(R"([["a","Input","",{},[],[["a","f31",[1]]]]])"),
        "\"f31\" is no element type");
    row("negative", wrap(R"([["a","Input","",{},[],[["a","f32",[-1]]]]])"), "negative size");
    row("huge", wrap(R"([["a","Input","",{},[],[["a","f32",[18446744073709551615]]]]])"),
        "a whole number is expected");
    row("1e999", wrap(R"([["a","Input","",{},[],[["a","f32",[1e999]]]]])"),
        "number is out of range");
    row("values", wrap(R"([["a","Input","",{},[],[["a","i64",[3],[1,2]]]]])"),
        "2 values do not fill the shape [3]");
    row("forward", wrap("[" + op + R"(,["b","Concat","",{},[1],[]]])"), "tensor 1 does not exist");
    row("minus two", wrap("[" + op + R"(,["b","Concat","",{},[-2],[]]])"),
        "tensor -2 does not exist");
    row("attribute", wrap(R"([["a","Input","",{"x":null},[],[]]])"), "a whole number is expected");
    row("output", wrap("[" + op + "]", "[1]"), "outputs: tensor 1 does not exist");
}

void TestGraphJson::damage() {
    QFETCH(std::string, json);
    QFETCH(QString, says);
    const QString message = messageOf(json);
    QVERIFY2(message.contains(says), qPrintable(message));
}

void TestGraphJson::everyCutIsRefused() {
    const std::string json = graphToJson(example());
    for (std::size_t length = 0; length < json.size(); ++length)
        QVERIFY(messageOf(json.substr(0, length)) != "accepted");
    QVERIFY(messageOf(std::string(100'000, '[')).contains("no JSON at byte"));
}

void TestGraphJson::everyFlippedByteIsReadOrRefused() {
    const std::string json = graphToJson(example());
    for (std::size_t at = 0; at < json.size(); ++at) {
        for (const char byte : {'\0', '0', '9', '"', '[', '}', '-', '\xff'}) {
            std::string damaged = json;
            damaged[at] = byte;
            messageOf(damaged); // any other exception fails the test
        }
    }
}

SHARDLENS_TEST(TestGraphJson)

} // namespace tst_graph_json

#include "tst_graph_json.moc"
