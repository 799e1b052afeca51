// SPDX-License-Identifier: Apache-2.0
// Reference kernels of convolutions, pooling and mixture-of-experts routing: worked examples and
// closed forms, and gradients against finite differences.
#include "tests/core/execute/kernel_case.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_kernels_image {

using namespace shardlens;
using namespace shardlens::test;

using Ints = std::vector<std::int64_t>;
using Text = std::string;
using Numbers = std::vector<double>;

class TestImageKernels : public QObject {
    Q_OBJECT

private slots:
    void convolutionByHand() {
        // A difference filter over 0, 1, 4, 9, 16 with one zero before it.
        const Array x = numbers({1, 1, 5}, {0, 1, 4, 9, 16}), w = numbers({1, 1, 2}, {-1, 1});
        QCOMPARE(KernelCase(OpKind::Conv, {x, w}, {{"pads", Ints{1, 0}}}).forward()[0].reals,
                 (Numbers{0, 1, 3, 5, 7}));
        QCOMPARE(KernelCase(OpKind::Conv, {x, w}, {{"strides", Ints{2}}}).forward()[0].reals,
                 (Numbers{1, 5}));
        QCOMPARE(KernelCase(OpKind::Conv, {x, w}, {{"dilations", Ints{2}}}).forward()[0].reals,
                 (Numbers{4, 8, 12}));
    }
    /// A point window is a matrix product over the channels.
    void pointConvolutionIsAProduct() {
        const Array x = noise({2, 3, 2, 2}), w = noise({4, 3, 1, 1}, -1, 1, 2);
        Array matrix = w;
        matrix.shape = {4, 3};
        const Array expected =
            KernelCase(OpKind::Einsum, {x, matrix}, {{"equation", Text("bchw,oc->bohw")}})
                .forward()[0];
        const Array y = KernelCase(OpKind::Conv, {x, w}).forward()[0];
        for (std::size_t i = 0; i < y.reals.size(); ++i)
            QVERIFY(std::abs(y.reals[i] - expected.reals[i]) < 1e-12);
    }
    /// The transposed convolution is the gradient of the plain one into its image.
    void transposedIsTheGradient() {
        const Array w = noise({4, 3, 3, 2}, -1, 1, 2), g = noise({2, 4, 3, 4}, -1, 1, 3);
        const Attributes window{{"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 1}}};
        const Arrays back =
            KernelCase(OpKind::Conv, {noise({2, 3, 5, 4}), w}, window).backward({g});
        const Arrays forward = KernelCase(OpKind::ConvTranspose, {g, w}, window).forward();
        QCOMPARE(forward[0].shape, back[0].shape);
        for (std::size_t i = 0; i < back[0].reals.size(); ++i)
            QVERIFY(std::abs(forward[0].reals[i] - back[0].reals[i]) < 1e-12);
    }
    void convolutionGradients_data() {
        QTest::addColumn<Shape>("x");
        QTest::addColumn<Shape>("w");
        QTest::addColumn<int>("group");
        QTest::newRow("line") << Shape{2, 3, 6} << Shape{2, 3, 3} << 1;
        QTest::newRow("plane") << Shape{1, 2, 4, 5} << Shape{3, 2, 2, 3} << 1;
        QTest::newRow("groups") << Shape{1, 4, 3, 4} << Shape{6, 2, 2, 2} << 2;
        QTest::newRow("depthwise") << Shape{2, 3, 5} << Shape{3, 1, 3} << 3;
    }
    void convolutionGradients() {
        QFETCH(Shape, x);
        QFETCH(Shape, w);
        QFETCH(int, group);
        const std::size_t n = x.size() - 2;
        Attributes attributes{{"group", std::int64_t{group}},
                              {"strides", Ints(n, 2)},
                              {"pads", Ints(2 * n, 1)},
                              {"dilations", Ints(n, 1)}};
        VERIFY_GRADIENT(KernelCase(
            OpKind::Conv, {noise(x), noise(w, -1, 1, 2), noise({w[0]}, -1, 1, 3)}, attributes));
        // Transposed, kernels have the image's channels first.
        Shape turned = w;
        turned[0] = x[1];
        turned[1] = 2;
        VERIFY_GRADIENT(KernelCase(
            OpKind::ConvTranspose,
            {noise(x), noise(turned, -1, 1, 2), noise({2 * group}, -1, 1, 3)}, attributes));
    }
    void pooling() {
        const Array x = numbers({1, 1, 4}, {1, 5, 2, 4});
        const auto of = [&](const char* mode, std::int64_t pads) {
            return KernelCase(OpKind::Pool, {x},
                              {{"mode", Text(mode)},
                               {"kernel", Ints{2}},
                               {"pads", Ints{1, 0}},
                               {"count_include_pad", pads}})
                .forward()[0]
                .reals;
        };
        QCOMPARE(of("max", 0), (Numbers{1, 5, 5, 4}));
        QCOMPARE(of("average", 0), (Numbers{1, 3, 3.5, 3}));
        QCOMPARE(of("average", 1), (Numbers{0.5, 3, 3.5, 3}));
        QCOMPARE(of("lp", 0)[0], 1.0);
        QCOMPARE(of("lp", 0)[3], std::sqrt(20.0));
        const KernelCase indexed(
            OpKind::Pool, {numbers({2, 1, 2}, {1, 2, 4, 3})},
            {{"mode", Text("max")}, {"kernel", Ints{2}}, {"indices", std::int64_t{1}}});
        QCOMPARE(indexed.forward()[1].ints, (Ints{1, 2}));
    }
    void poolingGradients() {
        for (const char* mode : {"max", "average", "lp"}) {
            for (const std::int64_t flag : {0, 1})
                VERIFY_GRADIENT(KernelCase(OpKind::Pool, {noise({2, 2, 5, 4})},
                                           {{"mode", Text(mode)},
                                            {"kernel", Ints{3, 2}},
                                            {"strides", Ints{2, 1}},
                                            {"pads", Ints{1, 1, 0, 0}},
                                            {"ceil_mode", flag},
                                            {"count_include_pad", flag}}));
            VERIFY_GRADIENT(
                KernelCase(OpKind::GlobalPool, {noise({2, 3, 4, 2})}, {{"mode", Text(mode)}}));
        }
    }

    // --- mixture of experts ---------------------------------------------------------------------

    void tokensTakeSlotsInOrder() {
        // Four tokens, two experts, one choice each: ceil(4 * 1 / 2) = 2 slots, in two groups of
        // two tokens with one slot of each expert.
        const Array x = numbers({1, 4, 1}, {10, 20, 30, 40}),
                    scores = numbers({1, 4, 2}, {0.9, 0.1, 0.8, 0.2, 0.3, 0.7, 0.6, 0.4});
        const KernelCase dispatch(OpKind::MoeDispatch, {x, scores}, {{"top_k", std::int64_t{1}}});
        // Expert 0: token 10 (20 is dropped), then 40. Expert 1: nothing, then 30.
        QCOMPARE(dispatch.forward()[0].shape, (Shape{2, 1, 2, 1}));
        QCOMPARE(dispatch.forward()[0].reals, (Numbers{10, 40, 0, 30}));
        const Array weights = numbers({1, 4, 2}, {0.9, 0, 0.8, 0, 0, 0.7, 0.6, 0});
        const KernelCase combine(OpKind::MoeCombine, {dispatch.forward()[0], weights});
        QCOMPARE(combine.forward()[0].reals, (Numbers{9, 0, 21, 24}));
    }
    /// With room for every token, dispatch and combine are the sum over the chosen experts.
    void enoughRoomDropsNothing() {
        const Array x = noise({2, 4, 3});
        Array weights = noise({2, 4, 3}, 0.1, 1, 2);
        for (std::size_t token = 0; token < 8; ++token) { // the smallest of three is not chosen
            const auto first = weights.reals.begin() + static_cast<std::ptrdiff_t>(3 * token);
            *std::min_element(first, first + 3) = 0;
        }
        const Array rows = KernelCase(OpKind::MoeDispatch, {x, weights},
                                      {{"top_k", std::int64_t{2}}, {"capacity_factor", 1.5}})
                               .forward()[0];
        QCOMPARE(rows.shape, (Shape{3, 2, 4, 3}));
        const Array y = KernelCase(OpKind::MoeCombine, {rows, weights}).forward()[0];
        for (std::size_t i = 0; i < y.reals.size(); ++i) {
            const std::size_t token = i / 3;
            const double sum = weights.reals[3 * token] + weights.reals[3 * token + 1] +
                               weights.reals[3 * token + 2];
            QVERIFY(std::abs(y.reals[i] - sum * x.reals[i]) < 1e-12);
        }
    }
    void routingGradients() {
        const Array scores = noise({2, 6, 3}, 0.1, 1, 2);
        const KernelCase dispatch(OpKind::MoeDispatch, {noise({2, 6, 2}), scores},
                                  {{"top_k", std::int64_t{2}}});
        const Arrays back = dispatch.backward();
        QVERIFY(back[1].empty()); // the choice has no gradient
        const Array g = noise({3, 2, 4, 2}, -1, 1, 77);
        // The adjoint: <dispatch(x), g> = <x, dispatch'(g)>.
        double left = 0, right = 0;
        const Array rows = dispatch.forward()[0], x = noise({2, 6, 2});
        for (std::size_t i = 0; i < rows.reals.size(); ++i) left += rows.reals[i] * g.reals[i];
        for (std::size_t i = 0; i < x.reals.size(); ++i) right += x.reals[i] * back[0].reals[i];
        QVERIFY(std::abs(left - right) < 1e-12);
        VERIFY_GRADIENT(
            KernelCase(OpKind::MoeCombine, {noise({3, 2, 6, 2}), noise({2, 6, 3}, 0.1, 1, 2)}));
    }
};

SHARDLENS_TEST(TestImageKernels)

} // namespace tst_kernels_image

#include "tst_kernels_image.moc"
