// SPDX-License-Identifier: Apache-2.0
// Layouts and choices of a matrix product with bias, a convolution-like and a softmax-like rule,
// against tables written by hand.
#include "core/cost/layout.h"
#include "core/error.h"
#include "tests/test_program.h"

#include <QTest>

#include <set>

namespace tst_layout {

using namespace shardlens;

namespace {

Mesh meshOf(std::vector<AxisSize> axes) {
    Mesh mesh;
    for (AxisSize& axis : axes) mesh.axes.push_back({std::move(axis.name), axis.size, {}, false});
    return mesh;
}

/// ([b,m,k],[k,n],[n])->([b,m,n]) with k a sum.
FactorRule matmul(std::int64_t b, std::int64_t m, std::int64_t k, std::int64_t n) {
    FactorRule rule;
    rule.addFactor("b", b);
    rule.addFactor("m", m);
    rule.addFactor("k", k, FactorKind::Reduction);
    rule.addFactor("n", n);
    rule.operands = {{{0}, {1}, {2}}, {{2}, {3}}, {{3}}};
    rule.results = {{{0}, {1}, {3}}};
    rule.addedOnce = {2};
    return rule;
}

Layout layout(AxisLayout a, AxisLayout b) {
    Layout result;
    result.axis[0] = a;
    result.axis[1] = b;
    return result;
}

Choice choice(AxisChoice a, AxisChoice b) {
    Choice result;
    result.axis[0] = a;
    result.axis[1] = b;
    return result;
}

/// Texts of the legal choices, in order.
std::vector<std::string> texts(const LegalChoices& choices, const FactorRule& rule,
                               const Mesh& mesh) {
    std::vector<std::string> result;
    std::ranges::transform(choices.legal, std::back_inserter(result),
                           [&](const Choice& c) { return toString(c, rule, mesh); });
    return result;
}

} // namespace

class TestLayout : public QObject {
    Q_OBJECT

private slots:
    void columnParallelMatmul();
    void rowParallelMatmul();
    void statisticsFactor();
    void stateSharded();
    void compositeDimension();
    void sides();
    void layoutText();
    void localShapes();
    void choiceTextRoundTrip();
    void choiceTextFreedoms();
    void choiceTextMistakes_data();
    void choiceTextMistakes();
    void legalChoicesInOrder();
    void axesDivideTogether();
    void unevenCuts();
    void parameterStates();
    void axisOfOneDevice();
    void reasons();
    void noAxes();
};

void TestLayout::columnParallelMatmul() {
    const FactorRule rule = matmul(8, 4, 12, 16);
    const Mesh mesh = meshOf({{"dp", 2}, {"tp", 4}});
    const Choice c = choice(0, 3); // b@dp, n@tp
    QVERIFY(operandLayout(c, rule, 0, mesh) == layout(0, kReplicatedPartial));
    QVERIFY(operandLayout(c, rule, 1, mesh) == layout(kReplicatedPartial, 1));
    QVERIFY(operandLayout(c, rule, 2, mesh) == layout(kReplicatedPartial, 0));
    QVERIFY(resultLayout(c, rule, 0, mesh) == layout(0, 2));
}

void TestLayout::rowParallelMatmul() {
    const FactorRule rule = matmul(8, 4, 12, 16);
    const Mesh mesh = meshOf({{"dp", 2}, {"tp", 4}});
    const Choice c = choice(kIdle, 2); // k@tp
    QVERIFY(operandLayout(c, rule, 0, mesh) == layout(kReplicated, 2));
    QVERIFY(operandLayout(c, rule, 1, mesh) == layout(kReplicated, 0));
    // The bias is added once and sees the whole gradient.
    QVERIFY(operandLayout(c, rule, 2, mesh) == layout(kReplicated, kReplicated));
    QVERIFY(resultLayout(c, rule, 0, mesh) == layout(kReplicated, kPartialReplicated));
}

void TestLayout::statisticsFactor() {
    // LayerNorm: x[s,h], scale[h] -> [s,h], h internal.
    FactorRule rule;
    rule.addFactor("s", 8);
    rule.addFactor("h", 8, FactorKind::Internal);
    rule.operands = {{{0}, {1}}, {{1}}, {{}}};
    rule.results = {{{0}, {1}}};
    const Mesh mesh = meshOf({{"x", 2}, {"y", 2}});
    const Choice c = choice(0, 1);
    QVERIFY(operandLayout(c, rule, 0, mesh) == layout(0, 1));
    QVERIFY(operandLayout(c, rule, 1, mesh) == layout(kReplicatedPartial, 0));
    QVERIFY(operandLayout(c, rule, 2, mesh) == layout(kReplicatedPartial, kReplicatedPartial));
    QVERIFY(resultLayout(c, rule, 0, mesh) == layout(0, 1));
}

void TestLayout::stateSharded() {
    FactorRule rule;
    rule.addFactor("n", 8);
    rule.results = {{{0}}};
    const Mesh mesh = meshOf({{"dp", 2}, {"tp", 2}});
    QVERIFY(resultLayout(choice(kStateSharded, 0), rule, 0, mesh) == layout(kReplicated, 0));
}

void TestLayout::compositeDimension() {
    // [b, (heads d)]: heads cuts whole blocks, d does not.
    FactorRule rule;
    rule.addFactor("b", 4);
    rule.addFactor("heads", 8);
    rule.addFactor("d", 16);
    rule.operands = {{{0}, {1, 2}}};
    rule.results = {{{0}, {1}, {2}}};
    const Mesh mesh = meshOf({{"dp", 2}, {"tp", 4}});
    QVERIFY(operandLayout(choice(0, 1), rule, 0, mesh) == layout(0, 1));
    QVERIFY(resultLayout(choice(1, 1), rule, 0, mesh) == layout(1, 1));
    const LegalChoices choices = enumerateChoices(rule, mesh, Divisibility::Even);
    QCOMPARE(choices.illegal.size(), std::size_t{2});
    QCOMPARE(choices.illegal[0].reason,
             "d lies behind heads in its dimension: a cut would not be contiguous");
    // b alone takes 2 or 4 of its 4 but not 8; heads takes 8.
    QCOMPARE(texts(choices, rule, mesh),
             (std::vector<std::string>{"replicated", "b@tp", "heads@tp", "b@dp", "b@dp,heads@tp",
                                       "heads@dp", "heads@dp,b@tp", "heads@dp,heads@tp"}));
}

void TestLayout::sides() {
    Layout l;
    l.axis = {2, kReplicated, kReplicatedPartial, kPartialReplicated};
    QVERIFY(valueSide(l) == (SideLayout{2, kStateReplicated, kStateReplicated, kStatePartial}));
    QVERIFY(gradientSide(l) == (SideLayout{2, kStateReplicated, kStatePartial, kStateReplicated}));
}

void TestLayout::layoutText() {
    const Mesh mesh = meshOf({{"pp", 2}, {"dp", 2}, {"tp", 2}});
    Layout l;
    QCOMPARE(toString(l, mesh), "replicated");
    l.axis = {kReplicated, 0, 2, kReplicated};
    QCOMPARE(toString(l, mesh), "d0@dp d2@tp");
    l.axis = {0, kReplicatedPartial, kPartialReplicated, kReplicated};
    QCOMPARE(toString(l, mesh), "d0@pp gradient-partial@dp partial@tp");
}

void TestLayout::localShapes() {
    const Mesh mesh = meshOf({{"a", 2}, {"b", 3}, {"c", 4}});
    const SideLayout side{0, 1, 0, kStateReplicated};
    QCOMPARE(localShape({16, 10, 7}, side, mesh), (Shape{2, 4, 7})); // 10 / 3 rounds up
    QCOMPARE(localShape({17, 9, 7}, side, mesh), (Shape{3, 3, 7}));
    QCOMPARE(shardCount(side, mesh), 24.0);
    const SideLayout whole{kStateReplicated, kStatePartial, kStateReplicated, kStateReplicated};
    QCOMPARE(localShape({16, 10, 7}, whole, mesh), (Shape{16, 10, 7}));
    QCOMPARE(shardCount(whole, mesh), 1.0);
    QCOMPARE(localShape({}, whole, mesh), Shape{});
}

void TestLayout::choiceTextRoundTrip() {
    const FactorRule rule = matmul(16, 16, 16, 16);
    const Mesh mesh = meshOf({{"dp", 2}, {"cp", 2}, {"tp", 4}});
    const LegalChoices choices = enumerateChoices(rule, mesh, Divisibility::Even, true);
    QCOMPARE(choices.legal.size(), std::size_t{216});
    std::set<std::string> seen;
    for (const Choice& c : choices.legal) {
        const std::string text = toString(c, rule, mesh);
        QVERIFY(seen.insert(text).second);
        QVERIFY(choiceFromString(text, rule, mesh) == c);
    }
    QCOMPARE(toString(choice(0, kStateSharded), rule, mesh), "b@dp,state@cp");
}

void TestLayout::choiceTextFreedoms() {
    const FactorRule rule = matmul(16, 16, 16, 16);
    const Mesh mesh = meshOf({{"dp", 2}, {"tp", 4}, {"one", 1}});
    QVERIFY(choiceFromString(" n @ tp ,b@dp", rule, mesh) == choice(0, 3));
    QVERIFY(choiceFromString("  replicated ", rule, mesh) == Choice{});
    // An axis of one device does nothing, whatever it is given to.
    QVERIFY(choiceFromString("n@one", rule, mesh) == Choice{});
}

void TestLayout::choiceTextMistakes_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("says");
    QTest::newRow("factor") << "q@dp" << "b, m, k, n";
    QTest::newRow("axis") << "b@xp" << "dp, tp";
    QTest::newRow("axis twice") << "b@dp,n@dp" << "dp is given twice";
    QTest::newRow("idle axis twice") << "n@tp,b@dp,n@tp" << "tp is given twice";
    QTest::newRow("no at") << "b" << "factor@axis";
    QTest::newRow("empty") << "" << "factor@axis";
    QTest::newRow("comma") << "b@dp," << "factor@axis";
}

