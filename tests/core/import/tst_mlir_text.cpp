// SPDX-License-Identifier: Apache-2.0
// MLIR text as such: forms, symbols, shardings of the sdy dialect, and input that is damaged or
// hostile.
#include "core/import/mlir_module.h"
#include "core/import/sdy_text.h"
#include "tests/core/import/mlir_testing.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_mlir_text {

using namespace shardlens;
using namespace shardlens::test::mlir;
using Dims = std::vector<std::vector<std::uint8_t>>;

class TestMlirText : public QObject {
    Q_OBJECT

private slots:
    void genericModule();
    void formsMixOnOneLine();
    void pickingMain();
    void meshes();
    void shardings();
    void badShardings_data();
    void badShardings();
    void partitionOfAProgram();
    void partsOfAxes();
    void constraints();
    void shardingsOfXla();
    void manualIslands();
    void collectives();
    void otherDialects();
    void cutOffAnywhere();
    void hostile_data();
    void hostile();
    void manyCalls();
    void longLines();
};

namespace {

constexpr const char* kTwoLayers =
    "// a comment\n"
    "#loc = loc(unknown)\n"
    "!t = tensor<4x4xf32>\n"
    "module @net attributes {mhlo.num_partitions = 4 : i32} {\n"
    "  sdy.mesh @mesh = <[\"x\"=4]>\n"
    "  func.func public @main(%arg0: !t {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"x\"}]>}, "
    "%arg1: tensor<2x4xf32>) -> (tensor<2x4xf32> {jax.result_info = \"\"}) {\n"
    "    %0 = \"stablehlo.dot_general\"(%arg1, %arg0) <{dot_dimension_numbers = "
    "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : "
    "(tensor<2x4xf32>, !t) -> tensor<2x4xf32> loc(#loc)\n"
    "    %1:2 = func.call @g(%0) : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<f32>)\n"
    "    return %1#0 : tensor<2x4xf32>\n"
    "  }\n"
    "  func.func private @g(%arg0: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<f32>) {\n"
    "    %c = stablehlo.constant dense<\"0x0000803F\"> : tensor<f32>\n"
    "    return %arg0, %c : tensor<2x4xf32>, tensor<f32>\n"
    "  }\n"
    "}\n";

QString whatRefuses(const char* sharding) {
    try {
        const SdySharding parsed = parseSdySharding(sharding, "test");
        SdyAxes axes({{{"x", 4}, {"y", 6}}, {}});
        axes.add(parsed, "test");
        return axes.translate(parsed) ? "accepted" : "not translated";
    } catch (const InputError& error) {
        return error.what();
    }
}

} // namespace

void TestMlirText::genericModule() {
    const Graph graph = importText(
        "\"builtin.module\"() <{sym_name = \"m\"}> ({\n"
        "  \"sdy.mesh\"() <{sym_name = \"mesh\", mesh = #sdy.mesh<[\"x\"=2]>}> : () -> ()\n"
        "  \"func.func\"() <{sym_name = \"main\", function_type = (tensor<4xf32>) -> "
        "tensor<4xf32>, "
        "arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}]}> ({\n"
        "  ^bb0(%arg0: tensor<4xf32>):\n"
        "    %0 = \"stablehlo.negate\"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>\n"
        "    \"func.return\"(%0) : (tensor<4xf32>) -> ()\n"
        "  }) : () -> ()\n"
        "}) : () -> ()\n");
    QCOMPARE(kindsOf(graph), QString("Elementwise f32[4]"));
    QVERIFY(graph.partition.has_value());
    QCOMPARE(graph.partition->mesh, (std::vector<PartitionAxis>{{"x", 2}}));
    QCOMPARE(graph.partition->shardings.begin()->second.dims, Dims{{0}});
}

void TestMlirText::formsMixOnOneLine() {
    const Graph graph = importText(
        "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { %0 = stablehlo.negate %a : "
        "tensor<4xf32> %1 = \"stablehlo.abs\"(%0) : (tensor<4xf32>) -> tensor<4xf32> "
        "stablehlo.return %1 : tensor<4xf32> }");
    QCOMPARE(kindsOf(graph), QString("Elementwise f32[4], Elementwise f32[4]"));
}

