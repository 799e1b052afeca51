// SPDX-License-Identifier: Apache-2.0
// Kernels of matrices, transforms, sorts, bits and windows against what defines them: factors that
// multiply back to the matrix, Parseval's identity, and the examples of StableHLO's specification.
#include "tests/core/execute/kernel_case.h"
#include "tests/test_program.h"

#include <bit>
#include <numeric>

namespace tst_kernels_matrix {

using namespace shardlens;
using test::integers;
using test::KernelCase;
using test::noise;
using test::numbers;

namespace {

using Ints = std::vector<std::int64_t>;
using Text = std::string;

/// a b of n x n matrices, row-major; `turnA`: a transposed.
std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b,
                            std::size_t n, bool turnA = false, bool turnB = false) {
    std::vector<double> c(n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j)
            for (std::size_t k = 0; k < n; ++k)
                c[i * n + j] += a[turnA ? k * n + i : i * n + k] * b[turnB ? j * n + k : k * n + j];
    return c;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
    double worst = a.size() == b.size() ? 0 : INFINITY;
    for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
        worst = std::max(worst, std::abs(a[i] - b[i]));
    return worst;
}

constexpr double kClose = 1e-12;

/// Symmetric.
Array definite() {
    return numbers({3, 3}, {4, 1, -1, 1, 3, 0.5, -1, 0.5, 5});
}

KernelCase algebra(const Text& function, std::vector<test::Operand> operands,
                   Attributes attributes = {}, std::size_t results = 1) {
    attributes.set("function", function);
    return {OpKind::LinearAlgebra, std::move(operands), std::move(attributes), results};
}

Attributes windows(Ints offset, Ints collapsed, Ints map, std::int64_t vectorDim) {
    return {{"offset_dims", std::move(offset)},
            {"collapsed_dims", std::move(collapsed)},
            {"index_map", std::move(map)},
            {"index_vector_dim", vectorDim}};
}

} // namespace

class TestKernelsMatrix : public QObject {
    Q_OBJECT
private slots:
    void choleskyMultipliesBack();
    void solutionsSolve_data();
    void solutionsSolve();
    void eigenvectorsDiagonalise();
    void qrMultipliesBack();
    void transformsInvert();
    void transformOfAnImpulse();
    void sortsStably();
    void bitsOfNumbers();
    void windowsAreMovedInside();
    void windowsOutsideAreDropped();
    void updatesAreWritten();
    void windowsSlide();
    void windowsSelect();
};

void TestKernelsMatrix::choleskyMultipliesBack() {
    for (const std::int64_t lower : {1, 0}) {
        const KernelCase test = algebra("cholesky", {definite()}, {{"lower", lower}});
        const std::vector<double> l = test.forward()[0].reals;
        QVERIFY(distance(product(l, l, 3, lower == 0, lower != 0), definite().reals) < kClose);
        QCOMPARE(l[lower != 0 ? 1 : 3], 0.0);
        VERIFY_GRADIENT(test);
    }
}

void TestKernelsMatrix::solutionsSolve_data() {
    QTest::addColumn<bool>("left");
    QTest::addColumn<bool>("lower");
    QTest::addColumn<bool>("unit");
    QTest::addColumn<bool>("transpose");
    for (int i = 0; i < 16; ++i)
        QTest::addRow("%d", i) << ((i & 1) != 0) << ((i & 2) != 0) << ((i & 4) != 0)
                               << ((i & 8) != 0);
}

void TestKernelsMatrix::solutionsSolve() {
    QFETCH(bool, left);
    QFETCH(bool, lower);
    QFETCH(bool, unit);
    QFETCH(bool, transpose);
    const Array b = noise({3, 3}, -1, 1, 5);
    const KernelCase test = algebra("solve", {definite(), b},
                                    {{"left", std::int64_t{left}},
                                     {"lower", std::int64_t{lower}},
                                     {"unit", std::int64_t{unit}},
                                     {"transpose", std::int64_t{transpose}}});
    std::vector<double> a = definite().reals;
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) {
            if (i == j && unit) a[i * 3 + j] = 1;
            if (lower ? j > i : j < i) a[i * 3 + j] = 0;
        }
    const std::vector<double> x = test.forward()[0].reals;
    const auto back =
        left ? product(a, x, 3, transpose, false) : product(x, a, 3, false, transpose);
    QVERIFY(distance(back, b.reals) < kClose);
    VERIFY_GRADIENT(test);
}

