// SPDX-License-Identifier: Apache-2.0
// Reference kernels of products, elementwise functions, reductions, norms and losses: values
// against closed forms and worked examples, every gradient against finite differences.
#include "tests/core/execute/kernel_case.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_kernels {

using namespace shardlens;
using namespace shardlens::test;

using Ints = std::vector<std::int64_t>;
using Text = std::string;

namespace {

Attributes functionOf(const char* name) {
    return {{"function", Text(name)}};
}

bool isNear(double actual, double expected) {
    return std::abs(actual - expected) <= 1e-12 * std::max(1.0, std::abs(expected));
}

double valueOf(const char* function, std::vector<Operand> operands, Attributes attributes = {}) {
    attributes.set("function", Text(function));
    return KernelCase(OpKind::Elementwise, std::move(operands), std::move(attributes))
        .forward()[0]
        .at(0);
}

double scalarOf(const char* function, double x, Attributes attributes = {}) {
    return valueOf(function, {numbers({1}, {x})}, std::move(attributes));
}

} // namespace

#define COMPARE_NEAR(actual, expected)                                                             \
    QVERIFY2(                                                                                      \
        isNear(actual, expected),                                                                  \
        qPrintable(QString("%1 is not %2").arg(actual, 0, 'g', 17).arg(expected, 0, 'g', 17)))

class TestKernels : public QObject {
    Q_OBJECT

private slots:
    // --- products -------------------------------------------------------------------------------

    void matMulByHand() {
        const KernelCase product(OpKind::MatMul,
                                 {numbers({2, 2}, {1, 2, 3, 4}), numbers({2, 2}, {5, 6, 7, 8}),
                                  numbers({2}, {100, 200})});
        QCOMPARE(product.forward()[0].reals, (std::vector<double>{119, 222, 143, 250}));
        // d/dA = G B', d/dB = A' G, d/dbias = column sums of G.
        const Arrays back = product.backward({numbers({2, 2}, {1, 0, 0, 1})});
        QCOMPARE(back[0].reals, (std::vector<double>{5, 7, 6, 8}));
        QCOMPARE(back[1].reals, (std::vector<double>{1, 3, 2, 4}));
        QCOMPARE(back[2].reals, (std::vector<double>{1, 1}));
    }
    void matMulGradients_data() {
        QTest::addColumn<Shape>("a");
        QTest::addColumn<Shape>("b");
        QTest::addColumn<Shape>("bias");
        QTest::addColumn<int>("transposes");
        QTest::newRow("matrix") << Shape{3, 4} << Shape{4, 5} << Shape{5} << 0;
        QTest::newRow("batch") << Shape{2, 3, 4} << Shape{4, 5} << Shape{} << 0;
        QTest::newRow("broadcast") << Shape{2, 1, 3, 4} << Shape{3, 4, 2} << Shape{3, 1} << 0;
        QTest::newRow("A'") << Shape{4, 3} << Shape{4, 5} << Shape{5} << 1;
        QTest::newRow("B'") << Shape{2, 3, 4} << Shape{5, 4} << Shape{5} << 2;
        QTest::newRow("A' B'") << Shape{4, 3} << Shape{5, 4} << Shape{1, 5} << 3;
        QTest::newRow("vector left") << Shape{4} << Shape{2, 4, 5} << Shape{} << 0;
        QTest::newRow("vector right") << Shape{2, 3, 4} << Shape{4} << Shape{} << 0;
        QTest::newRow("inner product") << Shape{4} << Shape{4} << Shape{} << 0;
    }
    void matMulGradients() {
        QFETCH(Shape, a);
        QFETCH(Shape, b);
        QFETCH(Shape, bias);
        QFETCH(int, transposes);
        std::vector<Operand> operands{noise(a), noise(b, -1, 1, 2)};
        if (!bias.empty()) operands.emplace_back(noise(bias, -1, 1, 3));
        VERIFY_GRADIENT(KernelCase(
            OpKind::MatMul, operands,
            {{"transA", std::int64_t{transposes % 2}}, {"transB", std::int64_t{transposes / 2}}}));
    }
    void einsumEqualsMatMul() {
        const Array a = noise({2, 3, 4}), b = noise({4, 5}, -1, 1, 2);
        const Arrays product = KernelCase(OpKind::MatMul, {a, b}).forward();
        const Arrays sum =
            KernelCase(OpKind::Einsum, {a, b}, {{"equation", Text("bik,kj->bij")}}).forward();
        for (std::size_t i = 0; i < sum[0].reals.size(); ++i)
            COMPARE_NEAR(sum[0].reals[i], product[0].reals[i]);
    }
    void einsumGradients_data() {
        QTest::addColumn<QString>("equation");
        QTest::addColumn<QList<Shape>>("shapes");
        QTest::newRow("product") << "bij,bjk->bik" << QList<Shape>{{2, 3, 4}, {2, 4, 2}};
        QTest::newRow("trace") << "ii->" << QList<Shape>{{4, 4}};
        QTest::newRow("diagonal") << "bii->bi" << QList<Shape>{{2, 3, 3}};
        QTest::newRow("three") << "ai,bi,ci->abc" << QList<Shape>{{2, 3}, {3, 3}, {2, 3}};
        QTest::newRow("summed away") << "ij,k->i" << QList<Shape>{{2, 3}, {4}};
        QTest::newRow("experts") << "ebch,efh->ebcf" << QList<Shape>{{2, 1, 3, 4}, {2, 2, 4}};
    }
    void einsumGradients() {
        QFETCH(QString, equation);
        QFETCH(QList<Shape>, shapes);
        std::vector<Operand> operands;
        for (const Shape& shape : shapes)
            operands.emplace_back(noise(shape, -1, 1, static_cast<unsigned>(operands.size() + 1)));
        VERIFY_GRADIENT(
            KernelCase(OpKind::Einsum, operands, {{"equation", equation.toStdString()}}));
    }