void TestMlirText::pickingMain() {
    const std::string a = "func.func private @helper(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
                          "  return %a : tensor<4xf32>\n}\n";
    const std::string b = "func.func @serve(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
                          "  %0 = stablehlo.negate %a : tensor<4xf32>\n"
                          "  return %0 : tensor<4xf32>\n}\n";
    QCOMPARE(kindsOf(importText(a + b)), QString("Elementwise f32[4]"));
    QVERIFY(refusalOf("func.func private @x(%a: tensor<4xf32>) {\n %0 = stablehlo.abs %a : "
                      "tensor<4xf32>\n return\n}\n")
                .contains("no function"));
}

void TestMlirText::meshes() {
    const SdyMesh mesh = parseSdyMesh("<[\"x\"=2, \"y\"=4]>", "test");
    QCOMPARE(mesh.axes, (std::vector<PartitionAxis>{{"x", 2}, {"y", 4}}));
    QCOMPARE(parseSdyMesh("#sdy.mesh<[\"a\"=2], device_ids=[1, 0]>", "test").deviceIds,
             (std::vector<std::int64_t>{1, 0}));
    QVERIFY(parseSdyMesh("<[], device_ids=[3]>", "test").axes.empty());
    for (const char* bad :
         {"", "<", "<[\"x\"=0]>", "<[\"x\"=2, \"x\"=2]>", "<[\"x\"]>",
          "<[\"x\"=99999999999999999999]>", "<[\"x\"=2]> more", "<[\"x\"=1099511627776, \"y\"=2]>"})
        QVERIFY_THROWS_EXCEPTION(InputError, parseSdyMesh(bad, "test"));
}

void TestMlirText::shardings() {
    const SdySharding sharding = parseSdySharding(
        "#sdy.sharding<@mesh, [{\"x\"}, {\"y\":(1)2, ?}p1, {}], replicated={\"z\"}, "
        "unreduced={\"w\"}>",
        "test");
    QCOMPARE(sharding.mesh, std::string("mesh"));
    QCOMPARE(sharding.dims.size(), std::size_t{3});
    QCOMPARE(sharding.dims[0].axes, (std::vector<SdyAxis>{{"x", 1, 0}}));
    QCOMPARE(sharding.dims[1].axes, (std::vector<SdyAxis>{{"y", 1, 2}}));
    QVERIFY(sharding.dims[1].open && !sharding.dims[0].open);
    QCOMPARE(sharding.dims[1].priority.value_or(-1), std::int64_t{1});
    QCOMPARE(sharding.replicated, (std::vector<SdyAxis>{{"z", 1, 0}}));
    QCOMPARE(sharding.unreduced, (std::vector<SdyAxis>{{"w", 1, 0}}));
    const auto list = parseSdyShardings(
        "#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>, <mesh<[\"a\"=2]>, [{?}, {}]>]>", "test");
    QCOMPARE(list.size(), std::size_t{2});
    QVERIFY(list[1].inPlace.has_value());
    QVERIFY(list[1].dims[0].open);
}

void TestMlirText::badShardings_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* text, const char* expected) {
        QTest::newRow(text) << text << expected;
    };
    row("<@mesh, [{\"x\"}, {\"y\"}]>", "accepted");
    row("<@mesh, [{\"x\":(1)2}, {\"x\":(2)2}]>", "accepted");
    row("<@mesh, [{\"z\"}]>", "no axis 'z'");
    row("<@mesh, [{\"x\"}, {\"x\"}]>", "uses the axis 'x' twice");
    row("<@mesh, [{\"x\":(1)3}]>", "does not divide");
    row("<@mesh, [{\"x\":(3)2}]>", "does not divide");
    row("<@mesh, [{\"x\":(1)1}]>", "out of range");
    row("<@mesh, [{\"x\"]>", "missing");
    row("<@mesh, {\"x\"}>", "missing");
    row("<@mesh, [{x}]>", "missing");
    row("<@mesh, [{\"x\"}], sharded={\"y\"}>", "must follow");
    row("<@mesh, [{\"x\"}]", "missing");
    row("", "missing");
}

