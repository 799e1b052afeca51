// SPDX-License-Identifier: Apache-2.0
// Factor rules: text form, and which dimension a factor cuts.
#include "core/model/factor_rule.h"
#include "tests/test_program.h"

#include <QTest>

namespace tst_factor_rule {

using namespace shardlens;

class TestFactorRule : public QObject {
    Q_OBJECT

private slots:
    void text();
    void shardedDimension();
};

void TestFactorRule::text() {
    FactorRule rule;
    const int b = rule.addFactor("b", 8);
    const int m = rule.addFactor("m", 16);
    const int k = rule.addFactor("k", 32, FactorKind::Reduction);
    const int n = rule.addFactor("n", 64);
    QCOMPARE(k, 2);
    rule.operands = {{{b}, {m}, {k}}, {{b}, {k}, {n}}};
    rule.results = {{{b}, {m}, {n}}};
    QCOMPARE(rule.toString(), "([b,m,k],[b,k,n])->([b,m,n]) r={k}");

    rule.factors[1].kind = FactorKind::Internal;
    rule.factors[0].kind = FactorKind::Replicate;
    rule.factors[3].kind = FactorKind::Permutation;
    rule.operands = {{{b, m}, {}, {k}}};
    rule.results = {{}};
    QCOMPARE(rule.toString(), "([(b m),1,k])->([]) r={k} i={m} p={n} whole={b}");
}

void TestFactorRule::shardedDimension() {
    FactorRule rule;
    const int one = rule.addFactor("one", 1);
    const int h = rule.addFactor("h", 8);
    const int d = rule.addFactor("d", 64);
    const int s = rule.addFactor("s", 128);
    const std::vector<DimFactors> dims{{s}, {}, {one, h, d}};
    QCOMPARE(shardedDim(dims, rule, s), 0);
    QCOMPARE(shardedDim(dims, rule, h), 2); // only a factor of size 1 is in front
    QCOMPARE(shardedDim(dims, rule, d), -2);
    QCOMPARE(shardedDim(dims, rule, one), 2);
    QCOMPARE(shardedDim({{h}, {d}}, rule, s), -1);
    QCOMPARE(shardedDim({{h, d}, {d}}, rule, d), 1); // the dimension where it is in front counts
}

SHARDLENS_TEST(TestFactorRule)

} // namespace tst_factor_rule

#include "tst_factor_rule.moc"
