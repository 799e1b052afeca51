// SPDX-License-Identifier: Apache-2.0
// Opcodes of HLO one by one, and the structure around them: calls, fusions, loops, tuples,
// collectives, and what the inputs are. Meanings are those of openxla.org/xla/operation_semantics.
#include "core/fold/folding.h"
#include "core/model/canonical.h"
#include "tests/core/import/hlo_testing.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_hlo_ops {

using namespace shardlens;
using namespace shardlens::test::hlo;

namespace {

using Ints = std::vector<std::int64_t>;

std::string attribute(const Op& op, const char* name) {
    return op.attributes.text(name);
}

} // namespace

class TestHloOps : public QObject {
    Q_OBJECT

private slots:
    // --- text -----------------------------------------------------------------------------------

    /// Layouts, comments, types in front of operands, names without '%', sections, metadata.
    void lexing() {
        const Graph graph = importText(
            "HloModule jit_f.1, entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{1,0}}\n\n"
            "FileNames\n1 \"a {b}.py\"\n\nStackFrames\n1 {file_location_id=1}\n\n"
            "ENTRY main.5 {\n"
            "  Arg_0.1 = f32[2,<=3]{1,0:T(8,128)(2,1)S(1)} parameter(0), metadata={op_name=\"p "
            "\\\"q\\\" }\" stack_frame_id=1}\n"
            "  k.9 = u32[]{:T(128)} constant(7)\n"
            "  // a comment\n"
            "  c.2 = (f32[2,3]{1,0}, /*index=1*/u32[]) tuple(f32[2,3]{1,0} Arg_0.1, "
            "/*index=1*/u32[] k.9)\n"
            "  g.3 = f32[2,3]{1,0} get-tuple-element((f32[2,3]{1,0}, u32[]) %c.2), index=0\n"
            "  ROOT n.4 = f32[2,3]{1,0} negate(g.3), backend_config={\"a\":[\"}\"]}, "
            "frontend_attributes={xla.sdy.sharding=\"#sdy<[{\\\"data\\\"}]>\"}\n"
            "}, execution_thread=\"main\"\n");
        QCOMPARE(graph.name, std::string("jit_f.1"));
        QCOMPARE(attribute(outputOp(graph), "function"), std::string("neg"));
        QCOMPARE(graph.tensor(0).spec.shape, (Shape{2, 3}));
        QCOMPARE(graph.op(0).name, std::string("p \"q\" }"));
    }
    void types_data() {
        QTest::addColumn<QString>("type");
        QTest::addColumn<int>("bits");
        for (const auto& [type, bits] : {std::pair{"pred", 8},
                                         {"s4", 4},
                                         {"u4", 4},
                                         {"s8", 8},
                                         {"u8", 8},
                                         {"s16", 16},
                                         {"u16", 16},
                                         {"s32", 32},
                                         {"u32", 32},
                                         {"s64", 64},
                                         {"u64", 64},
                                         {"f16", 16},
                                         {"bf16", 16},
                                         {"f32", 32},
                                         {"f64", 64},
                                         {"f8e4m3fn", 8},
                                         {"f8e5m2", 8},
                                         {"f8e4m3b11fnuz", 8},
                                         {"f8e8m0fnu", 8},
                                         {"f4e2m1fn", 4},
                                         {"c64", 64},
                                         {"c128", 128}})
            QTest::addRow("%s", type) << type << bits;
    }
    void types() {
        QFETCH(QString, type);
        QFETCH(int, bits);
        const Graph graph =
            importText(moduleOf("  ROOT %x = " + type.toStdString() + "[2]{0} parameter(0)\n"));
        QCOMPARE(bitsOf(graph.tensor(0).spec.dtype), bits);
    }

    // --- products -------------------------------------------------------------------------------

