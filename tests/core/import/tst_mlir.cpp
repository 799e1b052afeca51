// SPDX-License-Identifier: Apache-2.0
// What operations of StableHLO become: kinds, shapes and attributes, by hand from the
// specification; and the facts of the shared programs.
#include "core/plan/model_bundle.h"
#include "tests/core/import/mlir_testing.h"
#include "tests/test_program.h"

#include <QRegularExpression>
#include <QTest>

#include <filesystem>

namespace tst_mlir {

using namespace shardlens;
using namespace shardlens::test::mlir;
using Ints = std::vector<std::int64_t>;
namespace fs = std::filesystem;

class TestMlir : public QObject {
    Q_OBJECT

private slots:
    void mobileBert();
    void fsdpTensorParallel();
    void products_data();
    void products();
    void kinds_data();
    void kinds();
    void convolutionLayouts();
    void reductionWithStart();
    void lookupWithTransposedRows();
    void rowsByVectors();
    void constantsHaveTheirValues();
    void storedConstantsAreParameters();
    void loopsAreUnrolled();
    void openLoopsAreOpaque();
    void loopsWithoutALimit();
    void knownBranchesAreInlined();
    void functionsAreInlined();
    void argumentRoles();
    void namesFromLocations();
    void dynamicDimensions();
    void opaqueOpsKeepTypes();
    void misfitsAreOpaque();
    void tuples();
    void backwardIsSeen();
};

namespace {

fs::path sharedMlir(const char* file) {
    return fs::path(SHARDLENS_SHARED) / "data" / "models" / "mlir" / file;
}

} // namespace

void TestMlir::mobileBert() {
    const fs::path path = sharedMlir("bert_encoder_unrolled_fake_weights.mlir");
    if (!fs::exists(path)) QSKIP("the shared folder of real models is not beside the checkout");
    const ModelBundle bundle = loadModel(path);
    const Graph& graph = *bundle.source;
    QCOMPARE(graph.facts.at("globals"), std::string("1113"));
    QCOMPARE(graph.facts.at("stablehlo.dot"), std::string("362"));
    QCOMPARE(graph.facts.at("stablehlo.dot_general"), std::string("48"));
    QCOMPARE(countOf(graph, OpKind::Parameter), std::size_t{1113});
    QCOMPARE(countOf(graph, OpKind::Einsum), std::size_t{362 + 48});
    // google/mobilebert-uncased has 24,581,888 parameters; the question-answering head 512*2 + 2.
    QCOMPARE(graph.parameterCount(), 24'581'888.0 + 1'026.0);
    QVERIFY(graph.warnings.empty());
    QVERIFY(!graph.partition);
    std::size_t layers = 0;
    for (const FoldRun& run : bundle.folding->runs) layers = std::max(layers, run.count);
    QCOMPARE(layers, std::size_t{24});
    QVERIFY(graph.findOp("__iree_flow_bert/encoder/layer_23/attention/self/key/kernel"));
}

void TestMlir::fsdpTensorParallel() {
    const fs::path path = sharedMlir("e2e_fsdp_tp_shardy.mlir");
    if (!fs::exists(path)) QSKIP("the shared folder of real models is not beside the checkout");
    const Graph graph = importModel(path);
    QCOMPARE(graph.name, std::string("jit_loss_fsdp_tp"));
    QVERIFY(graph.partition.has_value());
    const Partition& partition = *graph.partition;
    QCOMPARE(partition.mesh, (std::vector<PartitionAxis>{{"x", 2}, {"y", 4}}));
    QCOMPARE(partition.devices, std::int64_t{8});
    QVERIFY(partition.local);
    std::map<std::string, int> collectives;
    for (const Op& op : graph.ops())
        if (op.kind == OpKind::Collective) ++collectives[op.attributes.text("function")];
    QCOMPARE(collectives, (std::map<std::string, int>{
                              {"all-gather", 12}, {"all-reduce", 2}, {"reduce-scatter", 6}}));
    // FSDP gathers weights along x, tensor parallelism scatters sums along y.
    for (const Op& op : graph.ops()) {
        if (op.attributes.text("function") == "all-gather")
            QCOMPARE(op.attributes.integers("mesh_axes"), Ints{0});
        if (op.attributes.text("function") == "reduce-scatter")
            QCOMPARE(op.attributes.integers("mesh_axes"), Ints{1});
    }
    // 784x128 and its like are cut by y then x; the batch by x, its width by y.
    QCOMPARE(graph.parameterCount(), (784 * 128 + 128 + 4 * (128 * 128 + 128) + 128 * 8 + 8) / 8.0);
    const TensorId weight = graph.op(*graph.findOp("arg0")).outputs.front();
    QCOMPARE(graph.tensor(weight).spec.shape, (Shape{98, 128}));
    using Dims = std::vector<std::vector<std::uint8_t>>;
    QCOMPARE(partition.shardings.at(weight).dims, (Dims{{1, 0}, {}}));
    const TensorId batch = graph.op(*graph.findOp("arg12")).outputs.front();
    QCOMPARE(partition.shardings.at(batch).dims, (Dims{{0}, {1}}));
    QCOMPARE(graph.op(*graph.findOp("arg12")).kind, OpKind::Input);
    QCOMPARE(graph.op(*graph.findOp("arg13")).kind, OpKind::Input);
    QCOMPARE(countOf(graph, OpKind::Parameter), std::size_t{12});
    QCOMPARE(countOf(graph, OpKind::Opaque), std::size_t{0});
}

void TestMlir::products_data() {
    QTest::addColumn<QString>("left");
    QTest::addColumn<QString>("right");
    QTest::addColumn<QString>("result");
    QTest::addColumn<QString>("op");
    QTest::addColumn<QString>("equation");
    const auto row = [](const char* tag, const char* left, const char* right, const char* result,
                        const char* op, const char* equation) {
        QTest::newRow(tag) << left << right << result << op << equation;
    };
    row("matrices", "2x3xf32", "3x5xf32", "2x5xf32", "stablehlo.dot %a, %b :", "ba,ac->bc");
    row("vectors", "3xf32", "3xf32", "f32", "stablehlo.dot %a, %b :", "a,a->");
    row("old dialect", "2x3xf32", "3xf32", "2xf32", "mhlo.dot %a, %b :", "ba,a->b");
    row("batch", "4x2x3xbf16", "4x5x3xbf16", "4x2x5xf32",
        "stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2], "
        "precision = [DEFAULT, DEFAULT] :",
        "acb,adb->acd");
    row("generic", "4x2x3xf32", "3x5x4xf32", "4x2x5xf32",
        "\"stablehlo.dot_general\"(%a, %b) <{dot_dimension_numbers = "
        "#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [2], "
        "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = "
        "[#stablehlo<precision DEFAULT>]}> :",
        "acb,bda->acd");
    row("two contracted", "2x3x4xf32", "4x3x5xf32", "2x5xf32",
        "stablehlo.dot_general %a, %b, contracting_dims = [1, 2] x [1, 0] :", "cab,bad->cd");
}

void TestMlir::products() {
    QFETCH(QString, left);
    QFETCH(QString, right);
    QFETCH(QString, result);
    QFETCH(QString, op);
    QFETCH(QString, equation);
    const std::string a = left.toStdString(), b = right.toStdString(), c = result.toStdString();
    const Graph graph = importMain(
        fmt::format("%a: tensor<{}>, %b: tensor<{}>", a, b), fmt::format("tensor<{}>", c),
        fmt::format("    %0 = {} (tensor<{}>, tensor<{}>) -> tensor<{}>\n    return %0 : "
                    "tensor<{}>\n",
                    op.toStdString(), a, b, c, c));
    QVERIFY(graph.warnings.empty());
    QCOMPARE(lastOp(graph).kind, OpKind::Einsum);
    QCOMPARE(QString::fromStdString(lastOp(graph).attributes.text("equation")), equation);
}

void TestMlir::kinds_data() {
    QTest::addColumn<QString>("argument");
    QTest::addColumn<QString>("result");
    QTest::addColumn<QString>("op"); // on %a; "A" and "R" stand for the types
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* tag, const char* argument, const char* result, const char* op,
                        const char* expected) {
        QTest::newRow(tag) << argument << result << op << expected;
    };
    row("add", "2x3xf32", "2x3xf32", "stablehlo.add %a, %a : R", "Elementwise f32[2,3]");
    row("or of booleans", "2xi1", "2xi1", "stablehlo.add %a, %a : R", "Elementwise bool[2]");
    row("rsqrt", "2xf32", "2xf32", "stablehlo.rsqrt %a : R", "Elementwise f32[2]");
    row("compare", "2xf32", "2xi1", "stablehlo.compare  LT, %a, %a,  FLOAT : (A, A) -> R",
        "Elementwise bool[2]");
    row("not equal", "2xi32", "2xi1",
        "\"stablehlo.compare\"(%a, %a) <{comparison_direction = #stablehlo<comparison_direction "
        "NE>}> : (A, A) -> R",
        "Elementwise bool[2], Elementwise bool[2]");
    row("convert", "2xf32", "2xbf16", "stablehlo.convert %a : (A) -> R", "Elementwise bf16[2]");
    row("is_finite", "2xf32", "2xi1", "stablehlo.is_finite %a : (A) -> R", "Elementwise bool[2]");
    row("clamp", "2xf32", "2xf32", "stablehlo.clamp %a, %a, %a : R",
        "Elementwise f32[2], Elementwise f32[2]");
    row("erf", "2xf32", "2xf32", "chlo.erf %a : A -> R", "Elementwise f32[2]");
    row("transpose", "2x3x4xf32", "4x2x3xf32",
        "stablehlo.transpose %a, dims = [2, 0, 1] : (A) -> R", "Transpose f32[4,2,3]");
    row("reshape", "2x6xf32", "3x4xf32", "stablehlo.reshape %a : (A) -> R", "Reshape f32[3,4]");
    row("broadcast at the right", "4xf32", "2x4xf32",
        "stablehlo.broadcast_in_dim %a, dims = [1] : (A) -> R", "Expand f32[2,4]");
    row("broadcast at the left", "2xf32", "2x4xf32",
        "stablehlo.broadcast_in_dim %a, dims = [0] : (A) -> R",
        "Reshape f32[2,1], Expand f32[2,4]");
    row("broadcast that only reshapes", "4xf32", "4x1xf32",
        "stablehlo.broadcast_in_dim %a, dims = [0] : (A) -> R", "Reshape f32[4,1]");
    row("broadcast across", "2x3xf32", "3x5x2xf32",
        "\"stablehlo.broadcast_in_dim\"(%a) {broadcast_dimensions = dense<[2, 0]> : tensor<2xi64>} "
        ": (A) -> R",
        "Transpose f32[3,2], Reshape f32[3,1,2], Expand f32[3,5,2]");
    row("slice", "4x8xf32", "2x4xf32", "stablehlo.slice %a [1:3, 0:8:2] : (A) -> R",
        "Slice f32[2,4]");
    row("slice, generic", "4x8xf32", "2x8xf32",
        "\"stablehlo.slice\"(%a) {start_indices = dense<[1, 0]> : tensor<2xi64>, limit_indices = "
        "array<i64: 3, 8>, strides = dense<1> : tensor<2xi64>} : (A) -> R",
        "Slice f32[2,8]");
    row("concatenate", "2x3xf32", "2x6xf32", "stablehlo.concatenate %a, %a, dim = 1 : (A, A) -> R",
        "Concat f32[2,6]");
    row("reverse", "2x3xf32", "2x3xf32", "stablehlo.reverse %a, dims = [1] : R", "Slice f32[2,3]");
    row("iota", "2xf32", "2x3xi32", "stablehlo.iota dim = 1 : R", "Constant i32[2,3]");
    row("index select", "9x4xf32", "9x4xf32", "stablehlo.optimization_barrier %a : R", "");
    row("cholesky", "2x4x4xf32", "2x4x4xf32", "stablehlo.cholesky %a, lower = true : (A) -> R",
        "LinearAlgebra f32[2,4,4]");
    row("fft", "4x8xf32", "4x5xcomplex<f32>",
        "stablehlo.fft %a, type =  RFFT, length = [8] : (A) -> R", "Fourier c64[4,5]");
    row("top k", "2x9xf32", "2x3xf32, 2x3xi32", "chlo.top_k(%a, k = 3) : A -> R", "TopK f32[2,3]");
}

void TestMlir::kinds() {
    QFETCH(QString, argument);
    QFETCH(QString, result);
    QFETCH(QString, op);
    QFETCH(QString, expected);
    std::vector<QString> types;
    for (const QString& type : result.split(", ")) types.push_back("tensor<" + type + ">");
    QString list = types[0];
    for (std::size_t i = 1; i < types.size(); ++i) list += ", " + types[i];
    const QString results = types.size() == 1 ? list : "(" + list + ")";
    op.replace(QRegularExpression("\\bA\\b"), "tensor<" + argument + ">");
    op.replace(QRegularExpression("\\bR\\b"), results);
    const bool several = types.size() > 1;
    const QString body = "    %0" + (several ? ":" + QString::number(types.size()) : QString()) +
                         " = " + op + "\n    return %0" + (several ? "#0" : "") + " : " + types[0] +
                         "\n";
    const Graph graph = importMain("%a: tensor<" + argument.toStdString() + ">",
                                   types[0].toStdString(), body.toStdString());
    QVERIFY2(graph.warnings.empty(), graph.warnings.empty() ? "" : graph.warnings[0].c_str());
    QCOMPARE(kindsOf(graph), expected);
}

void TestMlir::convolutionLayouts() {
    // NHWC x HWIO -> NHWC, stride 2, padding that differs at both ends.
    const Graph graph = importMain(
        "%x: tensor<2x9x7x3xf32>, %w: tensor<3x3x3x8xf32>", "tensor<2x5x4x8xf32>",
        "    %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, "
        "f], window = {stride = [2, 2], pad = [[1, 1], [0, 2]]} {batch_group_count = 1 : i64, "
        "feature_group_count = 1 : i64} : (tensor<2x9x7x3xf32>, tensor<3x3x3x8xf32>) -> "
        "tensor<2x5x4x8xf32>\n    return %0 : tensor<2x5x4x8xf32>\n");
    QVERIFY(graph.warnings.empty());
    QCOMPARE(kindsOf(graph), QString("Transpose f32[2,3,9,7], Transpose f32[8,3,3,3], "
                                     "Conv f32[2,8,5,4], Transpose f32[2,5,4,8]"));
    const auto conv = std::ranges::find(graph.ops(), OpKind::Conv, &Op::kind);
    QCOMPARE(conv->attributes.integers("pads"), (Ints{1, 0, 1, 2}));
    QCOMPARE(conv->attributes.integers("strides"), (Ints{2, 2}));
    // The same in generic form, already in our order: no transposes; the kernel is a parameter.
    const Graph plain = importMain(
        "%x: tensor<1x4x8xf32>, %w: tensor<4x1x3xf32>", "tensor<1x4x6xf32>",
        "    %0 = \"stablehlo.convolution\"(%x, %w) <{batch_group_count = 1 : i64, "
        "dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, feature_group_count "
        "= 4 : i64, padding = dense<0> : tensor<1x2xi64>, window_strides = array<i64: 1>}> : "
        "(tensor<1x4x8xf32>, tensor<4x1x3xf32>) -> tensor<1x4x6xf32>\n    return %0 : "
        "tensor<1x4x6xf32>\n");
    QCOMPARE(kindsOf(plain), QString("Conv f32[1,4,6]"));
    QCOMPARE(lastOp(plain).attributes.integer("group", 1), std::int64_t{4});
    QCOMPARE(plain.op(*plain.findOp("arg1")).kind, OpKind::Parameter);
}

void TestMlir::reductionWithStart() {
    const auto reduced = [](const char* start, const char* operation) {
        return importMain(
            "%a: tensor<2x5xf32>", "tensor<2xf32>",
            fmt::format("    %c = stablehlo.constant dense<{}> : tensor<f32>\n"
                        "    %0 = stablehlo.reduce(%a init: %c) across dimensions = [1] : "
                        "(tensor<2x5xf32>, tensor<f32>) -> tensor<2xf32>\n"
                        "     reducer(%x: tensor<f32>, %y: tensor<f32>)  {{\n"
                        "      %1 = stablehlo.{} %x, %y : tensor<f32>\n"
                        "      stablehlo.return %1 : tensor<f32>\n    }}\n"
                        "    return %0 : tensor<2xf32>\n",
                        start, operation));
    };
    QCOMPARE(kindsOf(reduced("0.0", "add")), QString("Constant f32[], Reduce f32[2]"));
    QCOMPARE(lastOp(reduced("0.0", "add")).attributes.text("function"), std::string("sum"));
    QCOMPARE(kindsOf(reduced("0xFF800000", "maximum")), QString("Constant f32[], Reduce f32[2]"));
    QCOMPARE(lastOp(reduced("0xFF800000", "maximum")).attributes.text("function"),
             std::string("max"));
    // A start that counts is an op of its own.
    QCOMPARE(kindsOf(reduced("1.5", "add")),
             QString("Constant f32[], Reduce f32[2], Elementwise f32[2]"));
    QCOMPARE(kindsOf(reduced("0.0", "maximum")),
             QString("Constant f32[], Reduce f32[2], Elementwise f32[2]"));
    // Any other operation is none of the reductions.
    const Graph other = reduced("0.0", "subtract");
    QCOMPARE(lastOp(other).kind, OpKind::Opaque);
    QCOMPARE(other.warnings.size(), std::size_t{1});
}

void TestMlir::lookupWithTransposedRows() {
    const auto looked = [](const char* offset, const char* result) {
        return importMain(
            "%t: tensor<50x8xf32>, %i: tensor<2x3x1xi32>", fmt::format("tensor<{}>", result),
            fmt::format("    %0 = \"stablehlo.gather\"(%t, %i) <{{dimension_numbers = "
                        "#stablehlo.gather<offset_dims = [{}], collapsed_slice_dims = [0], "
                        "start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, "
                        "slice_sizes = array<i64: 1, 8>}}> : (tensor<50x8xf32>, "
                        "tensor<2x3x1xi32>) -> tensor<{}>\n    return %0 : tensor<{}>\n",
                        offset, result, result));
    };
    const Graph plain = looked("2", "2x3x8xf32");
    QCOMPARE(kindsOf(plain), QString("Reshape i32[2,3], Gather f32[2,3,8]"));
    QCOMPARE(plain.op(*plain.findOp("arg0")).kind, OpKind::Parameter);
    QCOMPARE(kindsOf(looked("0", "8x2x3xf32")),
             QString("Reshape i32[2,3], Gather f32[2,3,8], Transpose f32[8,2,3]"));
}

void TestMlir::rowsByVectors() {
    // jax: x[i, j], and the gradient of a lookup, which adds rows to a table of zeros.
    const Graph found = importMain(
        "%t: tensor<5x6x8xf32>, %i: tensor<3x2xi32>", "tensor<3x8xf32>",
        "    %0 = \"stablehlo.gather\"(%t, %i) <{dimension_numbers = "
        "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [0, "
        "1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1, 8>}> : (tensor<5x6x8xf32>, "
        "tensor<3x2xi32>) -> tensor<3x8xf32>\n    return %0 : tensor<3x8xf32>\n");
    QCOMPARE(kindsOf(found), QString("GatherND f32[3,8]"));
    const auto written = [](const char* body, const char* window) {
        return importMain(
            "%t: tensor<5x8xf32>, %i: tensor<4x3x1xi32>, %u: tensor<4x3x8xf32>", "tensor<5x8xf32>",
            fmt::format("    %0 = \"stablehlo.scatter\"(%t, %i, %u) <{{scatter_dimension_numbers = "
                        "#stablehlo.scatter<update_window_dims = [{}], inserted_window_dims = [0], "
                        "scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}}> ({{\n"
                        "    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n{}    }}) : "
                        "(tensor<5x8xf32>, tensor<4x3x1xi32>, tensor<4x3x8xf32>) -> "
                        "tensor<5x8xf32>\n    return %0 : tensor<5x8xf32>\n",
                        window, body));
    };
    const char* add = "      %1 = stablehlo.add %a, %b : tensor<f32>\n      stablehlo.return %1 : "
                      "tensor<f32>\n";
    QCOMPARE(kindsOf(written(add, "2")), QString("Scatter f32[5,8]"));
    QCOMPARE(lastOp(written(add, "2")).attributes.text("reduction"), std::string("add"));
    const char* replace = "      stablehlo.return %b : tensor<f32>\n";
    QCOMPARE(lastOp(written(replace, "2")).attributes.text("reduction"), std::string("none"));
    QCOMPARE(lastOp(written(replace, "0")).kind, OpKind::Opaque);
}

void TestMlir::constantsHaveTheirValues() {
    const Graph graph =
        importMain("%a: tensor<2xf32>", "tensor<3xi32>, tensor<2xf32>, tensor<2x2xf32>",
                   "    %c = stablehlo.constant dense<[1, -2, 3]> : tensor<3xi32>\n"
                   "    %d = \"stablehlo.constant\"() <{value = dense<[0.5, -1.0e2]> : "
                   "tensor<2xf32>}> : () -> "
                   "tensor<2xf32>\n"
                   "    %e = stablehlo.constant dense<2.5> : tensor<2x2xf32>\n"
                   "    return %c, %d, %e : tensor<3xi32>, tensor<2xf32>, tensor<2x2xf32>\n");
    QCOMPARE(*graph.tensor(graph.outputs()[0]).value, (KnownInts{1, -2, 3}));
    QCOMPARE(*graph.tensor(graph.outputs()[1]).reals, (KnownReals{0.5, -100.0}));
    // One value many times: a scalar, expanded.
    QCOMPARE(lastOp(graph).kind, OpKind::Constant);
    const Op& expand = graph.op(graph.tensor(graph.outputs()[2]).producer);
    QCOMPARE(expand.kind, OpKind::Expand);
    QCOMPARE(*graph.tensor(expand.inputs[0]).reals, KnownReals{2.5});
}

void TestMlir::storedConstantsAreParameters() {
    const Graph graph = importText(
        program("%x: tensor<2x16xf32>", "tensor<2x8xf32>",
                "    %w = stablehlo.constant dense_resource<torch_tensor_16_8> : "
                "tensor<16x8xf32>\n"
                "    %0 = stablehlo.dot %x, %w : (tensor<2x16xf32>, tensor<16x8xf32>) -> "
                "tensor<2x8xf32>\n"
                "    return %0 : tensor<2x8xf32>\n") +
        "{-#\n  dialect_resources: {\n    builtin: {\n      torch_tensor_16_8: \"0x0400\"\n    }\n "
        " }\n#-}\n");
    QCOMPARE(graph.parameterCount(), 128.0);
    QVERIFY(graph.warnings.empty());
}

void TestMlir::loopsAreUnrolled() {
    // jax.lax.scan over stacked weights: a counter, a dynamic slice, an update of the outputs.
    const std::string body =
        "    %zero = stablehlo.constant dense<0> : tensor<i32>\n"
        "    %init = stablehlo.constant dense<0.0> : tensor<6x4xf32>\n"
        "    %0:4 = stablehlo.while(%iterArg = %w, %iterArg_0 = %zero, %iterArg_1 = %x, "
        "%iterArg_2 = %init) : tensor<6x8x8xf32>, tensor<i32>, tensor<4x8xf32>, tensor<6x4xf32>\n"
        "     cond {\n"
        "      %n = stablehlo.constant dense<6> : tensor<i32>\n"
        "      %1 = stablehlo.compare  LT, %iterArg_0, %n,  SIGNED : (tensor<i32>, tensor<i32>) -> "
        "tensor<i1>\n"
        "      stablehlo.return %1 : tensor<i1>\n"
        "    } do {\n"
        "      %z = stablehlo.constant dense<0> : tensor<i32>\n"
        "      %1 = stablehlo.dynamic_slice %iterArg, %iterArg_0, %z, %z, sizes = [1, 8, 8] : "
        "(tensor<6x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>\n"
        "      %2 = stablehlo.reshape %1 : (tensor<1x8x8xf32>) -> tensor<8x8xf32>\n"
        "      %3 = stablehlo.dot %iterArg_1, %2 : (tensor<4x8xf32>, tensor<8x8xf32>) -> "
        "tensor<4x8xf32>\n"
        "      %4 = stablehlo.tanh %3 : tensor<4x8xf32>\n"
        "      %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "      %5 = stablehlo.reduce(%4 init: %c) applies stablehlo.add across dimensions = [1] : "
        "(tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>\n"
        "      %6 = stablehlo.reshape %5 : (tensor<4xf32>) -> tensor<1x4xf32>\n"
        "      %7 = stablehlo.dynamic_update_slice %iterArg_2, %6, %iterArg_0, %z : "
        "(tensor<6x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<6x4xf32>\n"
        "      %one = stablehlo.constant dense<1> : tensor<i32>\n"
        "      %8 = stablehlo.add %iterArg_0, %one : tensor<i32>\n"
        "      stablehlo.return %iterArg, %8, %4, %7 : tensor<6x8x8xf32>, tensor<i32>, "
        "tensor<4x8xf32>, tensor<6x4xf32>\n"
        "    }\n"
        "    return %0#2, %0#3 : tensor<4x8xf32>, tensor<6x4xf32>\n";
    const Graph graph = importMain("%w: tensor<6x8x8xf32>, %x: tensor<4x8xf32>",
                                   "tensor<4x8xf32>, tensor<6x4xf32>", body);
    QVERIFY(graph.warnings.empty());
    QCOMPARE(countOf(graph, OpKind::Einsum), std::size_t{6});
    QCOMPARE(countOf(graph, OpKind::Concat), std::size_t{6});
    QCOMPARE(countOf(graph, OpKind::Opaque), std::size_t{0});
    QCOMPARE(graph.op(*graph.findOp("arg0")).kind, OpKind::Parameter); // stacked weights
    std::vector<std::int64_t> starts;
    for (const Op& op : graph.ops())
        if (op.kind == OpKind::Slice &&
            graph.op(graph.tensor(op.inputs[0]).producer).name == "arg0")
            starts.push_back(op.attributes.integers("starts").front());
    QCOMPARE(starts, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
}

void TestMlir::openLoopsAreOpaque() {
    const Graph graph = importMain(
        "%n: tensor<i32>, %x: tensor<4xf32>", "tensor<4xf32>",
        "    %zero = stablehlo.constant dense<0> : tensor<i32>\n"
        "    %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<4xf32>\n"
        "     cond {\n"
        "      %1 = stablehlo.compare  LT, %i, %n,  SIGNED : (tensor<i32>, tensor<i32>) -> "
        "tensor<i1>\n"
        "      stablehlo.return %1 : tensor<i1>\n    } do {\n"
        "      %one = stablehlo.constant dense<1> : tensor<i32>\n"
        "      %1 = stablehlo.add %i, %one : tensor<i32>\n"
        "      %2 = stablehlo.tanh %v : tensor<4xf32>\n"
        "      stablehlo.return %1, %2 : tensor<i32>, tensor<4xf32>\n    }\n"
        "    return %0#1 : tensor<4xf32>\n");
    QCOMPARE(lastOp(graph).kind, OpKind::Opaque);
    QCOMPARE(lastOp(graph).inputs.size(), std::size_t{3}); // %n is read inside
    QCOMPARE(graph.warnings.size(), std::size_t{1});
    QVERIFY(QString::fromStdString(graph.warnings[0]).contains("stablehlo.while (1)"));
}

void TestMlir::loopsWithoutALimit() {
    // A constant that holds nothing is no limit.
    const Graph graph = importMain(
        "%x: tensor<4xf32>", "tensor<4xf32>",
        "    %zero = stablehlo.constant dense<0> : tensor<i32>\n"
        "    %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<4xf32>\n"
        "     cond {\n"
        "      %n = stablehlo.constant dense<> : tensor<i32>\n"
        "      %1 = stablehlo.compare  LT, %i, %n,  SIGNED : (tensor<i32>, tensor<i32>) -> "
        "tensor<i1>\n"
        "      stablehlo.return %1 : tensor<i1>\n    } do {\n"
        "      %one = stablehlo.constant dense<> : tensor<i32>\n"
        "      %1 = stablehlo.add %i, %one : tensor<i32>\n"
        "      stablehlo.return %1, %v : tensor<i32>, tensor<4xf32>\n    }\n"
        "    return %0#1 : tensor<4xf32>\n");
    QCOMPARE(lastOp(graph).kind, OpKind::Opaque);
}

void TestMlir::knownBranchesAreInlined() {
    const auto branched = [](const char* index) {
        return importMain(
            "%p: tensor<i32>, %x: tensor<4xf32>", "tensor<4xf32>",
            fmt::format("    %c = stablehlo.constant dense<1> : tensor<i32>\n"
                        "    %0 = \"stablehlo.case\"({}) ({{\n"
                        "      %1 = stablehlo.tanh %x : tensor<4xf32>\n"
                        "      stablehlo.return %1 : tensor<4xf32>\n    }}, {{\n"
                        "      stablehlo.return %x : tensor<4xf32>\n    }}) : (tensor<i32>) -> "
                        "tensor<4xf32>\n    return %0 : tensor<4xf32>\n",
                        index));
    };
    QCOMPARE(lastOp(branched("%c")).kind, OpKind::Input);
    const Graph open = branched("%p");
    QCOMPARE(lastOp(open).kind, OpKind::Opaque);
    QCOMPARE(lastOp(open).inputs.size(), std::size_t{2});
}

void TestMlir::functionsAreInlined() {
    const std::string relu = "  func.func private @relu(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
                             "    %c = stablehlo.constant dense<0.0> : tensor<4xf32>\n"
                             "    %0 = stablehlo.maximum %arg0, %c : tensor<4xf32>\n"
                             "    return %0 : tensor<4xf32>\n  }\n";
    const Graph graph = importMain(
        "%x: tensor<4xf32>", "tensor<4xf32>",
        "    %0 = call @relu(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
        "    %1 = \"func.call\"(%0) <{callee = @relu}> : (tensor<4xf32>) -> tensor<4xf32>\n"
        "    %2 = stablehlo.composite \"my.relu\" %1 {decomposition = @relu} : (tensor<4xf32>) -> "
        "tensor<4xf32>\n"
        "    return %2 : tensor<4xf32>\n",
        relu);
    QCOMPARE(countOf(graph, OpKind::Elementwise), std::size_t{3});
    QVERIFY(graph.findOp("relu/%0"));
    QCOMPARE(graph.facts.at("functions"), std::string("2"));
    const QString recursive = refusalOf(program(
        "%x: tensor<4xf32>", "tensor<4xf32>",
        "    %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>\n    return %0 : tensor<4xf32>\n",
        "  func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n    %b = stablehlo.abs %a : "
        "tensor<4xf32>\n    %0 = call @f(%b) : "
        "(tensor<4xf32>) -> tensor<4xf32>\n    return %0 : tensor<4xf32>\n  }\n"));
    QVERIFY2(recursive.contains("'f' calls itself"), recursive.toUtf8());
}

void TestMlir::argumentRoles() {
    const Graph graph =
        importMain("%arg0: tensor<8x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<2x8xf32>, %arg3: "
                   "tensor<2x4xf32>",
                   "tensor<2x4xf32>",
                   "    %0 = stablehlo.dot %arg2, %arg0 : (tensor<2x8xf32>, tensor<8x4xf32>) -> "
                   "tensor<2x4xf32>\n"
                   "    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<4xf32>) -> "
                   "tensor<2x4xf32>\n"
                   "    %2 = stablehlo.add %0, %1 : tensor<2x4xf32>\n"
                   "    %3 = stablehlo.subtract %2, %arg3 : tensor<2x4xf32>\n"
                   "    return %3 : tensor<2x4xf32>\n");
    const auto kind = [&](const char* name) { return graph.op(*graph.findOp(name)).kind; };
    QCOMPARE(kind("arg0"), OpKind::Parameter);
    QCOMPARE(kind("arg1"), OpKind::Parameter);
    QCOMPARE(kind("arg2"), OpKind::Input);
    QCOMPARE(kind("arg3"), OpKind::Input);
    QCOMPARE(graph.facts.at("arguments"), std::string("2 read as parameters, 2 as inputs"));
}

void TestMlir::namesFromLocations() {
    const Graph graph = importText(
        "#loc1 = loc(\"params['embed']\")\n" +
        program("%arg0: tensor<4xf32> loc(\"params['embed']\"), %arg1: tensor<4xf32> "
                "loc(\"opt_state[0].mu['params']['embed']\"), %arg2: tensor<4xf32> loc(#loc9)",
                "tensor<4xf32>",
                "    %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32> loc(#loc5)\n"
                "    %1 = stablehlo.add %0, %arg2 : tensor<4xf32> loc(unknown)\n"
                "    return %1 : tensor<4xf32> loc(#loc)\n") +
        "#loc = loc(unknown)\n#loc5 = loc(\"jit(f)/jit(main)/add\"(#loc1))\n"
        "#loc9 = loc(\"model.py\":12:4)\n");
    QCOMPARE(graph.op(*graph.findOp("params['embed']")).kind, OpKind::Parameter);
    QCOMPARE(graph.op(*graph.findOp("opt_state[0].mu['params']['embed']")).kind, OpKind::Input);
    QVERIFY(graph.findOp("arg2"));
    QVERIFY(graph.findOp("jit(f)/jit(main)/add"));
    QVERIFY(graph.findOp("%1"));
}

void TestMlir::dynamicDimensions() {
    const std::string text = program(
        "%x: tensor<?x16xf32>, %w: tensor<16x4xf32>", "tensor<?x4xf32>",
        "    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x16xf32>, "
        "tensor<16x4xf32>) -> tensor<?x4xf32>\n"
        "    %s = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x16xf32>) -> tensor<i32>\n"
        "    %s1 = stablehlo.reshape %s : (tensor<i32>) -> tensor<1xi32>\n"
        "    %four = stablehlo.constant dense<4> : tensor<1xi32>\n"
        "    %shape = stablehlo.concatenate %s1, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) "
        "-> "
        "tensor<2xi32>\n"
        "    %c = stablehlo.constant dense<1.0> : tensor<f32>\n"
        "    %ones = stablehlo.dynamic_broadcast_in_dim %c, %shape, dims = [] : (tensor<f32>, "
        "tensor<2xi32>) -> tensor<?x4xf32>\n"
        "    %1 = stablehlo.add %0, %ones : tensor<?x4xf32>\n    return %1 : tensor<?x4xf32>\n");
    ImportOptions options;
    options.batch = 6;
    const Graph guessed = importText(text, options);
    QCOMPARE(guessed.tensor(guessed.outputs()[0]).spec.shape, (Shape{6, 4}));
    QCOMPARE(guessed.bindings.at("arg0.dim0"), std::int64_t{6});
    QCOMPARE(guessed.warnings.size(), std::size_t{1}); // which sizes were chosen
    QCOMPARE(countOf(guessed, OpKind::Opaque), std::size_t{0});
    options.bindings["arg0.dim0"] = 10;
    const Graph bound = importText(text, options);
    QCOMPARE(bound.tensor(bound.outputs()[0]).spec.shape, (Shape{10, 4}));
    QVERIFY(bound.warnings.empty());
    options.bindings["other"] = 1;
    QVERIFY(refusalOf(text, options).contains("no dimension called 'other'"));
}

void TestMlir::opaqueOpsKeepTypes() {
    const Graph graph =
        importMain("%x: tensor<4x8xf32>", "tensor<4x5xcomplex<f32>>",
                   "    %0 = stablehlo.fft %x, type =  RFFT, length = [8] : (tensor<4x8xf32>) -> "
                   "tensor<4x5xcomplex<f32>>\n"
                   "    %1:2 = stablehlo.custom_call @magic(%0) {api_version = 1 : i32} : "
                   "(tensor<4x5xcomplex<f32>>) -> (tensor<4x5xcomplex<f32>>, tensor<3xui8>)\n"
                   "    return %1#0 : tensor<4x5xcomplex<f32>>\n");
    QCOMPARE(countOf(graph, OpKind::Opaque), std::size_t{1});
    QCOMPARE(countOf(graph, OpKind::Fourier), std::size_t{1});
    QCOMPARE(graph.tensor(lastOp(graph).outputs[1]).spec, (TensorSpec{DType::U8, {3}}));
    QCOMPARE(graph.tensor(graph.outputs()[0]).spec, (TensorSpec{DType::C64, {4, 5}}));
    QCOMPARE(graph.warnings.size(), std::size_t{1});
    const QString warning = QString::fromStdString(graph.warnings[0]);
    QVERIFY(warning.contains("stablehlo.custom_call @magic (1)"));
}

void TestMlir::misfitsAreOpaque() {
    // A reshape that does not keep the number of elements.
    const Graph graph = importMain("%x: tensor<4x8xf32>", "tensor<5xf32>",
                                   "    %0 = stablehlo.reshape %x : (tensor<4x8xf32>) -> "
                                   "tensor<5xf32>\n    return %0 : tensor<5xf32>\n");
    QCOMPARE(lastOp(graph).kind, OpKind::Opaque);
    QCOMPARE(graph.warnings.size(), std::size_t{2});
}

void TestMlir::tuples() {
    const Graph graph = importMain(
        "%x: tensor<4xf32>, %y: tensor<5xf32>", "tensor<5xf32>",
        "    %0 = stablehlo.tuple %x, %y : tuple<tensor<4xf32>, tensor<5xf32>>\n"
        "    %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<4xf32>, tensor<5xf32>>) -> "
        "tensor<5xf32>\n    return %1 : tensor<5xf32>\n");
    QCOMPARE(lastOp(graph).name, std::string("arg1"));
}

void TestMlir::backwardIsSeen() {
    const std::string text = program("%x: tensor<4xf32>", "tensor<4xf32>",
                                     "    %0 = stablehlo.negate %x : tensor<4xf32> "
                                     "loc(\"jit(f)/transpose(jvp(f))/neg\")\n"
                                     "    return %0 : tensor<4xf32>\n");
    QVERIFY(importText(text).backwardIncluded);
}

SHARDLENS_TEST(TestMlir)

} // namespace tst_mlir

#include "tst_mlir.moc"