void TestKernelsMatrix::eigenvectorsDiagonalise() {
    const KernelCase test = algebra("eigh", {definite()}, {}, 2);
    const Arrays found = test.forward();
    std::vector<double> scaled = found[0].reals;
    for (std::size_t i = 0; i < 9; ++i) scaled[i] *= found[1].reals[i % 3];
    QVERIFY(distance(product(scaled, found[0].reals, 3, false, true), definite().reals) < kClose);
    QVERIFY(std::ranges::is_sorted(found[1].reals));
    VERIFY_GRADIENT(test);
}

void TestKernelsMatrix::qrMultipliesBack() {
    const Array a = noise({3, 3});
    const Arrays factors = algebra("qr", {a}, {}, 2).forward();
    const std::vector<double> q =
        algebra("householder", {factors[0], factors[1]}).forward()[0].reals;
    std::vector<double> r = factors[0].reals;
    r[3] = r[6] = r[7] = 0;
    QVERIFY(distance(product(q, r, 3), a.reals) < kClose);
    QVERIFY(distance(product(q, q, 3, true), {1, 0, 0, 0, 1, 0, 0, 0, 1}) < kClose);
}

void TestKernelsMatrix::transformsInvert() {
    const Array x = noise({2, 3, 4});
    const Attributes length{{"length", Ints{3, 4}}};
    const auto with = [&](const char* function) {
        Attributes attributes = length;
        attributes.set("function", Text(function));
        return attributes;
    };
    const Arrays half = KernelCase(OpKind::Fourier, {x}, with("rfft")).forward();
    QCOMPARE(half[0].shape, (Shape{2, 3, 3, 2}));
    const auto apply = [](const Attributes& attributes, const Array& array, TensorSpec spec) {
        Graph graph;
        const OpId source = graph.addOp({"x", OpKind::Input, {}, {}, {}, {}}, {std::move(spec)});
        const OpId op = addInferred(
            graph, {"op", OpKind::Fourier, {}, attributes, {graph.op(source).outputs[0]}, {}});
        const OpView view = viewOf(graph, op);
        const FactorRule rule = factorRule(view);
        const std::vector<const Array*> operands{&array};
        return kernelOf(OpKind::Fourier).forward(KernelContext(view, rule), operands)[0];
    };
    const Array back = apply(with("irfft"), half[0], {DType::C128, {2, 3, 3}});
    QVERIFY(distance(back.reals, x.reals) < kClose);

    Array field = noise({3, 4, 2});
    const TensorSpec spec{DType::C128, {3, 4}};
    const Array image = apply(with("fft"), field, spec);
    double before = 0, after = 0; // Parseval
    for (const double each : field.reals) before += each * each;
    for (const double each : image.reals) after += each * each;
    QVERIFY(std::abs(after / 12 - before) < kClose * before);
    QVERIFY(distance(apply(with("ifft"), image, spec).reals, field.reals) < kClose);
}

void TestKernelsMatrix::transformOfAnImpulse() {
    const Array x = numbers({4}, {0, 1, 0, 0}); // e^(-i pi k / 2)
    const Arrays image =
        KernelCase(OpKind::Fourier, {x}, {{"function", Text("rfft")}, {"length", Ints{4}}})
            .forward();
    QVERIFY(distance(image[0].reals, {1, 0, 0, -1, -1, 0}) < kClose);
}

void TestKernelsMatrix::sortsStably() {
    const KernelCase test(OpKind::Sort,
                          {integers({5}, {2, 1, 2, 3, 1}), integers({5}, {0, 1, 2, 3, 4})},
                          {{"axis", std::int64_t{0}}, {"descending", std::int64_t{1}}}, 2);
    QCOMPARE(test.forward()[0].ints, (Ints{3, 2, 2, 1, 1}));
    QCOMPARE(test.forward()[1].ints, (Ints{3, 0, 2, 1, 4}));
    VERIFY_GRADIENT(KernelCase(OpKind::Sort, {noise({4, 3}), noise({4, 3}, -1, 1, 2)},
                               {{"axis", std::int64_t{0}}, {"k", std::int64_t{2}}}, 2));
}

void TestKernelsMatrix::bitsOfNumbers() {
    const Array x = numbers({2}, {1.0, -2.0}); // IEEE 754: 3ff00000 00000000, c0000000 00000000
    const Array words = KernelCase(OpKind::Bitcast, {x}, {{"to", Text("u32")}}).forward()[0];
    QCOMPARE(words.shape, (Shape{2, 2}));
    QCOMPARE(words.ints, (Ints{0, 0x3ff00000, 0, 0xc0000000}));
}