void TestMlirText::badShardings() {
    QFETCH(QString, text);
    QFETCH(QString, expected);
    const QString got = whatRefuses(text.toUtf8());
    QVERIFY2(got.contains(expected), got.toUtf8());
}

void TestMlirText::partitionOfAProgram() {
    const Graph graph = importText(kTwoLayers);
    QVERIFY(graph.partition.has_value());
    QVERIFY(!graph.partition->local);
    QCOMPARE(graph.partition->madeBy, std::string("Shardy"));
    QCOMPARE(graph.partition->devices, std::int64_t{4});
    const TensorId weight = graph.op(*graph.findOp("arg0")).outputs.front();
    QCOMPARE(graph.partition->shardings.at(weight).dims, (Dims{{}, {0}}));
    QCOMPARE(graph.partition->shardings.size(), std::size_t{1});
}

void TestMlirText::partsOfAxes() {
    const Graph graph = importMain(
        "%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\":(1)2}, {\"y\"}]>}, %b: "
        "tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {\"y\", ?}], "
        "unreduced={}>}",
        "tensor<8x8xf32>",
        "    %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, "
        "[{\"x\":(2)4}, {}], unreduced={\"y\"}>]>} : tensor<8x8xf32>\n"
        "    return %0 : tensor<8x8xf32>\n",
        "  sdy.mesh @mesh = <[\"x\"=8, \"y\"=2]>\n");
    const Partition& partition = graph.partition.value();
    QCOMPARE(partition.mesh, (std::vector<PartitionAxis>{{"x:(1)2", 2}, {"x:(2)4", 4}, {"y", 2}}));
    QCOMPARE(partition.devices, std::int64_t{16});
    const auto dims = [&](const char* name) {
        return partition.shardings.at(graph.op(*graph.findOp(name)).outputs.front()).dims;
    };
    QCOMPARE(dims("arg0"), (Dims{{0}, {2}}));
    QCOMPARE(dims("arg1"), (Dims{{0, 1}, {2}}));
    QCOMPARE(dims("%0"), (Dims{{1}, {}}));
    QCOMPARE(partition.shardings.at(graph.outputs()[0]).partial, (std::vector<std::uint8_t>{2}));
    QCOMPARE(graph.facts.at("open dimensions of shardings"), std::string("1"));
}

void TestMlirText::constraints() {
    const Graph graph =
        importMain("%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}",
                   "tensor<8x8xf32>",
                   "    %0 = stablehlo.negate %a : tensor<8x8xf32>\n"
                   "    %1 = sdy.sharding_constraint %0 <@mesh, [{\"x\"}, {}]> : tensor<8x8xf32>\n"
                   "    %2 = sdy.all_gather [{\"x\"}, {}] %1 out_sharding=<@mesh, [{}, {}]> : "
                   "tensor<8x8xf32>\n"
                   "    return %2 : tensor<8x8xf32>\n",
                   "  sdy.mesh @mesh = <[\"x\"=4]>\n");
    // The first names the layout of its operand, the second changes it.
    QCOMPARE(kindsOf(graph), QString("Elementwise f32[8,8], Elementwise f32[8,8]"));
    QCOMPARE(lastOp(graph).attributes.text("function"), std::string("identity"));
    QCOMPARE(graph.partition->shardings.at(graph.outputs()[0]).dims, (Dims{{}, {}}));
    QCOMPARE(graph.partition->shardings.at(lastOp(graph).inputs[0]).dims, (Dims{{0}, {}}));
}