    /// Batch letters first, then the rest of each side.
    void dots() {
        const Graph graph = importText(moduleOf(
            "  %a = f32[2,5,3]{2,1,0} parameter(0)\n  %b = f32[2,3,7]{2,1,0} parameter(1)\n"
            "  ROOT %c = bf16[2,5,7]{2,1,0} dot(%a, %b), lhs_batch_dims={0}, "
            "lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}\n"));
        const Op& op = outputOp(graph);
        QCOMPARE(attribute(op, "equation"), std::string("acb,abd->acd"));
        QVERIFY(graph.tensor(op.outputs[0]).spec.dtype == DType::BF16);
        const OpView view = viewOf(graph, static_cast<OpId>(graph.ops().size() - 1));
        QCOMPARE(forwardWork(view, factorRule(view)).flops, 2.0 * 2 * 5 * 3 * 7);
    }
    void dotThatDoesNotFitIsOpaque() {
        const Graph graph = importText(
            moduleOf("  %a = f32[2,3]{1,0} parameter(0)\n  %b = f32[4,5]{1,0} parameter(1)\n"
                     "  ROOT %c = f32[2,5]{1,0} dot(%a, %b), lhs_contracting_dims={1}, "
                     "rhs_contracting_dims={0}\n"));
        QVERIFY(outputOp(graph).kind == OpKind::Opaque);
        QCOMPARE(graph.warnings.size(), std::size_t{1});
    }
    /// NHWC with an HWIO kernel, stride 2: the catalogue's Conv between transposes.
    void convolutionOfImages() {
        const Graph graph = importText(moduleOf(
            "  %x = f32[4,16,16,8]{3,2,1,0} parameter(0)\n"
            "  %w = f32[3,3,8,32]{3,2,1,0} parameter(1)\n"
            "  ROOT %y = f32[4,8,8,32]{3,2,1,0} convolution(%x, %w), window={size=3x3 stride=2x2 "
            "pad=0_1x0_1}, dim_labels=b01f_01io->b01f\n"));
        const auto conv = std::ranges::find(graph.ops(), OpKind::Conv, &Op::kind);
        QVERIFY(conv != graph.ops().end());
        QCOMPARE(conv->attributes.integers("strides"), (Ints{2, 2}));
        QCOMPARE(conv->attributes.integers("pads"), (Ints{0, 0, 1, 1}));
        QCOMPARE(graph.tensor(conv->outputs[0]).spec.shape, (Shape{4, 32, 8, 8}));
        QCOMPARE(graph.tensor(graph.outputs()[0]).spec.shape, (Shape{4, 8, 8, 32}));
        const OpView view = viewOf(graph, graph.tensor(conv->outputs[0]).producer);
        QCOMPARE(forwardWork(view, factorRule(view)).flops, 2.0 * 4 * 8 * 8 * 32 * 9 * 8);
    }
    /// How TPUs write a matrix product.
    void convolutionWithoutSpace() {
        const Graph graph = importText(
            moduleOf("  %x = f32[4,8]{1,0} parameter(0)\n  %w = f32[8,32]{1,0} parameter(1)\n"
                     "  ROOT %y = f32[4,32]{1,0} convolution(%x, %w), dim_labels=bf_io->bf\n"));
        QCOMPARE(attribute(outputOp(graph), "equation"), std::string("bi,io->bo"));
    }
    /// A dilated input has no counterpart; the work is still counted: every result takes 3x3x8.
    void convolutionBackwardIsOpaqueWithItsWork() {
        const Graph graph = importText(
            moduleOf("  %x = f32[4,8,8,8]{3,2,1,0} parameter(0)\n"
                     "  %w = f32[3,3,8,32]{3,2,1,0} parameter(1)\n"
                     "  ROOT %y = f32[4,16,16,32]{3,2,1,0} convolution(%x, %w), window={size=3x3 "
                     "pad=1_2x1_2 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f\n"));
        QVERIFY(outputOp(graph).kind == OpKind::Opaque);
        const OpView view = viewOf(graph, static_cast<OpId>(graph.ops().size() - 1));
        QCOMPARE(forwardWork(view, factorRule(view)).flops, 2.0 * 4 * 16 * 16 * 32 * 9 * 8);
    }
    void gemmCall() {
        const Graph graph = importText(
            moduleOf("  %a = bf16[16,32]{1,0} parameter(0)\n  %b = bf16[64,32]{1,0} parameter(1)\n"
                     "  %bias = bf16[64]{0} parameter(2)\n"
                     "  %g = (bf16[16,64]{1,0}, s8[4194304]{0}) custom-call(%a, %b, %bias), "
                     "custom_call_target=\"__cublas$lt$matmul\", "
                     "backend_config={\"gemm_backend_config\":{\"alpha_real\":1,\"beta\":0,"
                     "\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"1\"],"
                     "\"rhs_contracting_dimensions\":[\"1\"],\"lhs_batch_dimensions\":[],"
                     "\"rhs_batch_dimensions\":[]},\"epilogue\":\"BIAS\"}}\n"
                     "  ROOT %r = bf16[16,64]{1,0} get-tuple-element(%g), index=0\n"));
        const Op& add = outputOp(graph);
        QCOMPARE(attribute(add, "function"), std::string("add"));
        QCOMPARE(attribute(graph.op(graph.tensor(add.inputs[0]).producer), "equation"),
                 std::string("ba,ca->bc"));
        QVERIFY(graph.warnings.empty());
    }
    void attentionCall() {
        const Graph graph = importText(moduleOf(
            "  %q = bf16[2,128,8,64]{3,2,1,0} parameter(0)\n"
            "  %k = bf16[2,128,2,64]{3,2,1,0} parameter(1)\n"
            "  %v = bf16[2,128,2,64]{3,2,1,0} parameter(2)\n"
            "  %f = (bf16[2,128,8,64]{3,2,1,0}, f32[2,8,128,1]{3,2,1,0}) custom-call(%q, %k, %v), "
            "custom_call_target=\"te_fused_attn_forward_ffi\", backend_config={mask_type = 2 : "
            "i64}\n"
            "  ROOT %r = bf16[2,128,8,64]{3,2,1,0} get-tuple-element(%f), index=0\n"));
        QVERIFY(outputOp(graph).kind == OpKind::Attention);
        QCOMPARE(outputOp(graph).attributes.integer("causal", 0), std::int64_t{1});
    }

