// SPDX-License-Identifier: Apache-2.0
// Causes of idle time, transfers, all-reduces, recomputation and memory: small cases whose figures
// follow by hand.
#include "core/schedule/catalogue.h"
#include "tests/core/schedule/spec_of.h"
#include "tests/test_program.h"

#include <QTest>

#include <cmath>
#include <map>

namespace tst_schedule_account {

using namespace shardlens;
using namespace shardlens::schedule;
using test::specOf;

namespace {

bool same(double a, double b) {
    return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b));
}

double idleOf(const Schedule& s, std::uint32_t device, Cause cause) {
    return s.account.devices[device].idle[static_cast<std::size_t>(cause)];
}

} // namespace

class TestScheduleAccount : public QObject {
    Q_OBJECT

private slots:
    void fillDrainAndDependency();
    void communicationIsExposed();
    void imbalance();
    void memoryWait();
    void synchronization();
    void transfersOnStreams();
    void sharedLinks();
    void allReduceBeforeUpdate();
    void recomputation();
    void freedByInput();
    void durationsMayBeEdited();
};

/// 1F1B: stage k waits k F for its first micro-batch and k B after its last.
void TestScheduleAccount::fillDrainAndDependency() {
    const std::uint32_t p = 5, m = 9;
    const Schedule s = makeSchedule(specOf("1f1b", p, m));
    for (std::uint32_t k = 0; k < p; ++k) {
        QCOMPARE(idleOf(s, k, Cause::Fill), 1.0 * k);
        QCOMPARE(idleOf(s, k, Cause::Drain), 2.0 * k);
        QCOMPARE(idleOf(s, k, Cause::Dependency), 3.0 * (p - 1 - k));
        QCOMPARE(idleOf(s, k, Cause::Communication), 0.0);
        QCOMPARE(idleOf(s, k, Cause::Imbalance), 0.0);
    }
}

void TestScheduleAccount::communicationIsExposed() {
    for (const Transfers transfers : {Transfers::Lag, Transfers::Stream}) {
        ScheduleSpec spec = specOf("gpipe", 2, 1);
        spec.transfer = {0.5};
        spec.transfers = transfers;
        const Schedule s = makeSchedule(spec);
        QCOMPARE(s.timeline.makespan, 1 + 0.5 + 1 + 2 + 0.5 + 2);
        QCOMPARE(idleOf(s, 0, Cause::Dependency), 3.5); // until the gradient is on its way
        QCOMPARE(idleOf(s, 0, Cause::Communication), 0.5);
        QCOMPARE(idleOf(s, 1, Cause::Fill), 1.5);
        QCOMPARE(idleOf(s, 1, Cause::Drain), 2.5);
    }
}

void TestScheduleAccount::imbalance() {
    ScheduleSpec spec = specOf("inference", 2, 4);
    spec.times = {{.forward = 2}, {.forward = 0.5}};
    const Schedule s = makeSchedule(spec);
    QCOMPARE(idleOf(s, 1, Cause::Fill), 2.0);
    QCOMPARE(idleOf(s, 1, Cause::Imbalance), 3 * 1.5);
    QCOMPARE(idleOf(s, 1, Cause::Dependency), 0.0);
    QCOMPARE(idleOf(s, 0, Cause::Drain), 0.5);
}

/// With one micro-batch in flight, a ready forward waits for the weight gradients of the last one.
void TestScheduleAccount::memoryWait() {
    ScheduleSpec spec = specOf("zb-h2", 2, 3);
    spec.limit = 1;
    const Schedule s = makeSchedule(spec);
    // Device 0: F, then held until I of device 1 has come (2 later), I, W; three times.
    QCOMPARE(s.timeline.makespan, 3 * 5.0);
    QCOMPARE(idleOf(s, 0, Cause::MemoryWait), 2 * 2.0); // the last time nothing is ready
    QCOMPARE(idleOf(s, 0, Cause::Dependency), 2.0);
    QCOMPARE(s.account.peakMemory, 1.0);
}