void TestMlirText::shardingsOfXla() {
    const Graph graph = importText(
        "module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {\n"
        "  func.func public @main(%a: tensor<8x8xf32> {mhlo.sharding = "
        "\"{devices=[2,4]<=[8]}\"}, %b: tensor<8x8xf32> {mhlo.sharding = "
        "\"{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}\"}, %c: tensor<f32> "
        "{mhlo.sharding = \"{replicated}\"}, %d: tensor<f32> {mhlo.sharding = \"{maximal "
        "device=0}\"}) -> tensor<8x8xf32> {\n"
        "    %0 = stablehlo.add %a, %b : tensor<8x8xf32>\n"
        "    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = \"{devices=[1,8]<=[8]}\"} : "
        "(tensor<8x8xf32>) -> tensor<8x8xf32>\n"
        "    return %1 : tensor<8x8xf32>\n  }\n}\n");
    const Partition& partition = graph.partition.value();
    QCOMPARE(partition.madeBy, std::string("XLA SPMD"));
    QVERIFY(!partition.local);
    QCOMPARE(partition.devices, std::int64_t{8});
    QCOMPARE(partition.mesh.size(), std::size_t{2});
    QCOMPARE(partition.mesh[0].size, std::int64_t{2});
    QCOMPARE(partition.mesh[1].size, std::int64_t{4});
    const auto dims = [&](TensorId tensor) { return partition.shardings.at(tensor).dims; };
    QCOMPARE(dims(graph.op(*graph.findOp("arg0")).outputs[0]), (Dims{{0}, {1}}));
    QCOMPARE(dims(graph.op(*graph.findOp("arg1")).outputs[0]), (Dims{{1}, {}}));
    QCOMPARE(dims(graph.op(*graph.findOp("arg2")).outputs[0]), Dims{});
    QCOMPARE(dims(graph.outputs()[0]), (Dims{{}, {0, 1}}));
    QCOMPARE(graph.warnings.size(), std::size_t{1}); // of the one on a single device
}

void TestMlirText::manualIslands() {
    const std::string manual =
        "    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{\"x\"}]>] "
        "out_shardings=[<@mesh, [{\"x\"}]>] manual_axes={\"x\"} (%b: tensor<2xf32>) {\n"
        "      %9 = stablehlo.negate %b : tensor<2xf32>\n"
        "      sdy.return %9 : tensor<2xf32>\n    } : (tensor<8xf32>) -> tensor<8xf32>\n";
    const std::string mesh = "  sdy.mesh @mesh = <[\"x\"=4]>\n";
    const Graph whole = importMain("%a: tensor<8xf32>", "tensor<8xf32>",
                                   manual + "    return %0 : tensor<8xf32>\n", mesh);
    QVERIFY(whole.partition->local);
    QCOMPARE(kindsOf(whole), QString("Elementwise f32[2]"));
    // Amid a program for all devices its shapes would contradict theirs.
    const Graph island = importMain("%a: tensor<8xf32>", "tensor<8xf32>",
                                    manual + "    %1 = stablehlo.abs %0 : tensor<8xf32>\n"
                                             "    return %1 : tensor<8xf32>\n",
                                    mesh);
    QCOMPARE(kindsOf(island), QString("Opaque f32[8], Elementwise f32[8]"));
    QVERIFY(!island.partition || !island.partition->local);
    QCOMPARE(island.warnings.size(), std::size_t{1});
}

void TestMlirText::collectives() {
    const Graph graph = importMain(
        "%a: tensor<8x4xf32>", "tensor<8x4xf32>",
        "    %0 = \"stablehlo.all_to_all\"(%a) <{channel_handle = #stablehlo.channel_handle<handle "
        "= 1, type = 1>, concat_dimension = 1 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : "
        "tensor<2x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<8x4xf32>) "
        "-> tensor<4x8xf32>\n"
        "    %1 = \"stablehlo.collective_permute\"(%0) <{source_target_pairs = dense<[[0, 2], [2, "
        "0], [1, 3], [3, 1]]> : tensor<4x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>\n"
        "    %2 = \"stablehlo.all_reduce\"(%1) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({\n"
        "    ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
        "      %9 = stablehlo.maximum %x, %y : tensor<f32>\n"
        "      stablehlo.return %9 : tensor<f32>\n    }) : (tensor<4x8xf32>) -> tensor<4x8xf32>\n"
        "    %3 = stablehlo.reshape %2 : (tensor<4x8xf32>) -> tensor<8x4xf32>\n"
        "    return %3 : tensor<8x4xf32>\n",
        "  sdy.mesh @mesh = <[\"x\"=2, \"y\"=2]>\n");
    QCOMPARE(countOf(graph, OpKind::Collective), std::size_t{3});
    const Attributes& exchange = graph.op(*graph.findOp("%0")).attributes;
    QCOMPARE(exchange.text("function"), std::string("all-to-all"));
    QCOMPARE(exchange.integer("axis", -1), std::int64_t{0});
    QCOMPARE(exchange.integer("concat_axis", -1), std::int64_t{1});
    QCOMPARE(exchange.integers("mesh_axes"), (std::vector<std::int64_t>{1}));
    const Attributes& permute = graph.op(*graph.findOp("%1")).attributes;
    QCOMPARE(permute.integer("group_size", 0), std::int64_t{2});
    QCOMPARE(permute.integer("groups", 0), std::int64_t{2});
    QCOMPARE(permute.integers("mesh_axes"), (std::vector<std::int64_t>{0}));
    QCOMPARE(graph.op(*graph.findOp("%2")).attributes.text("reduce"), std::string("max"));
    QVERIFY(graph.partition->local);
    QCOMPARE(graph.partition->devices, std::int64_t{4});
}