    // --- movement and reduction -----------------------------------------------------------------

    void broadcasts() {
        const Graph graph =
            importText(moduleOf("  %x = f32[3,5]{1,0} parameter(0)\n"
                                "  %a = f32[5,2,3]{2,1,0} broadcast(%x), dimensions={2,0}\n"
                                "  %c = f32[] constant(2)\n"
                                "  %b = f32[5,2,3]{2,1,0} broadcast(%c), dimensions={}\n"
                                "  ROOT %r = f32[5,2,3]{2,1,0} multiply(%a, %b)\n"));
        const Op& multiply = outputOp(graph);
        QVERIFY(graph.op(graph.tensor(multiply.inputs[0]).producer).kind == OpKind::Expand);
        QVERIFY(graph.op(graph.tensor(multiply.inputs[1]).producer).kind == OpKind::Constant);
        QCOMPARE(countKind(graph, OpKind::Transpose), std::size_t{1});
        QVERIFY(graph.warnings.empty());
    }
    void reductions() {
        const Graph graph = importText(
            moduleOf("  %x = f32[3,5]{1,0} parameter(0)\n  %z = f32[] constant(0)\n"
                     "  %m = f32[] constant(-inf)\n  %one = f32[] constant(1)\n"
                     "  %a = f32[3]{0} reduce(%x, %z), dimensions={1}, to_apply=%sum\n"
                     "  %b = f32[3]{0} reduce(%x, %m), dimensions={1}, to_apply=%max\n"
                     "  %c = f32[3]{0} reduce(%x, %one), dimensions={1}, to_apply=%sum\n"
                     "  ROOT %r = (f32[3]{0}, f32[3]{0}, f32[3]{0}) tuple(%a, %b, %c)\n"));
        QCOMPARE(attribute(outputOp(graph, 0), "function"), std::string("sum"));
        QCOMPARE(attribute(outputOp(graph, 1), "function"), std::string("max"));
        QCOMPARE(attribute(outputOp(graph, 2), "function"), std::string("add")); // starts from 1
        QCOMPARE(countKind(graph, OpKind::Reduce), std::size_t{3});
    }
    void runningSum() {
        const Graph graph = importText(moduleOf(
            "  %x = s32[2,16]{1,0} parameter(0)\n  %z = s32[] constant(0)\n"
            "  ROOT %c = s32[2,16]{1,0} reduce-window(%x, %z), window={size=1x16 pad=0_0x15_0}, "
            "to_apply=%sum_s\n",
            "%sum_s (a: s32[], b: s32[]) -> s32[] {\n  %a = s32[] parameter(0)\n  %b = s32[] "
            "parameter(1)\n  ROOT %c = s32[] add(%a, %b)\n}\n"));
        QVERIFY(outputOp(graph).kind == OpKind::CumSum);
        QCOMPARE(outputOp(graph).attributes.integer("axis", 0), std::int64_t{1});
    }
    void pads() {
        const Graph graph =
            importText(moduleOf("  %x = f32[3,5]{1,0} parameter(0)\n  %z = f32[] constant(0)\n"
                                "  %a = f32[6,4]{1,0} pad(%x, %z), padding=1_2x-1_0\n"
                                "  %b = f32[5,5]{1,0} pad(%x, %z), padding=0_0_1x0_0\n"
                                "  ROOT %r = (f32[6,4]{1,0}, f32[5,5]{1,0}) tuple(%a, %b)\n"));
        QCOMPARE(outputOp(graph, 0).attributes.integers("pads"), (Ints{1, 0, 2, 0}));
        QVERIFY(graph.op(graph.tensor(outputOp(graph, 0).inputs[0]).producer).kind ==
                OpKind::Slice);
        QVERIFY(outputOp(graph, 1).kind == OpKind::Opaque); // between elements
    }
    void embedding() {
        const Graph graph = importText(
            moduleOf("  %t = f32[100,8]{1,0} parameter(0)\n  %i = s32[4,6,1]{2,1,0} parameter(1)\n"
                     "  ROOT %g = f32[4,6,8]{2,1,0} gather(%t, %i), offset_dims={2}, "
                     "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, "
                     "slice_sizes={1,8}\n"));
        QVERIFY(outputOp(graph).kind == OpKind::Gather);
        QCOMPARE(outputOp(graph).attributes.integer("axis", 9), std::int64_t{0});
    }
    void elementwise() {
        const Graph graph = importText(moduleOf(
            "  %x = f32[4]{0} parameter(0)\n  %lo = f32[] constant(0)\n  %hi = f32[] constant(6)\n"
            "  %c = f32[4]{0} clamp(%lo, %x, %hi)\n"
            "  %p = pred[4]{0} compare(%x, %c), direction=GE\n"
            "  %s = f32[4]{0} select(%p, %x, %c)\n"
            "  ROOT %r = bf16[4]{0} convert(%s)\n"));
        const Op& cast = outputOp(graph);
        QCOMPARE(attribute(cast, "to"), std::string("bf16"));
        const Op& where = graph.op(graph.tensor(cast.inputs[0]).producer);
        QCOMPARE(attribute(where, "function"), std::string("where"));
        const Op& clip = graph.op(graph.tensor(where.inputs[2]).producer);
        QCOMPARE(attribute(clip, "function"), std::string("clip"));
        QCOMPARE(graph.op(clip.inputs[0]).kind, graph.op(0).kind); // x comes first
        for (OpId id = 0; id < graph.ops().size(); ++id)
            if (graph.op(id).kind == OpKind::Elementwise)
                QVERIFY(inferShapes(viewOf(graph, id)) == graph.outputSpecs(id));
    }
    void opaqueOpsAreNamedOnce() {
        const Graph graph = importText(moduleOf(
            "  %x = f32[4]{0} parameter(0)\n"
            "  %a = f32[4]{0} sort(%x), dimensions={0}, to_apply=%sum\n"
            "  %b = f32[4]{0} sort(%a), dimensions={0}, to_apply=%sum\n"
            "  ROOT %r = (u64[2]{0}, f32[4]{0}) rng-bit-generator(%b), algorithm=rng_default\n"));
        QCOMPARE(graph.warnings.size(), std::size_t{1});
        QVERIFY(
            QString::fromStdString(graph.warnings[0]).contains("1 × rng-bit-generator, 2 × sort"));
        QCOMPARE(graph.tensor(graph.outputs()[0]).spec.shape, (Shape{2}));
    }

