// SPDX-License-Identifier: Apache-2.0
// The background service without Qt widgets: superseding, cancelling, errors, progress, and being
// destroyed while it works. Slow and failing planners stand in for the real one.
#include "core/error.h"
#include "core/fold/folding.h"
#include "core/model/catalogue.h"
#include "core/plan/planning_service.h"
#include "tests/test_program.h"

#include <QTest>

#include <atomic>
#include <thread>

namespace tst_planning_service {

using namespace shardlens;
using namespace std::chrono_literals;

namespace {

std::shared_ptr<const Graph> smallGraph() {
    auto graph = std::make_shared<Graph>();
    Op input{.name = "x",
             .kind = OpKind::Input,
             .type = {},
             .attributes = {},
             .inputs = {},
             .outputs = {}};
    const OpId x = graph->addOp(input, {{DType::BF16, {8, 16}}});
    Op weight{.name = "w",
              .kind = OpKind::Parameter,
              .type = {},
              .attributes = {},
              .inputs = {},
              .outputs = {}};
    const OpId w = graph->addOp(weight, {{DType::BF16, {16, 32}}});
    Op product{.name = "mm",
               .kind = OpKind::MatMul,
               .type = {},
               .attributes = {},
               .inputs = {graph->op(x).outputs[0], graph->op(w).outputs[0]},
               .outputs = {}};
    const OpId mm = addInferred(*graph, product);
    graph->markOutput(graph->op(mm).outputs[0]);
    return graph;
}

/// A planner that waits for its token, at most ten seconds.
Plan waitForStop(std::shared_ptr<const PlanContext> context, const PlannerOptions& options) {
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < 10s) {
        if (options.stop.stop_requested()) throw Cancelled();
        std::this_thread::sleep_for(1ms);
    }
    Plan plan;
    plan.context = std::move(context);
    return plan;
}

Plan atOnce(std::shared_ptr<const PlanContext> context, const PlannerOptions&) {
    Plan plan;
    plan.totals.time = static_cast<double>(context->request.batch);
    plan.context = std::move(context);
    return plan;
}

PlanRequest requestOf(std::int64_t batch) {
    PlanRequest request;
    request.batch = batch;
    return request;
}

} // namespace

class TestPlanningService : public QObject {
    Q_OBJECT

    std::shared_ptr<const Graph> m_graph = smallGraph();
    std::shared_ptr<const Folding> m_folding = std::make_shared<const Folding>(fold(*m_graph));

private slots:
    void laneRunsOnlyTheNewest() {
        BackgroundLane lane;
        std::atomic<int> ran = 0, last = 0;
        std::atomic<bool> go = false;
        lane.submit([&](const std::stop_token&) {
            while (!go) std::this_thread::sleep_for(1ms);
        });
        for (int i = 1; i <= 20; ++i)
            lane.submit([&, i](const std::stop_token&) {
                ++ran;
                last = i;
            });
        go = true;
        lane.waitForIdle();
        QVERIFY(ran <= 2); // the first of them may have been taken before the others came
        QCOMPARE(last.load(), 20);
        QCOMPARE(lane.generation(), std::uint64_t{21});
    }

    void laneStopsOnDestruction() {
        std::atomic<bool> stopped = false;
        {
            BackgroundLane lane;
            std::atomic<bool> started = false;
            lane.submit([&](const std::stop_token& stop) {
                started = true;
                while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
                stopped = true;
            });
            while (!started) std::this_thread::sleep_for(1ms);
        }
        QVERIFY(stopped);
    }

    void deliversAPlan() {
        std::atomic<int> wakes = 0;
        PlanningService service([&] { ++wakes; }, {atOnce, {}});
        const auto generation = service.solve(m_graph, m_folding, requestOf(4));
        service.waitForIdle();
        QCOMPARE(wakes.load(), 1);
        const auto result = service.takeResult();
        QVERIFY(result && result->plan);
        QCOMPARE(result->generation, generation);
        QCOMPARE(result->plan->totals.time, 4.0);
        QVERIFY(!service.takeResult());
    }

