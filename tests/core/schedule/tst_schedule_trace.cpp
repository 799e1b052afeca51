// SPDX-License-Identifier: Apache-2.0
// Traces must be what viewers expect: JSON, events of one thread nested or apart, arrows that begin
// and end in an event, counters that show the memory of the account.
#include "core/schedule/catalogue.h"
#include "core/schedule/trace.h"
#include "tests/test_program.h"

#include <nlohmann/json.hpp>

#include <QTest>

#include <cmath>
#include <map>
#include <sstream>

namespace tst_schedule_trace {

using namespace shardlens::schedule;
using Json = nlohmann::json;

namespace {

Json traceOf(const Schedule& s, const TraceOptions& options = {}) {
    std::ostringstream out;
    writeTrace(out, s.program, s.timeline, s.account, options);
    return Json::parse(out.str());
}

std::int64_t nano(const Json& micro) {
    return std::llround(micro.get<double>() * 1000);
}

ScheduleSpec specOf(const QString& name) {
    ScheduleSpec spec;
    spec.name = name.toStdString();
    spec.microBatches = 8;
    // Thirds are no whole numbers of nanoseconds.
    spec.times = {{.forward = 1e-6 / 3, .input = 1e-6 / 7, .weight = 1e-6 / 9, .update = 1e-7}};
    spec.transfer = {1e-7 / 3};
    spec.transfers = Transfers::Stream;
    spec.embedTime = 1e-7;
    return spec;
}

} // namespace

class TestScheduleTrace : public QObject {
    Q_OBJECT

private slots:
    void eventsNest_data();
    void eventsNest();
    void everythingIsThere();
    void arrowsEndInEvents();
    void partsCanBeLeftOut();
};

void TestScheduleTrace::eventsNest_data() {
    QTest::addColumn<QString>("name");
    for (const Generator& generator : generators()) {
        QTest::newRow(generator.name.data()) << QString::fromLatin1(generator.name.data());
    }
}

void TestScheduleTrace::eventsNest() {
    QFETCH(QString, name);
    std::map<std::pair<int, int>, std::vector<std::pair<std::int64_t, std::int64_t>>> threads;
    ScheduleSpec spec = specOf(name);
    spec.links = {0, 0, 1};
    const Json trace = traceOf(makeSchedule(spec));
    for (const Json& event : trace.at("traceEvents")) {
        if (event.at("ph") != "X") continue;
        const std::int64_t begin = nano(event.at("ts"));
        threads[{event.at("pid"), event.at("tid")}].push_back(
            {begin, begin + nano(event.at("dur"))});
    }
    QVERIFY(threads.size() >= 4);
    for (auto& [thread, spans] : threads) {
        std::ranges::sort(spans, [](const auto& a, const auto& b) {
            return a.first != b.first ? a.first < b.first : a.second > b.second;
        });
        std::vector<std::int64_t> open;
        for (const auto& [begin, end] : spans) {
            while (!open.empty() && open.back() <= begin) open.pop_back();
            QVERIFY(open.empty() || end <= open.back());
            open.push_back(end);
        }
    }
}

void TestScheduleTrace::everythingIsThere() {
    const Schedule s = makeSchedule(specOf("zb-h1"));
    std::size_t tasks = 0, idle = 0;
    double peak = 0;
    std::map<std::string, int> named;
    const Json trace = traceOf(s);
    for (const Json& event : trace.at("traceEvents")) {
        const std::string phase = event.at("ph");
        if (phase == "X") ++(event.at("cat") == "idle" ? idle : tasks);
        if (phase == "C") peak = std::max(peak, event.at("args").at("memory").get<double>());
        if (phase == "M") ++named[event.at("name")];
    }
    std::size_t real = 0; // barriers are no events
    for (const Task& task : s.program.tasks) real += task.pass != Pass::Barrier;
    QCOMPARE(tasks, real);
    QCOMPARE(idle, s.account.idle.size());
    QCOMPARE(peak, s.account.peakMemory);
    QCOMPARE(named["process_name"], 4);
    QCOMPARE(named["thread_name"], 3 * 4); // compute, communication, idle
}

void TestScheduleTrace::arrowsEndInEvents() {
    const Schedule s = makeSchedule(specOf("1f1b"));
    std::map<int, std::vector<Json>> flows;
    std::map<std::tuple<int, int, std::int64_t>, int> starts;
    const Json trace = traceOf(s);
    for (const Json& event : trace.at("traceEvents")) {
        const std::string phase = event.at("ph");
        if (phase == "s" || phase == "f") flows[event.at("id")].push_back(event);
        if (phase == "X") ++starts[{event.at("pid"), event.at("tid"), nano(event.at("ts"))}];
    }
    // A transfer each way for every micro-batch and boundary, left and entered.
    QCOMPARE(flows.size(), std::size_t{2 * 2 * 3 * 8});
    for (const auto& [id, ends] : flows) {
        QCOMPARE(ends.size(), std::size_t{2});
        for (const Json& end : ends) {
            QVERIFY(starts.contains({end.at("pid"), end.at("tid"), nano(end.at("ts"))}));
        }
        QVERIFY(nano(ends[0].at("ts")) <= nano(ends[1].at("ts")));
    }
}

void TestScheduleTrace::partsCanBeLeftOut() {
    const Schedule s = makeSchedule(specOf("1f1b"));
    const TraceOptions none{.secondsPerUnit = 1000, .flows = false, .idle = false, .memory = false};
    double last = 0;
    const Json trace = traceOf(s, none);
    for (const Json& event : trace.at("traceEvents")) {
        const std::string phase = event.at("ph");
        QVERIFY(phase == "X" || phase == "M");
        if (phase == "X") {
            QVERIFY(event.at("cat") != "idle");
            last = std::max(last, event.at("ts").get<double>() + event.at("dur").get<double>());
        }
    }
    QVERIFY(std::abs(last - s.timeline.makespan * 1e9) < 0.01);
}

SHARDLENS_TEST(TestScheduleTrace)

} // namespace tst_schedule_trace

#include "tst_schedule_trace.moc"
