// SPDX-License-Identifier: Apache-2.0
// Plans read from partitioned programs: Megatron's GPT of the shared data against pins that say
// what Megatron does, and small pairs written here, right and wrong ones.
#include "core/error.h"
#include "core/import/fx_text.h"
#include "core/plan/pins.h"
#include "core/plan/pricing.h"
#include "core/plan/twin_match.h"
#include "tests/test_program.h"

#include <QTest>

#include <filesystem>
#include <map>

namespace tst_twin_match {

using namespace shardlens;
namespace fs = std::filesystem;

namespace {

const fs::path kFolder = fs::path(SHARDLENS_SHARED) / "data" / "models" / "fx";

Graph read(const std::string& parameters, const std::string& body) {
    return importFx("class GraphModule(torch.nn.Module):\n    def forward(self, " + parameters +
                        "):\n" + body,
                    "test.py", {});
}

/// x up gelu down + x, whole.
Graph wholeMlp() {
    return read(
        R"(p_up: "f32[32, 16]", p_down: "f32[16, 32]", x: "f32[4, 8, 16]", ids: "i64[4, 8]")",
        R"(        t: "f32[16, 32]" = torch.ops.aten.t.default(p_up)
        up: "f32[4, 8, 32]" = torch.ops.aten.matmul.default(x, t)
        gelu: "f32[4, 8, 32]" = torch.ops.aten.gelu.default(up)
        t_1: "f32[32, 16]" = torch.ops.aten.t.default(p_down)
        down: "f32[4, 8, 16]" = torch.ops.aten.matmul.default(gelu, t_1)
        add: "f32[4, 8, 16]" = torch.ops.aten.add.Tensor(down, x)
        tanh: "f32[4, 8, 16]" = torch.ops.aten.tanh.default(add)
        return (tanh,)
)");
}

/// The same on one of two devices; `reduce` stands between the second product and the addition.
Graph localMlp(const std::string& reduce) {
    return read(
        R"(p_up: "f32[16, 16]", p_down: "f32[16, 16]", x: "f32[4, 8, 16]", ids: "i64[4, 8]")",
        R"(        t: "f32[16, 16]" = torch.ops.aten.t.default(p_up)
        up: "f32[4, 8, 16]" = torch.ops.aten.matmul.default(x, t)
        gelu: "f32[4, 8, 16]" = torch.ops.aten.gelu.default(up)
        t_1: "f32[16, 16]" = torch.ops.aten.t.default(p_down)
        down: "f32[4, 8, 16]" = torch.ops.aten.matmul.default(gelu, t_1)
)" + reduce +
            R"(        add: "f32[4, 8, 16]" = torch.ops.aten.add.Tensor(whole, x)
        tanh: "f32[4, 8, 16]" = torch.ops.aten.tanh.default(add)
        return (tanh,)
)");
}

constexpr const char* kReduce =
    "        sum_1: \"f32[4, 8, 16]\" = torch.ops._c10d_functional.all_reduce.default(down, 'sum', "
    "'0')\n        whole: \"f32[4, 8, 16]\" = "
    "torch.ops._c10d_functional.wait_tensor.default(sum_1)\n";

std::string choice(const TwinPlan& twin, std::string_view op) {
    const PlanContext& context = *twin.plan.context;
    const auto id = context.graph->findOp(op);
    if (!id) return "no such op";
    return toString(twin.plan.decisions.op[*id], context.pricing->op(*id).rule, context.mesh);
}

bool anyContains(const std::vector<std::string>& lines, std::string_view part) {
    return std::ranges::any_of(
        lines, [part](const std::string& line) { return line.find(part) != std::string::npos; });
}

const char* firstOf(const std::vector<std::string>& lines) {
    return lines.empty() ? "" : lines.front().c_str();
}

} // namespace

class TestTwinMatch : public QObject {
    Q_OBJECT

private slots:
    void megatronIsRecognised();
    void megatronEqualsItsPins();
    void megatronsCollectivesLayerByLayer();
    void columnThenRow();
    void missingReductionIsNamed();
    void partialValuesPassLinearOps();
    void needlessReductionIsNamed();
    void reductionTooMuchForThePlan();
    void dataParallel();
    void fullySharded();
    void cutThatNoChoiceExplains();
    void graphsThatAreNoPair();
    void wholeGraphsDoNotGather();
    void sameGraphTwice();
    void reportsNameWhatWasFound();

private:
    static std::optional<TwinPlan> megatron();
};