    // --- attention ------------------------------------------------------------------------------

    /// Against softmax(q k' / sqrt(d)) v put together from other kernels.
    void attentionIsSoftmaxOfProducts() {
        const Array q = noise({2, 3, 2, 4}), k = noise({2, 5, 2, 4}, -1, 1, 2),
                    v = noise({2, 5, 2, 3}, -1, 1, 3);
        const Array scores =
            KernelCase(OpKind::Einsum, {q, k}, {{"equation", Text("bshd,bthd->bhst")}})
                .forward()[0];
        const Array scaled =
            KernelCase(OpKind::Elementwise, {scores}, {{"function", Text("scale")}, {"alpha", 0.5}})
                .forward()[0];
        const Array p = KernelCase(OpKind::Softmax, {scaled}, {{"axes", Ints{3}}}).forward()[0];
        const Array y = KernelCase(OpKind::Einsum, {p, v}, {{"equation", Text("bhst,bthe->bshe")}})
                            .forward()[0];
        const Array fused = KernelCase(OpKind::Attention, {q, k, v}).forward()[0];
        QCOMPARE(fused.shape, y.shape);
        for (std::size_t i = 0; i < y.reals.size(); ++i) COMPARE_NEAR(fused.reals[i], y.reals[i]);
    }
    void causalAttentionSeesNoFuture() {
        const Array q = noise({1, 4, 1, 2}), k = noise({1, 4, 1, 2}, -1, 1, 2);
        Array v = noise({1, 4, 1, 2}, -1, 1, 3);
        const Attributes causal{{"causal", std::int64_t{1}}};
        const Array before = KernelCase(OpKind::Attention, {q, k, v}, causal).forward()[0];
        COMPARE_NEAR(before.reals[0], v.reals[0]); // the first query sees the first value alone
        v.reals[6] += 1;                           // the last value
        const Array after = KernelCase(OpKind::Attention, {q, k, v}, causal).forward()[0];
        for (std::size_t i = 0; i < 6; ++i) QCOMPARE(after.reals[i], before.reals[i]);
        QVERIFY(after.reals[6] > before.reals[6]);
    }
    /// Grouped heads: equal to repeating each key-value head for its group.
    void groupedHeadsRepeatKeys() {
        const Array q = noise({1, 2, 4, 3}), k = noise({1, 3, 2, 3}, -1, 1, 2),
                    v = noise({1, 3, 2, 2}, -1, 1, 3);
        const auto repeated = [](const Array& x) {
            Arrays heads;
            for (std::int64_t h = 0; h < 2; ++h)
                for (int times = 0; times < 2; ++times) heads.push_back(sliceOf(x, 2, h, 1));
            return joined(heads, 2);
        };
        const Array grouped = KernelCase(OpKind::Attention, {q, k, v}).forward()[0];
        const Array full =
            KernelCase(OpKind::Attention, {q, repeated(k), repeated(v)}).forward()[0];
        QCOMPARE(grouped.reals, full.reals);
    }
    void attentionGradients_data() {
        QTest::addColumn<Shape>("q");
        QTest::addColumn<Shape>("k");
        QTest::addColumn<Shape>("mask");
        QTest::addColumn<int>("causal");
        QTest::newRow("plain") << Shape{2, 3, 2, 4} << Shape{2, 4, 2, 4} << Shape{} << 0;
        QTest::newRow("causal") << Shape{1, 4, 2, 2} << Shape{1, 4, 2, 2} << Shape{} << 1;
        QTest::newRow("grouped") << Shape{1, 3, 4, 2} << Shape{1, 3, 2, 2} << Shape{} << 1;
        QTest::newRow("bias") << Shape{2, 3, 2, 2} << Shape{2, 4, 2, 2} << Shape{1, 2, 3, 4} << 0;
        QTest::newRow("row bias") << Shape{2, 3, 2, 2} << Shape{2, 4, 1, 2} << Shape{4} << 0;
    }
    void attentionGradients() {
        QFETCH(Shape, q);
        QFETCH(Shape, k);
        QFETCH(Shape, mask);
        QFETCH(int, causal);
        Shape v = k;
        v.back() = 3;
        std::vector<Operand> operands{noise(q), noise(k, -1, 1, 2), noise(v, -1, 1, 3)};
        if (!mask.empty()) operands.emplace_back(noise(mask, -1, 1, 4));
        VERIFY_GRADIENT(
            KernelCase(OpKind::Attention, operands, {{"causal", std::int64_t{causal}}}));
    }
    void boolMaskHidesKeys() {
        const Array q = noise({1, 2, 1, 2}), k = noise({1, 3, 1, 2}, -1, 1, 2),
                    v = noise({1, 3, 1, 2}, -1, 1, 3);
        const KernelCase masked(OpKind::Attention, {q, k, v, integers({2, 3}, {0, 1, 0, 0, 0, 0})});
        const Array y = masked.forward()[0];
        COMPARE_NEAR(y.reals[0], v.reals[2]);
        QCOMPARE(y.reals[2], 0.0); // a query that sees nothing
        VERIFY_GRADIENT(masked);
    }

