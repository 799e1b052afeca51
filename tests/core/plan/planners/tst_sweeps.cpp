// SPDX-License-Identifier: Apache-2.0
// Sweeps: how settings are written, each point equal to the plan asked for alone, points without a
// plan, the front by its definition, files read back, stopping in time.
#include "core/error.h"
#include "core/plan/planners/pipeline_job.h"
#include "core/plan/planners/sweep.h"
#include "tests/core/support/models.h"
#include "tests/test_program.h"

#include <QTest>

#include <chrono>
#include <thread>

namespace tst_sweeps {

using namespace shardlens;
using namespace shardlens::test;

namespace {

using Words = std::vector<std::string>;

} // namespace

/// A file beside which a sweep can size the model anew.
struct Model {
    std::filesystem::path file = std::filesystem::path(SHARDLENS_SOURCE) / "samples" / "gpt2.json";
    PlanRequest request;
    SweepSource source;

    Model() {
        request = onCluster("dgx-a100", 1, "dp=4", 16, 512);
        request.devicesPerNode = 4;
        request.mesh.clear();
        source = {file, loadModel(file, importOptions(request))};
    }
};

class TestSweeps : public QObject {
    Q_OBJECT

private slots:
    void values_data();
    void values();
    void refusals_data();
    void refusals();
    void everyParameter_data();
    void everyParameter();
    void twoSettings();
    void pointsWithoutAPlan();
    void gridRows();
    void front();
    void files();
    void whatCannotBeSwept();
    void stopping();

private:
    Model m_model;
};

void TestSweeps::values_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("values");
    QTest::newRow("list") << "nodes=1,2, 4" << "1 2 4";
    QTest::newRow("doubling") << "batch=32..256" << "32 64 128 256";
    QTest::newRow("doubling past the end") << "batch=3..20" << "3 6 12";
    QTest::newRow("steps") << "stages=1..7:3" << "1 4 7";
    QTest::newRow("zero") << "zero=0..3:1" << "0 1 2 3";
    QTest::newRow("both") << "tp=1..4,8" << "1 2 4 8";
    QTest::newRow("words") << "schedule=1f1b, zb-h1" << "1f1b zb-h1";
    QTest::newRow("recompute") << "recompute=full" << "full";
}

void TestSweeps::values() {
    QFETCH(QString, text);
    QFETCH(QString, values);
    const SweepAxis axis = sweepAxis(text.toStdString());
    QVERIFY(text.startsWith(QString::fromStdString(std::string(nameOf(axis.parameter)))));
    QStringList found;
    for (const std::string& value : axis.values) found << QString::fromStdString(value);
    QCOMPARE(found.join(' '), values);
}

void TestSweeps::refusals_data() {
    QTest::addColumn<QString>("text");
    for (const char* text : {"", "nodes", "nodes=", "nodes=0", "nodes=-1", "nodes=1,,2", "nodes=x",
                             "nodes=1.5", "colour=3", "zero=4", "zero=0..3", "batch=9..3",
                             "batch=1..9:0", "schedule=gpipes", "schedule=", "recompute=some",
                             "nodes=99999999999999999999", "batch=1..1048576:1", "batch=1..2..3"})
        QTest::newRow(*text ? text : "nothing") << QString::fromLatin1(text);
}

void TestSweeps::refusals() {
    QFETCH(QString, text);
    QVERIFY_THROWS_EXCEPTION(InputError, sweepAxis(text.toStdString()));
}

void TestSweeps::everyParameter_data() {
    QTest::addColumn<QString>("axis");
    for (const char* axis : {"nodes=1,2", "batch=16,64", "sequence=256,512", "micro_batches=4,8",
                             "stages=1,2", "tp=1,2", "dp=2,4", "schedule=gpipe,1f1b", "zero=0,1",
                             "recompute=none,full", "memory_gib=4,80"})
        QTest::newRow(axis) << QString::fromLatin1(axis);
}

