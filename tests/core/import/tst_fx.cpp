// SPDX-License-Identifier: Apache-2.0
// Printed FX graphs: the real pair of the shared data with the facts of its README, and small texts
// written here for each form the printer has (types, symbols, tuples, arguments apart, backward).
#include "core/error.h"
#include "core/fold/folding.h"
#include "core/import/fx_text.h"
#include "core/import/torch_program.h"
#include "core/model/canonical.h"
#include "tests/test_program.h"

#include <QTemporaryDir>
#include <QTest>

#include <filesystem>
#include <fstream>

namespace tst_fx {

using namespace shardlens;
namespace fs = std::filesystem;

namespace {

const fs::path kFolder = fs::path(SHARDLENS_SHARED) / "data" / "models" / "fx";

Graph read(const std::string& text, const ImportOptions& options = {}) {
    return importFx(text, "test.py", options);
}

std::string message(const std::string& text, const ImportOptions& options = {}) {
    try {
        read(text, options);
    } catch (const InputError& error) {
        return error.what();
    }
    return "no error";
}

std::string module(const std::string& parameters, const std::string& body) {
    return "class GraphModule(torch.nn.Module):\n    def forward(self, " + parameters + "):\n" +
           body;
}

const Tensor& output(const Graph& graph, std::size_t i = 0) {
    return graph.tensor(graph.outputs()[i]);
}

std::size_t count(const Graph& graph, OpKind kind) {
    return static_cast<std::size_t>(std::ranges::count(graph.ops(), kind, &Op::kind));
}

const Op& only(const Graph& graph, OpKind kind) {
    const auto found = std::ranges::find(graph.ops(), kind, &Op::kind);
    if (found == graph.ops().end()) qFatal("there is no such op");
    return *found;
}

constexpr const char* kMlp = R"(class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[32, 16]", primals_2: "f32[32]", primals_3: "f32[4, 8, 16]", primals_4: "i64[4, 8]"):
         # File: /home/x/mlp.py:12 in forward, code: return self.up(x)
        t: "f32[16, 32]" = torch.ops.aten.t.default(primals_1);  primals_1 = None
        view: "f32[32, 16]" = torch.ops.aten.view.default(primals_3, [32, 16])
        addmm: "f32[32, 32]" = torch.ops.aten.addmm.default(primals_2, view, t);  primals_2 = None
        view_1: "f32[4, 8, 32]" = torch.ops.aten.view.default(addmm, [4, 8, -1]);  addmm = None
        native_dropout = torch.ops.aten.native_dropout.default(view_1, 0.1, True)
        getitem: "f32[4, 8, 32]" = native_dropout[0]
        getitem_1: "b8[4, 8, 32]" = native_dropout[1];  native_dropout = None
        return (getitem, primals_3, view, getitem_1)
)";

} // namespace

class TestFx : public QObject {
    Q_OBJECT

private slots:
    void realGraph_data();
    void realGraph();
    void forwardGraph();
    void keptTensorsAreNoOutputs();
    void multiHeadProductsStayApart();
    void runnableForm();
    void symbols();
    void symbolsThatAreNotThere();
    void roles_data();
    void roles();
    void backwardGraph();
    void collectives();
    void collectiveOfOneRank();
    void unknownOpsAreOpaque();
    void contradictionsAreOpaque();
    void labelLookUp();
    void statisticsOnlyWhereRead();
    void functionsAndMethods();
    void ops_data();
    void ops();
    void severalGraphs();
    void errors_data();
    void errors();
    void cutOffAnywhere();
    void changedAnywhere();
    void hostile_data();
    void hostile();
};

void TestFx::realGraph_data() {
    QTest::addColumn<QString>("file");
    QTest::addColumn<int>("cut"); // of the vocabulary, the attention and the MLP
    QTest::addColumn<int>("gathers");
    QTest::addColumn<int>("reduces");
    QTest::addColumn<int>("scatters");
    QTest::newRow("one device") << "gpt_paral1_layer8_fw.g0.r0.py.txt" << 1 << 0 << 3 << 0;
    QTest::newRow("tensor and sequence parallel")
        << "gpt_paral2_layer8_fw.g0.r0.py.txt" << 2 << 17 << 4 << 16;
}