    // --- calls ----------------------------------------------------------------------------------

    void fusionsAndCallsAreWrittenOut() {
        const Graph graph = importText(moduleOf(
            "  %x = f32[4,8]{1,0} parameter(0)\n  %w = f32[8,8]{1,0} parameter(1)\n"
            "  %f = (f32[4,8]{1,0}, f32[4,8]{1,0}) fusion(%x, %w), kind=kOutput, calls=%fused\n"
            "  %s = f32[4,8]{1,0} get-tuple-element(%f), index=1\n"
            "  %c = f32[4,8]{1,0} call(%s), to_apply=%twice\n"
            "  %st = ((f32[4,8]{1,0}), f32[4,8]{1,0}, u32[]) async-start(%c), calls=%twice\n"
            "  ROOT %d = f32[4,8]{1,0} async-done(%st)\n",
            "%fused (x: f32[4,8], w: f32[8,8]) -> (f32[4,8], f32[4,8]) {\n"
            "  %x = f32[4,8]{1,0} parameter(0)\n  %w = f32[8,8]{1,0} parameter(1)\n"
            "  %d = f32[4,8]{1,0} dot(%x, %w), lhs_contracting_dims={1}, "
            "rhs_contracting_dims={0}\n"
            "  %t = f32[4,8]{1,0} tanh(%d)\n"
            "  ROOT %r = (f32[4,8]{1,0}, f32[4,8]{1,0}) tuple(%d, %t)\n}\n\n"
            "%twice (a: f32[4,8]) -> f32[4,8] {\n  %a = f32[4,8]{1,0} parameter(0)\n"
            "  ROOT %b = f32[4,8]{1,0} add(%a, %a)\n}\n"));
        QCOMPARE(countKind(graph, OpKind::Einsum), std::size_t{1});
        QCOMPARE(countKind(graph, OpKind::Elementwise), std::size_t{3});
        QVERIFY(graph.warnings.empty());
    }
    void conditionals() {
        const Graph graph = importText(moduleOf(
            "  %p = s32[] parameter(0)\n  %x = f32[4]{0} parameter(1)\n"
            "  ROOT %c = f32[4]{0} conditional(%p, %x, %x), branch_computations={%small, %large}\n",
            "%small (a: f32[4]) -> f32[4] {\n  ROOT %a = f32[4]{0} parameter(0)\n}\n\n"
            "%large (a: f32[4]) -> f32[4] {\n  %a = f32[4]{0} parameter(0)\n  ROOT %b = f32[4]{0} "
            "tanh(%a)\n}\n"));
        QCOMPARE(attribute(outputOp(graph), "function"), std::string("tanh"));
        QCOMPARE(graph.warnings.size(), std::size_t{1});
    }