void TestLayout::choiceTextMistakes() {
    QFETCH(QString, text);
    QFETCH(QString, says);
    const FactorRule rule = matmul(16, 16, 16, 16);
    const Mesh mesh = meshOf({{"dp", 2}, {"tp", 4}});
    try {
        choiceFromString(text.toStdString(), rule, mesh);
        QFAIL("accepted");
    } catch (const PlanError& error) {
        QVERIFY2(QString(error.what()).contains(says), error.what());
    }
}

void TestLayout::legalChoicesInOrder() {
    FactorRule rule;
    rule.addFactor("i", 8);
    rule.addFactor("k", 8, FactorKind::Reduction);
    rule.operands = {{{0}, {1}}};
    rule.results = {{{0}}};
    const Mesh mesh = meshOf({{"x", 2}, {"y", 4}});
    QCOMPARE(texts(enumerateChoices(rule, mesh, Divisibility::Even), rule, mesh),
             (std::vector<std::string>{"replicated", "i@y", "k@y", "i@x", "i@x,i@y", "i@x,k@y",
                                       "k@x", "k@x,i@y", "k@x,k@y"}));
}

void TestLayout::axesDivideTogether() {
    const FactorRule rule = matmul(8, 4, 12, 16);
    const Mesh mesh = meshOf({{"dp", 2}, {"tp", 4}});
    const LegalChoices choices = enumerateChoices(rule, mesh, Divisibility::Even);
    // Five options an axis; 8 devices divide neither m = 4 nor k = 12.
    QCOMPARE(choices.legal.size(), std::size_t{25 - 2});
    QVERIFY(choices.illegal.empty());
    QVERIFY(std::ranges::find(choices.legal, choice(1, 1)) == choices.legal.end());
    QVERIFY(std::ranges::find(choices.legal, choice(2, 2)) == choices.legal.end());
}