void TestScheduleAccount::synchronization() {
    ScheduleSpec spec = specOf("gpipe", 2, 1);
    spec.times.front().update = 1;
    Schedule s = makeSchedule(spec);
    QCOMPARE(s.timeline.makespan, 7.0);
    QCOMPARE(idleOf(s, 1, Cause::Synchronization), 2.0);
    QCOMPARE(idleOf(s, 1, Cause::Drain), 0.0);
    spec.flush = false; // validated afterwards
    s = makeSchedule(spec);
    QCOMPARE(idleOf(s, 1, Cause::Synchronization), 0.0);
    QCOMPARE(idleOf(s, 1, Cause::Drain), 2.0);
}

/// Forwards of 1 and transfers of 2, three micro-batches.
void TestScheduleAccount::transfersOnStreams() {
    ScheduleSpec spec = specOf("inference", 2, 3);
    spec.transfer = {2};
    const auto makespan = [&](Transfers transfers) {
        spec.transfers = transfers;
        return makeSchedule(spec).timeline.makespan;
    };
    QCOMPARE(makespan(Transfers::Lag), 3.0 + 2 + 1);
    QCOMPARE(makespan(Transfers::Stream), 1 + 3 * 2.0 + 1);
    QCOMPARE(makespan(Transfers::Blocking), 3 * (1 + 2.0) + 1);
}

void TestScheduleAccount::sharedLinks() {
    ScheduleSpec spec = specOf("inference", 3, 2);
    spec.transfer = {2};
    spec.transfers = Transfers::Stream;
    QCOMPARE(makeSchedule(spec).timeline.makespan, 9.0);
    spec.links = {0, 0};
    QCOMPARE(makeSchedule(spec).timeline.makespan, 10.0);
    spec.links = {0, 1};
    QCOMPARE(makeSchedule(spec).timeline.makespan, 9.0);
}

void TestScheduleAccount::allReduceBeforeUpdate() {
    ScheduleSpec spec = specOf("1f1b", 4, 8);
    spec.times = {{.forward = 1, .input = 1, .weight = 1, .update = 0.5, .allReduce = 2}};
    QCOMPARE(makeSchedule(spec).timeline.makespan, 33 + 2 + 0.5); // the first stage's is exposed
    // Replicas of a stage reduce together, when both are done.
    spec.name = "chimera";
    const Schedule s = makeSchedule(spec);
    std::map<std::uint32_t, std::vector<double>> starts;
    for (TaskId id = 0; id < s.program.tasks.size(); ++id) {
        const Task& task = s.program.tasks[id];
        if (task.pass == Pass::AllReduce) starts[task.stage].push_back(s.timeline.start[id]);
    }
    QCOMPARE(starts.size(), std::size_t{4});
    for (const auto& [stage, both] : starts) {
        QCOMPARE(both.size(), std::size_t{2});
        QVERIFY(both[0] >= 8 * 3 - 3); // its two devices share a queue with another stage's
    }
}

/// Recomputation lengthens every backward by a forward, and keeps little in between.
void TestScheduleAccount::recomputation() {
    ScheduleSpec spec = specOf("1f1b", 4, 8);
    spec.times.front().recompute = 1;
    spec.keptShare = 0.1;
    const Schedule s = makeSchedule(spec);
    QCOMPARE(s.timeline.makespan, (8 + 4 - 1) * (1 + 1 + 2.0));
    QVERIFY(same(s.account.devices[0].peakMemory, 3 * 0.1 + 1));
    QVERIFY(same(s.account.devices[3].peakMemory, 1));
}

/// ZB-H1 keeps whole activations only until their input gradient.
void TestScheduleAccount::freedByInput() {
    ScheduleSpec spec = specOf("zb-h1", 4, 8);
    spec.freedByInput = 0.75;
    const Schedule s = makeSchedule(spec);
    // The last stage is three weight gradients behind when its forward has started.
    QVERIFY(same(s.account.devices[3].peakMemory, 1 + 3 * 0.25));
    QVERIFY(same(s.account.devices[0].peakMemory, 4));
}

void TestScheduleAccount::durationsMayBeEdited() {
    Schedule s = makeSchedule(specOf("1f1b", 4, 8));
    for (TaskId id = 0; id < s.program.tasks.size(); ++id) s.program.duration[id] *= 2;
    QCOMPARE(simulate(s.program).makespan, 66.0);
}

SHARDLENS_TEST(TestScheduleAccount)

} // namespace tst_schedule_account

#include "tst_schedule_account.moc"
