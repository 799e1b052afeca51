// SPDX-License-Identifier: Apache-2.0
// Kernels that gather, scatter and place: the worked examples of the ONNX operator specification,
// and gradients against finite differences.
#include "tests/core/execute/kernel_case.h"
#include "tests/test_program.h"

#include <QTest>

#include <numeric>

namespace tst_kernels_indexing {

using namespace shardlens;
using namespace shardlens::test;

using Ints = std::vector<std::int64_t>;
using Text = std::string;

namespace {

using Numbers = std::vector<double>;

constexpr std::int64_t kOne = 1, kZero = 0;

} // namespace

class TestIndexing : public QObject {
    Q_OBJECT

private slots:
    void gatherElements() {
        const KernelCase op(
            OpKind::GatherElements,
            {numbers({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), integers({2, 3}, {1, 2, 0, 2, 0, 0})},
            {{"axis", kZero}});
        QCOMPARE(op.forward()[0].reals, (Numbers{4, 8, 3, 7, 2, 3}));
        VERIFY_GRADIENT(KernelCase(OpKind::GatherElements,
                                   {noise({4, 3}), integers({2, 3}, {0, -1, 2, 0, 3, 2})},
                                   {{"axis", kZero}}));
    }
    void gatherNd() {
        const KernelCase op(
            OpKind::GatherND,
            {numbers({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}), integers({2, 1}, {1, 0})},
            {{"batch_dims", kOne}});
        QCOMPARE(op.forward()[0].reals, (Numbers{2, 3, 4, 5}));
        VERIFY_GRADIENT(
            KernelCase(OpKind::GatherND,
                       {noise({3, 4, 2}), integers({5, 2}, {0, 1, 2, -1, 0, 1, 1, 1, 2, 0})}));
    }
    void scatterElements() {
        const KernelCase op(OpKind::Scatter,
                            {numbers({1, 5}, {1, 2, 3, 4, 5}), integers({1, 2}, {1, 3}),
                             numbers({1, 2}, {1.1, 2.1})},
                            {{"axis", kOne}});
        QCOMPARE(op.forward()[0].reals, (Numbers{1, 1.1, 3, 2.1, 5}));
        const KernelCase added(
            OpKind::Scatter,
            {numbers({1, 5}, {1, 2, 3, 4, 5}), integers({1, 2}, {1, 1}), numbers({1, 2}, {1.5, 2})},
            {{"axis", kOne}, {"reduction", Text("add")}});
        QCOMPARE(added.forward()[0].reals, (Numbers{1, 5.5, 3, 4, 5}));
    }
    void scatterGradients() {
        for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
            VERIFY_GRADIENT(
                KernelCase(OpKind::Scatter,
                           {noise({4, 3}), integers({3, 3}, {0, 1, -1, 2, 1, 1, 0, 0, 1}),
                            noise({3, 3}, -1, 1, 5)},
                           {{"axis", kZero}, {"reduction", Text(reduction)}}));
            VERIFY_GRADIENT(KernelCase(
                OpKind::Scatter,
                {noise({3, 2, 2}), integers({3, 1}, {2, 0, 2}), noise({3, 2, 2}, -1, 1, 6)},
                {{"mode", Text("nd")}, {"reduction", Text(reduction)}}));
        }
    }
    void scatterNd() {
        const KernelCase op(OpKind::Scatter,
                            {numbers({8}, {1, 2, 3, 4, 5, 6, 7, 8}), integers({4, 1}, {4, 3, 1, 7}),
                             numbers({4}, {9, 10, 11, 12})},
                            {{"mode", Text("nd")}});
        QCOMPARE(op.forward()[0].reals, (Numbers{1, 11, 3, 10, 9, 6, 7, 12}));
    }
    void caches() {
        const Attributes linear{{"mode", Text("cache")}, {"axis", kOne}};
        const KernelCase op(OpKind::Scatter,
                            {numbers({2, 3, 1}, {1, 2, 3, 4, 5, 6}), integers({2}, {1, 0}),
                             numbers({2, 2, 1}, {7, 8, 9, 10})},
                            linear);
        QCOMPARE(op.forward()[0].reals, (Numbers{1, 7, 8, 9, 10, 6}));
        VERIFY_GRADIENT(op);
        Attributes circular = linear;
        circular.set("circular", kOne);
        const KernelCase wrapped(
            OpKind::Scatter,
            {numbers({1, 3, 1}, {1, 2, 3}), integers({1}, {2}), numbers({1, 2, 1}, {7, 8})},
            circular);
        QCOMPARE(wrapped.forward()[0].reals, (Numbers{8, 2, 7}));
        const KernelCase fromStart(OpKind::Scatter,
                                   {numbers({1, 3}, {1, 2, 3}), std::nullopt, numbers({1, 1}, {7})},
                                   linear);
        QCOMPARE(fromStart.forward()[0].reals, (Numbers{7, 2, 3}));
    }
    void oneHot() {
        const KernelCase op(OpKind::OneHot, {integers({3}, {1, -1, 7}), numbers({2}, {0, 5})},
                            {{"axis", kOne}, {"depth", std::int64_t{3}}});
        QCOMPARE(op.forward()[0].reals, (Numbers{0, 5, 0, 0, 0, 5, 0, 0, 0}));
        VERIFY_GRADIENT(op);
    }
    void generated() {
        const auto of = [](Attributes attributes, const Shape& shape) {
            attributes.set("shape", shape);
            attributes.set("to", Text("f64"));
            return KernelCase(OpKind::Generate, {}, std::move(attributes)).forward()[0].reals;
        };
        QCOMPARE(of({{"function", Text("constant")}, {"value", 3.5}}, {2}), (Numbers{3.5, 3.5}));
        QCOMPARE(of({{"function", Text("range")}, {"start", 10.0}, {"step", -2.0}}, {3}),
                 (Numbers{10, 8, 6}));
        QCOMPARE(of({{"function", Text("eye")}, {"diagonal", kOne}}, {2, 3}),
                 (Numbers{0, 1, 0, 0, 0, 1}));
        const auto mean = [](const Numbers& x) {
            return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
        };
        // 10,000 draws: the mean is within 5 standard errors.
        const Numbers normal =
            of({{"function", Text("normal")}, {"mean", 2.0}, {"scale", 3.0}}, {100, 100});
        QVERIFY(std::abs(mean(normal) - 2) < 5 * 3 / 100.0);
        Numbers squares;
        for (const double x : normal) squares.push_back((x - 2) * (x - 2));
        QVERIFY(std::abs(mean(squares) - 9) < 5 * 9 * std::sqrt(2.0) / 100);
        const Numbers uniform =
            of({{"function", Text("uniform")}, {"low", -1.0}, {"high", 3.0}}, {100, 100});
        QVERIFY(std::abs(mean(uniform) - 1) < 5 * 4 / std::sqrt(12.0) / 100);
        QVERIFY(*std::ranges::min_element(uniform) >= -1 && *std::ranges::max_element(uniform) < 3);
    }
    void triangles() {
        const Array x = numbers({2, 3}, {1, 2, 3, 4, 5, 6});
        QCOMPARE(KernelCase(OpKind::Trilu, {x}, {{"upper", kOne}}).forward()[0].reals,
                 (Numbers{1, 2, 3, 0, 5, 6}));
        QCOMPARE(KernelCase(OpKind::Trilu, {x}, {{"upper", kZero}}).forward()[0].reals,
                 (Numbers{1, 0, 0, 4, 5, 0}));
        VERIFY_GRADIENT(KernelCase(OpKind::Trilu, {noise({2, 4, 3})},
                                   {{"upper", kZero}, {"diagonal", std::int64_t{-1}}}));
    }
    void reverseSequence() {
        const KernelCase op(OpKind::ReverseSequence,
                            {numbers({4, 2}, {0, 4, 1, 5, 2, 6, 3, 7}), integers({2}, {3, 2})},
                            {{"time_axis", kZero}, {"batch_axis", kOne}});
        QCOMPARE(op.forward()[0].reals, (Numbers{2, 5, 1, 4, 0, 6, 3, 7}));
        VERIFY_GRADIENT(op);
    }
};

SHARDLENS_TEST(TestIndexing)

} // namespace tst_kernels_indexing

#include "tst_kernels_indexing.moc"
