// SPDX-License-Identifier: Apache-2.0
// The planner on transformer stacks: the certificate against the evaluator and against the unfolded
// problem, pins, alternatives against re-optimised pins, memory limits.
#include "core/error.h"
#include "core/plan/pins.h"
#include "core/units.h"
#include "tests/core/support/graphs.h"
#include "tests/core/support/planning.h"
#include "tests/test_program.h"

#include <nlohmann/json.hpp>

#include <QTest>

namespace tst_planner {

using namespace shardlens;

namespace {

PlanRequest request(int nodes = 2, std::vector<AxisSize> mesh = {{"dp", 2}, {"tp", 8}}) {
    PlanRequest r;
    r.cluster = "dgx-a100";
    r.nodes = nodes;
    r.mesh = std::move(mesh);
    return r;
}

Graph stack(int layers = 12) {
    return test::bertStack(layers, 16, 512, 1024, 16);
}

std::string messageOf(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

} // namespace

class TestPlanner : public QObject {
    Q_OBJECT

private slots:
    void foldedEqualsUnfolded() {
        for (const int layers : {2, 3, 5, 12}) {
            const Plan folded = optimise(test::contextOf(stack(layers), request()));
            const Plan unfolded = optimise(test::contextOf(stack(layers), request(), false));
            QVERIFY(folded.optimal && unfolded.optimal);
            QCOMPARE(folded.bound, unfolded.bound);
            QCOMPARE(std::round(folded.totals.time * 1e12), std::round(folded.bound * 1e12));
            QCOMPARE(std::round(unfolded.totals.time * 1e12), std::round(unfolded.bound * 1e12));
        }
    }
    void inferenceHasNoBackward() {
        PlanRequest r = request();
        r.mode = Mode::Infer;
        const Plan plan = optimise(test::contextOf(stack(), r));
        for (const PlannedCollective& c : plan.collectives) QCOMPARE(c.phase, Phase::Forward);
        for (const OpFigures& f : plan.figures) QCOMPARE(f.compute.backward, 0.0);
        QCOMPARE(plan.totals.memory.optimizer, 0.0);
        QVERIFY(plan.totals.time < optimise(test::contextOf(stack(), request())).totals.time);
    }
    /// A pin on one op of one layer: never cheaper, the other layers keep the freedom they had, and
    /// taking it back restores the plan to the bit.
    void pinOneLayer() {
        const auto free = test::contextOf(stack(), request());
        const Plan before = optimise(free);
        const std::string pinned = "layer7.up";
        const std::string own = test::choiceOf(before, pinned);
        const std::string other = own == "n@tp" ? "k@tp" : "n@tp";
        const Plan plan = optimise(withPins(*free, {{pinned, other}}));
        QVERIFY(plan.optimal);
        QCOMPARE(test::choiceOf(plan, pinned), other);
        QVERIFY(plan.totals.time >= before.totals.time);
        QVERIFY(plan.pinned[*plan.context->graph->findOp(pinned)]);
        const Plan after = optimise(withPins(*plan.context, {}));
        QCOMPARE(after.totals.time, before.totals.time);
        QVERIFY(after.decisions == before.decisions);
        // The optimum under the pin is the optimum of the unfolded problem under the pin.
        const auto unfolded = test::contextOf(stack(), request(), false);
        QCOMPARE(optimise(withPins(*unfolded, {{pinned, other}})).bound, plan.bound);
    }
    void pinWholeClassAndPattern() {
        const auto context = test::contextOf(stack(), request());
        const Plan byClass = optimise(withPins(*context, {{"class:layer0.up", "b@dp,k@tp"}}));
        const Plan byGlob = optimise(withPins(*context, {{"layer*.up", "b@dp,k@tp"}}));
        QCOMPARE(byClass.totals.time, byGlob.totals.time);
        for (int layer = 0; layer < 12; ++layer)
            QCOMPARE(test::choiceOf(byClass, fmt::format("layer{}.up", layer)),
                     std::string("b@dp,k@tp"));
    }
    void pinsThatCannotHold() {
        const auto context = test::contextOf(stack(), request());
        const auto refusal = [&](std::vector<Pin> pins) {
            return messageOf([&] { optimise(withPins(*context, std::move(pins))); });
        };
        const std::string clash = refusal({{"layer3.up", "n@tp"}, {"layer*.up", "k@tp"}});
        QVERIFY2(clash.find("'layer3.up=n@tp'") != std::string::npos &&
                     clash.find("'layer*.up=k@tp'") != std::string::npos,
                 clash.c_str());
        QVERIFY(refusal({{"no.such.op", "n@tp"}}).find("names no op") != std::string::npos);
        QVERIFY(refusal({{"layer3.up", "zebra@tp"}}).find("zebra") != std::string::npos);
        QVERIFY(refusal({{"layer3.attention", "d@tp"}}).find("d must stay whole") !=
                std::string::npos);
    }
    /// Min-marginals against solving again with the choice pinned.
    void alternativesAreReoptimised() {
        const auto context = test::contextOf(stack(6), request());
        const Plan plan = optimise(context);
        for (const char* name : {"layer3.up", "layer0.q", "layer5.norm2", "layer2.up.weight"}) {
            const OpId op = *context->graph->findOp(name);
            const std::vector<Alternative> all = alternatives(plan, op);
            QCOMPARE(std::ranges::count_if(all, &Alternative::current), 1);
            for (const Alternative& a : all) {
                if (!a.legal) {
                    QVERIFY(!a.reason.empty());
                    continue;
                }
                const Plan pinned = optimise(withPins(*context, {{name, a.text}}));
                QCOMPARE(std::round(a.time * 1e12), std::round(pinned.totals.time * 1e12));
                QVERIFY(a.deltaTime >= 0);
            }
        }
    }
    /// Where tables would be too large each choice has a time and a bound around the exact price.
    void alternativesOfWideGraphs() {
        const auto context = test::contextOf(stack(3), request());
        const Plan plan = optimise(context);
        PlannerOptions narrow;
        narrow.maxTableEntries = 1;
        for (const char* name : {"layer1.up", "layer2.up.weight"}) {
            const OpId op = *context->graph->findOp(name);
            const std::vector<Alternative> searched = alternatives(plan, op, narrow);
            for (const Alternative& exact : alternatives(plan, op)) {
                if (!exact.legal) continue;
                QCOMPARE(exact.leastTime, exact.time);
                const auto same = std::ranges::find(searched, exact.text, &Alternative::text);
                QVERIFY(same != searched.end());
                QVERIFY(same->leastTime <= exact.time * (1 + 1e-12));
                QVERIFY(same->time >= exact.time * (1 - 1e-12));
                QVERIFY(std::isfinite(same->time));
            }
        }
    }
    void memoryLimit() {
        const auto context = test::contextOf(stack(), request());
        const Plan free = optimise(context);
        PlanRequest tight = request();
        tight.memoryLimitBytes = free.totals.memory.total() * 0.8;
        const Plan plan = optimise(test::contextOf(stack(), tight));
        QVERIFY(plan.totals.memory.total() <= *tight.memoryLimitBytes);
        QVERIFY(plan.bound <= plan.totals.time);
        QVERIFY(plan.bound >= free.bound); // a limit never helps
        QVERIFY2(plan.gap <= 0.005, qPrintable(QString::number(plan.gap)));
    }
    void memoryThatCannotFit() {
        PlanRequest tiny = request();
        tiny.memoryLimitBytes = 1.01 * kGiB;
        const std::string message = messageOf([&] { optimise(test::contextOf(stack(), tiny)); });
        QVERIFY2(message.find("no plan fits") != std::string::npos &&
                     message.find("use more devices") != std::string::npos,
                 message.c_str());
        // With a pin that alone makes it impossible, the pin is named.
        PlanRequest r = request();
        const Plan least = optimise(test::contextOf(stack(), r));
        r.pins = {{"layer*.weight", "replicated"}, {"layer*.bias", "replicated"}};
        const Plan wide = optimise(test::contextOf(stack(), r));
        r.memoryLimitBytes = 0.5 * (least.totals.memory.parameters + least.totals.memory.optimizer +
                                    wide.totals.memory.parameters + wide.totals.memory.optimizer) +
                             kGiB;
        const std::string named = messageOf([&] { optimise(test::contextOf(stack(), r)); });
        QVERIFY2(named.find("layer*.weight=replicated") != std::string::npos, named.c_str());
    }
    void reportIsCompleteAndDeterministic() {
        const auto context = test::contextOf(stack(4), request());
        Plan plan = optimise(context);
        const auto json = nlohmann::json::parse(toJson(plan));
        for (const char* key : {"time_s", "bound_s", "gap", "optimal", "memory_bytes", "solve_ms",
                                "classes", "ops", "collectives"})
            QVERIFY2(json.contains(key), key);
        QCOMPARE(json["ops"].size(), context->graph->ops().size());
        double communication = 0, compute = 0;
        for (const auto& c : json["collectives"]) communication += c["time_s"].get<double>();
        for (const auto& op : json["ops"])
            compute +=
                op["compute_forward_s"].get<double>() + op["compute_backward_s"].get<double>();
        QVERIFY(qFuzzyCompare(communication + compute, plan.totals.time));
        Plan again = optimise(context);
        again.solveMilliseconds = plan.solveMilliseconds = again.buildMilliseconds =
            plan.buildMilliseconds = 0;
        QCOMPARE(toJson(again), toJson(plan));
        QVERIFY(toText(plan).find("proven optimal") != std::string::npos);
    }
    /// Mixed-precision bookkeeping of costs.md section 4 on one replicated device: fp32 parameters
    /// keep value, gradient and two moments, 16 bytes each.
    void memoryOnOneDevice() {
        PlanRequest r = request(1, {{"dp", 1}, {"tp", 8}});
        r.pins = {{"layer*.weight", "replicated"}, {"layer*.bias", "replicated"}};
        const Graph graph = stack(2);
        const Plan plan = optimise(test::contextOf(graph, r));
        const MemorySplit& m = plan.totals.memory;
        QCOMPARE(m.parameters + m.gradients + m.optimizer, 16 * graph.parameterCount());
    }
    void globs() {
        QVERIFY(matchesGlob("layer*.up", "layer12.up"));
        QVERIFY(matchesGlob("*", ""));
        QVERIFY(matchesGlob("a?c*", "abcdef"));
        QVERIFY(!matchesGlob("layer*.up", "layer12.up.weight"));
        QVERIFY(!matchesGlob("a?c", "ac"));
    }
};

SHARDLENS_TEST(TestPlanner)

} // namespace tst_planner

#include "tst_planner.moc"