std::optional<TwinPlan> TestTwinMatch::megatron() {
    const fs::path whole = kFolder / "gpt_paral1_layer8_fw.g0.r0.py.txt";
    if (!fs::exists(whole)) return std::nullopt;
    return readTwinPlan(importModel(whole),
                        importModel(kFolder / "gpt_paral2_layer8_fw.g0.r0.py.txt"));
}

void TestTwinMatch::megatronIsRecognised() {
    const auto twin = megatron();
    if (!twin) QSKIP("the shared folder of real models is not beside the checkout");
    QCOMPARE(twin->devices, std::int64_t{2});
    QCOMPARE(QString::fromStdString(twin->recognised),
             QString("tensor parallel 2, sequence parallel 2, vocabulary parallel 2"));
    QVERIFY2(twin->mismatches.empty(), firstOf(twin->mismatches));
    QVERIFY2(twin->unreduced.empty(), firstOf(twin->unreduced));
    QCOMPARE(twin->matched, twin->plan.context->graph->ops().size());
    QCOMPARE(twin->plan.context->folding->runs[0].count, std::size_t{8});
}

/// What Megatron-LM does with --tensor-model-parallel-size 2 --sequence-parallel (Shoeybi et al.
/// 2019, Korthikanti et al. 2022), as pins on the model of one device. The factors of tensors with
/// three dimensions are called b, s, h by place; here the sequence comes first.
void TestTwinMatch::megatronEqualsItsPins() {
    const auto twin = megatron();
    if (!twin) QSKIP("the shared folder of real models is not beside the checkout");
    const std::string linear = "class:layers.linear_with_grad_accumulation_and_async_allreduce/";
    const std::vector<Pin> pins{
        // Vocabulary: the table by rows, the logits by columns, the loss on parts of the logits.
        {"primals_1", "d0@tp"},
        {"layers.forward/index", "v@tp"},
        {"layers.linear*/mm_32", "n@tp"},
        {"cross_entropy.*/max_1", "h@tp"},
        {"cross_entropy.*/sub", "h@tp"},
        {"cross_entropy.*/exp", "h@tp"},
        {"cross_entropy.*/sum_1", "h@tp"},
        // Positions and the sum of both embeddings on every device, then along the sequence.
        {"primals_101", "replicated"},
        {"language_model_embedding.forward/embedding", "replicated"},
        {"language_model_embedding.forward/add", "replicated"},
        {"language_model_embedding.forward/native_dropout", "b@tp"},
        // Layer norms, dropouts and residuals along the sequence.
        {"*/fused_layer_norm_affine_fwd*", "b@tp"},
        {"fused_bias_dropout._bias_dropout_add_func/*", "b@tp"},
        // QKV by columns, the heads apart, the output projection by rows.
        {linear + "mm", "n@tp"},
        {"class:primals_4", "d0@tp"},
        {"class:primals_5", "d0@tp"},
        {linear + "add_1", "h@tp"},
        {"attention.get_query_key_value_tensors/*", "n@tp"},
        {"dot_product_attention.forward/baddbmm*.matmul", "b1@tp"},
        {"activation.forward/_softmax*", "s@tp"},
        {"class:dot_product_attention.forward/native_dropout_1", "s@tp"},
        {"dot_product_attention.forward/bmm*", "b1@tp"},
        {linear + "mm_1", "k@tp"},
        {"class:primals_6", "d1@tp"},
        {"class:primals_7", "replicated"},
        // The MLP by columns, then by rows.
        {linear + "mm_2", "n@tp"},
        {"class:primals_10", "d0@tp"},
        {"class:primals_11", "d0@tp"},
        {"mlp.forward/*", "h@tp"},
        {linear + "mm_3", "k@tp"},
        {"class:primals_12", "d1@tp"},
        {"class:primals_13", "replicated"},
    };
    const PlanContext& context = *twin->plan.context;
    const FixedChoices fixed = fixedChoices(context, pins); // each names ops and is legal there
    std::size_t pinned = 0;
    for (OpId id = 0; id < fixed.size(); ++id) {
        const Op& op = context.graph->op(id);
        if (fixed[id] < 0) {
            for (const OpKind kind :
                 {OpKind::MatMul, OpKind::Norm, OpKind::Dropout, OpKind::Softmax, OpKind::Gather})
                QVERIFY2(op.kind != kind, op.name.c_str());
            continue;
        }
        ++pinned;
        const PricedOp& priced = context.pricing->op(id);
        const Choice& wanted = priced.choices[static_cast<std::size_t>(fixed[id])];
        QVERIFY2(twin->plan.decisions.op[id] == wanted,
                 qPrintable(QString("%1: read %2, pinned %3")
                                .arg(op.name.c_str(), choice(*twin, op.name).c_str(),
                                     toString(wanted, priced.rule, context.mesh).c_str())));
    }
    QVERIFY2(pinned >= 8 * 27 + 13, qPrintable(QString::number(pinned)));
}