    // --- loops ----------------------------------------------------------------------------------

    /// A slice of the stacked weights a layer; what layers save goes straight to the layer that
    /// reads it; the stacked gradient is the concatenation of its layers.
    void scansBecomeLayers() {
        const Graph source = importText(scan(6));
        QVERIFY(source.warnings.empty());
        QCOMPARE(source.facts.at("trip counts"), std::string("6, 6"));
        const Graph graph = canonicalise(source);
        QCOMPARE(countKind(graph, OpKind::Einsum), std::size_t{12});
        QCOMPARE(countKind(graph, OpKind::Slice), std::size_t{6}); // of the weights alone
        QCOMPARE(countKind(graph, OpKind::Concat), std::size_t{1});
        const Op& update = outputOp(graph);
        const Op& stack = graph.op(graph.tensor(update.inputs[1]).producer);
        QVERIFY(stack.kind == OpKind::Concat);
        // Layer 5's gradient was made first and stands last: from the activation of layer 5.
        const auto product = [&](std::size_t layer) -> const Op& {
            const Op& reshape = graph.op(graph.tensor(stack.inputs[layer]).producer);
            return graph.op(graph.tensor(reshape.inputs[0]).producer);
        };
        QCOMPARE(stack.inputs.size(), std::size_t{6});
        TensorId saved = product(0).inputs[0]; // by layer 0, as [1,4,8]: its own input
        while (graph.op(graph.tensor(saved).producer).kind == OpKind::Reshape)
            saved = graph.op(graph.tensor(saved).producer).inputs[0];
        QCOMPARE(graph.tensor(saved).name, std::string("x"));
        QVERIFY(product(0).name.starts_with("while-2/5/"));
        QVERIFY(product(5).name.starts_with("while-2/0/"));
    }
    void scansFold() {
        const Graph graph = canonicalise(importText(scan(12)));
        QVERIFY(graph.backwardIncluded);
        const Folding folding = fold(graph);
        std::size_t twelve = 0;
        for (const FoldRun& run : folding.runs) twelve += run.count >= 11;
        QCOMPARE(twelve, std::size_t{2});
        const Folding deeper = fold(canonicalise(importText(scan(24))));
        QCOMPARE(deeper.classes.size(), folding.classes.size());
    }
    void knownTripCount() {
        const Graph graph = importText(
            scan(4, ", backend_config={\"known_trip_count\":{\"n\":\"3\"},\"x\":{\"n\":\"9\"}}"));
        QCOMPARE(graph.facts.at("trip counts"), std::string("3, 3"));
        QCOMPARE(countKind(canonicalise(graph), OpKind::Einsum), std::size_t{6});
        // The cell nobody wrote is cut from what was there: here a constant.
        const Op& update = outputOp(graph);
        QCOMPARE(graph.op(graph.tensor(update.inputs[1]).producer).inputs.size(), std::size_t{4});
    }
    void hugeTripCountIsShownOnce() {
        const Graph graph = importText(
            scan(4, ", backend_config={\"known_trip_count\":{\"n\":\"9000000000000000000\"}}"));
        QCOMPARE(countKind(graph, OpKind::Einsum), std::size_t{2});
        QCOMPARE(graph.facts.at("trip_count of while-1"), std::string("9000000000000000000"));
        QCOMPARE(graph.warnings.size(), std::size_t{2});
    }
    /// i = 10; while (i > 1) i -= 3: 10, 7, 4.
    void countingDown() {
        const Graph graph = importText(moduleOf(
            "  %x = f32[4]{0} parameter(0)\n  %ten = s32[] constant(10)\n"
            "  %i = (s32[], f32[4]{0}) tuple(%ten, %x)\n"
            "  %w = (s32[], f32[4]{0}) while(%i), condition=%more, body=%down\n"
            "  ROOT %r = f32[4]{0} get-tuple-element(%w), index=1\n",
            "%down (p: (s32[], f32[4])) -> (s32[], f32[4]) {\n"
            "  %p = (s32[], f32[4]{0}) parameter(0)\n"
            "  %i = s32[] get-tuple-element(%p), index=0\n  %three = s32[] constant(3)\n"
            "  %n = s32[] subtract(%i, %three)\n  %x = f32[4]{0} get-tuple-element(%p), index=1\n"
            "  %t = f32[4]{0} tanh(%x)\n  ROOT %r = (s32[], f32[4]{0}) tuple(%n, %t)\n}\n\n"
            "%more (p: (s32[], f32[4])) -> pred[] {\n  %p = (s32[], f32[4]{0}) parameter(0)\n"
            "  %one = s32[] constant(1)\n  %i = s32[] get-tuple-element(%p), index=0\n"
            "  ROOT %c = pred[] compare(%one, %i), direction=LT\n}\n"));
        QCOMPARE(graph.facts.at("trip counts"), std::string("3"));
        QCOMPARE(countKind(canonicalise(graph), OpKind::Elementwise), std::size_t{3});
    }

