// SPDX-License-Identifier: Apache-2.0
// The table of schedules: makespans, bubbles and peaks that others have published or simulated
// (reference/schedules.md, sections 2 and 3; reference/planners.md, sections 7, 10, 11 and 13).
// Forward, input gradient and weight gradient take 1 unless a case says otherwise.
#include "core/schedule/catalogue.h"
#include "tests/core/schedule/spec_of.h"
#include "tests/test_program.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tst_schedule_table {

using namespace shardlens;
using namespace shardlens::schedule;
using test::specOf;

namespace {

/// Sum over all devices of the idle time between first and last task.
double spanIdle(const Schedule& s) {
    return std::accumulate(s.account.devices.begin(), s.account.devices.end(), 0.0,
                           [](double sum, const DeviceUse& use) { return sum + use.spanBubble(); });
}

/// End of the last task of an update on device 0.
double endOfUpdate(const Schedule& s, std::uint32_t update) {
    double end = 0;
    const std::uint32_t each = s.program.microBatches / s.orders.updates;
    for (TaskId id = 0; id < s.program.tasks.size(); ++id) {
        const Task& task = s.program.tasks[id];
        if (task.stage == 0 && isGradient(task.pass) && task.microBatch / each == update) {
            end = std::max(end, s.timeline.end[id]);
        }
    }
    return end;
}

} // namespace

// 1e-9 absolute; a macro, so that a failure names its line.
#define SAME(actual, expected)                                                                     \
    do {                                                                                           \
        const double is = (actual), should = (expected);                                           \
        QVERIFY2(std::abs(is - should) <= 1e-9,                                                    \
                 qPrintable(QString("%1 instead of %2").arg(is, 0, 'g', 12).arg(should)));         \
    } while (false)

class TestScheduleTable : public QObject {
    Q_OBJECT

private slots:
    void fillDrain_data();
    void fillDrain();
    void oneForwardOneBackward();
    void interleaved();
    void zeroBubbleH1();
    void zeroBubbleH2();
    void zeroBubbleWithinALimit();
    void zeroBubbleV();
    void patternsInV();
    void dualPipe();
    void dualPipeJoint();
    void dualPipeV();
    void chimera();
    void twoWeightVersions();
    void teraPipe();
    void interlaced();
    void recycling();
    void local_data();
    void local();
    void inference();
    void bubbleRates();
    void alpaClocks();
};

void TestScheduleTable::fillDrain_data() {
    QTest::addColumn<QString>("name");
    QTest::newRow("gpipe") << "gpipe";
    QTest::newRow("1f1b") << "1f1b";
}

void TestScheduleTable::fillDrain() {
    QFETCH(QString, name);
    const QByteArray text = name.toLatin1();
    const Schedule s = makeSchedule(specOf(text.constData(), 8, 16));
    SAME(s.timeline.makespan, 69);
    SAME(s.account.work, 48);
    SAME(s.account.bubble, 7 * (1 + 1 + 1));
    SAME(makeSchedule(specOf(text.constData(), 4, 8)).timeline.makespan, 33);
}

void TestScheduleTable::oneForwardOneBackward() {
    SAME(makeSchedule(specOf("gpipe", 8, 16)).account.peakMemory, 16);
    const Schedule s = makeSchedule(specOf("1f1b", 8, 16));
    for (std::uint32_t k = 0; k < 8; ++k) SAME(s.account.devices[k].peakMemory, 8 - k);
    const Schedule few = makeSchedule(specOf("1f1b", 8, 3));
    for (std::uint32_t k = 0; k < 8; ++k)
        SAME(few.account.devices[k].peakMemory, std::min(8 - k, 3u));
}

void TestScheduleTable::interleaved() {
    ScheduleSpec spec = specOf("interleaved", 8, 16);
    const auto check = [&](std::uint32_t v, double makespan, double peak) {
        spec.chunks = v;
        const Schedule s = makeSchedule(spec);
        SAME(s.timeline.makespan, makespan);
        SAME(s.account.bubble, 7 * 3.0 / v);
        SAME(s.account.peakMemory, peak);
    };
    check(2, 58.5, 11.5);
    check(4, 53.25, 9.75);
    spec = specOf("interleaved", 4, 8);
    spec.chunks = 2;
    SAME(makeSchedule(spec).timeline.makespan, 28.5);
}