// StableHLO's example of gather, with an index that is out of bounds added: it is clamped.
void TestKernelsMatrix::windowsAreMovedInside() {
    std::vector<double> data(24);
    std::iota(data.begin(), data.end(), 1.0); // [3,4,2]
    Attributes attributes = windows({2, 3}, {0}, {1, 0}, 2);
    attributes.set("slice_sizes", Ints{1, 2, 2});
    const KernelCase test(OpKind::GatherWindows,
                          {numbers({3, 4, 2}, data), integers({1, 3, 2}, {0, 0, 1, 0, 9, 9})},
                          attributes);
    QCOMPARE(test.forward()[0].shape, (Shape{1, 3, 2, 2}));
    QCOMPARE(test.forward()[0].reals,
             (std::vector<double>{1, 2, 3, 4, 3, 4, 5, 6, 21, 22, 23, 24}));
    VERIFY_GRADIENT(test);
    const KernelCase slice(
        OpKind::DynamicSlice,
        {numbers({3, 4, 2}, data), integers({}, {9}), integers({}, {1}), integers({}, {-3})},
        {{"sizes", Ints{1, 2, 1}}});
    QCOMPARE(slice.forward()[0].reals, (std::vector<double>{19, 21}));
    VERIFY_GRADIENT(slice);
}

void TestKernelsMatrix::windowsOutsideAreDropped() {
    Attributes attributes = windows({1}, {}, {0}, 1);
    for (const char* reduction : {"none", "add", "mul", "max"}) {
        attributes.set("reduction", Text(reduction));
        const KernelCase test(OpKind::ScatterWindows,
                              {numbers({5}, {1, 1, 1, 1, 1}), integers({3, 1}, {1, 2, 4}),
                               numbers({3, 2}, {2, 3, 5, 7, 11, 13})},
                              attributes);
        const std::vector<double> expected = Text(reduction) == "none" || Text(reduction) == "max"
                                                 ? std::vector<double>{1, 2, 5, 7, 1}
                                             : Text(reduction) == "add"
                                                 ? std::vector<double>{1, 3, 9, 8, 1}
                                                 : std::vector<double>{1, 2, 15, 7, 1};
        QCOMPARE(test.forward()[0].reals, expected);
        VERIFY_GRADIENT(test);
    }
}

void TestKernelsMatrix::updatesAreWritten() {
    const KernelCase test(OpKind::DynamicUpdate,
                          {numbers({2, 3}, {1, 2, 3, 4, 5, 6}), numbers({1, 2}, {7, 8}),
                           integers({}, {1}), integers({}, {5})});
    QCOMPARE(test.forward()[0].reals, (std::vector<double>{1, 2, 3, 4, 7, 8}));
    VERIFY_GRADIENT(test);
}

// StableHLO's example of reduce_window.
void TestKernelsMatrix::windowsSlide() {
    const KernelCase test(OpKind::ReduceWindow, {integers({3, 2}, {1, 2, 3, 4, 5, 6})},
                          {{"function", Text("sum")},
                           {"kernel", Ints{2, 1}},
                           {"strides", Ints{3, 1}},
                           {"dilations", Ints{2, 1}},
                           {"pads", Ints{2, 0, 1, 0}}});
    QCOMPARE(test.forward()[0].ints, (Ints{1, 2, 3, 4}));
    for (const char* function : {"sum", "max", "min", "prod"})
        VERIFY_GRADIENT(KernelCase(OpKind::ReduceWindow, {noise({4, 5})},
                                   {{"function", Text(function)},
                                    {"kernel", Ints{2, 3}},
                                    {"strides", Ints{1, 2}},
                                    {"pads", Ints{1, 0, 0, 1}}}));
}

// StableHLO's example of select_and_scatter.
void TestKernelsMatrix::windowsSelect() {
    const KernelCase test(
        OpKind::SelectAndScatter,
        {integers({4, 2}, {1, 5, 2, 5, 3, 6, 4, 4}), integers({2, 2}, {5, 6, 7, 8})},
        {{"function", Text("max")},
         {"kernel", Ints{3, 1}},
         {"strides", Ints{2, 1}},
         {"pads", Ints{0, 0, 1, 0}}});
    QCOMPARE(test.forward()[0].ints, (Ints{0, 0, 0, 0, 5, 14, 7, 0}));
}

SHARDLENS_TEST(TestKernelsMatrix)

} // namespace tst_kernels_matrix

#include "tst_kernels_matrix.moc"