/// Each point is the plan of its own request, made alone, with a pricer of its own.
void TestSweeps::everyParameter() {
    QFETCH(QString, axis);
    SHARDLENS_SKIP_LARGE(axis.startsWith("nodes") || axis.startsWith("batch"));
    const SweepRequest request{m_model.request, {sweepAxis(axis.toStdString())}};
    std::vector<std::size_t> seen;
    const SweepTable table =
        runSweep(m_model.source, request, [&](const SweepRow&, std::size_t index, std::size_t all) {
            seen.push_back(index);
            QCOMPARE(all, std::size_t{2});
        });
    QCOMPARE(seen, (std::vector<std::size_t>{0, 1}));
    QCOMPARE(table.rows.size(), std::size_t{2});
    for (std::size_t i = 0; i < 2; ++i) {
        const SweepRow& row = table.rows[i];
        QVERIFY2(row.error.empty(), row.error.c_str());
        QCOMPARE(wordOf(row.values[0]), request.axes[0].values[i]);
        const PlanRequest wanted = rowRequest(request, i);
        const ModelBundle bundle = loadModel(m_model.file, importOptions(wanted));
        StagePricer pricer = makeStagePricer(m_model.file, bundle, wanted);
        const PipelineAnswer alone = planJob(pricer, wanted);
        QCOMPARE(row.seconds, alone.seconds);
        QCOMPARE(row.memory, alone.peakMemory);
        QVERIFY(row.bubble >= 0 && row.bubble < 1);
    }
}

void TestSweeps::twoSettings() {
    SweepRequest request{m_model.request, {sweepAxis("tp=1,2,4"), sweepAxis("zero=0,1")}};
    const SweepTable table = runSweep(m_model.source, request);
    QCOMPARE(table.settings, (Words{"tp", "zero"}));
    QCOMPARE(table.rows.size(), std::size_t{6});
    for (std::size_t i = 0; i < 6; ++i) {
        QCOMPARE(wordOf(table.rows[i].values[0]), (Words{"1", "1", "2", "2", "4", "4"}[i]));
        QCOMPARE(wordOf(table.rows[i].values[1]), (Words{"0", "1", "0", "1", "0", "1"}[i]));
        // The request of a row is pinned to its values and nothing else of the base is changed.
        const PlanRequest wanted = rowRequest(request, i);
        QCOMPARE(wanted.pipeline->pins.tensor, (std::optional<int>(1 << i / 2)));
        QCOMPARE(wanted.pipeline->pins.zero, (std::optional<int>(i % 2)));
        QCOMPARE(wanted.pipeline->planner, "megatron");
        QCOMPARE(wanted.batch, m_model.request.batch);
    }
}

/// The sweep goes on, and says why: memory that nothing fits into, stages that do not divide.
void TestSweeps::pointsWithoutAPlan() {
    const SweepTable memory =
        runSweep(m_model.source, {m_model.request, {sweepAxis("memory_gib=1,80")}});
    QVERIFY(memory.rows[0].error.find("memory") != std::string::npos);
    QVERIFY(!memory.rows[0].fits && !memory.rows[0].front);
    QCOMPARE(memory.rows[0].seconds, 0.0);
    QVERIFY(memory.rows[1].error.empty() && memory.rows[1].front);
    const SweepTable stages =
        runSweep(m_model.source, {m_model.request, {sweepAxis("stages=1,5,2")}});
    QVERIFY(stages.rows[0].error.empty() && stages.rows[2].error.empty());
    QVERIFY(!stages.rows[1].error.empty());
}

void TestSweeps::gridRows() {
    const GridSweep grid = runGrid(m_model.source, m_model.request);
    QCOMPARE(grid.table.rows.size(), grid.points.size());
    QVERIFY(grid.points.size() > 100);
    QCOMPARE(grid.table.memoryLimit, 80.0 * (1LL << 30));
    for (std::size_t i = 0; i < grid.points.size(); ++i) {
        QCOMPARE(grid.table.rows[i].seconds, grid.points[i].seconds);
        QCOMPARE(std::get<std::int64_t>(grid.table.rows[i].values[0]), grid.points[i].tensor);
    }
    // The request of a point has that point as its answer.
    for (std::size_t i = 0; i < grid.points.size(); i += 97) {
        PlanRequest wanted = m_model.request;
        wanted.memoryLimitBytes = 1e18;
        wanted.pipeline = setupOf(grid.points[i]);
        StagePricer pricer = makeStagePricer(m_model.file, m_model.source.bundle, wanted);
        const PipelineAnswer answer = planJob(pricer, wanted);
        QCOMPARE(answer.seconds, grid.points[i].seconds);
        QCOMPARE(answer.peakMemory, grid.points[i].memory);
    }
}

