// SPDX-License-Identifier: Apache-2.0
// Kernels whose gradients are recorded or derived: recurrent cells, experts, images, and gradient
// ops, which must give what the backward kernel of their forward op gives.
#include "core/model/gradient.h"
#include "tests/core/execute/kernel_case.h"
#include "tests/test_program.h"

#include <QTest>

#include <numeric>

namespace tst_kernels_derived {

using namespace shardlens;
using namespace shardlens::test;

using Ints = std::vector<std::int64_t>;
using Text = std::string;

namespace {

using Numbers = std::vector<double>;

constexpr std::int64_t kOne = 1, kZero = 0;

Attributes cell(const char* name, const char* direction = "forward") {
    return {{"cell", Text(name)}, {"direction", Text(direction)}};
}

double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}

KernelCase recurrent(const char* name, const char* direction, std::int64_t gates, bool extras,
                     const Attributes& more = {}) {
    const std::int64_t directions = Text(direction) == "bidirectional" ? 2 : 1, h = 2;
    std::vector<Operand> operands{noise({3, 2, 2}), noise({directions, gates * h, 2}, -1, 1, 2),
                                  noise({directions, gates * h, h}, -1, 1, 3)};
    if (extras) {
        operands.emplace_back(noise({directions, 2 * gates * h}, -1, 1, 4));
        operands.emplace_back(integers({2}, {3, 2}));
        operands.emplace_back(noise({directions, 2, h}, -1, 1, 5));
        if (gates == 4) {
            operands.emplace_back(noise({directions, 2, h}, -1, 1, 6));
            operands.emplace_back(noise({directions, 3 * h}, -1, 1, 7));
        }
    }
    Attributes attributes = cell(name, direction);
    for (const auto& [key, value] : more.values()) attributes.set(key, value);
    return KernelCase(OpKind::Recurrent, std::move(operands), std::move(attributes),
                      gates == 4 ? 3 : 2);
}

} // namespace