void TestLayout::unevenCuts() {
    const FactorRule rule = matmul(8, 4, 12, 3);
    const Mesh mesh = meshOf({{"dp", 2}, {"tp", 4}});
    const LegalChoices choices = enumerateChoices(rule, mesh, Divisibility::AtLeast);
    // n = 3 takes 2 but not 4; m = 4 does not take 8, k = 12 does: 5 * 4 - 1.
    QCOMPARE(choices.legal.size(), std::size_t{19});
    QCOMPARE(choices.illegal.size(), std::size_t{1});
    QVERIFY(choices.illegal[0].choice == choice(kIdle, 3));
    QCOMPARE(choices.illegal[0].reason, "n has 3 elements: fewer than tp=4");
}

void TestLayout::parameterStates() {
    FactorRule rule;
    rule.addFactor("n", 8);
    rule.results = {{{0}}};
    const Mesh mesh = meshOf({{"x", 2}, {"y", 2}});
    QCOMPARE(
        texts(enumerateChoices(rule, mesh, Divisibility::Even, true), rule, mesh),
        (std::vector<std::string>{"replicated", "n@y", "state@y", "n@x", "n@x,n@y", "n@x,state@y",
                                  "state@x", "state@x,n@y", "state@x,state@y"}));
}

void TestLayout::axisOfOneDevice() {
    FactorRule rule;
    rule.addFactor("n", 3);
    rule.results = {{{0}}};
    const Mesh mesh = meshOf({{"x", 1}, {"y", 3}});
    const LegalChoices choices = enumerateChoices(rule, mesh, Divisibility::Even, true);
    QCOMPARE(texts(choices, rule, mesh),
             (std::vector<std::string>{"replicated", "n@y", "state@y"}));
    QVERIFY(choices.illegal.empty());
}