void TestScheduleTable::zeroBubbleH1() {
    const Schedule s = makeSchedule(specOf("zb-h1", 8, 16));
    SAME(s.timeline.makespan, 55);
    for (const DeviceUse& use : s.account.devices) SAME(use.peakMemory, 8);
    SAME(makeSchedule(specOf("zb-h1", 4, 8)).timeline.makespan, 27);
    ScheduleSpec unequal = specOf("zb-h1", 8, 16);
    unequal.times = {{.forward = 1, .input = 1.5, .weight = 0.5}};
    SAME(makeSchedule(unequal).account.bubble, 14);
}

void TestScheduleTable::zeroBubbleH2() {
    const Schedule s = makeSchedule(specOf("zb-h2", 8, 16));
    SAME(s.timeline.makespan, 55);
    SAME(s.account.spanBubble, 0);
    SAME(s.account.peakMemory, 15);
    const Schedule four = makeSchedule(specOf("zb-h2", 4, 8));
    SAME(four.timeline.makespan, 27);
    SAME(four.account.spanBubble, 0);
}

/// 1.5p "leaves 1 (p=4) to 4 (p=8)": over all devices; the worst device of p=8 has 3 of the 4.
void TestScheduleTable::zeroBubbleWithinALimit() {
    ScheduleSpec spec = specOf("zb-h2", 4, 8);
    spec.limit = 6;
    SAME(spanIdle(makeSchedule(spec)), 1);
    spec.limit = 4; // worse than ZB-H1 at the same memory
    SAME(makeSchedule(spec).account.spanBubble, 5);
    SAME(makeSchedule(specOf("zb-h1", 4, 8)).account.spanBubble, 3);
    spec = specOf("zb-h2", 8, 16);
    spec.limit = 12;
    const Schedule eight = makeSchedule(spec);
    SAME(spanIdle(eight), 4);
    SAME(eight.account.spanBubble, 3);
}

void TestScheduleTable::zeroBubbleV() {
    for (const std::uint32_t p : {4u, 8u}) {
        const Schedule s = makeSchedule(specOf("zb-v", p, 2 * p));
        SAME(s.account.spanBubble, 0);
        SAME(s.account.peakMemory, p); // 2p chunks
    }
    // A plain greedy rule with the same limit does not get there.
    for (const auto& [p, left] : {std::pair{4u, 3.0}, std::pair{8u, 7.0}}) {
        ScheduleSpec spec = specOf("zb-v", p, 2 * p);
        spec.times = {{.forward = 2, .input = 2, .weight = 2}}; // 1 for each chunk
        Orders orders = makeOrders(spec);
        orders.rule = Rule{{Pass::InputGrad, Pass::Forward, Pass::WeightGrad},
                           std::vector<double>(p, 2 * p),
                           kUnlimited};
        SAME(makeSchedule(spec, std::move(orders)).account.spanBubble, left);
    }
}

/// In chunk units 1F1B has a bubble of 42 and 16 chunks in memory.
void TestScheduleTable::patternsInV() {
    const auto check = [](const char* name, double bubble, double chunks) {
        ScheduleSpec spec = specOf(name, 8, 16);
        spec.times = {{.forward = 2, .input = 2, .weight = 2}}; // 1 for each chunk
        spec.activation = {2};
        const Schedule s = makeSchedule(spec);
        SAME(s.account.bubble, bubble);
        SAME(s.account.peakMemory, chunks);
    };
    check("1f1b", 42, 16);
    check("v-half", 17, 10);
    check("v-min", 27, 8);
}

void TestScheduleTable::dualPipe() {
    for (const auto& [m, makespan] : {std::pair{16u, 54.0}, std::pair{20u, 66.0}}) {
        const Schedule s = makeSchedule(specOf("dualpipe", 8, m));
        SAME(s.timeline.makespan, makespan);
        SAME(s.account.bubble, (8.0 / 2 - 1) * (3 + 2 - 3 * 1));
        SAME(s.account.peakMemory, 9);
    }
}