void TestFx::realGraph() {
    QFETCH(QString, file);
    QFETCH(int, cut);
    const fs::path path = kFolder / file.toStdString();
    if (!fs::exists(path)) QSKIP("the shared folder of real models is not beside the checkout");
    Graph graph = importModel(path);
    // GPT of width 768, MLP 3072, vocabulary 98304, 1536 positions: the formulas of its layers.
    const double h = 768, f = 3072.0 / cut, v = 98304.0 / cut, n = cut;
    const double layer = 4 * h + 3 * h * h / n + 3 * h / n + h * h / n + h + 2 * h * f + f + h;
    QCOMPARE(graph.parameterCount(), 2 * v * h + 1536 * h + 2 * h + 8 * layer);
    QCOMPARE(count(graph, OpKind::Opaque), std::size_t{0});
    QVERIFY(!graph.backwardIncluded);
    QVERIFY(graph.warnings.empty());
    QCOMPARE(graph.facts.at("calls of aten.mm.default"), std::string("33"));
    QCOMPARE(graph.facts.at("calls of apex.fused_layer_norm_affine_fwd.default"),
             std::string("17"));
    QCOMPARE(graph.facts.at("calls of aten.native_dropout.default"), std::string("25"));
    QCOMPARE(graph.facts.at("placeholders"), std::string("106"));
    const auto fact = [&](const char* name) {
        const auto found = graph.facts.find(name);
        return found == graph.facts.end() ? 0 : std::stoi(found->second);
    };
    QFETCH(int, gathers);
    QFETCH(int, reduces);
    QFETCH(int, scatters);
    QCOMPARE(fact("collectives all-gather"), gathers);
    QCOMPARE(fact("collectives all-reduce"), reduces);
    QCOMPARE(fact("collectives reduce-scatter"), scatters);
    QCOMPARE(fact("collectives"), gathers + reduces + scatters);
    QCOMPARE(static_cast<int>(count(graph, OpKind::Collective)), gathers + reduces + scatters);
    QVERIFY(graph.partition && graph.partition->local);
    QCOMPARE(graph.partition->devices, std::int64_t{cut});
    // Two dimensionless losses (one of them twice) and the number of tokens.
    QCOMPARE(graph.outputs().size(), std::size_t{2});

    const Graph canonical = canonicalise(graph);
    const Folding folding = fold(canonical);
    QCOMPARE(folding.runs.size(), std::size_t{1});
    QCOMPARE(folding.runs[0].count, std::size_t{8});
    // Two products of the attention, four of linear layers.
    std::size_t products = 0;
    for (std::size_t i = 0; i < folding.runs[0].period; ++i)
        products += canonical.op(folding.order[folding.runs[0].first + i]).kind == OpKind::MatMul;
    QCOMPARE(products, std::size_t{6});
}

void TestFx::forwardGraph() {
    const Graph graph = read(kMlp);
    QCOMPARE(graph.format, std::string("FX graph"));
    QCOMPARE(graph.parameterCount(), 32.0 * 16 + 32);
    QCOMPARE(count(graph, OpKind::Input), std::size_t{2}); // like the labels, one is a batch
    QVERIFY(graph.findOp("mlp.forward/addmm").has_value());
    const Op& product = only(graph, OpKind::MatMul);
    QCOMPARE(product.type, std::string("aten.addmm.default"));
    QCOMPARE(product.inputs.size(), std::size_t{3});
    const Op& dropout = only(graph, OpKind::Dropout);
    QCOMPARE(dropout.attributes.number("ratio", 0), 0.1);
    QCOMPARE(dropout.outputs.size(), std::size_t{1}); // only kept for the backward pass
    QCOMPARE(graph.facts.at("nodes"), std::string("12"));
}

void TestFx::keptTensorsAreNoOutputs() {
    const Graph graph = read(kMlp);
    QCOMPARE(graph.outputs().size(), std::size_t{1});
    QCOMPARE(output(graph).name, std::string("getitem"));
    QCOMPARE(output(graph).spec.shape, (Shape{4, 8, 32}));
    QCOMPARE(graph.facts.at("kept for the backward pass"), std::string("3"));
}

