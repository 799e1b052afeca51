// SPDX-License-Identifier: Apache-2.0
// Shapes and rules of the kinds that gather, scatter, generate, resample and recur, as the ONNX
// operator specification and the table of sharding semantics have them, and the rules of gradient
// ops, which follow from those of their forward ops.
#include "core/error.h"
#include "core/model/gradient.h"
#include "tests/core/model/one_op.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_op_rules {

using namespace shardlens;
using test::integer;
using test::OneOp;
using test::oneOp;
using test::real;

namespace {

using Ints = std::vector<std::int64_t>;
using Text = std::string;

constexpr std::int64_t operator""_i(unsigned long long value) {
    return static_cast<std::int64_t>(value);
}

const TensorSpec kAbsent{};

QString ruleOf(const OneOp& op) {
    return QString::fromStdString(op.rule().toString());
}

Attributes cell(const Text& name, const Text& direction = "forward") {
    return {{"cell", name}, {"direction", direction}};
}

} // namespace

class TestOpRules : public QObject {
    Q_OBJECT

private slots:
    void gatherElements() {
        const OneOp op =
            oneOp(OpKind::GatherElements, {real({8, 6}), integer({3, 6})}, {{"axis", 0_i}});
        QCOMPARE(op.shape(), (Shape{3, 6}));
        QCOMPARE(ruleOf(op), "([v,d1],[d0,d1])->([d0,d1]) r={v}");
        const OneOp part =
            oneOp(OpKind::GatherElements, {real({8, 6}), integer({3, 2})}, {{"axis", 0_i}});
        QCOMPARE(ruleOf(part), "([v,in_d1],[d0,out_d1])->([d0,out_d1]) r={v} whole={in_d1,out_d1}");
        QVERIFY_EXCEPTION_THROWN(
            oneOp(OpKind::GatherElements, {real({8, 6}), integer({3})}, {{"axis", 0_i}}),
            InputError);
    }
    void gatherNd() {
        const OneOp op = oneOp(OpKind::GatherND, {real({2, 5, 7, 9}), integer({2, 3, 1})},
                               {{"batch_dims", 1_i}});
        QCOMPARE(op.shape(), (Shape{2, 3, 7, 9})); // ONNX: batch, entries, what is not indexed
        QCOMPARE(ruleOf(op), "([b,v1,n,h],[b,s,vector])->([b,s,n,h]) r={v1} whole={vector}");
        QVERIFY_EXCEPTION_THROWN(oneOp(OpKind::GatherND, {real({2, 5}), integer({2, 3})}),
                                 InputError);
    }
    void scatter() {
        const std::vector<TensorSpec> elements{real({8, 6}), integer({3, 6}), real({3, 6})};
        QCOMPARE(ruleOf(oneOp(OpKind::Scatter, elements, {{"axis", 0_i}})),
                 "([d0,d1],[u0,d1],[u0,d1])->([d0,d1]) whole={u0}");
        const OneOp added =
            oneOp(OpKind::Scatter, elements, {{"axis", 0_i}, {"reduction", Text("add")}});
        QCOMPARE(ruleOf(added), "([d0,d1],[u0,d1],[u0,d1])->([d0,d1]) r={u0}");
        QCOMPARE(added.rule().addedOnce, std::vector<std::size_t>{0});
        const OneOp vectors =
            oneOp(OpKind::Scatter, {real({4, 5, 6}), integer({3, 1}), real({3, 5, 6})},
                  {{"mode", Text("nd")}, {"reduction", Text("add")}});
        QCOMPARE(ruleOf(vectors),
                 "([b,s,h],[u0,vector],[u0,s,h])->([b,s,h]) r={u0} whole={vector}");
        const OneOp cache =
            oneOp(OpKind::Scatter, {real({2, 8, 128, 64}), integer({2}), real({2, 8, 1, 64})},
                  {{"mode", Text("cache")}, {"axis", 2_i}});
        QCOMPARE(ruleOf(cache), "([b,s,n,h],[b],[b,s,u2,h])->([b,s,n,h]) whole={u2}");
        QVERIFY_EXCEPTION_THROWN(
            oneOp(OpKind::Scatter, {real({8, 6}), integer({3, 6}), real({3, 5})}), InputError);
    }
    void resultOnlyFactors() {
        const OneOp hot =
            oneOp(OpKind::OneHot, {integer({4, 5}), real({2})}, {{"axis", 1_i}, {"depth", 10_i}});
        QCOMPARE(hot.shape(), (Shape{4, 10, 5}));
        QCOMPARE(hot.dtype(), DType::F32);
        QCOMPARE(ruleOf(hot), "([b,h],[values0])->([b,depth,h]) whole={values0}");
        const OneOp made =
            oneOp(OpKind::Generate, {}, {{"shape", Ints{4, 1, 5}}, {"to", Text("i32")}});
        QCOMPARE(made.shape(), (Shape{4, 1, 5}));
        QCOMPARE(made.dtype(), DType::I32);
        QCOMPARE(ruleOf(made), "()->([d0,1,d2])");
    }
    void positions() {
        QCOMPARE(ruleOf(oneOp(OpKind::Trilu, {real({3, 4, 5})}, {{"upper", 1_i}})),
                 "([b,s,h])->([b,s,h])");
        QCOMPARE(ruleOf(oneOp(OpKind::ReverseSequence, {real({7, 3, 2}), integer({3})},
                              {{"batch_axis", 1_i}, {"time_axis", 0_i}})),
                 "([b,s,h],[s])->([b,s,h]) whole={b}");
        // What keeps its size but not its place is no pass-through.
        const OneOp reversed = oneOp(
            OpKind::Slice, {real({4, 6})},
            {{"axes", Ints{1}}, {"starts", Ints{-1}}, {"ends", Ints{-100}}, {"steps", Ints{-1}}});
        QCOMPARE(ruleOf(reversed), "([d0,in0_d1])->([d0,out0_d1]) p={in0_d1,out0_d1}");
        const OneOp shifted = oneOp(OpKind::Pad, {real({4, 6})}, {{"pads", Ints{0, 2, 0, -2}}});
        QCOMPARE(ruleOf(shifted), "([d0,in0_d1])->([d0,out0_d1]) p={in0_d1,out0_d1}");
    }
    void images() {
        QCOMPARE(ruleOf(oneOp(OpKind::LocalNorm, {real({2, 8, 5, 5})}, {{"size", 3_i}})),
                 "([b,c,x0,x1])->([b,c,x0,x1]) p={c}");
        const OneOp resized =
            oneOp(OpKind::Resize, {real({2, 8, 5, 5})},
                  {{"sizes", Ints{2, 8, 10, 5}}, {"scales", std::vector<double>{1, 1, 2, 1}}});
        QCOMPARE(ruleOf(resized), "([b,s,in_n,h])->([b,s,out_n,h]) whole={in_n,out_n}");
        const OneOp sampled = oneOp(OpKind::GridSample, {real({2, 8, 5, 6}), real({2, 3, 4, 2})});
        QCOMPARE(sampled.shape(), (Shape{2, 8, 3, 4}));
        QCOMPARE(ruleOf(sampled), "([b,c,in_h,in_w],[b,h,w,xy])->([b,c,h,w]) whole={in_h,in_w,xy}");
        const OneOp regions =
            oneOp(OpKind::RoiAlign, {real({2, 8, 5, 6}), real({7, 4}), integer({7})},
                  {{"height", 3_i}, {"width", 4_i}, {"sampling_ratio", 2_i}});
        QCOMPARE(regions.shape(), (Shape{7, 8, 3, 4}));
        QCOMPARE(ruleOf(regions), "([images,c,in_h,in_w],[r,corners],[r])->([r,c,h,w]) "
                                  "whole={images,in_h,in_w,corners,h,w}");
        QCOMPARE(forwardWork(regions.view(), regions.rule()).flops, 8.0 * 4 * 7 * 8 * 3 * 4);
    }
    void recurrentCells() {
        const OneOp lstm = oneOp(OpKind::Recurrent,
                                 {real({7, 3, 5}), real({2, 16, 5}), real({2, 16, 4}),
                                  real({2, 32}), kAbsent, real({2, 3, 4})},
                                 cell("lstm", "bidirectional"));
        QCOMPARE(lstm.shape(0), (Shape{7, 2, 3, 4}));
        QCOMPARE(lstm.shape(1), (Shape{2, 3, 4}));
        QCOMPARE(lstm.shape(2), (Shape{2, 3, 4}));
        QCOMPARE(ruleOf(lstm),
                 "([s,b,i],[direction,gates,i],[direction,gates,h],[direction,biases],[],"
                 "[direction,b,h])->([s,direction,b,h],[direction,b,h],[direction,b,h]) "
                 "whole={s,i,h,gates,biases}");
        const OneOp gru = oneOp(OpKind::Recurrent,
                                {real({7, 3, 5}), real({1, 12, 5}), real({1, 12, 4})}, cell("gru"));
        QCOMPARE(gru.graph.op(gru.id).outputs.size(), std::size_t{2});
        // A GRU step is 3 gates of (5 + 4) -> 4 for each of 3 entries.
        QCOMPARE(forwardWork(gru.view(), gru.rule()).flops, 2.0 * 7 * 3 * 12 * 9);
        QVERIFY_EXCEPTION_THROWN(oneOp(OpKind::Recurrent,
                                       {real({7, 3, 5}), real({1, 12, 5}), real({1, 16, 4})},
                                       cell("gru")),
                                 InputError);
    }
    void experts() {
        const OneOp op = oneOp(
            OpKind::Experts,
            {real({10, 16}), real({10, 4}), real({4, 16, 32}), real({4, 32, 16}), real({4, 32})},
            {{"function", Text("relu")}, {"top_k", 2_i}});
        QCOMPARE(op.shape(), (Shape{10, 16}));
        QCOMPARE(ruleOf(op), "([t0,h],[t0,experts],[experts,h,f],[experts,f,h],[experts,f])->"
                             "([t0,h]) r={experts,f} whole={h}");
        QCOMPARE(forwardWork(op.view(), op.rule()).flops, 2.0 * 2 * 10 * 2 * 16 * 32);
        QCOMPARE(ruleOf(oneOp(OpKind::Gates, {real({10, 4})}, {{"top_k", 2_i}})),
                 "([t0,experts])->([t0,experts]) whole={experts}");
    }
    void gradientsFollowFromTheForwardRule();
};