/// The formula gives 4.83 here; simulated 4.0 to the first digit.
void TestScheduleTable::dualPipeJoint() {
    ScheduleSpec spec = specOf("dualpipe", 8, 16);
    spec.jointFactor = 0.87;
    const Schedule s = makeSchedule(spec);
    QVERIFY(std::abs(s.account.bubble - 4.0) <= 0.05 + 1e-9);
    QVERIFY(s.account.bubble < 3 * (0.87 * 3 + 2 - 3) - 0.5);
}

/// DualPipe's formula with the number of stages, two on each device, in the time of a stage.
void TestScheduleTable::dualPipeV() {
    for (const std::uint32_t p : {2u, 4u, 8u}) {
        ScheduleSpec spec = specOf("dualpipev", p, 4 * p);
        spec.times = {{.forward = 2, .input = 2, .weight = 2}}; // 1 for each stage
        spec.activation = {2};
        const Schedule s = makeSchedule(spec);
        SAME(s.account.bubble, (p - 1) * (3 + 2 - 3 * 1));
        SAME(s.account.peakMemory, 2 * p + 1);
    }
}

void TestScheduleTable::chimera() {
    ScheduleSpec spec = specOf("chimera", 8, 8);
    spec.times = {{.forward = 1, .input = 0.5, .weight = 0.5}};
    SAME(makeSchedule(spec).timeline.makespan, 22);
    spec.times = {StageTimes{}};
    const Schedule s = makeSchedule(spec);
    SAME(s.timeline.makespan, 36);
    QVERIFY(s.account.peakMemory <= 8 && s.account.peakMemory >= 5);
    spec.microBatches = 16;
    SAME(makeSchedule(spec).timeline.makespan, 65);
}

/// No bubble between updates: each takes m(F+B+W) more.
void TestScheduleTable::twoWeightVersions() {
    ScheduleSpec spec = specOf("2bw", 8, 16);
    spec.rounds = 4;
    const Schedule s = makeSchedule(spec);
    for (std::uint32_t update = 1; update < 4; ++update) {
        SAME(endOfUpdate(s, update) - endOfUpdate(s, update - 1), 16 * 3);
    }
    for (std::uint32_t k = 0; k < 8; ++k) SAME(s.account.devices[k].peakMemory, 8 - k);
}

void TestScheduleTable::teraPipe() {
    ScheduleSpec spec = specOf("terapipe", 4, 2);
    spec.slices.assign(4, 0.25);
    const Schedule s = makeSchedule(spec);
    SAME(s.timeline.makespan, 8.25);
    SAME(s.account.peakMemory, 2); // all slices
    // Unequal slices: bubble (p-1) times the longest one.
    spec.slices = {0.4, 0.3, 0.2, 0.1};
    SAME(makeSchedule(spec).account.bubble, 3 * 0.4 * 3);
}

/// (N+S-1)(F+B) + N n_emb (3E/S + comm); plain 1F1B with the embeddings on stages 0 and S/2 takes
/// 210; together a speed-up of 1.45 ± 0.1.
void TestScheduleTable::interlaced() {
    ScheduleSpec spec = specOf("interlaced", 8, 32);
    spec.embedTime = 1;
    spec.embedSync = 0.1;
    for (const std::uint32_t embeddings : {1u, 2u}) {
        spec.embeddings = embeddings;
        const Schedule s = makeSchedule(spec);
        SAME(s.timeline.makespan, 39 * 3 + 32 * embeddings * (3.0 / 8 + 0.1));
    }
    ScheduleSpec plain = specOf("1f1b", 8, 32);
    plain.times.assign(8, StageTimes{});
    plain.times[0] = plain.times[4] = {.forward = 2, .input = 2, .weight = 2};
    const double alone = makeSchedule(plain).timeline.makespan;
    SAME(alone, 210);
    QVERIFY(std::abs(alone / makeSchedule(spec).timeline.makespan - 1.45) <= 0.1);

    // The published steps keep 1F1B's memory; with F = B they are as fast.
    spec.limit = 8;
    spec.times = {{.forward = 1, .input = 0.5, .weight = 0.5}};
    const Schedule published = makeSchedule(spec);
    SAME(published.timeline.makespan, 39 * 2 + 32 * 2 * (3.0 / 8 + 0.1));
    SAME(published.account.peakMemory, 8);
}