/// [s, b, heads, d] -> [s, b*heads, d] -> bmm: the heads must not hide behind the batch.
void TestFx::multiHeadProductsStayApart() {
    const Graph graph = canonicalise(
        read(module(R"(x: "f32[6, 2, 4, 8]")",
                    R"(        view: "f32[6, 8, 8]" = torch.ops.aten.view.default(x, [6, 8, 8])
        q: "f32[8, 6, 8]" = torch.ops.aten.transpose.int(view, 0, 1)
        k: "f32[8, 8, 6]" = torch.ops.aten.permute.default(view, [1, 2, 0])
        bmm: "f32[8, 6, 6]" = torch.ops.aten.bmm.default(q, k)
        out: "f32[2, 4, 6, 6]" = torch.ops.aten.view.default(bmm, [2, 4, 6, 6])
        return (out,)
)")));
    QCOMPARE(count(graph, OpKind::Reshape), std::size_t{0});
    const Op& product = only(graph, OpKind::MatMul);
    QCOMPARE(graph.tensor(product.inputs[0]).spec.shape, (Shape{2, 4, 6, 8}));
    QCOMPARE(graph.tensor(product.inputs[1]).spec.shape, (Shape{2, 4, 8, 6}));
    QCOMPARE(output(graph).spec.shape, (Shape{2, 4, 6, 6}));
}

void TestFx::runnableForm() {
    const std::string text = R"(
import torch
from torch import tensor, device
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, primals_1, primals_2, primals_3):
        embedding = torch.ops.aten.embedding.default(primals_1, primals_2);  primals_1 = None
        convert_element_type = torch.ops.prims.convert_element_type.default(embedding, torch.float32)
        pow_1 = torch.ops.aten.pow.Tensor_Scalar(convert_element_type, 2)
        mean = torch.ops.aten.mean.dim(pow_1, [-1], True);  pow_1 = None
        add = torch.ops.aten.add.Scalar(mean, 1e-05);  mean = None
        rsqrt = torch.ops.aten.rsqrt.default(add)
        mul = torch.ops.aten.mul.Tensor(convert_element_type, rsqrt)
        split = torch.ops.aten.split.Tensor(mul, 8, 2);  mul = None
        getitem = split[0]
        getitem_1 = split[1];  split = None
        neg = torch.ops.aten.neg.default(getitem_1)
        cat = torch.ops.aten.cat.default([neg, getitem], -1)
        permute = torch.ops.aten.permute.default(primals_3, [1, 0])
        view = torch.ops.aten.reshape.default(cat, [6, 16])
        mm = torch.ops.aten.mm.default(view, permute)
        return (mm, primals_2, rsqrt)

def load_args(reader):
    buf0 = reader.storage('0123', 3200, device=device(type='cuda', index=0), dtype_hint=torch.bfloat16)
    reader.tensor(buf0, (100, 16), dtype=torch.bfloat16, is_leaf=True)  # primals_1
    buf1 = reader.storage('4567', 48)
    reader.tensor(buf1, (2, 3), dtype=torch.int64, is_leaf=True)  # primals_2
    buf2 = reader.storage('89ab', 512)
    reader.tensor(buf2, (5, 16), is_leaf=True)  # primals_3
load_args._version = 0
mod = Repro()
if __name__ == '__main__':
    from torch._dynamo.repro.after_aot import run_repro
    with torch.no_grad():
        run_repro(mod, load_args, accuracy=False, command='run', save_dir=None)
)";
    const Graph graph = read(text);
    QCOMPARE(output(graph).spec, (TensorSpec{DType::F32, {6, 5}}));
    QCOMPARE(graph.parameterCount(), 100.0 * 16 + 5 * 16);
    QCOMPARE(graph.outputs().size(), std::size_t{1});
    const Op& table = only(graph, OpKind::Gather);
    QCOMPARE(graph.tensor(table.outputs[0]).spec, (TensorSpec{DType::BF16, {2, 3, 16}}));
    QVERIFY(graph.warnings.empty());
}

void TestFx::symbols() {
    const std::string text = module(
        R"py(arg0_1: "Sym(s0)", arg1_1: "f32[s0, s1, 16][16*s1, 16, 1]cuda:0", w: "f32[8, 16]")py",
        R"py(        sym_size: "Sym(s1)" = torch.ops.aten.sym_size.int(arg1_1, 1)
        mul: "Sym(s0*s1)" = arg0_1 * sym_size;  arg0_1 = None
        view: "f32[s0*s1, 16]" = torch.ops.aten.view.default(arg1_1, [mul, 16])
        t: "f32[16, 8]" = torch.ops.aten.t.default(w)
        mm: "f32[s0*s1, 8]" = torch.ops.aten.mm.default(view, t)
        floordiv: "Sym((s0*s1//2))" = mul // 2
        view_1: "f32[(s0*s1//2), 2, 8]" = torch.ops.aten.view.default(mm, [floordiv, 2, 8])
        return (view_1,)
)py");
    ImportOptions options;
    options.batch = 6;
    options.sequence = 10;
    Graph graph = read(text, options);
    QCOMPARE(output(graph).spec.shape, (Shape{30, 2, 8}));
    QCOMPARE(graph.bindings.at("s0"), std::int64_t{6});
    QCOMPARE(graph.bindings.at("s1"), std::int64_t{10});
    QCOMPARE(graph.warnings.size(), std::size_t{2}); // two guesses
    options.bindings = {{"s0", 3}, {"s1", 4}};
    graph = read(text, options);
    QCOMPARE(output(graph).spec.shape, (Shape{6, 2, 8}));
    QVERIFY(graph.warnings.empty());
}

void TestFx::symbolsThatAreNotThere() {
    ImportOptions options;
    options.bindings = {{"s7", 3}};
    QVERIFY(message(kMlp, options).find("no symbolic dimension 's7'") != std::string::npos);
}

