// SPDX-License-Identifier: Apache-2.0
// Every factor rule proven by running it: each kind of op, several shapes, under every legal choice
// on several meshes, forward, backward and through one optimizer step, must equal the whole op on
// one device, and the collectives that run must be those the choice was priced with.
#include "core/execute/verify.h"
#include "tests/core/execute/rule_cases.h"
#include "tests/core/support/planning.h"
#include "tests/test_program.h"

#include <fmt/format.h>

#include <QTest>

#include <set>

namespace tst_rules {

using namespace shardlens;

class TestRules : public QObject {
    Q_OBJECT
private slots:
    void everyKindHasCases();
    void everyChoiceEqualsTheWhole_data();
    void everyChoiceEqualsTheWhole();
    void aMissingCollectiveIsFound();
};

namespace {

/// Of the choices of an op on a mesh, every which is run.
constexpr std::size_t kStride = test::kSanitized ? 4 : 1;

PlanRequest requestFor(std::vector<AxisSize> mesh) {
    PlanRequest request;
    request.devicesPerNode = 1;
    for (const AxisSize& axis : mesh) request.devicesPerNode *= axis.size;
    request.mesh = std::move(mesh);
    return request;
}

const std::vector<std::vector<AxisSize>>& meshes() {
    static const std::vector<std::vector<AxisSize>> all{
        {{"x", 2}}, {{"x", 4}}, {{"x", 2}, {"y", 2}}, {{"x", 2}, {"y", 3}}};
    return all;
}

Feeds feedsOf(const test::RuleCase& rule, const Graph& graph) {
    Feeds feeds = makeFeeds(graph, 7);
    for (std::size_t i = 0; i < rule.operands.size(); ++i) {
        const test::OperandCase& operand = rule.operands[i];
        if (!operand.positive && !operand.definite) continue;
        Array& fed = feeds.at(*graph.findOp(fmt::format("operand{}", i)));
        if (operand.positive)
            for (double& x : fed.reals) x = std::abs(x) + 0.1;
        const auto n = static_cast<std::size_t>(operand.shape.empty() ? 1 : operand.shape.back());
        for (std::size_t row = 0; operand.definite && row < fed.reals.size() / n; ++row)
            fed.reals[row * n + row % n] += static_cast<double>(3 * n + row % n);
    }
    return feeds;
}

} // namespace

void TestRules::everyKindHasCases() {
    std::set<OpKind> covered;
    for (const test::RuleCase& rule : test::ruleCases()) covered.insert(rule.kind);
    for (std::size_t k = 0; k <= static_cast<std::size_t>(OpKind::Opaque); ++k) {
        const auto kind = static_cast<OpKind>(k);
        const bool source =
            kind == OpKind::Input || kind == OpKind::Parameter || kind == OpKind::Constant;
        if (source || kind == OpKind::Opaque || kind == OpKind::Collective) continue;
        QVERIFY2(covered.contains(kind), std::string(nameOf(kind)).c_str());
        QVERIFY2(hasKernel(kind), std::string(nameOf(kind)).c_str());
    }
}

void TestRules::everyChoiceEqualsTheWhole_data() {
    QTest::addColumn<int>("index");
    const std::vector<test::RuleCase> cases = test::ruleCases();
    for (std::size_t i = 0; i < cases.size(); ++i)
        QTest::newRow(cases[i].name.c_str()) << static_cast<int>(i);
}

void TestRules::everyChoiceEqualsTheWhole() {
    QFETCH(int, index);
    const test::RuleCase rule = test::ruleCases()[static_cast<std::size_t>(index)];
    const Graph graph = test::graphOf(rule);
    const OpId op = *graph.findOp("op");
    const Feeds feeds = feedsOf(rule, graph);
    std::mt19937_64 random(11);
    std::size_t choices = 0;
    for (const std::vector<AxisSize>& mesh : meshes()) {
        const auto context = test::contextOf(graph, requestFor(mesh), false);
        const std::vector<Choice>& all = context->pricing->op(op).choices;
        for (std::size_t i = 0; i < all.size(); i += kStride) {
            const Choice& choice = all[i];
            Decisions decisions = randomDecisions(*context->pricing, random);
            decisions.op[op] = choice;
            const Plan plan = evaluate(context, decisions);
            const Verification result = verify(plan, feeds);
            const std::string what =
                fmt::format("{} on {}: differs by {} in {}; {}",
                            toString(choice, context->pricing->op(op).rule, context->mesh),
                            context->mesh.toString(), result.difference, result.worst,
                            result.mismatches.empty() ? "" : result.mismatches.front());
            QVERIFY2(result.agrees(), what.c_str());
            QVERIFY(result.tensors > 0);
            ++choices;
        }
    }
    QVERIFY(choices >= meshes().size());
}

/// The oracle itself can fail: a plan that was priced with one collective too few is found.
void TestRules::aMissingCollectiveIsFound() {
    const test::RuleCase rule{"product", OpKind::MatMul, {}, {{{4, 4}}, {{4, 4}}}};
    const Graph graph = test::graphOf(rule);
    const OpId op = *graph.findOp("op");
    const auto context = test::contextOf(graph, requestFor({{"x", 2}}), false);
    Decisions decisions;
    decisions.op.assign(graph.ops().size(), Choice{});
    decisions.handover.resize(graph.tensors().size());
    decisions.hasHandover.assign(graph.tensors().size(), false);
    Choice cut;
    cut.axis[0] = 1; // k
    decisions.op[op] = cut;
    Plan plan = evaluate(context, decisions);
    QVERIFY(verify(plan).agrees());
    QVERIFY(!plan.collectives.empty());
    plan.collectives.pop_back();
    QVERIFY(!verify(plan).agrees());
}

SHARDLENS_TEST(TestRules)

} // namespace tst_rules

#include "tst_rules.moc"
