// SPDX-License-Identifier: Apache-2.0
// Every rule of the validator, broken one at a time: it is refused, with its reason and its place.
#include "core/schedule/cycle.h"
#include "core/schedule/validate.h"
#include "tests/core/schedule/spec_of.h"
#include "tests/test_program.h"

#include <QTest>

#include <functional>

namespace tst_schedule_rules {

using namespace shardlens;
using namespace shardlens::schedule;
using test::specOf;

namespace {

Task task(std::uint16_t stage, Pass pass, std::uint32_t microBatch) {
    Task out;
    out.stage = out.device = stage;
    out.pass = pass;
    out.microBatch = microBatch;
    return out;
}

std::vector<Task>::iterator find(Orders& orders, std::size_t device, Pass pass, std::uint32_t i) {
    return std::ranges::find_if(orders.lists[device],
                                [&](const Task& t) { return t.pass == pass && t.microBatch == i; });
}

using Break = std::function<void(Orders&)>;

} // namespace

class TestScheduleRules : public QObject {
    Q_OBJECT

private slots:
    void allSchedulesPass_data();
    void allSchedulesPass();
    void brokenOrders_data();
    void brokenOrders();
    void cycleIsNamed();
    void longCyclesAreCut();
    void noCycle();
    void memory();
    void sizes_data();
    void sizes();
    void limits();
    void numbers_data();
    void numbers();
};

void TestScheduleRules::allSchedulesPass_data() {
    QTest::addColumn<QString>("name");
    for (const Generator& generator : generators()) {
        QTest::newRow(generator.name.data()) << QString::fromLatin1(generator.name.data());
    }
}

/// Over sizes large and small; what a schedule does not take is refused as a matter of sizes.
void TestScheduleRules::allSchedulesPass() {
    QFETCH(QString, name);
    const QByteArray text = name.toLatin1();
    int taken = 0;
    for (std::uint32_t p = 1; p <= 9; ++p) {
        for (const std::uint32_t m : {1u, 2u, 3u, 4u, 7u, 8u, 12u, 16u, 18u, 24u, 36u}) {
            for (const std::uint32_t v : {1u, 2u, 3u}) {
                ScheduleSpec spec = specOf(text.constData(), p, m);
                spec.chunks = v;
                Orders orders;
                try {
                    orders = makeOrders(spec);
                } catch (const RuleError& error) {
                    QVERIFY(error.rule() == BrokenRule::Sizes);
                    continue;
                }
                const auto violation = findViolation(spec, orders);
                QVERIFY2(!violation, violation ? violation->problem.c_str() : "");
                ++taken;
            }
        }
    }
    QVERIFY(taken >= 12);
}

void TestScheduleRules::brokenOrders_data() {
    QTest::addColumn<int>("rule");
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("problem");
    QTest::addColumn<QString>("where");
    QTest::addColumn<Break>("change");
    const auto row = [](const char* what, BrokenRule rule, const char* name, const char* problem,
                        const char* where, const Break& change) {
        QTest::newRow(what) << int(rule) << name << problem << where << change;
    };
    using enum BrokenRule;
    row("twice", Complete, "1f1b", "1F2 is there twice", "device 1",
        [](Orders& o) { o.lists[1].push_back(task(1, Pass::Forward, 2)); });
    row("no forward", Complete, "1f1b", "micro-batch 2 does not pass stage 1", "schedule",
        [](Orders& o) { o.lists[1].erase(find(o, 1, Pass::Forward, 2)); });
    row("no backward", Complete, "1f1b", "1F2 has no backward", "device 1",
        [](Orders& o) { o.lists[1].erase(find(o, 1, Pass::Backward, 2)); });
    row("no weights", Complete, "zb-h1", "1F2 has no weight gradients", "device 1",
        [](Orders& o) { o.lists[1].erase(find(o, 1, Pass::WeightGrad, 2)); });
    row("weights twice", Complete, "1f1b", "1F2 has a whole backward and weight gradients too",
        "device 1", [](Orders& o) { o.lists[1].push_back(task(1, Pass::WeightGrad, 2)); });
    row("outside", Complete, "1f1b", "1F4 is outside of the schedule", "device 1",
        [](Orders& o) { o.lists[1].push_back(task(1, Pass::Forward, 4)); });
    row("too few", Complete, "1f1b",
        "2 stages x 9000 micro-batches x 1 slices need more than the 16 "
        "tasks there are",
        "schedule", [](Orders& o) { o.microBatches = 9000; });
    row("misplaced", Placed, "1f1b", "0B2 is not where its forward is, on device 0", "device 1",
        [](Orders& o) {
            Task moved = *find(o, 0, Pass::Backward, 2);
            o.lists[0].erase(find(o, 0, Pass::Backward, 2));
            moved.device = 1;
            o.lists[1].push_back(moved);
        });
    row("other list", Placed, "1f1b", "0F0 belongs to device 7", "device 0",
        [](Orders& o) { o.lists[0][0].device = 7; });
    row("order", Acyclic, "1f1b",
        "the orders contradict each other: 0B0 waits for 0F0, which comes after 0B0 on device 0",
        "schedule", [](Orders& o) {
            std::iter_swap(find(o, 0, Pass::Forward, 0), find(o, 0, Pass::Backward, 0));
        });
    row("orders of two", Acyclic, "1f1b",
        "the orders contradict each other: 0B0 waits for 1B0, which comes after 1F1 on device 1, "
        "which waits for 0F1, which comes after 0B0 on device 0",
        "schedule", [](Orders& o) {
            o.lists[0] = {task(0, Pass::Forward, 0), task(0, Pass::Backward, 0),
                          task(0, Pass::Forward, 1), task(0, Pass::Backward, 1),
                          task(0, Pass::Forward, 2), task(0, Pass::Backward, 2),
                          task(0, Pass::Forward, 3), task(0, Pass::Backward, 3)};
            std::iter_swap(find(o, 1, Pass::Forward, 1), find(o, 1, Pass::Backward, 0));
        });
}

void TestScheduleRules::brokenOrders() {
    QFETCH(int, rule);
    QFETCH(QString, name);
    QFETCH(QString, problem);
    QFETCH(QString, where);
    QFETCH(Break, change);
    const QByteArray text = name.toLatin1();
    const ScheduleSpec spec = specOf(text.constData(), 2, 4);
    Orders orders = makeOrders(spec);
    QVERIFY(!findViolation(spec, orders));
    change(orders);
    const auto violation = findViolation(spec, orders);
    QVERIFY(violation);
    QCOMPARE(int(violation->rule), rule);
    QCOMPARE(QString::fromStdString(violation->problem), problem);
    QCOMPARE(QString::fromStdString(violation->where), where);
    QVERIFY(!violation->hint.empty());
}

/// Each task of a cycle waits for the next, by a dependency or by its list.
void TestScheduleRules::cycleIsNamed() {
    const ScheduleSpec spec = specOf("1f1b", 4, 8);
    Orders orders = makeOrders(spec);
    std::iter_swap(find(orders, 2, Pass::Forward, 3), find(orders, 2, Pass::Backward, 3));
    const Program program = compile(spec, orders);
    const auto cycle = findCycle(program);
    QVERIFY(cycle.size() >= 2);
    for (std::size_t i = 0; i < cycle.size(); ++i) {
        const TaskId id = cycle[i], other = cycle[(i + 1) % cycle.size()];
        const auto needs = program.dependenciesOf(id);
        const bool needed = std::ranges::any_of(
            needs, [&](const Dependency& dependency) { return dependency.task == other; });
        QVERIFY(needed || (other < id && program.tasks[other].device == program.tasks[id].device));
    }
    QVERIFY_EXCEPTION_THROWN(simulate(program), RuleError);
}

/// From the first backward of device 0 down to the last device and back.
void TestScheduleRules::longCyclesAreCut() {
    const ScheduleSpec spec = specOf("1f1b", 40, 80);
    Orders orders = makeOrders(spec);
    auto& list = orders.lists[0];
    const Task early = *find(orders, 0, Pass::Backward, 0);
    list.erase(find(orders, 0, Pass::Backward, 0));
    list.insert(list.begin() + 1, early);
    QVERIFY(findCycle(compile(spec, orders)).size() > 70);
    const auto violation = findViolation(spec, orders);
    QVERIFY(violation && violation->rule == BrokenRule::Acyclic);
    QVERIFY(QString::fromStdString(violation->problem).contains("more back to"));
    QVERIFY(violation->problem.size() < 700);
}

void TestScheduleRules::noCycle() {
    const ScheduleSpec spec = specOf("dualpipe", 4, 8);
    QVERIFY(findCycle(compile(spec, makeOrders(spec))).empty());
}

void TestScheduleRules::memory() {
    ScheduleSpec spec = specOf("1f1b", 4, 8);
    spec.staticMemory = {10};
    spec.capacity = {14};
    QVERIFY(!findViolation(spec, makeOrders(spec)));
    spec.capacity = {13.5};
    const auto violation = findViolation(spec, makeOrders(spec));
    QVERIFY(violation && violation->rule == BrokenRule::Memory);
    QCOMPARE(violation->where, std::string("device 0"));
    QCOMPARE(violation->problem,
             std::string("memory reaches 14 at 3 with 0F3, more than its capacity of 13.5"));
    spec.capacity = {9};
    QVERIFY(findViolation(spec, makeOrders(spec))->problem.find("what is always there takes 10") !=
            std::string::npos);
    spec.capacity = {14, 14, 11, 14}; // the third device alone
    QCOMPARE(findViolation(spec, makeOrders(spec))->where, std::string("device 2"));
}

void TestScheduleRules::sizes_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<uint>("p");
    QTest::addColumn<uint>("m");
    QTest::addColumn<uint>("v");
    QTest::addColumn<QString>("problem");
    QTest::newRow("interleaved")
        << "interleaved" << 4u << 6u << 2u
        << "the number of micro-batches is no multiple of the number of devices";
    QTest::newRow("1f1b") << "1f1b" << 4u << 8u << 2u << "there is more than one chunk on a device";
    QTest::newRow("dualpipe p") << "dualpipe" << 5u << 20u << 1u << "the number of devices is odd";
    QTest::newRow("dualpipe m") << "dualpipe" << 4u << 9u << 1u
                                << "the number of micro-batches is odd";
    QTest::newRow("dualpipe few") << "dualpipe" << 4u << 6u << 1u
                                  << "there are fewer micro-batches than twice the devices";
    QTest::newRow("dualpipev few")
        << "dualpipev" << 4u << 7u << 1u
        << "there are fewer micro-batches than stages, two on each device";
    QTest::newRow("chimera p") << "chimera" << 3u << 4u << 1u << "the number of devices is odd";
    QTest::newRow("chimera m") << "chimera" << 4u << 5u << 1u
                               << "the number of micro-batches is odd";
    QTest::newRow("2bw") << "2bw" << 4u << 3u << 1u << "there are fewer micro-batches than stages";
}