void TestFx::roles_data() {
    QTest::addColumn<QString>("parameter");
    QTest::addColumn<QString>("kind");
    QTest::newRow("weight by name") << "p_layers_0_weight: \"f32[8, 4]\"" << "Parameter";
    QTest::newRow("buffer by name") << "b_rope_cos: \"f32[8, 4]\"" << "Constant";
    QTest::newRow("dynamo's name")
        << "L_self_modules_up_parameters_weight_: \"f32[8, 4]\"" << "Parameter";
    QTest::newRow("whole numbers") << "primals_9: \"i64[8, 4]\"" << "Input";
    QTest::newRow("truths") << "primals_9: \"b8[8, 4]\"" << "Input";
    QTest::newRow("floats") << "primals_9: \"f32[8, 4]\"" << "Parameter";
    QTest::newRow("a number") << "primals_9: \"f32[]\"" << "Input";
    QTest::newRow("like the batch") << "primals_9: \"f32[2, 3, 4]\"" << "Input";
    QTest::newRow("mask of the batch") << "primals_9: \"f32[2, 1, 3, 3]\"" << "Input";
}

void TestFx::roles() {
    QFETCH(QString, parameter);
    QFETCH(QString, kind);
    const std::string name = parameter.section(':', 0, 0).toStdString();
    const Graph graph = read(module("tokens: \"i64[2, 3]\", " + parameter.toStdString(),
                                    "        neg = torch.ops.aten.neg.default(" + name +
                                        ")\n        return (tokens,)\n"));
    const auto op = graph.findOp(name);
    QVERIFY(op.has_value());
    QCOMPARE(QString::fromStdString(std::string(nameOf(graph.op(*op).kind))), kind);
}