void TestMlirText::otherDialects() {
    const auto body = [](const char* op) {
        return std::string("module {\n  func.func @main() {\n    ") + op + "\n    return\n  }\n}\n";
    };
    const QString torch = refusalOf(
        body("%0 = torch.aten.mm %a, %b : !torch.vtensor<[2,3],f32>, !torch.vtensor<[3,4],f32> -> "
             "!torch.vtensor<[2,4],f32>"));
    QVERIFY2(torch.contains("torch dialect") && torch.contains("torch-mlir-opt"), torch.toUtf8());
    QVERIFY(refusalOf(body("%0 = vhlo.add_v1 %a, %b : !vhlo.tensor_v1<2x!vhlo.f32_v1>"))
                .contains("vhlo-legalize-to-stablehlo"));
    QVERIFY(refusalOf(body("%0 = tosa.abs %a : (tensor<2xf32>) -> tensor<2xf32>"))
                .contains("dialect 'tosa'"));
    QVERIFY(refusalOf("module {\n}\n").contains("no StableHLO operation"));
}

void TestMlirText::cutOffAnywhere() {
    const std::string text = kTwoLayers;
    std::size_t refused = 0;
    for (std::size_t length = 0; length < text.size(); ++length)
        refused += refusalOf(text.substr(0, length)) != "accepted";
    QCOMPARE(refused, text.size() - 1); // all but the last line end
    QVERIFY(refusalOf(text.substr(0, text.size() / 2)).contains("line "));
}