    // --- collectives ----------------------------------------------------------------------------

    void collectives() {
        const Graph graph = importText(
            "HloModule m, num_partitions=4, replica_count=2\n"
            "%max (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] "
            "parameter(1)\n  ROOT %c = f32[] maximum(%a, %b)\n}\n"
            "ENTRY %main {\n  %x = f32[8,16]{1,0} parameter(0)\n"
            "  %g = f32[32,16]{1,0} all-gather(%x), channel_id=1, replica_groups=[2,4]<=[8], "
            "dimensions={0}, use_global_device_ids=true\n"
            "  %rs = f32[32,8]{1,0} reduce-scatter(%g), channel_id=2, "
            "replica_groups={{0,4},{1,5},{2,6},{3,7}}, dimensions={1}, to_apply=%max\n"
            "  %as = (f32[32,8]{1,0}, f32[256,8]{1,0}) all-gather-start(%rs), channel_id=3, "
            "replica_groups={}, dimensions={0}\n"
            "  %ad = f32[256,8]{1,0} all-gather-done(%as)\n"
            "  %rr = f32[256,8]{1,0} all-reduce-start(%ad), replica_groups={{0,1,2,3},{4,5,6,7}}, "
            "to_apply=%max\n"
            "  %rd = f32[256,8]{1,0} all-reduce-done(%rr)\n"
            "  %tt = f32[256,8]{1,0} all-to-all(%rd), replica_groups=[1,8]<=[8], dimensions={0}\n"
            "  %pp = f32[256,8]{1,0} collective-permute(%tt), "
            "source_target_pairs={{0,1},{1,0},{2,3},{3,2}}\n"
            "  ROOT %r = (f32[256,8]{1,0}, f32[32,8]{1,0}) all-reduce(%pp, %rs), to_apply=%max\n"
            "}\n");
        QVERIFY(graph.partition && graph.partition->local);
        QCOMPARE(graph.partition->devices, std::int64_t{8});
        QCOMPARE(graph.partition->mesh.size(), std::size_t{2}); // 2 x 4
        std::vector<const Op*> ops;
        for (const Op& op : graph.ops())
            if (op.kind == OpKind::Collective) ops.push_back(&op);
        QCOMPARE(ops.size(), std::size_t{7}); // start and done are one
        const auto is = [&](std::size_t i, const char* function, std::int64_t size,
                            std::int64_t groups) {
            QCOMPARE(attribute(*ops[i], "function"), std::string(function));
            QCOMPARE(ops[i]->attributes.integer("group_size", 0), size);
            QCOMPARE(ops[i]->attributes.integer("groups", 0), groups);
        };
        is(0, "all-gather", 4, 2);
        QCOMPARE(ops[0]->attributes.integers("mesh_axes"), (Ints{1}));
        is(1, "reduce-scatter", 2, 4);
        QCOMPARE(ops[1]->attributes.integers("mesh_axes"), (Ints{0}));
        QCOMPARE(ops[1]->attributes.integer("axis", 0), std::int64_t{1});
        QCOMPARE(attribute(*ops[1], "reduce"), std::string("max"));
        is(2, "all-gather", 8, 1);
        QCOMPARE(graph.tensor(ops[2]->outputs[0]).spec.shape, (Shape{256, 8}));
        is(3, "all-reduce", 4, 2);
        is(4, "all-to-all", 8, 1);
        QCOMPARE(ops[4]->attributes.integers("mesh_axes"), (Ints{0, 1}));
        is(5, "permute", 2, 2);
        is(6, "all-reduce", 8, 1);
        QCOMPARE(ops[6]->outputs.size(), std::size_t{2});
        QCOMPARE(graph.facts.at("all-gather"), std::string("2"));
        QCOMPARE(graph.facts.at("all-reduce"), std::string("2"));
    }
    /// The shard of the device is cut where device 0 has it.
    void deviceNumber() {
        const Graph graph = canonicalise(importText(moduleOf(
            "  %x = f32[32,16]{1,0} parameter(0)\n  %z = s32[] constant(0)\n"
            "  %t = s32[4]{0} constant({8, 0, 16, 24})\n  %id = u32[] partition-id()\n"
            "  %o = s32[1]{0} dynamic-slice(%t, %id), dynamic_slice_sizes={1}\n"
            "  %i = s32[] reshape(%o)\n"
            "  ROOT %r = f32[8,16]{1,0} dynamic-slice(%x, %i, %z), dynamic_slice_sizes={8,16}\n")));
        QVERIFY(outputOp(graph).kind == OpKind::Slice);
        QCOMPARE(outputOp(graph).attributes.integers("starts"), (Ints{8}));
        QCOMPARE(graph.warnings.size(), std::size_t{1});
    }
    void unknownIndex() {
        const Graph graph = importText(moduleOf(
            "  %x = f32[32,16]{1,0} parameter(0)\n  %i = s32[] parameter(1)\n"
            "  %z = s32[] constant(0)\n"
            "  ROOT %r = f32[8,16]{1,0} dynamic-slice(%x, %i, %z), dynamic_slice_sizes={8,16}\n"));
        QVERIFY(outputOp(graph).kind == OpKind::DynamicSlice);
        QCOMPARE(outputOp(graph).attributes.integers("sizes"), (Ints{8, 16}));
    }

