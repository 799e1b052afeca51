// SPDX-License-Identifier: Apache-2.0
// The table of schedules: makespans, bubbles and peaks that others have published or simulated
// (reference/schedules.md, sections 2 and 3).
#include "core/schedule/catalogue.h"

#include <QTest>

#include <algorithm>
#include <cmath>

using namespace shardlens;
using namespace shardlens::schedule;

namespace {

constexpr double kExact = 1e-9;

ScheduleSpec specOf(const char* name, std::uint32_t p, std::uint32_t m) {
    ScheduleSpec spec;
    spec.name = name;
    spec.devices = p;
    spec.microBatches = m;
    return spec;
}

void compare(double actual, double expected) {
    if (std::abs(actual - expected) > kExact) qWarning("%.12g, expected %.12g", actual, expected);
    QVERIFY(std::abs(actual - expected) <= kExact);
}

} // namespace

class TestScheduleTable : public QObject {
    Q_OBJECT

private slots:
    void classics() {
        for (const char* name : {"gpipe", "1f1b"}) {
            const Schedule s = makeSchedule(specOf(name, 8, 16));
            compare(s.timeline.makespan, 69);
            compare(s.account.work, 48);
            compare(s.account.bubble, 7 * 3);
            compare(makeSchedule(specOf(name, 4, 8)).timeline.makespan, 33);
        }
        compare(makeSchedule(specOf("gpipe", 8, 16)).account.peakMemory, 16);
        const Schedule s = makeSchedule(specOf("1f1b", 8, 16));
        for (std::uint32_t k = 0; k < 8; ++k) compare(s.account.devices[k].peakMemory, 8 - k);
    }

    void interleaved() {
        ScheduleSpec spec = specOf("interleaved", 8, 16);
        spec.chunks = 2;
        Schedule s = makeSchedule(spec);
        compare(s.timeline.makespan, 58.5);
        compare(s.account.peakMemory, 11.5);
        spec.chunks = 4;
        s = makeSchedule(spec);
        compare(s.timeline.makespan, 53.25);
        compare(s.account.peakMemory, 9.75);
        spec = specOf("interleaved", 4, 8);
        spec.chunks = 2;
        compare(makeSchedule(spec).timeline.makespan, 28.5);
    }

    void teraPipe() {
        ScheduleSpec spec = specOf("terapipe", 4, 2);
        spec.slices = {0.25, 0.25, 0.25, 0.25};
        const Schedule s = makeSchedule(spec);
        compare(s.timeline.makespan, 8.25);
        compare(s.account.peakMemory, 2); // all slices
    }

    void inference() {
        for (const std::uint32_t m : {1u, 5u, 16u}) {
            const Schedule s = makeSchedule(specOf("inference", 8, m));
            compare(s.timeline.makespan, m + 7);
            compare(s.account.peakMemory, 1);
        }
    }
};

QTEST_APPLESS_MAIN(TestScheduleTable)
#include "tst_schedule_table.moc"