void TestMlirText::hostile_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* tag, const std::string& text, const char* expected) {
        QTest::newRow(tag) << QByteArray::fromStdString(text) << expected;
    };
    const auto unary = [](const std::string& type) {
        return program("%a: " + type, type,
                       "    %0 = stablehlo.abs %a : " + type + "\n    return %0 : " + type + "\n");
    };
    row("2^63 dims", unary("tensor<9223372036854775808xf32>"), "larger than");
    row("many dims", unary("tensor<1099511627776x1099511627776xf32>"), "more elements than fit");
    row("negative", unary("tensor<-4xf32>"), "element type");
    row("no element type", unary("tensor<4xf99>"), "'f99' is not known");
    row("undefined value",
        program("%a: tensor<4xf32>", "tensor<4xf32>",
                "    %0 = stablehlo.abs %b : tensor<4xf32>\n    return %0 : tensor<4xf32>\n"),
        "'%b' is not defined");
    row("wrong shape",
        program("%a: tensor<4xf32>", "tensor<8xf32>",
                "    %0 = stablehlo.convert %a : (tensor<5xf32>) -> tensor<5xf32>\n    return %0 : "
                "tensor<5xf32>\n"),
        "its shape is [4]");
    row("too many results",
        program("%a: tensor<4xf32>", "tensor<4xf32>",
                "    %0:99999999 = stablehlo.abs %a : tensor<4xf32>\n    return\n"),
        "too large");
    row("brackets that cross",
        "module {\n  func.func @main(%a: tensor<4xf32>) {\n  %0 = "
        "stablehlo.abs ([)] %a : tensor<4xf32>\n  }\n}\n",
        "bracket");
    row("deep brackets", "module attributes {a = " + std::string(200'000, '[') + "\n",
        "is not closed");
    std::string regions = "module {\n";
    for (int i = 0; i < 200; ++i) regions += "\"a.b\"() ({\n";
    row("deep regions", regions, "nest more than 64 deep");
    std::string tuples = "func.func @main(%a: ";
    for (int i = 0; i < 200; ++i) tuples += "tuple<";
    row("deep tuples", tuples, "nest too deeply");
    row("mesh that is not there",
        program("%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@none, [{}]>}", "tensor<4xf32>",
                "    %0 = stablehlo.abs %a : tensor<4xf32>\n    return %0 : tensor<4xf32>\n"),
        "mesh 'none' is not defined");
    row("sharding of another rank",
        program("%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}",
                "tensor<4xf32>",
                "    %0 = stablehlo.abs %a : tensor<4xf32>\n    return %0 : tensor<4xf32>\n",
                "  sdy.mesh @mesh = <[\"x\"=2]>\n"),
        "2 dimensions, its tensor 1");
    row("global without type",
        program("", "tensor<4xf32>",
                "    %0 = util.global.load @g : tensor<4xf32>\n    %1 = stablehlo.abs %0 : "
                "tensor<4xf32>\n    return %1 : tensor<4xf32>\n"),
        "@g is not defined");
    row("global of an unknown type, read twice",
        program("", "tensor<4xf32>",
                "    %0 = util.global.load @g : tensor<4xf32>\n    %1 = stablehlo.add %0, %0 : "
                "tensor<4xf32>\n    return %1 : tensor<4xf32>\n",
                "  util.global private @g = dense<1.0> : %0#1or<4xf32>\n"),
        "the type of a global is no tensor");
    row("string without end", "module @\"x {\n", "does not end");
    row("alias of itself", "!a = !a\n" + unary("!a"), "computes nothing");
    row("nothing returned",
        "func.func @main(%a: tensor<4xf32>) {\n  %0 = stablehlo.abs %a : "
        "tensor<4xf32>\n  return\n}\n",
        "computes nothing");
}

void TestMlirText::hostile() {
    QFETCH(QByteArray, text);
    QFETCH(QString, expected);
    const QString got = refusalOf(text.toStdString());
    QVERIFY2(got.contains(expected), got.toUtf8());
}

void TestMlirText::manyCalls() {
    // Each function calls the next twice: 2^40 calls if nobody counts.
    std::string text;
    for (int i = 0; i < 40; ++i)
        text += fmt::format("func.func private @f{}(%a: tensor<f32>) -> tensor<f32> {{\n"
                            "  %0 = call @f{}(%a) : (tensor<f32>) -> tensor<f32>\n"
                            "  %1 = call @f{}(%0) : (tensor<f32>) -> tensor<f32>\n"
                            "  return %1 : tensor<f32>\n}}\n",
                            i, i + 1, i + 1);
    text += "func.func private @f40(%a: tensor<f32>) -> tensor<f32> {\n"
            "  %0 = stablehlo.abs %a : tensor<f32>\n  return %0 : tensor<f32>\n}\n"
            "func.func @main(%a: tensor<f32>) -> tensor<f32> {\n"
            "  %0 = call @f0(%a) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n";
    QVERIFY(refusalOf(text).contains("more than 400000 operations"));
}

void TestMlirText::longLines() {
    // What has to be looked ahead for must not be looked at again and again.
    std::string text = "func.func @main(%a: tensor<f32>) {\n  foo.bar ";
    for (int i = 0; i < 200'000; ++i) text += "%a,\n";
    QVERIFY(refusalOf(text) != "accepted");
    std::string quotes = "func.func @main(%a: tensor<f32>) {\n  foo.bar ";
    for (int i = 0; i < 100'000; ++i) quotes += "\"a\"\n";
    QVERIFY(refusalOf(quotes) != "accepted");
}

SHARDLENS_TEST(TestMlirText)

} // namespace tst_mlir_text

#include "tst_mlir_text.moc"