void TestScheduleRules::sizes() {
    QFETCH(QString, name);
    QFETCH(uint, p);
    QFETCH(uint, m);
    QFETCH(uint, v);
    QFETCH(QString, problem);
    const QByteArray text = name.toLatin1();
    ScheduleSpec spec = specOf(text.constData(), p, m);
    spec.chunks = v;
    try {
        makeOrders(spec);
    } catch (const RuleError& error) {
        QVERIFY(error.rule() == BrokenRule::Sizes);
        QCOMPARE(QString::fromStdString(error.problem()), problem);
        QCOMPARE(QString::fromStdString(error.where()), "schedule " + name);
        return;
    }
    QFAIL("not refused");
}

/// Limits that nothing can run within are refused, not waited for.
void TestScheduleRules::limits() {
    ScheduleSpec spec = specOf("zb-h2", 4, 8);
    spec.limit = 0.5;
    QVERIFY_EXCEPTION_THROWN(makeOrders(spec), RuleError);
    spec.name = "zb-v";
    spec.limit = 0.5; // one chunk: the second half of the V never fits
    QVERIFY_EXCEPTION_THROWN(makeOrders(spec), RuleError);
    spec = specOf("1f1b", 4, 8);
    Orders orders = makeOrders(spec);
    orders.rule = Rule{{Pass::Backward, Pass::Forward}, std::vector<double>(4, 0.0), kUnlimited};
    QVERIFY_EXCEPTION_THROWN(simulate(compile(spec, orders)), RuleError);
}