    void newerRequestSupersedes() {
        std::atomic<int> calls = 0;
        PlanningService service([] {}, {[&](auto context, const PlannerOptions& options) {
                                            return ++calls == 1 ? waitForStop(context, options)
                                                                : atOnce(context, options);
                                        },
                                        {}});
        service.solve(m_graph, m_folding, requestOf(4));
        while (calls == 0) std::this_thread::sleep_for(1ms);
        const auto newest = service.solve(m_graph, m_folding, requestOf(16));
        service.waitForIdle();
        const auto result = service.takeResult();
        QVERIFY(result && result->plan);
        QCOMPARE(result->generation, newest);
        QCOMPARE(result->plan->totals.time, 16.0);
    }

    void cancelIsReported() {
        PlanningService service([] {}, {waitForStop, {}});
        service.solve(m_graph, m_folding, requestOf(4));
        std::this_thread::sleep_for(20ms);
        service.cancelSolve();
        service.waitForIdle();
        const auto result = service.takeResult();
        QVERIFY(result);
        QVERIFY(result->cancelled);
        QVERIFY(!result->plan);
        QVERIFY(!service.solving());
    }

    void errorsComeAsText() {
        PlanningService service([] {}, {[](auto, const PlannerOptions&) -> Plan {
                                            throw PlanError("pins clash", "a", "remove one");
                                        },
                                        {}});
        service.solve(m_graph, m_folding, requestOf(4));
        service.waitForIdle();
        const auto result = service.takeResult();
        QVERIFY(result && !result->plan && !result->cancelled);
        QVERIFY(result->error.find("pins clash") != std::string::npos);
    }

    void badRequestIsAnError() {
        PlanningService service([] {}, {atOnce, {}});
        PlanRequest request = requestOf(4);
        request.cluster = "no-such-cluster";
        service.solve(m_graph, m_folding, request);
        service.waitForIdle();
        const auto result = service.takeResult();
        QVERIFY(result && result->error.find("no-such-cluster") != std::string::npos);
    }

    void progressCarriesTheGap() {
        std::atomic<bool> go = false;
        PlanningService service([] {}, {[&](auto context, const PlannerOptions& options) {
                                            options.progress({12.0, 9.0, 0.5, "prices"});
                                            while (!go) std::this_thread::sleep_for(1ms);
                                            return atOnce(context, options);
                                        },
                                        {}});
        service.solve(m_graph, m_folding, requestOf(4));
        std::optional<PlanningProgress> progress;
        for (int i = 0; i < 2000 && !progress; ++i) {
            progress = service.takeProgress();
            std::this_thread::sleep_for(1ms);
        }
        QVERIFY(progress);
        QCOMPARE(progress->incumbent, 12.0);
        QCOMPARE(progress->bound, 9.0);
        QCOMPARE(progress->gap, 0.25);
        go = true;
        service.waitForIdle();
        QVERIFY(!service.takeProgress()); // the result replaces it
        QVERIFY(service.takeResult());
    }

    void destroyedWhileSolving() {
        for (int i = 0; i < 20; ++i) {
            PlanningService service([] {}, {waitForStop, {}});
            service.solve(m_graph, m_folding, requestOf(4));
            if (i % 2) std::this_thread::sleep_for(2ms);
        }
    }

    void alternativesOfTheNewestOp() {
        PlanningService service([] {}, {atOnce, [](const Plan&, OpId op, const PlannerOptions&) {
                                            Alternative alternative;
                                            alternative.time = op;
                                            return std::vector<Alternative>{alternative};
                                        }});
        const auto plan = std::make_shared<const Plan>();
        for (OpId op = 0; op < 5; ++op) service.alternatives(plan, op);
        service.waitForIdle();
        const auto result = service.takeAlternatives();
        QVERIFY(result);
        QCOMPARE(result->op, OpId{4});
        QCOMPARE(result->list.front().time, 4.0);
    }
};

SHARDLENS_TEST(TestPlanningService)

} // namespace tst_planning_service

#include "tst_planning_service.moc"