void TestLayout::reasons() {
    FactorRule rule;
    rule.addFactor("k", 8, FactorKind::Reduction);
    rule.addFactor("d", 16, FactorKind::Replicate);
    rule.addFactor("h", 16, FactorKind::Permutation);
    rule.addFactor("g", 16);
    rule.addFactor("one", 1);
    rule.addFactor("lost", 16);
    rule.operands = {{{0, 3}, {1}, {2}, {4}}};
    rule.results = {{{1}, {2}, {3}}};
    const Mesh mesh = meshOf({{"tp", 16}});
    const LegalChoices choices = enumerateChoices(rule, mesh, Divisibility::Even);
    QCOMPARE(choices.legal.size(), std::size_t{1});
    std::vector<std::string> reasons;
    std::ranges::transform(choices.illegal, std::back_inserter(reasons),
                           &LegalChoices::Illegal::reason);
    QCOMPARE(
        reasons,
        (std::vector<std::string>{
            "k has 8 elements: tp=16 does not divide it", "d must stay whole on every device",
            "halo exchange along h is not supported yet",
            "g lies behind k in its dimension: a cut would not be contiguous",
            "one has 1 element: tp=16 does not divide it", "no tensor of the op carries lost"}));
}

void TestLayout::noAxes() {
    const FactorRule rule = matmul(8, 4, 12, 16);
    QCOMPARE(enumerateChoices(rule, Mesh{}, Divisibility::Even).legal.size(), std::size_t{1});
    QCOMPARE(toString(Choice{}, rule, Mesh{}), "replicated");
    QVERIFY(resultLayout(Choice{}, rule, 0, Mesh{}) == Layout{});
}

SHARDLENS_TEST(TestLayout)

} // namespace tst_layout

#include "tst_layout.moc"