void TestSweeps::front() {
    const GridSweep grid = runGrid(m_model.source, m_model.request);
    for (const SweepRow& row : grid.table.rows) {
        const bool beaten = std::ranges::any_of(grid.table.rows, [&](const SweepRow& other) {
            return other.seconds <= row.seconds && other.memory <= row.memory &&
                   (other.seconds < row.seconds || other.memory < row.memory);
        });
        if (row.front) QVERIFY(!beaten);
        if (!row.front && !beaten) { // only where an equal one is marked
            QVERIFY(std::ranges::any_of(grid.table.rows, [&](const SweepRow& other) {
                return other.front && other.seconds == row.seconds && other.memory == row.memory;
            }));
        }
    }
}

void TestSweeps::files() {
    SweepTable table{{"tp", "schedule"}, {}, 80e9};
    table.rows.push_back({{std::int64_t{2}, "1f1b"}, 1.5, 3e9, 0.25, true, true, {}});
    table.rows.push_back({{std::int64_t{4}, "a \"b\", c"}, 0, 0, 0, false, false, "no, \"it\""});
    QCOMPARE(sweepCsv(table), "tp,schedule,time_s,memory_bytes,bubble,fits,front,error\r\n"
                              "2,1f1b,1.5,3000000000,0.25,1,1,\r\n"
                              "4,\"a \"\"b\"\", c\",,,,0,0,\"no, \"\"it\"\"\"\r\n");
    const auto json = nlohmann::json::parse(sweepJson(table));
    QVERIFY(json["settings"] == (nlohmann::json{"tp", "schedule"}));
    QVERIFY(json["points"][0]["tp"] == 2);
    QVERIFY(json["points"][0]["time_s"] == 1.5);
    QVERIFY(json["points"][0]["front"] == true);
    QVERIFY(json["points"][1]["error"] == "no, \"it\"");
    QVERIFY(!json["points"][1].contains("time_s"));
    const std::string text = sweepText(table);
    QVERIFY(text.starts_with("2 points, 1 fit"));
    QVERIFY(text.find("no, \"it\"") > text.find("1.5000 s"));
}

void TestSweeps::whatCannotBeSwept() {
    QVERIFY_THROWS_EXCEPTION(PlanError, runSweep(m_model.source, {m_model.request, {}}));
    QVERIFY_THROWS_EXCEPTION(
        PlanError,
        runSweep(m_model.source, {m_model.request, {sweepAxis("tp=1"), sweepAxis("tp=2")}}));
    PlanRequest alpa = m_model.request;
    alpa.costModel = "alpa";
    const SweepTable table = runSweep(m_model.source, {alpa, {sweepAxis("tp=1,2")}});
    QVERIFY(table.rows[0].error.find("roofline") != std::string::npos);
}

/// Within a twentieth of a second, wherever it is. (Not timed: waited for, with room to spare.)
void TestSweeps::stopping() {
    for (const int after : {0, 1, 5, 20, 60}) {
        std::stop_source source;
        std::exception_ptr ended;
        std::jthread worker([&] {
            try {
                for (;;)
                    runSweep(m_model.source, {m_model.request, {sweepAxis("batch=32..4096")}}, {},
                             source.get_token());
            } catch (...) {
                ended = std::current_exception();
            }
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(after));
        source.request_stop();
        worker.join();
        QVERIFY_THROWS_EXCEPTION(Cancelled, std::rethrow_exception(ended));
    }
}

SHARDLENS_TEST(TestSweeps)

} // namespace tst_sweeps

#include "tst_sweeps.moc"
