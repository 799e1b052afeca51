// SPDX-License-Identifier: Apache-2.0
// Reference kernels that move data: worked examples, and gradients against finite differences.
#include "tests/core/execute/kernel_case.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_kernels_movement {

using namespace shardlens;
using namespace shardlens::test;

using Ints = std::vector<std::int64_t>;
using Text = std::string;

namespace {

using Numbers = std::vector<double>;

Array counted(Shape shape) {
    Array array = Array::real(std::move(shape));
    for (std::size_t i = 0; i < array.reals.size(); ++i) array.reals[i] = static_cast<double>(i);
    return array;
}

} // namespace

class TestMovement : public QObject {
    Q_OBJECT

private slots:
    void transpose() {
        const KernelCase op(OpKind::Transpose, {counted({2, 3})}, {{"perm", Ints{1, 0}}});
        QCOMPARE(op.forward()[0].reals, (Numbers{0, 3, 1, 4, 2, 5}));
        VERIFY_GRADIENT(
            KernelCase(OpKind::Transpose, {noise({2, 3, 4})}, {{"perm", Ints{2, 0, 1}}}));
    }
    void reshapeAndExpand() {
        VERIFY_GRADIENT(KernelCase(OpKind::Reshape, {noise({2, 6})}, {{"shape", Ints{3, 4}}}));
        const KernelCase op(OpKind::Expand, {counted({2, 1})}, {{"shape", Ints{2, 2, 3}}});
        QCOMPARE(op.forward()[0].reals, (Numbers{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}));
        VERIFY_GRADIENT(op);
    }
    void tile() {
        const KernelCase op(OpKind::Tile, {counted({1, 2})}, {{"repeats", Ints{2, 2}}});
        QCOMPARE(op.forward()[0].reals, (Numbers{0, 1, 0, 1, 0, 1, 0, 1}));
        VERIFY_GRADIENT(KernelCase(OpKind::Tile, {noise({2, 3})}, {{"repeats", Ints{2, 3}}}));
    }
    void concatAndSplit() {
        const KernelCase op(OpKind::Concat, {counted({2, 1}), counted({2, 2})},
                            {{"axis", std::int64_t{1}}});
        QCOMPARE(op.forward()[0].reals, (Numbers{0, 0, 1, 1, 2, 3}));
        VERIFY_GRADIENT(op);
        const KernelCase split(OpKind::Split, {counted({2, 3})},
                               {{"axis", std::int64_t{1}}, {"sizes", Ints{1, 2}}}, 2);
        QCOMPARE(split.forward()[1].reals, (Numbers{1, 2, 4, 5}));
        VERIFY_GRADIENT(split);
    }
    void slice() {
        const auto of = [](Ints starts, Ints ends, Ints axes, Ints steps) {
            return KernelCase(
                OpKind::Slice, {counted({4, 3})},
                {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}});
        };
        QCOMPARE(of({1}, {3}, {0}, {1}).forward()[0].reals, (Numbers{3, 4, 5, 6, 7, 8}));
        QCOMPARE(of({-1}, {-100}, {1}, {-1}).forward()[0].reals,
                 (Numbers{2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9}));
        QCOMPARE(of({3, 0}, {-100, 2}, {0, 1}, {-2, 1}).forward()[0].reals, (Numbers{9, 10, 3, 4}));
        VERIFY_GRADIENT(of({3, 0}, {-100, 3}, {0, 1}, {-2, 2}));
    }
    void padModes() {
        const auto of = [](const char* mode, Ints pads) {
            return KernelCase(OpKind::Pad, {counted({4})},
                              {{"pads", pads}, {"mode", Text(mode)}, {"value", 9.0}});
        };
        QCOMPARE(of("constant", {2, 1}).forward()[0].reals, (Numbers{9, 9, 0, 1, 2, 3, 9}));
        QCOMPARE(of("edge", {2, 1}).forward()[0].reals, (Numbers{0, 0, 0, 1, 2, 3, 3}));
        QCOMPARE(of("reflect", {2, 1}).forward()[0].reals, (Numbers{2, 1, 0, 1, 2, 3, 2}));
        QCOMPARE(of("wrap", {2, 1}).forward()[0].reals, (Numbers{2, 3, 0, 1, 2, 3, 0}));
        QCOMPARE(of("constant", {-1, -1}).forward()[0].reals, (Numbers{1, 2}));
        for (const char* mode : {"constant", "edge", "reflect", "wrap"})
            VERIFY_GRADIENT(KernelCase(OpKind::Pad, {noise({3, 4})},
                                       {{"pads", Ints{1, 2, 0, 3}}, {"mode", Text(mode)}}));
        VERIFY_GRADIENT(
            KernelCase(OpKind::Pad, {noise({3}), noise({}, 1, 2, 2)}, {{"pads", Ints{1, 2}}}));
    }
    void gather() {
        const KernelCase op(OpKind::Gather, {counted({3, 2}), integers({2}, {2, -3})},
                            {{"axis", std::int64_t{0}}});
        QCOMPARE(op.forward()[0].reals, (Numbers{4, 5, 0, 1}));
        for (const std::int64_t axis : {0, 1, 2})
            VERIFY_GRADIENT(KernelCase(OpKind::Gather,
                                       {noise({3, 4, 3}), integers({2, 2}, {2, 0, -1, 2})},
                                       {{"axis", axis}}));
    }
    /// A turn keeps lengths and the products of vectors at equal distances (RoFormer, eq. 14).
    void rotary() {
        Array same = Array::real({1, 6, 1, 4});
        for (std::size_t i = 0; i < same.reals.size(); ++i)
            same.reals[i] = static_cast<double>(i % 4) + 1;
        const Numbers y = KernelCase(OpKind::Rotary, {same}).forward()[0].reals;
        const auto dot = [&](std::size_t a, std::size_t b) {
            double sum = 0;
            for (std::size_t i = 0; i < 4; ++i) sum += y[4 * a + i] * y[4 * b + i];
            return sum;
        };
        for (std::size_t i = 0; i < 4; ++i) QCOMPARE(y[i], same.reals[i]); // position 0
        QVERIFY(std::abs(dot(3, 3) - 30) < 1e-12);
        QVERIFY(std::abs(dot(0, 2) - dot(3, 5)) < 1e-12);
        QVERIFY(std::abs(dot(0, 2) - dot(0, 3)) > 1e-3);
        // Pair (1, 3) turns by one radian a position.
        QVERIFY(std::abs(y[4] - (std::cos(1.0) - 3 * std::sin(1.0))) < 1e-12);
        for (const std::int64_t interleaved : {0, 1})
            VERIFY_GRADIENT(KernelCase(
                OpKind::Rotary, {noise({2, 3, 2, 6})},
                {{"interleaved", interleaved}, {"width", std::int64_t{4}}, {"base", 100.0}}));
    }
};

SHARDLENS_TEST(TestMovement)

} // namespace tst_kernels_movement

#include "tst_kernels_movement.moc"