    // --- elementwise ----------------------------------------------------------------------------

    void elementwiseValues() {
        // PyTorch 2.1: torch.nn.functional at these points, float64.
        COMPARE_NEAR(scalarOf("gelu", 1.0), 0.8413447460685429);
        COMPARE_NEAR(scalarOf("gelu", 1.0, {{"approximate", Text("tanh")}}), 0.8411919906082768);
        COMPARE_NEAR(scalarOf("silu", 1.0), 0.7310585786300049);
        COMPARE_NEAR(scalarOf("softplus", 1.0), std::log(1 + std::exp(1.0)));
        COMPARE_NEAR(scalarOf("mish", 1.0), std::tanh(std::log(1 + std::exp(1.0))));
        COMPARE_NEAR(scalarOf("hardswish", 1.0), 4.0 / 6);
        COMPARE_NEAR(scalarOf("softplus", 1000.0), 1000.0);
        COMPARE_NEAR(scalarOf("sigmoid", -1000.0), 0.0);
        QCOMPARE(scalarOf("round", 2.5), 2.0);
        QCOMPARE(scalarOf("round", -3.5), -4.0);
        QCOMPARE(valueOf("mod", {integers({1}, {-7}), integers({1}, {3})}), 2.0);
        QCOMPARE(
            valueOf("mod", {integers({1}, {-7}), integers({1}, {3})}, {{"fmod", std::int64_t{1}}}),
            -1.0);
        QCOMPARE(valueOf("div", {integers({1}, {-7}), integers({1}, {2})}), -3.0);
        QCOMPARE(scalarOf("cast", 300.7, {{"to", Text("u8")}}), 44.0);      // wraps
        QCOMPARE(scalarOf("quantize", 300.7, {{"to", Text("u8")}}), 255.0); // saturates
        QCOMPARE(valueOf("quantize", {numbers({1}, {2.5}), numbers({1}, {1.0}), integers({1}, {3})},
                         {{"to", Text("i8")}}),
                 5.0); // half to even, then the zero point
    }
    void unsignedSixtyFour() {
        // 2^63 is larger than 1 in u64, though its bits are negative in i64.
        const OpKind kind = OpKind::Elementwise;
        Graph graph;
        const TensorSpec spec{DType::U64, {1}};
        std::vector<TensorId> inputs;
        for (const char* name : {"a", "b"})
            inputs.push_back(
                graph.op(graph.addOp({name, OpKind::Input, {}, {}, {}, {}}, {spec})).outputs[0]);
        const OpId id = addInferred(graph, {"op", kind, {}, functionOf("max"), inputs, {}});
        const OpView view = viewOf(graph, id);
        const FactorRule rule = factorRule(view);
        const Array a = integers({1}, {std::numeric_limits<std::int64_t>::min()}),
                    b = integers({1}, {1});
        const std::vector<const Array*> operands{&a, &b};
        QCOMPARE(kernelOf(kind).forward(KernelContext(view, rule), operands)[0].ints, a.ints);
    }
    void unaryGradients_data() {
        QTest::addColumn<double>("low");
        QTest::addColumn<double>("high");
        for (const char* name : {"abs",         "asinh",     "atan",     "celu",
                                 "cos",         "cosh",      "elu",      "erf",
                                 "exp",         "exp2",      "expm1",    "gelu",
                                 "hardsigmoid", "hardswish", "identity", "leakyrelu",
                                 "mish",        "neg",       "relu",     "scale",
                                 "selu",        "shrink",    "sigmoid",  "silu",
                                 "sin",         "sinh",      "softplus", "softsign",
                                 "square",      "tan",       "tanh",     "thresholdedrelu",
                                 "cast"})
            QTest::newRow(name) << -1.4 << 1.4;
        for (const char* name : {"acos", "asin", "atanh"}) QTest::newRow(name) << -0.9 << 0.9;
        for (const char* name : {"log", "log1p", "log2", "reciprocal", "rsqrt", "sqrt"})
            QTest::newRow(name) << 0.2 << 3.0;
        QTest::newRow("acosh") << 1.2 << 3.0;
    }
    void unaryGradients() {
        QFETCH(double, low);
        QFETCH(double, high);
        const KernelCase op(OpKind::Elementwise, {noise({3, 5}, low, high)},
                            functionOf(QTest::currentDataTag()));
        VERIFY_GRADIENT(op);
        double largest = 0;
        const Arrays gradients = op.backward();
        for (const double g : gradients[0].reals) largest = std::max(largest, std::abs(g));
        QVERIFY(largest > 0);
    }
    void settingsReachTheGradient() {
        const Operand x = noise({4, 4}, -2, 2);
        for (const Attributes& attributes : std::vector<Attributes>{
                 {{"function", Text("gelu")}, {"approximate", Text("tanh")}},
                 {{"function", Text("silu")}, {"alpha", 1.702}},
                 {{"function", Text("celu")}, {"alpha", 0.7}},
                 {{"function", Text("elu")}, {"alpha", 0.7}},
                 {{"function", Text("hardsigmoid")}, {"alpha", 0.3}, {"beta", 0.4}},
                 {{"function", Text("selu")}, {"alpha", 2.0}, {"gamma", 3.0}},
                 {{"function", Text("shrink")}, {"bias", 0.2}, {"lambd", 0.9}},
                 {{"function", Text("clip")}, {"min", -0.5}, {"max", 0.6}}})
            VERIFY_GRADIENT(KernelCase(OpKind::Elementwise, {x}, attributes));
    }
    void naryGradients_data() {
        QTest::addColumn<int>("operands");
        for (const char* name :
             {"add", "sub", "mul", "div", "pow", "mod", "atan2", "prelu", "max", "min"})
            QTest::newRow(name) << 2;
        for (const char* name : {"sum", "mean", "max", "min", "clip", "dequantize"})
            QTest::newRow(fmt::format("{} of three", name).c_str()) << 3;
    }
    void naryGradients() {
        QFETCH(int, operands);
        const std::string name = QTest::currentDataTag();
        std::vector<Operand> shapes{noise({2, 3, 4}, 0.3, 2), noise({3, 1}, 0.3, 2, 2)};
        if (name == "prelu") shapes[0] = noise({2, 3, 4});
        if (operands == 3) shapes.emplace_back(noise({}, 1, 2, 3));
        VERIFY_GRADIENT(KernelCase(OpKind::Elementwise, shapes,
                                   {{"function", name.substr(0, name.find(' '))}}));
    }
    void whereGradient() {
        VERIFY_GRADIENT(KernelCase(OpKind::Elementwise,
                                   {integers({3, 1}, {1, 0, 1}), noise({3, 4}), noise({4})},
                                   functionOf("where")));
    }
    void dropoutKeepsTheMean() {
        const KernelCase dropout(OpKind::Dropout, {Array::real({100, 100}, 1.0)},
                                 {{"ratio", 0.25}, {"mask", std::int64_t{1}}});
        const Arrays results = dropout.forward();
        double sum = 0;
        for (std::size_t i = 0; i < 10'000; ++i) {
            sum += results[0].reals[i];
            QCOMPARE(results[0].reals[i], results[1].ints[i] != 0 ? 1 / 0.75 : 0);
        }
        QVERIFY(std::abs(sum / 10'000 - 1) < 0.03); // five deviations of the mean are 0.029
        const KernelCase small(OpKind::Dropout, {noise({4, 5})}, {{"ratio", 0.25}});
        VERIFY_GRADIENT(small);
        const Array x = noise({4, 5});
        QCOMPARE(KernelCase(OpKind::Dropout, {x}, {{"ratio", 0.5}, {"training", std::int64_t{0}}})
                     .forward()[0]
                     .reals,
                 x.reals);
    }

    // --- softmax, norms, losses -----------------------------------------------------------------

    void softmaxGradients() {
        for (const char* function : {"softmax", "logsoftmax"})
            for (const Ints& axes : {Ints{2}, Ints{0}, Ints{1, 2}, Ints{0, 1, 2}})
                VERIFY_GRADIENT(KernelCase(OpKind::Softmax, {noise({2, 3, 4}, -2, 2)},
                                           {{"axes", axes}, {"function", Text(function)}}));
    }
    void softmaxOfLargeNumbers() {
        const Arrays y =
            KernelCase(OpKind::Softmax, {numbers({2}, {10'000, 10'001})}, {{"axes", Ints{0}}})
                .forward();
        COMPARE_NEAR(y[0].reals[1], 1 / (1 + std::exp(-1.0)));
    }
    void normGradients_data() {
        QTest::addColumn<Shape>("shape");
        QTest::addColumn<Ints>("axes");
        QTest::newRow("layer") << Shape{2, 3, 4} << Ints{2};
        QTest::newRow("layer, two dims") << Shape{2, 3, 4} << Ints{1, 2};
        QTest::newRow("rms") << Shape{2, 3, 4} << Ints{2};
        QTest::newRow("batch, training") << Shape{3, 2, 4} << Ints{};
        QTest::newRow("batch") << Shape{3, 2, 4} << Ints{};
        QTest::newRow("group") << Shape{2, 4, 3} << Ints{};
        QTest::newRow("instance") << Shape{2, 3, 4, 2} << Ints{};
        QTest::newRow("lp") << Shape{2, 3, 4} << Ints{1};
        QTest::newRow("lp, p = 1") << Shape{2, 3, 4} << Ints{1};
    }
    void normGradients() {
        QFETCH(Shape, shape);
        QFETCH(Ints, axes);
        const std::string name = QTest::currentDataTag();
        const std::string mode = name.substr(0, name.find(','));
        Attributes attributes{{"mode", mode}, {"axes", axes}, {"epsilon", 0.01}};
        if (name.ends_with("training")) attributes.set("training", std::int64_t{1});
        if (name.ends_with("p = 1")) attributes.set("p", std::int64_t{1});
        if (mode == "group") attributes.set("groups", std::int64_t{2});
        std::vector<Operand> operands{noise(shape)};
        if (mode != "lp") {
            Shape small{shape[1]};
            if (mode == "layer" || mode == "rms")
                small.assign(shape.begin() + axes[0], shape.end());
            operands.emplace_back(noise(small, 0.5, 2, 2));
            if (mode != "rms") operands.emplace_back(noise(small, -1, 1, 3));
            if (mode == "batch" && !name.ends_with("training")) {
                operands.emplace_back(noise(small, -1, 1, 4));
                operands.emplace_back(noise(small, 0.5, 2, 5));
            }
        }
        VERIFY_GRADIENT(KernelCase(OpKind::Norm, operands, attributes));
    }
    /// (x - 2.5) / sqrt(1.25) for 1, 2, 3, 4.
    void layerNormByHand() {
        const Arrays y = KernelCase(OpKind::Norm, {numbers({4}, {1, 2, 3, 4})},
                                    {{"mode", Text("layer")}, {"axes", Ints{0}}, {"epsilon", 0.0}})
                             .forward();
        COMPARE_NEAR(y[0].reals[0], -1.5 / std::sqrt(1.25));
        COMPARE_NEAR(y[0].reals[3], 1.5 / std::sqrt(1.25));
    }
    void crossEntropyByHand() {
        // Equal logits over V classes: log V, whatever the labels.
        const KernelCase even(OpKind::CrossEntropy,
                              {Array::real({2, 3, 5}, 0.7), integers({2, 3}, {0, 4, 2, 1, 1, 3})});
        COMPARE_NEAR(even.forward()[0].reals[0], std::log(5.0));
        const Arrays back = even.backward({numbers({}, {6.0})});
        COMPARE_NEAR(back[0].reals[0], 0.2 - 1); // (p - 1[label]) * 6 / 6 rows
        COMPARE_NEAR(back[0].reals[1], 0.2);
        VERIFY_GRADIENT(KernelCase(
            OpKind::CrossEntropy, {noise({2, 3, 5}, -3, 3), integers({2, 3}, {0, 4, 2, 1, 1, 3})}));
    }

    void lossOfEachLabel() {
        const Operand labels = integers({2, 3}, {0, 4, 2, 1, 1, 3});
        for (const std::int64_t normalised : {0, 1})
            VERIFY_GRADIENT(
                KernelCase(OpKind::CrossEntropy, {noise({2, 3, 5}, -3, 3), labels},
                           {{"reduction", Text("none")}, {"log_probabilities", normalised}}));
        const Arrays rows = KernelCase(OpKind::CrossEntropy, {Array::real({2, 3, 5}, 0.7), labels},
                                       {{"reduction", Text("none")}})
                                .forward();
        QCOMPARE(rows[0].shape, (Shape{2, 3}));
        COMPARE_NEAR(rows[0].reals[5], std::log(5.0));
    }
    void statisticsAreResults() {
        const Attributes layer{{"mode", Text("layer")},
                               {"axes", Ints{1}},
                               {"epsilon", 0.0},
                               {"statistics", std::int64_t{1}}};
        const KernelCase op(OpKind::Norm, {numbers({1, 4}, {1, 2, 3, 4})}, layer);
        COMPARE_NEAR(op.forward()[1].reals[0], 2.5);
        COMPARE_NEAR(op.forward()[2].reals[0], 1 / std::sqrt(1.25));
        VERIFY_GRADIENT(KernelCase(OpKind::Norm, {noise({3, 4}), noise({4}, 0.5, 2, 2)}, layer));
        VERIFY_GRADIENT(KernelCase(
            OpKind::Norm, {noise({3, 4})},
            {{"mode", Text("rms")}, {"axes", Ints{1}}, {"statistics", std::int64_t{1}}}));
    }

    // --- reductions -----------------------------------------------------------------------------

    void reductionValues() {
        const Array x = numbers({2, 2}, {1, -2, 3, 4});
        const auto of = [&](const char* function) {
            return KernelCase(OpKind::Reduce, {x},
                              {{"function", Text(function)},
                               {"axes", Ints{1}},
                               {"keepdims", std::int64_t{0}}})
                .forward()[0]
                .reals;
        };
        QCOMPARE(of("sum"), (std::vector<double>{-1, 7}));
        QCOMPARE(of("mean"), (std::vector<double>{-0.5, 3.5}));
        QCOMPARE(of("max"), (std::vector<double>{1, 4}));
        QCOMPARE(of("min"), (std::vector<double>{-2, 3}));
        QCOMPARE(of("prod"), (std::vector<double>{-2, 12}));
        QCOMPARE(of("l1"), (std::vector<double>{3, 7}));
        QCOMPARE(of("l2"), (std::vector<double>{std::sqrt(5.0), 5}));
        QCOMPARE(of("sumsquare"), (std::vector<double>{5, 25}));
        COMPARE_NEAR(of("logsum")[1], std::log(7.0));
        COMPARE_NEAR(of("logsumexp")[0], std::log(std::exp(1.0) + std::exp(-2.0)));
    }
    void reductionGradients() {
        for (const char* function :
             {"sum", "mean", "max", "min", "prod", "l1", "l2", "sumsquare", "logsumexp", "logsum"})
            for (const Ints& axes : {Ints{1}, Ints{0, 2}, Ints{0, 1, 2}})
                for (const std::int64_t keep : {0, 1})
                    VERIFY_GRADIENT(KernelCase(
                        OpKind::Reduce, {noise({2, 3, 4}, 0.3, 2)},
                        {{"function", Text(function)}, {"axes", axes}, {"keepdims", keep}}));
    }
    void tiedExtremaShareTheGradient() {
        const KernelCase op(OpKind::Reduce, {numbers({3}, {5, 1, 5})},
                            {{"function", Text("max")}, {"axes", Ints{0}}});
        QCOMPARE(op.backward({numbers({1}, {3})})[0].reals, (std::vector<double>{1.5, 0, 1.5}));
    }
    void argReduceAndTopK() {
        const Array x = numbers({2, 3}, {5, 1, 5, 2, 7, 7});
        const auto arg = [&](const char* function, std::int64_t last) {
            return KernelCase(OpKind::ArgReduce, {x},
                              {{"function", Text(function)},
                               {"axis", std::int64_t{1}},
                               {"select_last", last}})
                .forward()[0]
                .ints;
        };
        QCOMPARE(arg("argmax", 0), (Ints{0, 1}));
        QCOMPARE(arg("argmax", 1), (Ints{2, 2}));
        QCOMPARE(arg("argmin", 0), (Ints{1, 0}));
        const KernelCase top(OpKind::TopK, {x},
                             {{"axis", std::int64_t{1}}, {"k", std::int64_t{2}}});
        QCOMPARE(top.forward()[0].reals, (std::vector<double>{5, 5, 7, 7}));
        QCOMPARE(top.forward()[1].ints, (Ints{0, 2, 1, 2}));
        for (const std::int64_t axis : {0, 1, 2})
            for (const std::int64_t largest : {0, 1})
                VERIFY_GRADIENT(
                    KernelCase(OpKind::TopK, {noise({3, 4, 2})},
                               {{"axis", axis}, {"k", std::int64_t{2}}, {"largest", largest}}));
    }
    void cumulation() {
        const Array x = numbers({4}, {1, 2, 3, 4});
        const auto of = [&](std::int64_t exclusive, std::int64_t reverse, const char* function) {
            return KernelCase(OpKind::CumSum, {x},
                              {{"axis", std::int64_t{0}},
                               {"exclusive", exclusive},
                               {"reverse", reverse},
                               {"function", Text(function)}})
                .forward()[0]
                .reals;
        };
        QCOMPARE(of(0, 0, "sum"), (std::vector<double>{1, 3, 6, 10}));
        QCOMPARE(of(1, 0, "sum"), (std::vector<double>{0, 1, 3, 6}));
        QCOMPARE(of(0, 1, "sum"), (std::vector<double>{10, 9, 7, 4}));
        QCOMPARE(of(1, 1, "prod"), (std::vector<double>{24, 12, 4, 1}));
        for (const char* function : {"sum", "prod"})
            for (const std::int64_t flags : {0, 1, 2, 3})
                VERIFY_GRADIENT(KernelCase(OpKind::CumSum, {noise({3, 4, 2})},
                                           {{"axis", std::int64_t{1}},
                                            {"exclusive", flags % 2},
                                            {"reverse", flags / 2},
                                            {"function", Text(function)}}));
    }
};

SHARDLENS_TEST(TestKernels)

} // namespace tst_kernels

#include "tst_kernels.moc"