    // --- the rest -------------------------------------------------------------------------------

    void kinds_data() {
        QTest::addColumn<QString>("argument");
        QTest::addColumn<QString>("instruction"); // of %x, %z a zero, %i indices
        QTest::addColumn<QString>("kind");
        const auto row = [](const char* tag, const char* argument, const char* instruction,
                            OpKind kind) {
            QTest::newRow(tag) << argument << instruction
                               << QString::fromStdString(std::string(nameOf(kind)));
        };
        row("cholesky", "f32[2,4,4]", "f32[2,4,4] cholesky(%x), lower=true", OpKind::LinearAlgebra);
        row("triangular solve", "f32[4,4]",
            "f32[4,4] triangular-solve(%x, %x), left_side=true, lower=true, "
            "transpose_a=NO_TRANSPOSE",
            OpKind::LinearAlgebra);
        row("fft", "f32[4,8]", "c64[4,5] fft(%x), fft_type=RFFT, fft_length={8}", OpKind::Fourier);
        row("sort", "f32[4,8]", "f32[4,8] sort(%x), dimensions={1}, to_apply=%greater",
            OpKind::Sort);
        row("reduce window", "f32[8,8]",
            "f32[4,4] reduce-window(%x, %z), window={size=2x2 stride=2x2}, to_apply=%sum",
            OpKind::ReduceWindow);
        row("select and scatter", "f32[4,4]",
            "f32[4,4] select-and-scatter(%x, %half, %z), window={size=2x2 stride=2x2}, "
            "select=%atLeast, scatter=%sum",
            OpKind::SelectAndScatter);
        row("gather of windows", "f32[9,8]",
            "f32[3,2,8] gather(%x, %i), offset_dims={1,2}, collapsed_slice_dims={}, "
            "start_index_map={0}, index_vector_dim=1, slice_sizes={2,8}",
            OpKind::GatherWindows);
        row("scatter", "f32[9,8]",
            "f32[9,8] scatter(%x, %i, %rows), update_window_dims={1}, inserted_window_dims={0}, "
            "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%sum",
            OpKind::ScatterWindows);
        row("comparison of something else", "f32[4,8]",
            "f32[4,8] sort(%x), dimensions={1}, to_apply=%sum", OpKind::Opaque);
    }
    void kinds() {
        QFETCH(QString, argument);
        QFETCH(QString, instruction);
        QFETCH(QString, kind);
        const std::string comparisons =
            "%greater (a: f32[], b: f32[]) -> pred[] {\n  %a = f32[] parameter(0)\n"
            "  %b = f32[] parameter(1)\n  ROOT %c = pred[] compare(%a, %b), direction=GT\n}\n\n"
            "%atLeast (a: f32[], b: f32[]) -> pred[] {\n  %a = f32[] parameter(0)\n"
            "  %b = f32[] parameter(1)\n  ROOT %c = pred[] compare(%a, %b), direction=GE\n}\n";
        const Graph graph = importText(moduleOf(
            "  %x = " + argument.toStdString() + " parameter(0)\n  %i = s32[3,1] parameter(1)\n" +
                "  %rows = f32[3,8] parameter(2)\n  %half = f32[2,2] parameter(3)\n" +
                "  %z = f32[] constant(0)\n  ROOT %r = " + instruction.toStdString() + "\n",
            comparisons));
        const Op& op = outputOp(graph);
        QCOMPARE(QString::fromStdString(std::string(nameOf(op.kind))), kind);
        if (op.kind == OpKind::Opaque) return;
        // The catalogue derives the shape that the text states, and a rule for the op.
        const OpView view = viewOf(graph, static_cast<OpId>(graph.ops().size() - 1));
        QVERIFY(inferShapes(view)[0] == graph.tensor(op.outputs[0]).spec);
        QVERIFY(!factorRule(view).factors.empty());
    }