void TestOpRules::gradientsFollowFromTheForwardRule() {
    using namespace gradient;
    const auto made = [](OpKind kind, Attributes forward, const Ints& roles, const Ints& wanted,
                         const std::vector<TensorSpec>& operands,
                         const std::vector<TensorSpec>& results) {
        OneOp op{{}, 0};
        std::vector<TensorId> inputs;
        for (const TensorSpec& operand : operands)
            inputs.push_back(
                op.graph.op(op.graph.addOp({{}, OpKind::Input, {}, {}, {}, {}}, {operand}))
                    .outputs[0]);
        op.id = op.graph.addOp({"op",
                                OpKind::Gradient,
                                {},
                                attributesFor(kind, std::move(forward), roles, wanted),
                                inputs,
                                {}},
                               results);
        return op;
    };
    // dA and dB of A B: both carry the contracted k; b and m are summed in dB, n in dA.
    QCOMPARE(ruleOf(made(OpKind::MatMul, {}, {kResultGradient, 0, 1}, {0, 1},
                         {real({8, 16, 64}), real({8, 16, 32}), real({32, 64})},
                         {real({8, 16, 32}), real({32, 64})})),
             "([b,m,n],[b,m,k],[k,n])->([b,m,k],[k,n]) r={b,m,n}");
    // The gradient of a table: rows are where they are, tokens add up (PyTorch:
    // embedding_backward).
    QCOMPARE(ruleOf(made(OpKind::Gather, {{"axis", 0_i}}, {1, kResultGradient}, {0},
                         {integer({4, 128}), real({4, 128, 512})}, {real({32000, 512})})),
             "([b,s],[b,s,h])->([v,h]) r={b,s}");
    // Softmax: one sum a row is exchanged where the classes are cut.
    const OneOp softmax =
        made(OpKind::Softmax, {{"axes", Ints{2}}}, {kResultGradient, kForwardResult}, {0},
             {real({4, 16, 64}), real({4, 16, 64})}, {real({4, 16, 64})});
    QCOMPARE(ruleOf(softmax), "([b,s,h],[b,s,h])->([b,s,h]) i={h}");
    QCOMPARE(softmax.rule().forwardStatistics, (std::vector<Statistic>{{ReduceOp::Sum, 4.0 * 16}}));
    // Layer norm: scale and bias gradients add up over the rows.
    const TensorSpec row = real({4, 16, 1});
    QCOMPARE(ruleOf(made(OpKind::Norm, {{"mode", Text("layer")}, {"axes", Ints{2}}},
                         {kResultGradient, 0, 1, kRowStatistic, kRowStatistic + 1}, {0, 1, 2},
                         {real({4, 16, 64}), real({4, 16, 64}), real({64}), row, row},
                         {real({4, 16, 64}), real({64}), real({64})})),
             "([b,s,h],[b,s,h],[h],[b,s,1],[b,s,1])->([b,s,h],[h],[h]) r={b,s} i={h}");
}

SHARDLENS_TEST(TestOpRules)

} // namespace tst_op_rules

#include "tst_op_rules.moc"
