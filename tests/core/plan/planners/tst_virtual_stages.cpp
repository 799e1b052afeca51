// SPDX-License-Identifier: Apache-2.0
// What each stage of an interleaved plan computes: against the stages that the generator of the
// schedule gives to devices, against layouts written out by hand, and that nothing is lost or
// computed twice whatever the stretches are.
#include "core/plan/planners/virtual_stages.h"
#include "core/schedule/catalogue.h"
#include "core/schedule/placement.h"
#include "tests/test_program.h"

#include <QTest>

#include <random>

namespace tst_virtual_stages {

using namespace shardlens;

namespace {

/// A chain of units outside of runs, layers, and units outside again.
StageUnits chain(int before, int layers, int after) {
    StageUnits units;
    for (int u = 0; u < before + layers + after; ++u) {
        StageUnit unit;
        unit.run = u >= before && u < before + layers ? 0 : -1;
        unit.name = u < before ? "embed" : "head";
        units.units.push_back(unit);
    }
    return units;
}

/// Stretches that begin with these units.
std::vector<PlannedStage> stretches(const std::vector<int>& firsts, int units) {
    std::vector<PlannedStage> stages(firsts.size());
    for (std::size_t s = 0; s < firsts.size(); ++s) {
        stages[s].first = firsts[s];
        stages[s].last = (s + 1 < firsts.size() ? firsts[s + 1] : units) - 1;
    }
    return stages;
}

} // namespace

class TestVirtualStages : public QObject {
    Q_OBJECT

private slots:
    void withoutChunks();
    void byHand();
    void asTheGenerator();
    void nothingIsLost();
    void unevenChunks();
    void names();
};

/// Stages may then begin anywhere, also between units that are no layers.
void TestVirtualStages::withoutChunks() {
    const StageUnits units = chain(3, 4, 2);
    const std::vector<VirtualStage> expected{{0, 0, 0, 1}, {1, 0, 2, 7}, {2, 0, 8, 8}};
    QCOMPARE(virtualStages(units, stretches({0, 2, 8}, 9), 1), expected);
}

/// Narayanan 2021, section 2.2: of 16 layers on 4 devices in 2 chunks the second has 3, 4, 11 and
/// 12, counted from 1; an embedding and two units of a head beside them.
void TestVirtualStages::byHand() {
    const StageUnits units = chain(1, 16, 2);
    const auto all = virtualStages(units, stretches({0, 5, 9, 13}, 19), 2);
    const std::vector<VirtualStage> expected{{0, 0, 0, 2},   {1, 0, 3, 4},  {2, 0, 5, 6},
                                             {3, 0, 7, 8},   {0, 1, 9, 10}, {1, 1, 11, 12},
                                             {2, 1, 13, 14}, {3, 1, 15, 18}};
    QCOMPARE(all, expected);
    // stages of unequal size, each in equal chunks: 2, 4, 6 layers
    const std::vector<VirtualStage> unequal{{0, 0, 0, 1}, {1, 0, 2, 3}, {2, 0, 4, 6},
                                            {0, 1, 7, 7}, {1, 1, 8, 9}, {2, 1, 10, 13}};
    QCOMPARE(virtualStages(chain(1, 12, 1), stretches({0, 3, 7}, 14), 2), unequal);
}

void TestVirtualStages::asTheGenerator() {
    for (const int p : {2, 3, 8})
        for (const int v : {2, 3, 6}) {
            schedule::ScheduleSpec spec;
            spec.name = "interleaved";
            spec.devices = static_cast<std::uint32_t>(p);
            spec.microBatches = static_cast<std::uint32_t>(2 * p);
            spec.chunks = static_cast<std::uint32_t>(v);
            const schedule::Orders orders = schedule::makeOrders(spec);
            const schedule::Placement placement(orders);
            std::vector<int> firsts;
            for (int d = 0; d < p; ++d) firsts.push_back(d * v);
            const auto all = virtualStages(chain(0, p * v, 0), stretches(firsts, p * v), v);
            QCOMPARE(all.size(), std::size_t{orders.stages});
            for (std::uint32_t s = 0; s < orders.stages; ++s)
                QCOMPARE(placement.deviceOf(s, 0), static_cast<std::uint32_t>(all[s].stage));
            for (const auto& list : orders.lists)
                for (const schedule::Task& task : list)
                    QCOMPARE(int{task.chunk}, all[task.stage].chunk);
        }
}

void TestVirtualStages::nothingIsLost() {
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        const auto draw = [&](int least, int most) {
            return std::uniform_int_distribution(least, most)(random);
        };
        const int p = draw(1, 6), v = draw(2, 5), before = draw(0, 3), after = draw(0, 3);
        std::vector<int> firsts, held;
        int layers = 0;
        for (int d = 0; d < p; ++d) {
            firsts.push_back(d == 0 ? 0 : before + layers);
            held.push_back(v * draw(1, 4));
            layers += held.back();
        }
        const StageUnits units = chain(before, layers, after);
        const auto all = virtualStages(units, stretches(firsts, before + layers + after), v);
        QCOMPARE(all.size(), static_cast<std::size_t>(p * v));
        int next = 0;
        std::vector<int> counted(static_cast<std::size_t>(p), 0);
        for (std::size_t s = 0; s < all.size(); ++s) {
            const auto d = static_cast<std::size_t>(all[s].stage);
            QCOMPARE(all[s].first, next);
            next = all[s].last + 1;
            int own = 0;
            for (int u = all[s].first; u <= all[s].last; ++u)
                own += units.units[static_cast<std::size_t>(u)].run == 0 ? 1 : 0;
            QCOMPARE(own * v, held[d]);
            counted[d] += own;
        }
        QCOMPARE(next, before + layers + after);
        QCOMPARE(counted, held);
    }
}

/// Not what a planner makes, but a file may have it: still all units, each once.
void TestVirtualStages::unevenChunks() {
    const auto all = virtualStages(chain(1, 5, 1), stretches({0, 4}, 7), 2);
    const std::vector<VirtualStage> expected{
        {0, 0, 0, 1}, {1, 0, 2, 2}, {0, 1, 3, 4}, {1, 1, 5, 6}};
    QCOMPARE(all, expected);
}

void TestVirtualStages::names() {
    const StageUnits units = chain(1, 16, 1);
    QCOMPARE(stretchName(units, 5, 6), std::string("layers 4-5"));
    QCOMPARE(stretchName(units, 5, 5), std::string("layer 4"));
    QCOMPARE(stretchName(units, 0, 2), std::string("embed to layer 1"));
    QCOMPARE(stretchName(units, 17, 17), std::string("head"));
    const auto all = virtualStages(units, stretches({0, 5, 9, 13}, 18), 2);
    QCOMPARE(chunksName(units, all, 0), std::string("embed to layer 1, layers 8-9"));
    QCOMPARE(chunksName(units, all, 1), std::string("layers 2-3, 10-11"));
    QCOMPARE(chunksName(units, all, 3), std::string("layers 6-7, layer 14 to head"));
}

SHARDLENS_TEST(TestVirtualStages)

} // namespace tst_virtual_stages

#include "tst_virtual_stages.moc"