class TestDerived : public QObject {
    Q_OBJECT

private slots:
    /// One step of one unit, written out.
    void cells() {
        const Array x = numbers({1, 1, 1}, {0.5}), h0 = numbers({1, 1, 1}, {0.3});
        const double h = KernelCase(OpKind::Recurrent,
                                    {x, numbers({1, 1, 1}, {0.7}), numbers({1, 1, 1}, {-0.4}),
                                     numbers({1, 2}, {0.1, 0.2}), std::nullopt, h0},
                                    cell("rnn"), 2)
                             .forward()[1]
                             .reals[0];
        QCOMPARE(h, std::tanh(0.5 * 0.7 - 0.3 * 0.4 + 0.3));
        const Array w3 = numbers({1, 3, 1}, {0.7, 0.2, -0.5}),
                    r3 = numbers({1, 3, 1}, {-0.4, 0.6, 0.9});
        const double z = sigmoid(0.35 - 0.12), r = sigmoid(0.1 + 0.18),
                     candidate = std::tanh(-0.25 + 0.9 * r * 0.3);
        QCOMPARE(KernelCase(OpKind::Recurrent, {x, w3, r3, std::nullopt, std::nullopt, h0},
                            cell("gru"), 2)
                     .forward()[1]
                     .reals[0],
                 (1 - z) * candidate + z * 0.3);
        const Array w4 = numbers({1, 4, 1}, {0.7, 0.2, -0.5, 0.3}),
                    r4 = numbers({1, 4, 1}, {-0.4, 0.6, 0.9, -0.8}),
                    c0 = numbers({1, 1, 1}, {0.25});
        const double in = sigmoid(0.35 - 0.12), out = sigmoid(0.1 + 0.18),
                     forget = sigmoid(-0.25 + 0.27), c = std::tanh(0.15 - 0.24);
        const Arrays lstm =
            KernelCase(OpKind::Recurrent, {x, w4, r4, std::nullopt, std::nullopt, h0, c0},
                       cell("lstm"), 3)
                .forward();
        QCOMPARE(lstm[2].reals[0], forget * 0.25 + in * c);
        QCOMPARE(lstm[1].reals[0], out * std::tanh(forget * 0.25 + in * c));
        QCOMPARE(lstm[0].reals[0], lstm[1].reals[0]);
    }
    /// Of a shorter entry the later steps are 0, and its state is that of its last step; backwards
    /// it begins there.
    void lengths() {
        const Array x = numbers({2, 2, 1}, {1, 1, 1, 1});
        const Array one = numbers({1, 1, 1}, {1.0});
        const auto run = [&](const char* direction) {
            return KernelCase(OpKind::Recurrent, {x, one, one, std::nullopt, integers({2}, {2, 1})},
                              cell("rnn", direction), 2)
                .forward();
        };
        const double first = std::tanh(1.0), second = std::tanh(1 + first);
        QCOMPARE(run("forward")[0].reals, (Numbers{first, first, second, 0}));
        QCOMPARE(run("forward")[1].reals, (Numbers{second, first}));
        QCOMPARE(run("reverse")[0].reals, (Numbers{second, first, first, 0}));
    }
    void recurrentGradients() {
        for (const char* direction : {"forward", "reverse", "bidirectional"})
            for (const bool extras : {false, true}) {
                VERIFY_GRADIENT(recurrent("lstm", direction, 4, extras));
                VERIFY_GRADIENT(recurrent("gru", direction, 3, extras));
                VERIFY_GRADIENT(recurrent("rnn", direction, 1, extras));
            }
        VERIFY_GRADIENT(recurrent("gru", "forward", 3, true, {{"linear_before_reset", kOne}}));
        VERIFY_GRADIENT(recurrent("lstm", "forward", 4, true,
                                  {{"input_forget", kOne},
                                   {"activations", Text("HardSigmoid,ScaledTanh,Softsign")},
                                   {"alphas", Numbers{0.3, 1.2}},
                                   {"betas", Numbers{0.4, 0.7}}}));
    }
    void gates() {
        const double e1 = std::exp(1.0), e2 = std::exp(2.0), e3 = std::exp(3.0);
        const KernelCase op(OpKind::Gates, {numbers({3}, {2, 1, 3})}, {{"top_k", std::int64_t{2}}});
        const Numbers found = op.forward()[0].reals;
        QCOMPARE(found[0], e2 / (e1 + e2 + e3));
        QCOMPARE(found[1], 0.0);
        QCOMPARE(found[2], e3 / (e1 + e2 + e3));
        const KernelCase normalised(OpKind::Gates, {noise({3, 4})},
                                    {{"top_k", std::int64_t{2}}, {"normalize", kOne}});
        const Numbers rows = normalised.forward()[0].reals;
        for (std::size_t row = 0; row < 3; ++row)
            QCOMPARE(std::accumulate(rows.begin() + static_cast<std::ptrdiff_t>(4 * row),
                                     rows.begin() + static_cast<std::ptrdiff_t>(4 * row + 4), 0.0),
                     1.0);
        VERIFY_GRADIENT(op);
        VERIFY_GRADIENT(normalised);
    }
    void experts() {
        // Two experts of width 1: y = 0.25 relu(2 * 1 + 1) * 4 + 0.75 relu(-1 * 1) * 5.
        const KernelCase op(OpKind::Experts,
                            {numbers({1, 1}, {1}), numbers({1, 2}, {0.25, 0.75}),
                             numbers({2, 1, 1}, {2, -1}), numbers({2, 1, 1}, {4, 5}),
                             numbers({2, 1}, {1, 0})},
                            {{"function", Text("relu")}});
        QCOMPARE(op.forward()[0].reals, Numbers{3});
        VERIFY_GRADIENT(KernelCase(OpKind::Experts,
                                   {noise({3, 2}), noise({3, 2}, 0, 1, 2),
                                    noise({2, 2, 3}, -1, 1, 3), noise({2, 3, 2}, -1, 1, 4),
                                    noise({2, 3}, -1, 1, 5), noise({2, 2, 3}, -1, 1, 6)},
                                   {{"function", Text("silu")}}));
    }
    /// a = min(3, 2) and b = -min(4, 2) + 1: y = 0.5 * a * sigmoid(1.5 a) * b * 7.
    void gatedExperts() {
        const Attributes gated{
            {"function", Text("swiglu")}, {"alpha", 1.5}, {"beta", 1.0}, {"limit", 2.0}};
        const KernelCase op(OpKind::Experts,
                            {numbers({1, 1}, {1}), numbers({1, 1}, {0.5}), numbers({1, 1, 1}, {2}),
                             numbers({1, 1, 1}, {7}), numbers({1, 1}, {1}),
                             numbers({1, 1, 1}, {-3}), numbers({1, 1}, {-1})},
                            gated);
        QVERIFY(std::abs(op.forward()[0].reals[0] - 0.5 * 2 / (1 + std::exp(-3.0)) * -1 * 7) <
                1e-14);
        VERIFY_GRADIENT(
            KernelCase(OpKind::Experts,
                       {noise({3, 2}), noise({3, 2}, 0, 1, 2), noise({2, 2, 3}, -1, 1, 3),
                        noise({2, 3, 2}, -1, 1, 4), noise({2, 3}, -1, 1, 5),
                        noise({2, 2, 3}, -1, 1, 6), noise({2, 3}, -1, 1, 7)},
                       gated));
    }
    /// The mean over a region of a plane is the plane at its middle.
    void regionsOfAPlane() {
        Array x = numbers({1, 1, 6, 8}, std::vector<double>(48));
        for (std::size_t row = 0; row < 6; ++row)
            for (std::size_t column = 0; column < 8; ++column)
                x.reals[row * 8 + column] =
                    2 * static_cast<double>(column) - 3 * static_cast<double>(row) + 1;
        const KernelCase op(OpKind::RoiAlign,
                            {x, numbers({1, 4}, {1.5, 1, 5.5, 4}), integers({1}, {0})},
                            {{"height", kOne}, {"width", kOne}, {"half_pixel", kOne}});
        QVERIFY(std::abs(op.forward()[0].reals[0] - (2 * 3.0 - 3 * 2.0 + 1)) < 1e-12);
        for (const char* mode : {"avg", "max"})
            VERIFY_GRADIENT(KernelCase(OpKind::RoiAlign,
                                       {noise({2, 2, 4, 5}),
                                        numbers({2, 4}, {0.3, 0.6, 2.9, 3.1, 1.2, 0.4, 3.3, 2.6}),
                                        integers({2}, {1, 0})},
                                       {{"height", std::int64_t{2}},
                                        {"width", std::int64_t{2}},
                                        {"mode", Text(mode)},
                                        {"sampling_ratio", std::int64_t{2}}}));
    }
    void localNorm() {
        const KernelCase op(
            OpKind::LocalNorm, {numbers({1, 3, 1}, {1, 2, 3})},
            {{"size", std::int64_t{2}}, {"alpha", 2.0}, {"beta", 1.0}, {"bias", 1.0}});
        // ONNX: the window of channel c is c .. c + 1 for size 2.
        const Numbers y = op.forward()[0].reals;
        QCOMPARE(y[0], 1 / 6.0);
        QCOMPARE(y[1], 1 / 7.0);
        QCOMPARE(y[2], 0.3);
        VERIFY_GRADIENT(KernelCase(OpKind::LocalNorm, {noise({2, 5, 3})},
                                   {{"size", std::int64_t{3}}, {"alpha", 0.5}, {"bias", 0.7}}));
    }
    void resize() {
        const auto of = [](const Array& x, Ints sizes, Numbers scales, Attributes more) {
            more.set("sizes", std::move(sizes));
            more.set("scales", std::move(scales));
            return KernelCase(OpKind::Resize, {x}, std::move(more));
        };
        const Array x = numbers({1, 4}, {1, 2, 3, 4});
        QCOMPARE(of(x, {1, 2}, {1, 0.5}, {{"mode", Text("linear")}}).forward()[0].reals,
                 (Numbers{1.5, 3.5}));
        QCOMPARE(of(x, {1, 8}, {1, 2},
                    {{"coordinates", Text("asymmetric")}, {"rounding", Text("floor")}})
                     .forward()[0]
                     .reals,
                 (Numbers{1, 1, 2, 2, 3, 3, 4, 4}));
        QCOMPARE(of(x, {1, 7}, {1, 1.75},
                    {{"mode", Text("linear")}, {"coordinates", Text("align_corners")}})
                     .forward()[0]
                     .reals,
                 (Numbers{1, 1.5, 2, 2.5, 3, 3.5, 4}));
        for (const char* mode : {"nearest", "linear", "cubic"})
            for (const char* coordinates : {"half_pixel", "asymmetric", "align_corners",
                                            "pytorch_half_pixel", "half_pixel_symmetric"})
                VERIFY_GRADIENT(of(noise({1, 2, 3, 4}), {1, 2, 5, 3}, {1, 1, 5 / 3.0, 0.75},
                                   {{"mode", Text(mode)}, {"coordinates", Text(coordinates)}}));
        VERIFY_GRADIENT(of(noise({3, 4}), {4, 2}, {4 / 3.0, 0.5},
                           {{"mode", Text("cubic")}, {"exclude_outside", kOne}}));
        VERIFY_GRADIENT(of(noise({3, 4}), {4, 3}, {4 / 3.0, 0.75},
                           {{"mode", Text("linear")},
                            {"coordinates", Text("tf_crop_and_resize")},
                            {"region", Numbers{0.1, 0.2, 0.9, 1.4}},
                            {"outside", 5.0}}));
    }
    void gridSample() {
        // The identity grid at pixel centres returns the image.
        const Array x = numbers({1, 1, 2, 2}, {1, 2, 3, 4});
        const Array centres = numbers({1, 2, 2, 2}, {-0.5, -0.5, 0.5, -0.5, -0.5, 0.5, 0.5, 0.5});
        for (const char* mode : {"linear", "nearest", "cubic"})
            QCOMPARE(KernelCase(OpKind::GridSample, {x, centres},
                                {{"mode", Text(mode)}, {"padding", Text("border")}})
                         .forward()[0]
                         .reals,
                     x.reals);
        for (const char* mode : {"linear", "nearest", "cubic"})
            for (const char* padding : {"zeros", "border", "reflection"})
                for (const std::int64_t align : {kZero, kOne})
                    VERIFY_GRADIENT(
                        KernelCase(OpKind::GridSample,
                                   {noise({1, 2, 4, 3}), noise({1, 3, 2, 2}, -1.6, 1.6, 9)},
                                   {{"mode", Text(mode)},
                                    {"padding", Text(padding)},
                                    {"align_corners", align}}));
    }
    /// A window of one key is the query's own; capped scores stay below the cap.
    void attentionBounds() {
        const Array q = noise({1, 3, 2, 2}), k = noise({1, 3, 1, 2}, -1, 1, 2),
                    v = noise({1, 3, 1, 2}, -1, 1, 3);
        const Attributes own{{"causal", kOne}, {"window", kOne}};
        const Array y = KernelCase(OpKind::Attention, {q, k, v}, own).forward()[0];
        for (std::size_t i = 0; i < y.size(); ++i) QCOMPARE(y.reals[i], v.reals[i / 4 * 2 + i % 2]);
        const Array large = numbers({1, 1, 1, 1}, {100}), keys = numbers({1, 2, 1, 1}, {1, -1}),
                    values = numbers({1, 2, 1, 1}, {1, 0});
        const KernelCase capped(OpKind::Attention, {large, keys, values}, {{"softcap", 0.5}});
        QCOMPARE(capped.forward()[0].reals[0], 1 / (1 + std::exp(-1.0))); // scores +-0.5
        VERIFY_GRADIENT(
            KernelCase(OpKind::Attention, {q, k, v},
                       {{"causal", kOne}, {"window", std::int64_t{2}}, {"softcap", 0.7}}));
    }
    void gradientOps();
};