void TestFx::backwardGraph() {
    const Graph graph = read(module(
        R"(primals_1: "f32[16, 32]", view: "f32[6, 16]", gelu: "f32[6, 32]", tangents_1: "f32[6, 32]")",
        R"(        gelu_backward: "f32[6, 32]" = torch.ops.aten.gelu_backward.default(tangents_1, gelu)
        t: "f32[16, 6]" = torch.ops.aten.t.default(view)
        mm: "f32[16, 32]" = torch.ops.aten.mm.default(t, gelu_backward)
        t_1: "f32[32, 16]" = torch.ops.aten.t.default(primals_1)
        mm_1: "f32[6, 16]" = torch.ops.aten.mm.default(gelu_backward, t_1)
        return (mm, mm_1)
)"));
    QVERIFY(graph.backwardIncluded);
    QCOMPARE(count(graph, OpKind::Parameter), std::size_t{1});
    QCOMPARE(count(graph, OpKind::Input), std::size_t{3});
    QCOMPARE(count(graph, OpKind::MatMul), std::size_t{2});
    QCOMPARE(graph.outputs().size(), std::size_t{2});
}

void TestFx::collectives() {
    const Graph graph = read(module(
        R"(x: "bf16[4, 8]", y: "bf16[8, 8]")",
        R"(        ag: "bf16[16, 8]" = torch.ops._c10d_functional.all_gather_into_tensor.default(x, 4, '3')
        w: "bf16[16, 8]" = torch.ops._c10d_functional.wait_tensor.default(ag)
        rs: "bf16[2, 8]" = torch.ops.c10d_functional.reduce_scatter_tensor.default(y, 'avg', 4, '3')
        w1: "bf16[2, 8]" = torch.ops.c10d_functional.wait_tensor.default(rs)
        ar: "bf16[16, 8]" = torch.ops._c10d_functional.all_reduce.default(w, 'max', '5')
        a2a: "bf16[6, 8]" = torch.ops._c10d_functional.all_to_all_single.default(x, [3, 3], [2, 2], '7')
        return (ar, w1, a2a)
)"));
    QCOMPARE(count(graph, OpKind::Collective), std::size_t{4});
    const auto named = [&](const char* name) -> const Attributes& {
        return graph.op(*graph.findOp(name)).attributes;
    };
    QCOMPARE(named("ag").text("function"), std::string("all-gather"));
    QCOMPARE(named("ag").integer("group_size", 0), std::int64_t{4});
    QCOMPARE(named("ag").integer("axis", -1), std::int64_t{0});
    QCOMPARE(named("rs").text("reduce"), std::string("avg"));
    QCOMPARE(named("ar").text("reduce"), std::string("max"));
    QVERIFY(!named("ar").has("group_size"));
    QCOMPARE(named("a2a").integer("group_size", 0), std::int64_t{2});
    QCOMPARE(output(graph, 1).spec.shape, (Shape{2, 8}));
    QVERIFY(graph.partition.has_value());
    QCOMPARE(graph.partition->devices, std::int64_t{8}); // groups of 4 and of 2
    QCOMPARE(graph.partition->mesh.size(), std::size_t{2});
    QCOMPARE(graph.facts.at("collectives"), std::string("4"));
}

void TestFx::collectiveOfOneRank() {
    const Graph graph = read(module(
        R"(x: "f32[4, 8]")",
        R"(        ag: "f32[4, 8]" = torch.ops._c10d_functional.all_gather_into_tensor.default(x, 1, '3')
        return (ag,)
)"));
    QCOMPARE(count(graph, OpKind::Collective), std::size_t{0});
}

void TestFx::unknownOpsAreOpaque() {
    const std::string body =
        R"(        a: "f32[4, 8]" = torch.ops.mylib.secret.default(x)
        b: "f32[4, 8]" = torch.ops.mylib.secret.default(a)
        c = torch.ops.aten.sort.default(b)
        d: "f32[4, 8]" = c[0]
        return (d,)
)";
    const Graph graph = read(module(R"(x: "f32[4, 8]")", body));
    QCOMPARE(count(graph, OpKind::Opaque), std::size_t{3});
    QCOMPARE(graph.warnings.size(), std::size_t{1});
    const std::string& warning = graph.warnings[0];
    QVERIFY2(warning.find("2 × mylib.secret.default") != std::string::npos, warning.c_str());
    QVERIFY2(warning.find("1 × aten.sort.default") != std::string::npos, warning.c_str());
    QCOMPARE(output(graph).spec, (TensorSpec{DType::F32, {4, 8}}));
}

void TestFx::contradictionsAreOpaque() {
    const Graph graph =
        read(module(R"(x: "f32[4, 8]")", R"(        a: "f32[4, 9]" = torch.ops.aten.relu.default(x)
        return (a,)
)"));
    QCOMPARE(only(graph, OpKind::Opaque).type, std::string("aten.relu.default"));
    QCOMPARE(output(graph).spec.shape, (Shape{4, 9}));
    QCOMPARE(graph.warnings.size(), std::size_t{1});
}

/// logits[arange, labels] and gather of one column: one entry a row.
void TestFx::labelLookUp() {
    for (
        const char* form :
        {R"(        rows: "i64[6]" = torch.ops.aten.arange.start(0, 6, device = device(type='cuda'))
        picked: "f32[6]" = torch.ops.aten.index.Tensor(x, [rows, labels])
        return (picked,)
)",
         R"(        column: "i64[6, 1]" = torch.ops.aten.unsqueeze.default(labels, 1)
        picked: "f32[6, 1]" = torch.ops.aten.gather.default(x, 1, column)
        return (picked,)
)"}) {
        const Graph graph = read(module(R"(x: "f32[6, 50]", labels: "i64[6]")", form));
        QCOMPARE(count(graph, OpKind::Opaque), std::size_t{0});
        const Op& look = only(graph, OpKind::GatherElements);
        QCOMPARE(look.attributes.integer("axis", -1), std::int64_t{1});
        QCOMPARE(graph.tensor(look.inputs[0]).spec.shape, (Shape{6, 50}));
        QCOMPARE(elementsOf(output(graph).spec.shape), 6.0);
    }
}

void TestFx::statisticsOnlyWhereRead() {
    const auto text = [](const char* read) {
        return module(
            R"(x: "f32[4, 8]", weight: "f32[8]", _bias: "f32[8]")",
            std::string(
                R"(        n = torch.ops.aten.native_layer_norm.default(x, [8], weight, _bias, 1e-05)
        y: "f32[4, 8]" = n[0]
        mean: "f32[4, 1]" = n[1]
        rstd: "f32[4, 1]" = n[2]
        return ()") +
                read + ",)\n");
    };
    const Graph alone = read(text("y"));
    QCOMPARE(count(alone, OpKind::Norm), std::size_t{1});
    QCOMPARE(count(alone, OpKind::Reduce), std::size_t{0});
    QCOMPARE(only(alone, OpKind::Norm).inputs.size(), std::size_t{3});
    const Graph both = read(text("y, rstd"));
    QCOMPARE(count(both, OpKind::Reduce), std::size_t{2});
    QCOMPARE(output(both, 1).spec.shape, (Shape{4, 1}));
}

/// Graphs of torch.compile before it knows aten: functions, methods, attributes, arithmetic.
void TestFx::functionsAndMethods() {
    const Graph graph = read(module(
        R"(L_x_: "f32[2, 3, 8]", L_self_modules_up_parameters_weight_: "f32[5, 8]")",
        R"(        x: "f32[2, 3, 5]" = torch._C._nn.linear(L_x_, L_self_modules_up_parameters_weight_, None)
        y: "f32[2, 3, 5]" = torch.nn.functional.gelu(x, approximate = 'tanh')
        z: "f32[6, 5]" = y.view(6, 5)
        a: "f32[6, 5]" = z + 1
        b: "f32[6, 5]" = 2 * (a - z)
        c: "f32[5, 6]" = b.T
        d: "f32[6]" = c[0]
        e: "f32[6]" = d.to(torch.float16).float()
        return (e, -inf)
)"));
    QVERIFY2(graph.warnings.empty(), graph.warnings.empty() ? "" : graph.warnings[0].c_str());
    QCOMPARE(output(graph).spec, (TensorSpec{DType::F32, {6}}));
    QCOMPARE(count(graph, OpKind::Parameter), std::size_t{1});
    QCOMPARE(only(graph, OpKind::MatMul).attributes.integer("transB", 0), std::int64_t{1});
}

/// Shapes from PyTorch's own documentation of each operator; the declared type is what is compared.
void TestFx::ops_data() {
    QTest::addColumn<QString>("parameters");
    QTest::addColumn<QString>("call");
    QTest::addColumn<QString>("result");
    QTest::addColumn<QString>("kind");
    const auto row = [](const char* name, const char* parameters, const char* call,
                        const char* result, const char* kind) {
        QTest::newRow(name) << parameters << call << result << kind;
    };
    constexpr const char* kX = "x: \"f32[2, 3, 4]\"";
    constexpr const char* kImage = "x: \"f32[2, 3, 8, 8]\", w: \"f32[6, 3, 3, 3]\"";
    row("baddbmm", "a: \"f32[2, 3, 5]\", b: \"f32[2, 3, 4]\", c: \"f32[2, 4, 5]\"",
        "aten.baddbmm.default(a, b, c, beta = 0.5, alpha = 2)", "f32[2, 3, 5]", "Elementwise");
    row("matmul", "a: \"f32[7, 3, 4]\", b: \"f32[4, 5]\"", "aten.matmul.default(a, b)",
        "f32[7, 3, 5]", "MatMul");
    row("einsum", "a: \"f32[2, 3, 4]\", b: \"f32[2, 5, 4]\"",
        "aten.einsum.default('...ij,...kj->...ik', [a, b])", "f32[2, 3, 5]", "Einsum");
    row("einsum without result", "a: \"f32[3, 4]\", b: \"f32[4, 5]\"",
        "aten.einsum.default('ij,jk', [a, b])", "f32[3, 5]", "Einsum");
    row("attention", "q: \"f32[2, 4, 6, 8]\", k: \"f32[2, 2, 5, 8]\", v: \"f32[2, 2, 5, 9]\"",
        "aten.scaled_dot_product_attention.default(q, k, v, None, 0.0, True, enable_gqa = True)",
        "f32[2, 4, 6, 9]", "Transpose");
    row("flatten", kX, "aten.flatten.using_ints(x, 1)", "f32[2, 12]", "Reshape");
    row("squeeze", "x: \"f32[2, 1, 4]\"", "aten.squeeze.dims(x, [1, 2])", "f32[2, 4]", "Reshape");
    row("unflatten", kX, "aten.unflatten.int(x, 2, [2, -1])", "f32[2, 3, 2, 2]", "Reshape");
    row("expand", "x: \"f32[3, 1]\"", "aten.expand.default(x, [2, -1, 4])", "f32[2, 3, 4]",
        "Expand");
    row("repeat", kX, "aten.repeat.default(x, [5, 1, 1, 2])", "f32[5, 2, 3, 8]", "Tile");
    row("stack", "x: \"f32[3, 4]\", y: \"f32[3, 4]\"", "aten.stack.default([x, y], -1)",
        "f32[3, 4, 2]", "Concat");
    row("slice", kX, "aten.slice.Tensor(x, 2, -3, 9223372036854775807, 2)", "f32[2, 3, 2]",
        "Slice");
    row("select", kX, "aten.select.int(x, 1, -1)", "f32[2, 4]", "Reshape");
    row("index_select", "x: \"f32[2, 3, 4]\", i: \"i64[7]\"", "aten.index_select.default(x, 1, i)",
        "f32[2, 7, 4]", "Gather");
    row("index", "x: \"f32[2, 3, 4]\", i: \"i64[7, 5]\"", "aten.index.Tensor(x, [None, i])",
        "f32[2, 7, 5, 4]", "Gather");
    row("repeat_interleave", kX, "aten.repeat_interleave.self_int(x, 2, 1)", "f32[2, 6, 4]",
        "Reshape");
    row("pad", kX, "aten.constant_pad_nd.default(x, [1, 2, 0, 3], 0.0)", "f32[2, 6, 7]", "Pad");
    row("sum of truths", "x: \"b8[2, 3]\"", "aten.sum.dim_IntList(x, [1])", "i64[2]", "Reduce");
    row("mean", kX, "aten.mean.dim(x, [-1, 0], True)", "f32[1, 3, 1]", "Reduce");
    row("amax", kX, "aten.amax.default(x, [1])", "f32[2, 4]", "Reduce");
    row("var", kX, "aten.var.correction(x, [2], correction = 0, keepdim = True)", "f32[2, 3, 1]",
        "Reduce");
    row("argmax", kX, "aten.argmax.default(x, -1)", "i64[2, 3]", "ArgReduce");
    row("cumsum", "x: \"i32[5]\"", "aten.cumsum.default(x, 0)", "i64[5]", "CumSum");
    row("log softmax", kX, "aten._log_softmax.default(x, -1, False)", "f32[2, 3, 4]", "Softmax");
    row("softmax gradient", "g: \"f32[2, 3]\", y: \"f32[2, 3]\"",
        "aten._softmax_backward_data.default(g, y, -1, torch.float32)", "f32[2, 3]", "Elementwise");
    row("promotion", "x: \"f16[2]\", y: \"bf16[2]\"", "aten.add.Tensor(x, y)", "f32[2]",
        "Elementwise");
    row("promotion of a number", "x: \"i64[2]\", y: \"f32[]\"", "aten.mul.Tensor(x, y)", "f32[2]",
        "Elementwise");
    row("comparison", kX, "aten.ge.Scalar(x, 0)", "b8[2, 3, 4]", "Elementwise");
    row("tril", kX, "aten.tril.default(x)", "f32[2, 3, 4]", "Trilu");
    row("arange", kX, "aten.arange.start_step(2, 9, 3, dtype = torch.int32)", "i32[3]", "Generate");
    row("full_like", kX, "aten.full_like.default(x, 2, dtype = torch.bool)", "b8[2, 3, 4]",
        "Generate");
    row("convolution", kImage,
        "aten.convolution.default(x, w, None, [2, 2], [1, 1], [1, 1], False, [0, 0], 1)",
        "f32[2, 6, 4, 4]", "Conv");
    row("transposed convolution", "x: \"f32[2, 3, 4, 4]\", w: \"f32[3, 6, 2, 2]\"",
        "aten.convolution.default(x, w, None, [2, 2], [0, 0], [1, 1], True, [0, 0], 1)",
        "f32[2, 6, 8, 8]", "ConvTranspose");
    row("scatter", "x: \"f32[3, 5]\", i: \"i64[3, 2]\", s: \"f32[3, 2]\"",
        "aten.scatter_add.default(x, 1, i, s)", "f32[3, 5]", "Scatter");
    row("nll loss", "x: \"f32[6, 9]\", y: \"i64[6]\"", "aten.nll_loss.default(x, y)", "f32[]",
        "Elementwise");
    row("pool", kImage, "aten.avg_pool2d.default(x, [2, 2], [2, 2])", "f32[2, 3, 4, 4]", "Pool");
    row("cross entropy", "x: \"f32[6, 9]\", y: \"i64[6]\"", "aten.cross_entropy_loss.default(x, y)",
        "f32[]", "CrossEntropy");
}

void TestFx::ops() {
    QFETCH(QString, parameters);
    QFETCH(QString, call);
    QFETCH(QString, result);
    QFETCH(QString, kind);
    // Once without the type, so that it is inferred, and once with it, so that it is confirmed.
    const auto text = [&](bool typed) {
        const QString annotation = typed ? ": \"" + result + "\"" : QString();
        return module(parameters.toStdString(), ("        out" + annotation + " = torch.ops." +
                                                 call + "\n        return (out,)\n")
                                                    .toStdString());
    };
    for (const bool typed : {false, true}) {
        const Graph graph = read(text(typed));
        QVERIFY2(graph.warnings.empty(), graph.warnings.empty() ? "" : graph.warnings[0].c_str());
        const TensorSpec& spec = output(graph).spec;
        const QString dtype = result.section('[', 0, 0), shape = result.section('[', 1);
        QCOMPARE(torch::dtypeFromFx(dtype.toStdString()), std::optional(spec.dtype));
        QCOMPARE(QString::fromStdString(toString(spec.shape)),
                 "[" + shape.simplified().remove(' '));
        const Op& producer = graph.op(output(graph).producer);
        QCOMPARE(QString::fromStdString(std::string(nameOf(producer.kind))), kind);
    }
}

void TestFx::severalGraphs() {
    const Graph graph = read(std::string(kMlp) + "\n" + kMlp);
    QCOMPARE(graph.warnings.size(), std::size_t{1});
    QVERIFY(graph.warnings[0].find("2 graphs") != std::string::npos);
}

void TestFx::errors_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("mentions");
    const auto row = [](const char* name, const std::string& text, const char* mentions) {
        QTest::newRow(name) << QString::fromStdString(text) << mentions;
    };
    row("no function", "class GraphModule(torch.nn.Module):\n    pass\n", "no forward");
    row("no return", module("x: \"f32[2]\"", "        y = torch.ops.aten.neg.default(x)\n"),
        "without a return");
    row("no shapes", module("x", "        return (x,)\n"), "does not say what shapes");
    row("undefined name",
        module("x: \"f32[2]\"", "        y: \"f32[2]\" = torch.ops.aten.neg.default(x)\n"
                                "        return (z.abs(), y)\n"),
        "'z");
    row("unknown op without a type",
        module("x: \"f32[2]\"", "        y = torch.ops.a.b.default(x)\n        return (y,)\n"),
        "line 3");
    row("shapes that do not fit",
        module("x: \"f32[2]\"",
               "        y = torch.ops.aten.view.default(x, [3])\n        return (y,)\n"),
        "cannot reshape");
    row("parameter twice", module("x: \"f32[2]\", x: \"f32[2]\"", "        return (x,)\n"),
        "twice");
    row("bracket", module("x: \"f32[2]\"", "        y = torch.neg(x]\n"), "line 3");
    row("two values", module("x: \"f32[2]\"", "        y = x x\n"), "expected to end");
    row("number", module("x: \"f32[2]\"", "        y = torch.neg(12ab)\n"), "not a number");
}

void TestFx::errors() {
    QFETCH(QString, text);
    QFETCH(QString, mentions);
    const std::string error = message(text.toStdString());
    QVERIFY2(error.find(mentions.toStdString()) != std::string::npos, error.c_str());
    QVERIFY2(error.find("test.py") != std::string::npos, error.c_str());
}

void TestFx::cutOffAnywhere() {
    const std::string whole = kMlp;
    const std::size_t end = whole.rfind("return (getitem, primals_3, view, getitem_1)");
    for (std::size_t length = 0; length < end; ++length)
        QVERIFY(message(whole.substr(0, length)) != "no error");
}

void TestFx::changedAnywhere() {
    const std::string whole = kMlp;
    for (std::size_t at = 0; at < whole.size(); ++at)
        for (const char c : {'(', ']', '"', '\n', '\0', '9', '#', '\xff'}) {
            std::string text = whole;
            text[at] = c;
            message(text); // an error or a graph, but no crash
        }
}

void TestFx::hostile_data() {
    QTest::addColumn<QByteArray>("text");
    const auto row = [](const char* name, const std::string& text) {
        QTest::newRow(name) << QByteArray::fromStdString(text);
    };
    const auto body = [](const std::string& line) {
        return module("x: \"f32[2, 3]\"", "        y = " + line + "\n        return (y,)\n");
    };
    const std::string many(100'000, '[');
    row("brackets", body(many));
    row("closed brackets", body(many + std::string(100'000, ']')));
    row("signs", body(std::string(100'000, '-') + "1"));
    std::string sum = "1", chain = "x", power = "2";
    for (int i = 0; i < 50'000; ++i) {
        sum += "+1";
        chain += ".T";
        power += "**2";
    }
    row("sum", body(sum));
    row("attributes", body(chain));
    row("powers", body(power));
    row("large dimensions",
        module("x: \"f32[9223372036854775807, 9223372036854775807]\"", "        return (x,)\n"));
    row("negative dimension", module("x: \"f32[-4]\"", "        return (x,)\n"));
    row("overflowing view", body("torch.ops.aten.view.default(x, [9223372036854775807, 2, -1])"));
    row("overflowing repeat",
        body("torch.ops.aten.repeat.default(x, [9223372036854775807, 9223372036854775807])"));
    row("overflowing range", body("torch.ops.aten.arange.start(0, 1e300)"));
    row("many parts", body("torch.ops.aten.split.Tensor(x, 1, 1)[4000000000]"));
    row("negative split", body("torch.ops.aten.split_with_sizes.default(x, [-5, 8], 1)"));
    row("negative axis", body("torch.ops.aten.permute.default(x, [-9, 9223372036854775807])"));
    row("lowest number", body("torch.ops.aten.select.int(x, 0, -9223372036854775807 - 1)"));
    row("group of none",
        body("torch.ops._c10d_functional.reduce_scatter_tensor.default(x, 'sum', 0, '1')"));
}

void TestFx::hostile() {
    QFETCH(QByteArray, text);
    const std::string error = message(text.toStdString());
    QVERIFY2(error != "no error", "accepted");
}

SHARDLENS_TEST(TestFx)

} // namespace tst_fx

#include "tst_fx.moc"