void TestTwinMatch::megatronsCollectivesLayerByLayer() {
    const auto twin = megatron();
    if (!twin) QSKIP("the shared folder of real models is not beside the checkout");
    QVERIFY2(twin->unexplained.empty(), firstOf(twin->unexplained));
    std::map<CollectiveKind, std::size_t> planned;
    for (const TwinCollectives& c : twin->collectives) {
        QCOMPARE(c.plan, c.local);
        planned[c.kind] = c.plan;
    }
    // The counts of calls in the text of the local program.
    QCOMPARE(planned[CollectiveKind::AllGather], std::size_t{17});
    QCOMPARE(planned[CollectiveKind::ReduceScatter], std::size_t{16});
    QCOMPARE(planned[CollectiveKind::AllReduce], std::size_t{4});
    QCOMPARE(planned.size(), std::size_t{3});
    // Two gathers and two scatters a layer, of 12,582,912-byte halves of [1536, 8, 768] in fp32.
    const Folding& folding = *twin->plan.context->folding;
    std::map<std::pair<CollectiveKind, std::uint32_t>, std::size_t> layers;
    for (const PlannedCollective& c : twin->plan.collectives) {
        if (c.phase != Phase::Forward || c.step.kind == CollectiveKind::AllReduce) continue;
        QCOMPARE(c.step.bytes, 1536.0 * 8 * 768 * 4);
        const OpId reader = c.to == kNoOp ? c.from : c.to;
        if (folding.classes[folding.classOf[reader]].run == 0)
            ++layers[{c.step.kind, folding.instanceOf[reader]}];
    }
    QCOMPARE(layers.size(), std::size_t{16});
    for (const auto& [place, count] : layers) QCOMPARE(count, std::size_t{2});
}

void TestTwinMatch::columnThenRow() {
    const TwinPlan twin = readTwinPlan(wholeMlp(), localMlp(kReduce));
    QCOMPARE(twin.devices, std::int64_t{2});
    QCOMPARE(choice(twin, "up"), std::string("n@tp"));
    QCOMPARE(choice(twin, "gelu"), std::string("h@tp"));
    QCOMPARE(choice(twin, "down"), std::string("k@tp"));
    QCOMPARE(choice(twin, "add"), std::string("replicated"));
    QCOMPARE(choice(twin, "p_up"), std::string("d0@tp"));
    QCOMPARE(choice(twin, "p_down"), std::string("d1@tp"));
    QVERIFY2(twin.mismatches.empty(), firstOf(twin.mismatches));
    QVERIFY(twin.unreduced.empty() && twin.unexplained.empty() && twin.localOnly.empty());
    QCOMPARE(twin.recognised, std::string("tensor parallel 2"));
    QCOMPARE(twin.plan.context->mesh.toString(), std::string("tp=2"));
    QCOMPARE(twin.collectives.size(), std::size_t{1});
    QCOMPARE(twin.collectives[0].local, std::size_t{1});
    QCOMPARE(twin.collectives[0].plan, std::size_t{1});
}

/// The residual is added to one device's part of the product.
void TestTwinMatch::missingReductionIsNamed() {
    const TwinPlan twin = readTwinPlan(
        wholeMlp(),
        localMlp("        whole: \"f32[4, 8, 16]\" = torch.ops.aten.clone.default(down)\n"));
    QCOMPARE(twin.unreduced.size(), std::size_t{1});
    QVERIFY2(twin.unreduced[0].find("'add'") != std::string::npos, firstOf(twin.unreduced));
    QVERIFY2(twin.unreduced[0].find("'down'") != std::string::npos, firstOf(twin.unreduced));
    QVERIFY(anyContains(twin.unexplained, "The plan needs an all-reduce of 'down'"));
    QCOMPARE(twin.collectives[0].local, std::size_t{0});
}