    // --- roles ----------------------------------------------------------------------------------

    void adamWithoutNames() {
        const Graph graph = importText(
            "HloModule step, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, "
            "may-alias), {2}: (2, {}, may-alias), {3}: (3, {}, must-alias) }\n"
            "ENTRY %main {\n  %n = s32[] parameter(0)\n  %w = f32[8]{0} parameter(1)\n"
            "  %m = f32[8]{0} parameter(2)\n  %v = f32[8]{0} parameter(3)\n"
            "  %x = f32[4]{0} parameter(4)\n"
            "  ROOT %r = (s32[], f32[8]{0}, f32[8]{0}, f32[8]{0}) tuple(%n, %w, %m, %v)\n}\n");
        QVERIFY(graph.backwardIncluded);
        QVERIFY(graph.op(1).kind == OpKind::Parameter);
        for (const OpId id : {0U, 2U, 3U, 4U}) QVERIFY(graph.op(id).kind == OpKind::Input);
        QCOMPARE(graph.op(2).type, std::string("optimizer state"));
        QCOMPARE(graph.op(4).type, std::string("parameter"));
        QCOMPARE(graph.facts.at("weight and optimizer bytes"), std::string("96"));
        QCOMPARE(graph.facts.at("entry parameter bytes"), std::string("116"));
    }
    /// A decoding step returns its cache, not its weights.
    void cacheIsNoTrainStep() {
        const Graph graph = importText(
            "HloModule decode, input_output_alias={ {0}: (1, {}, may-alias) }\n"
            "ENTRY %main {\n  %w = f32[64,64]{1,0} parameter(0)\n  %c = f32[8]{0} parameter(1)\n"
            "  ROOT %r = (f32[8]{0}, f32[64,64]{1,0}) tuple(%c, %w)\n}\n");
        QVERIFY(!graph.backwardIncluded);
        QVERIFY(graph.op(0).kind == OpKind::Parameter);
        QVERIFY(graph.op(1).kind == OpKind::Input);
    }
};

SHARDLENS_TEST(TestHloOps)

} // namespace tst_hlo_ops

#include "tst_hlo_ops.moc"