namespace {

/// A gradient op on these operands, whole.
Arrays runGradient(OpKind kind, Attributes forward, const Ints& roles, const Ints& wanted,
                   const std::vector<Array>& operands, const std::vector<Shape>& results) {
    Graph graph;
    Op op{"op", OpKind::Gradient,
          {},   gradient::attributesFor(kind, std::move(forward), roles, wanted),
          {},   {}};
    std::vector<const Array*> pointers;
    for (const Array& operand : operands) {
        const TensorSpec spec{operand.integral ? DType::I64 : DType::F64, operand.shape};
        op.inputs.push_back(
            graph.op(graph.addOp({{}, OpKind::Input, {}, {}, {}, {}}, {spec})).outputs[0]);
        pointers.push_back(&operand);
    }
    std::vector<TensorSpec> specs;
    for (const Shape& shape : results) specs.push_back({DType::F64, shape});
    const OpId id = graph.addOp(std::move(op), std::move(specs));
    const OpView view = viewOf(graph, id);
    const FactorRule rule = factorRule(view);
    return kernelOf(OpKind::Gradient).forward(KernelContext(view, rule), pointers);
}

bool near(const Array& a, const Array& b) {
    if (a.shape != b.shape) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (std::abs(a.reals[i] - b.reals[i]) > 1e-12) return false;
    return true;
}

} // namespace