/// Scaling and moving a part is right; the reduction may come after it.
void TestTwinMatch::partialValuesPassLinearOps() {
    const auto body = [](const char* half, const char* reduce, const char* result) {
        return std::string("        t: \"f32[") + half +
               ", 16]\" = torch.ops.aten.t.default(p_w)\n"
               "        mm: \"f32[8, 16]\" = torch.ops.aten.mm.default(x, t)\n"
               "        mul: \"f32[8, 16]\" = torch.ops.aten.mul.Tensor(mm, 0.5)\n"
               "        turned: \"f32[16, 8]\" = torch.ops.aten.t.default(mul)\n" +
               reduce + "        relu: \"f32[16, 8]\" = torch.ops.aten.relu.default(" + result +
               ")\n        return (relu,)\n";
    };
    const Graph whole = read(R"(p_w: "f32[16, 32]", x: "f32[8, 32]")", body("32", "", "turned"));
    const std::string parameters = R"(p_w: "f32[16, 16]", x: "f32[8, 16]")";
    constexpr const char* kLate =
        "        ar: \"f32[16, 8]\" = torch.ops._c10d_functional.all_reduce.default(turned, 'sum', "
        "'0')\n";
    const TwinPlan right = readTwinPlan(whole, read(parameters, body("16", kLate, "ar")));
    QVERIFY2(right.unreduced.empty(), firstOf(right.unreduced));
    QVERIFY2(right.unexplained.empty(), firstOf(right.unexplained));
    QCOMPARE(choice(right, "mm"), std::string("k@tp"));
    const TwinPlan wrong = readTwinPlan(whole, read(parameters, body("16", "", "turned")));
    QCOMPARE(wrong.unreduced.size(), std::size_t{1});
    QVERIFY(wrong.unreduced[0].find("'relu'") != std::string::npos);
}

/// Summing what every device has whole doubles it.
void TestTwinMatch::needlessReductionIsNamed() {
    const std::string text = std::string(kReduce) +
                             "        again: \"f32[4, 8, 16]\" = "
                             "torch.ops._c10d_functional.all_reduce.default(whole, 'sum', '0')\n";
    const Graph local = localMlp(text + "        whole: \"f32[4, 8, 16]\" = "
                                        "torch.ops.aten.clone.default(again)\n");
    const TwinPlan twin = readTwinPlan(wholeMlp(), local);
    QVERIFY2(anyContains(twin.mismatches, "'again' sums 'sum_1'"), firstOf(twin.mismatches));
}

void TestTwinMatch::reductionTooMuchForThePlan() {
    const Graph whole = read(R"(p_w: "f32[16, 16]", x: "f32[8, 16]")",
                             "        y: \"f32[8, 16]\" = torch.ops.aten.relu.default(x)\n"
                             "        mm: \"f32[8, 16]\" = torch.ops.aten.mm.default(y, p_w)\n"
                             "        return (mm,)\n");
    const Graph local = read(
        R"(p_w: "f32[16, 8]", x: "f32[8, 16]")",
        "        y: \"f32[8, 16]\" = torch.ops.aten.relu.default(x)\n"
        "        m: \"f32[8, 16]\" = torch.ops._c10d_functional.all_reduce.default(y, 'max', '0')\n"
        "        mm: \"f32[8, 8]\" = torch.ops.aten.mm.default(m, p_w)\n"
        "        return (mm,)\n");
    const TwinPlan twin = readTwinPlan(whole, local);
    QVERIFY(anyContains(twin.unexplained, "The local program has an all-reduce of 'y'"));
}

void TestTwinMatch::dataParallel() {
    const auto graph = [](const char* rows) {
        const std::string r = rows;
        return read("p_w: \"f32[16, 16]\", x: \"f32[" + r + ", 16]\"",
                    "        mm: \"f32[" + r + ", 16]\" = torch.ops.aten.mm.default(x, p_w)\n" +
                        "        relu: \"f32[" + r +
                        ", 16]\" = torch.ops.aten.relu.default(mm)\n        return (relu,)\n");
    };
    const TwinPlan twin = readTwinPlan(graph("32"), graph("8"));
    QCOMPARE(twin.devices, std::int64_t{4});
    QCOMPARE(twin.recognised, std::string("data parallel 4"));
    QCOMPARE(choice(twin, "mm"), std::string("m@tp"));
    QVERIFY(twin.mismatches.empty());
    // The gradient of the weight is summed once a step.
    QVERIFY(std::ranges::any_of(twin.plan.collectives, [](const PlannedCollective& c) {
        return c.phase == Phase::Step && c.step.kind == CollectiveKind::AllReduce;
    }));
}

