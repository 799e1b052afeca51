// SPDX-License-Identifier: Apache-2.0
// PyTorch's schedule CSV: its own test files are read and made again, ours come back as they were,
// and what is no schedule is refused in one sentence.
#include "core/error.h"
#include "core/schedule/catalogue.h"
#include "core/schedule/schedule_csv.h"
#include "tests/core/schedule/spec_of.h"
#include "tests/test_program.h"

#include <QFile>
#include <QTest>

namespace tst_schedule_csv {

using namespace shardlens;
using namespace shardlens::schedule;
using test::specOf;

namespace {

QByteArray seed(const char* name) {
    QFile file(QString(SHARDLENS_SOURCE "/tests/fuzz/seeds/schedule_csv/") + name);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

Orders read(const char* text) {
    return readScheduleCsv(text, "s.csv").orders;
}

} // namespace

class TestScheduleCsv : public QObject {
    Q_OBJECT

private slots:
    void dualPipeVIsPyTorchs();
    void olderLetters();
    void transfersAreLeftOut();
    void idleCellsAndLineEnds();
    void roundTrip_data();
    void roundTrip();
    void whatItCannotSay();
    void refusals_data();
    void refusals();
};

/// test/distributed/pipelining/artifacts/dualpipev_4rank_10mb.csv of PyTorch.
void TestScheduleCsv::dualPipeVIsPyTorchs() {
    const QByteArray theirs = seed("dualpipev_4rank_10mb.csv");
    QVERIFY(!theirs.isEmpty());
    const ScheduleSpec spec = specOf("dualpipev", 4, 10);
    const Orders ours = makeOrders(spec);
    QCOMPARE(QByteArray::fromStdString(writeScheduleCsv(ours)), theirs);
    const Orders imported = read(theirs.constData());
    QCOMPARE(imported.stages, 8u);
    for (std::size_t d = 0; d < 4; ++d) QVERIFY(imported.lists[d] == ours.lists[d]);
    const Schedule s = makeSchedule(spec, imported);
    QCOMPARE(s.timeline.makespan, makeSchedule(spec).timeline.makespan);
}

/// From when B was the input gradient alone.
void TestScheduleCsv::olderLetters() {
    const Orders orders = read(seed("older_letters.csv").constData());
    QCOMPARE(orders.devices, 2u);
    QCOMPARE(orders.stages, 2u);
    QCOMPARE(orders.microBatches, 2u);
    QVERIFY(orders.lists[0][2].pass == Pass::InputGrad);
    QVERIFY(orders.lists[0][3].pass == Pass::WeightGrad);
    const Schedule s = makeSchedule(specOf("1f1b", 2, 2), orders);
    // The file's grid of unit steps: each rank has seven cells, one of them idle.
    QCOMPARE(s.timeline.makespan, 7.0);
    QCOMPARE(s.account.devices[0].spanBubble(), 1.0);
    QCOMPARE(s.account.devices[1].first, 1.0);
    QCOMPARE(s.account.devices[1].last, 7.0);
    QCOMPARE(writeScheduleCsv(orders), std::string("0F0,0F1,0I0,0W0,0I1,0W1\n"
                                                   "1F0,1I0,1F1,1I1,1W0,1W1\n"));
}

/// With transfers, and BW for the whole backward.
void TestScheduleCsv::transfersAreLeftOut() {
    const ImportedSchedule imported =
        readScheduleCsv(seed("transfers.csv").toStdString(), "transfers");
    QCOMPARE(imported.leftOut, std::size_t{8});
    QCOMPARE(writeScheduleCsv(imported.orders), std::string("0F0,0F1,0B0,0B1\n"
                                                            "1F0,1I0,1F1,1W0,1I1,1W1\n"));
    const ImportedSchedule sharded =
        readScheduleCsv("0UNSHARD,0F0,0B0,0RESHARD,0REDUCE_GRAD\n", "sharded");
    QCOMPARE(sharded.leftOut, std::size_t{3});
    QCOMPARE(sharded.orders.lists[0].size(), std::size_t{2});
}

void TestScheduleCsv::idleCellsAndLineEnds() {
    const Orders plain = read("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
    for (const char* text : {"0F0,0F1,,,0B0,,0B1\r\n,1F0,1B0,1F1,1B1,,\r\n",
                             "\xef\xbb\xbf 0F0 ,0F1,0B0,0B1\n1F0,1B0,1F1,1B1",
                             "\"0F0\",\"0F1\",\"0B0\",\"0B1\"\n\"1F0\",\"1B0\",1F1,1B1\n\n \n"}) {
        const Orders other = read(text);
        QVERIFY(other.lists == plain.lists);
    }
    const Orders idle = read("0F0,0B0\n,,\n"); // a rank without work
    QCOMPARE(idle.devices, 2u);
    QCOMPARE(read(writeScheduleCsv(idle).c_str()).devices, 2u);
}

void TestScheduleCsv::roundTrip_data() {
    QTest::addColumn<QString>("name");
    for (const char* name : {"gpipe", "1f1b", "interleaved", "2bw", "zb-h1", "zb-h2", "zb-v",
                             "v-half", "v-min", "dualpipe", "dualpipev", "chimera", "inference"}) {
        QTest::newRow(name) << name;
    }
}

void TestScheduleCsv::roundTrip() {
    QFETCH(QString, name);
    const QByteArray text = name.toLatin1();
    ScheduleSpec spec = specOf(text.constData(), 4, 8);
    if (name == "interleaved") spec.chunks = 2;
    const Schedule s = makeSchedule(spec);
    const Orders listed = asLists(s.orders, s.program, s.timeline);
    const std::string csv = writeScheduleCsv(listed);
    const Orders again = readScheduleCsv(csv, "again").orders;
    QCOMPARE(again.stages, listed.stages);
    QCOMPARE(again.microBatches, listed.microBatches);
    QVERIFY(again.lists == listed.lists);
    QCOMPARE(writeScheduleCsv(again), csv);
    spec.chunks = 1;
    QCOMPARE(makeSchedule(spec, again).timeline.makespan, s.timeline.makespan);
}

void TestScheduleCsv::whatItCannotSay() {
    ScheduleSpec slices = specOf("terapipe", 2, 2);
    slices.slices = {0.5, 0.5};
    ScheduleSpec shared = specOf("interlaced", 2, 2);
    for (const ScheduleSpec& spec : {slices, shared, specOf("3f1b", 2, 2)}) {
        QVERIFY_EXCEPTION_THROWN(writeScheduleCsv(makeOrders(spec)), PlanError);
    }
    ScheduleSpec more = specOf("1f1b", 2, 2);
    more.times.front().recompute = more.times.front().update = 1;
    QCOMPARE(writeScheduleCsv(makeOrders(more)),
             writeScheduleCsv(makeOrders(specOf("1f1b", 2, 2))));
}

void TestScheduleCsv::refusals_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("part"); ///< of the sentence
    const auto row = [](const char* name, const QByteArray& text, const char* part) {
        QTest::newRow(name) << text << QByteArray(part);
    };
    row("empty", "", "no action");
    row("blank", " \n\r\n", "no action");
    row("only idle", ",,\n,,", "no pass of a stage");
    row("no number", "0F0,xF1", "s.csv, line 1, cell 2: \"xF1\" is no action");
    row("kind", "0F0,0Q0", "\"0Q0\" is no action");
    row("no micro-batch", "0F", "\"0F\" is no action");
    row("longer", "0F0x", "goes on");
    row("huge stage", "99999999999F0", "too large");
    row("huge micro-batch", "0F99999999", "too large");
    row("joint", "(0F0;0B0)OVERLAP", "is no joint action");
    row("joint of one", "(0F0)OVERLAP_F_B", "does not join two");
    row("joint of three", "(0F0;0B0;0W0)OVERLAP_F_B", "does not join two");
    row("joint transfer", "(0F0;0SEND_F0)OVERLAP_F_B", "joins more than passes");
    row("binary", QByteArray("\0\1\2", 3), "is no action");
    row("twice", "0F0,0F0", "0F0 is there twice");
    row("missing", "0F0,0F1,0B0,0B1\n1F0,1B0", "micro-batch 1 does not pass stage 1");
    row("sparse", "60000F16000000", "more than the 1 tasks");
    row("no backward", "0F0,0F1,0B0", "0F1 has no backward");
    row("no weights", "0F0,0F1,0I0,0W0,0I1", "0F1 has no weight gradients");
    row("elsewhere", "0F0,0F1,0I0,0W0\n0I1,0W1", "is not where its forward is");
}

void TestScheduleCsv::refusals() {
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, part);
    try {
        readScheduleCsv({text.constData(), std::size_t(text.size())}, "s.csv");
    } catch (const InputError& error) {
        QVERIFY2(QByteArray(error.what()).contains(part), error.what());
        QVERIFY(QByteArray(error.what()).startsWith("s.csv"));
        QVERIFY(!error.hint().empty());
        return;
    }
    QFAIL("not refused");
}

SHARDLENS_TEST(TestScheduleCsv)

} // namespace tst_schedule_csv

#include "tst_schedule_csv.moc"