void TestDerived::gradientOps() {
    using namespace gradient;
    const Array a = noise({2, 3, 4}), b = noise({4, 5}, -1, 1, 2), g = noise({2, 3, 5}, -1, 1, 3);
    const Arrays product = KernelCase(OpKind::MatMul, {a, b}).backward({g});
    const Arrays found = runGradient(OpKind::MatMul, {}, {kResultGradient, 0, 1}, {0, 1}, {g, a, b},
                                     {{2, 3, 4}, {4, 5}});
    QVERIFY(near(found[0], product[0]) && near(found[1], product[1]));

    const Array table = noise({6, 5}), ids = integers({2, 3}, {0, 5, 2, 2, 1, 0});
    const Attributes axis{{"axis", kZero}};
    QVERIFY(
        near(runGradient(OpKind::Gather, axis, {1, kResultGradient}, {0}, {ids, g}, {{6, 5}})[0],
             KernelCase(OpKind::Gather, {table, ids}, axis).backward({g})[0]));

    for (const char* function : {"softmax", "logsoftmax"}) {
        const Attributes softmax{{"axes", Ints{2}}, {"function", Text(function)}};
        const KernelCase forward(OpKind::Softmax, {g}, softmax);
        const Array weight = noise({2, 3, 5}, -1, 1, 8);
        QVERIFY(near(runGradient(OpKind::Softmax, softmax, {kResultGradient, kForwardResult}, {0},
                                 {weight, forward.forward()[0]}, {{2, 3, 5}})[0],
                     forward.backward({weight})[0]));
    }
    for (const char* function : {"relu", "gelu", "silu"}) {
        const Attributes of{{"function", Text(function)}};
        QVERIFY(near(runGradient(OpKind::Elementwise, of, {kResultGradient, 0}, {0},
                                 {g, noise({2, 3, 5})}, {{2, 3, 5}})[0],
                     KernelCase(OpKind::Elementwise, {noise({2, 3, 5})}, of).backward({g})[0]));
    }
    for (const char* mode : {"layer", "rms"}) {
        const bool layer = Text(mode) == "layer";
        const Attributes norm{{"mode", Text(mode)}, {"axes", Ints{2}}};
        std::vector<Operand> operands{a, noise({4}, -1, 1, 4)};
        if (layer) operands.emplace_back(noise({4}, -1, 1, 5));
        const KernelCase forward(OpKind::Norm, operands, norm);
        const Array weight = noise({2, 3, 4}, -1, 1, 8);
        const Arrays kept = forward.forward(), wanted = forward.backward({weight});
        std::vector<Array> given{weight, a, *operands[1]};
        Ints roles{kResultGradient, 0, 1};
        for (std::size_t k = layer ? 0 : 1; k < 2; ++k) { // mean, reciprocal deviation
            given.push_back(kept[kept.size() - 2 + k]);
            roles.push_back(kRowStatistic + static_cast<std::int64_t>(k));
        }
        Ints ports{0, 1};
        std::vector<Shape> shapes{{2, 3, 4}, {4}};
        if (layer) {
            ports.push_back(2);
            shapes.push_back({4});
        }
        const Arrays back = runGradient(OpKind::Norm, norm, roles, ports, given, shapes);
        for (std::size_t i = 0; i < ports.size(); ++i) QVERIFY(near(back[i], wanted[i]));
    }
}

SHARDLENS_TEST(TestDerived)

} // namespace tst_kernels_derived

#include "tst_kernels_derived.moc"