/// A parameter stored in parts and gathered before its use.
void TestTwinMatch::fullySharded() {
    const Graph whole = read(R"(p_w: "f32[16, 16]", x: "f32[8, 16]")",
                             "        mm: \"f32[8, 16]\" = torch.ops.aten.mm.default(x, p_w)\n"
                             "        return (mm,)\n");
    const Graph local = read(
        R"(p_w: "f32[4, 16]", x: "f32[2, 16]")",
        "        w: \"f32[16, 16]\" = torch.ops._c10d_functional.all_gather_into_tensor.default("
        "p_w, 4, '0')\n"
        "        mm: \"f32[2, 16]\" = torch.ops.aten.mm.default(x, w)\n        return (mm,)\n");
    const TwinPlan twin = readTwinPlan(whole, local);
    QCOMPARE(choice(twin, "p_w"), std::string("d0@tp"));
    QCOMPARE(choice(twin, "mm"), std::string("m@tp"));
    QVERIFY2(twin.unexplained.empty(), firstOf(twin.unexplained));
    QCOMPARE(twin.collectives[0].kind, CollectiveKind::AllGather);
}

/// A third of a dimension, where everything else is halved.
void TestTwinMatch::cutThatNoChoiceExplains() {
    const Graph whole = read(R"(p_w: "f32[12, 16]", x: "f32[6, 16]")",
                             "        y: \"f32[6, 16]\" = torch.ops.aten.relu.default(x)\n"
                             "        z: \"f32[12, 16]\" = torch.ops.aten.relu.default(p_w)\n"
                             "        return (y, z)\n");
    const Graph local = read(R"(p_w: "f32[6, 16]", x: "f32[2, 16]")",
                             "        y: \"f32[2, 16]\" = torch.ops.aten.relu.default(x)\n"
                             "        z: \"f32[6, 16]\" = torch.ops.aten.relu.default(p_w)\n"
                             "        return (y, z)\n");
    const TwinPlan twin = readTwinPlan(whole, local);
    QCOMPARE(twin.devices, std::int64_t{2});
    QVERIFY2(anyContains(twin.mismatches, "'y' (Elementwise) explains the parts [2,16] of [6,16]"),
             firstOf(twin.mismatches));
    QCOMPARE(choice(twin, "z"), std::string("d0@tp"));
}

void TestTwinMatch::graphsThatAreNoPair() {
    const Graph other =
        read(R"(x: "f32[3, 5]")", "        y: \"f32[3, 5]\" = torch.ops.aten.sin.default(x)\n"
                                  "        return (y,)\n");
    const TwinPlan twin = readTwinPlan(wholeMlp(), other);
    QVERIFY(anyContains(twin.mismatches, "has no counterpart"));
    QVERIFY(anyContains(twin.mismatches, "inputs and parameters"));
    Graph none;
    QVERIFY_EXCEPTION_THROWN(readTwinPlan(wholeMlp(), none), InputError);
}

void TestTwinMatch::wholeGraphsDoNotGather() {
    const Graph gathers =
        read(R"(x: "f32[4, 8]")", "        y: \"f32[8, 8]\" = "
                                  "torch.ops._c10d_functional.all_gather_into_tensor.default(x, 2, "
                                  "'0')\n        return (y,)\n");
    QVERIFY_EXCEPTION_THROWN(readTwinPlan(gathers, gathers), InputError);
}

void TestTwinMatch::sameGraphTwice() {
    const TwinPlan twin = readTwinPlan(wholeMlp(), wholeMlp());
    QCOMPARE(twin.devices, std::int64_t{1});
    QVERIFY(twin.recognised.empty());
    QVERIFY(twin.mismatches.empty() && twin.collectives.empty());
    QVERIFY(toText(twin).find("nothing is cut") != std::string::npos);
}

void TestTwinMatch::reportsNameWhatWasFound() {
    const TwinPlan twin = readTwinPlan(
        wholeMlp(),
        localMlp("        whole: \"f32[4, 8, 16]\" = torch.ops.aten.clone.default(down)\n"));
    for (const std::string& report : {toText(twin), toJson(twin)}) {
        QVERIFY(report.find("tensor parallel 2") != std::string::npos);
        QVERIFY(report.find("k@tp") != std::string::npos);
        QVERIFY(report.find("a reduction is missing before it") != std::string::npos);
    }
    QCOMPARE(toJson(twin),
             toJson(readTwinPlan(wholeMlp(), localMlp("        whole: \"f32[4, 8, 16]\" = "
                                                      "torch.ops.aten.clone.default(down)\n"))));
}

SHARDLENS_TEST(TestTwinMatch)

} // namespace tst_twin_match

#include "tst_twin_match.moc"
