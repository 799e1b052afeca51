// SPDX-License-Identifier: Apache-2.0
// Plans of whole jobs in the background: the newest request wins, a cancelled one says nothing,
// prices are kept between requests, and what the plan says of ops and devices follows its stages.
#include "core/error.h"
#include "core/plan/pipeline_service.h"
#include "tests/core/support/models.h"
#include "tests/test_program.h"

#include <QTemporaryDir>
#include <QTest>

#include <atomic>
#include <thread>

namespace tst_pipeline_service {

using namespace shardlens;
using namespace shardlens::test;

class TestPipelineService : public QObject {
    Q_OBJECT

    QTemporaryDir m_scratch;
    std::filesystem::path m_file;
    PlanRequest m_request;
    ModelBundle m_bundle;

    PlanRequest withStages(int stages, std::vector<int> cuts = {}) const {
        PlanRequest request = m_request;
        request.pipeline = PipelineSetup{};
        request.pipeline->stages = stages;
        request.pipeline->cuts = std::move(cuts);
        return request;
    }

private slots:
    void initTestCase();
    void planSaysWhatIsWhere();
    void chunksOfAPlan();
    void pricesAreKept();
    void newestWins();
    void cancelledSaysNothing();
    void errorsAreSentences();
};

void TestPipelineService::initTestCase() {
    QVERIFY(m_scratch.isValid());
    m_file = m_scratch.filePath(QStringLiteral("model.json")).toStdString();
    std::filesystem::copy_file(
        std::filesystem::path(SHARDLENS_SOURCE) / "samples" / "llama3-8b.json", m_file);
    m_request = onCluster("dgx-a100", 1, "dp=1,tp=8", 16, 1024);
    m_bundle = loadModel(m_file, importOptions(m_request));
}

void TestPipelineService::planSaysWhatIsWhere() {
    PipelineService service([] {});
    service.solve(m_bundle, m_file, withStages(4, {9}));
    service.waitForIdle();
    const auto result = service.takeResult();
    QVERIFY(result && result->plan);
    QVERIFY(!service.takeResult());
    const PipelinePlan& plan = *result->plan;
    QCOMPARE(plan.stages(), 4);
    int next = 0;
    for (int s = 0; s < 4; ++s) {
        const auto [first, end] = plan.devicesOf(s);
        QCOMPARE(first, next);
        QCOMPARE(plan.stageOfDevice(first), s);
        QCOMPARE(plan.stageOfDevice(end - 1), s);
        next = end;
        QVERIFY(plan.memoryOf(s) <= plan.answer.peakMemory);
    }
    QCOMPARE(plan.stageOfDevice(next), -1);
    QCOMPARE(next, plan.answer.devices());
    for (std::size_t u = 0; u < plan.units.units.size(); ++u) {
        int stage = 0; // by counting
        while (static_cast<int>(u) > plan.answer.stages[static_cast<std::size_t>(stage)].last)
            ++stage;
        QCOMPARE(plan.stageOf(plan.units.units[u].ops.back()), stage);
    }
    QVERIFY(plan.isPinned(9));
    QVERIFY(!plan.isPinned(10));
    QCOMPARE(plan.nameOf(9), std::string("layer 8")); // unit 0 is the embedding
    QVERIFY(plan.bubble() > 0 && plan.bubble() < 1);
    QCOMPARE(plan.schedule.devices, 4u);
    QCOMPARE(
        plan.document.provenance.at(
            "stages[" + std::to_string(plan.stageOf(plan.units.units[9].ops.back())) + "].first"),
        std::string("user"));
}

/// 32 layers on 4 stages in 2 chunks: by counting from the embedding on.
void TestPipelineService::chunksOfAPlan() {
    PipelineService service([] {});
    PlanRequest request = withStages(4);
    request.pipeline->schedules = {"interleaved"};
    request.pipeline->chunks = 2;
    service.solve(m_bundle, m_file, request);
    service.waitForIdle();
    const auto result = service.takeResult();
    QVERIFY2(result && result->plan, result ? result->error.c_str() : "nothing");
    const PipelinePlan& plan = *result->plan;
    QCOMPARE(plan.virtualStages.size(), std::size_t{8});
    int unit = 1;
    for (int s = 0; s < 8; ++s) {
        const PlannedStage& held = plan.answer.stages[static_cast<std::size_t>(s % 4)];
        const int layers = std::min(held.last, 32) - std::max(held.first, 1) + 1;
        QCOMPARE(layers % 2, 0);
        for (int i = 0; i < layers / 2; ++i, ++unit) {
            const auto& ops = plan.units.units[static_cast<std::size_t>(unit)].ops;
            QCOMPARE(plan.stageOf(ops.back()), s % 4);
        }
        if (s == 7) break;
        const VirtualStage& next = plan.virtualStages[static_cast<std::size_t>(s) + 1];
        QCOMPARE(next.first, unit);
        const int cut =
            next.stage == 0 ? -1 : plan.answer.stages[static_cast<std::size_t>(next.stage)].first;
        QCOMPARE(plan.cutOf(unit), cut);
        QCOMPARE(plan.cutFor(unit, unit + 1), cut < 0 ? -1 : cut + 2);
        QCOMPARE(plan.cutFor(unit, unit - 33), -1);
    }
    QCOMPARE(unit, 33);
    QVERIFY(plan.chunksOf(1).starts_with("layers "));
}

/// Once priced, the model is not read again.
void TestPipelineService::pricesAreKept() {
    PipelineService service([] {});
    service.solve(m_bundle, m_file, withStages(2));
    service.waitForIdle();
    QVERIFY(service.takeResult()->plan);
    const auto away = m_file.string() + ".away";
    std::filesystem::rename(m_file, away);
    service.solve(m_bundle, m_file, withStages(2, {12}));
    service.waitForIdle();
    auto result = service.takeResult();
    QVERIFY2(result->plan, result->error.c_str());
    QCOMPARE(result->plan->answer.stages[1].first, 12);
    PlanRequest longer = withStages(2);
    longer.sequence = 512; // other prices
    service.solve(m_bundle, m_file, longer);
    service.waitForIdle();
    std::filesystem::rename(away, m_file);
    result = service.takeResult(); // only the whole batch is at hand
    QVERIFY(!result->plan || result->plan->answer.microBatches == 1);
}

void TestPipelineService::newestWins() {
    std::atomic<int> woken = 0, stopped = 0;
    const auto slow = [&](StagePricer& pricer, const PlanRequest& request, std::stop_token stop) {
        for (int i = 0; i < 10'000 && request.pipeline->stages == 1; ++i) {
            if (stop.stop_requested()) {
                ++stopped;
                throw Cancelled();
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return planJob(pricer, request, stop);
    };
    PipelineService service([&] { ++woken; }, slow);
    service.solve(m_bundle, m_file, withStages(1));
    while (!service.busy()) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto newest = service.solve(m_bundle, m_file, withStages(2));
    service.waitForIdle();
    const auto result = service.takeResult();
    QCOMPARE(result->generation, newest);
    QCOMPARE(result->plan->stages(), 2);
    QCOMPARE(woken.load(), 1);
    QVERIFY(stopped.load() <= 1);
}

void TestPipelineService::cancelledSaysNothing() {
    std::atomic<bool> woken = false;
    PipelineService service(
        [&] { woken = true; },
        [](StagePricer&, const PlanRequest&, std::stop_token stop) -> PipelineAnswer {
            while (!stop.stop_requested())
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            throw Cancelled();
        });
    service.solve(m_bundle, m_file, withStages(2));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    service.cancel();
    service.waitForIdle();
    QVERIFY(!service.takeResult());
    QVERIFY(!woken);
}

void TestPipelineService::errorsAreSentences() {
    PipelineService service([] {});
    PlanRequest alpa = withStages(2);
    alpa.costModel = "alpa";
    service.solve(m_bundle, m_file, alpa);
    service.waitForIdle();
    const auto result = service.takeResult();
    QVERIFY(!result->plan);
    QVERIFY2(QByteArray(result->error.c_str()).contains("roofline"), result->error.c_str());
}

SHARDLENS_TEST(TestPipelineService)

} // namespace tst_pipeline_service

#include "tst_pipeline_service.moc"