void TestScheduleRules::numbers_data() {
    QTest::addColumn<std::function<void(ScheduleSpec&)>>("change");
    using Change = std::function<void(ScheduleSpec&)>;
    const auto row = [](const char* name, const Change& change) { QTest::newRow(name) << change; };
    row("no devices", [](ScheduleSpec& s) { s.devices = 0; });
    row("too many devices", [](ScheduleSpec& s) { s.devices = 1u << 30; });
    row("no micro-batches", [](ScheduleSpec& s) { s.microBatches = 0; });
    row("too many tasks", [](ScheduleSpec& s) { s.devices = 1u << 14, s.microBatches = 1u << 24; });
    row("no chunks", [](ScheduleSpec& s) { s.chunks = 0; });
    row("negative time", [](ScheduleSpec& s) { s.times.front().forward = -1; });
    row("endless time", [](ScheduleSpec& s) { s.times.front().weight = kUnlimited; });
    row("no time", [](ScheduleSpec& s) { s.times.clear(); });
    row("no number", [](ScheduleSpec& s) { s.transfer = {std::nan("")}; });
    row("times for others", [](ScheduleSpec& s) { s.times.resize(3); });
    row("transfers for others", [](ScheduleSpec& s) { s.transfer = {1, 2}; });
    row("slices", [](ScheduleSpec& s) { s.name = "terapipe", s.slices = {0.5, 0.4}; });
    row("share", [](ScheduleSpec& s) { s.freedByInput = 1.5; });
    row("joint", [](ScheduleSpec& s) { s.jointFactor = 0; });
    row("name", [](ScheduleSpec& s) { s.name = "zb"; });
}

void TestScheduleRules::numbers() {
    QFETCH(std::function<void(ScheduleSpec&)>, change);
    ScheduleSpec spec = specOf("1f1b", 4, 8);
    change(spec);
    try {
        makeSchedule(spec);
    } catch (const PlanError& error) {
        QVERIFY(!error.problem().empty() && !error.hint().empty());
        return;
    }
    QFAIL("not refused");
}

SHARDLENS_TEST(TestScheduleRules)

} // namespace tst_schedule_rules

#include "tst_schedule_rules.moc"