void TestScheduleTable::recycling() {
    SAME(makeSchedule(specOf("3f1b", 4, 16)).timeline.makespan, 93);
    SAME(makeSchedule(specOf("3f1b", 8, 64)).timeline.makespan, 355);
    const Schedule s = makeSchedule(specOf("3f1b", 4, 16));
    for (std::uint32_t k = 0; k < 4; ++k) QVERIFY(s.account.devices[k].peakMemory <= 4 - k);
}

void TestScheduleTable::local_data() {
    QTest::addColumn<uint>("blocks");
    QTest::addColumn<bool>("overlapping");
    QTest::addColumn<double>("time");
    QTest::addColumn<double>("work");
    QTest::newRow("4 greedy") << 4u << false << 6.3 << 25.2;
    QTest::newRow("4 overlapping") << 4u << true << 12.3 << 43.2;
    QTest::newRow("8 greedy") << 8u << false << 3.3 << 26.4;
    QTest::newRow("8 overlapping") << 8u << true << 6.3 << 47.4;
}

/// Forward 8 in all, backward twice that, heads 0.3: time and work of a batch in the steady state.
void TestScheduleTable::local() {
    QFETCH(uint, blocks);
    QFETCH(bool, overlapping);
    QFETCH(double, time);
    QFETCH(double, work);
    const double share = 8.0 / blocks;
    ScheduleSpec spec = specOf("local", blocks, 100);
    spec.times = {{.forward = share, .input = share, .weight = share}};
    spec.auxTime = 0.3;
    spec.overlapping = overlapping;
    const Schedule s = makeSchedule(spec);
    SAME(endOfUpdate(s, 99) - endOfUpdate(s, 98), time);
    double all = 0;
    for (const DeviceUse& use : s.account.devices) all += use.busy;
    SAME(all / 100, work);
    SAME(s.account.peakMemory, overlapping ? 2 : 1);
    if (!overlapping) SAME(s.account.spanBubble, 0); // else the last block has less to do
}

void TestScheduleTable::inference() {
    for (const std::uint32_t m : {1u, 5u, 16u}) {
        const Schedule s = makeSchedule(specOf("inference", 8, m));
        SAME(s.timeline.makespan, m + 7);
        SAME(s.account.peakMemory, 1);
    }
}

/// b = (p-1)/(m+p-1) for 1F1B, b/3 of 1F1B's step for ZB1P, none for ZB2P and ZB-V.
void TestScheduleTable::bubbleRates() {
    for (const auto& [p, m] : {std::pair{4u, 12u}, std::pair{8u, 24u}, std::pair{6u, 30u}}) {
        const Schedule classic = makeSchedule(specOf("1f1b", p, m));
        SAME(classic.account.bubble / classic.timeline.makespan, double(p - 1) / (m + p - 1));
        SAME(makeSchedule(specOf("zb-h1", p, m)).account.bubble, classic.account.bubble / 3);
        SAME(makeSchedule(specOf("zb-h2", p, m)).account.spanBubble, 0);
        SAME(makeSchedule(specOf("zb-v", p, m)).account.spanBubble, 0);
    }
}

/// Forward and backward a clock each: 2(m+n-1) clocks and one to apply gradients; at most n-i
/// micro-batches in flight on mesh i.
void TestScheduleTable::alpaClocks() {
    for (std::uint32_t n = 2; n <= 32; ++n) {
        for (const std::uint32_t m : {1u, 2u, 3u, 5u, 8u, 16u, 31u, 32u, 64u, 128u}) {
            for (const char* name : {"gpipe", "1f1b"}) {
                ScheduleSpec spec = specOf(name, n, m);
                spec.times = {{.forward = 1, .input = 0.5, .weight = 0.5, .update = 1}};
                const Schedule s = makeSchedule(spec);
                SAME(s.timeline.makespan, 2 * (m + n - 1) + 1);
                for (std::uint32_t i = 0; i < n; ++i) {
                    const std::uint32_t most = name[0] == '1' ? std::min(n - i, m) : m;
                    QCOMPARE(s.account.devices[i].peakInFlight, most);
                }
            }
        }
    }
}

SHARDLENS_TEST(TestScheduleTable)

} // namespace tst_schedule_table

#include "tst_schedule_table.moc"
