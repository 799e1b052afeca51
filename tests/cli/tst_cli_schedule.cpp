// SPDX-License-Identifier: Apache-2.0
// `shardlens schedule`: figures of the table of schedules, files in and out, and what is refused.
#include "tests/cli/program.h"
#include "tests/test_program.h"

#include <nlohmann/json.hpp>

#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <QXmlStreamReader>

namespace tst_cli_schedule {

using namespace shardlens::test;
using Json = nlohmann::json;

class TestCliSchedule : public QObject {
    Q_OBJECT

private slots:
    void table();
    void tableAsJson();
    void oneByOne();
    void filesInAndOut();
    void errors_data();
    void errors();

private:
    QString path(const QString& name) const { return m_dir.filePath(name); }

    static QByteArray contents(const QString& name) {
        QFile file(name);
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }

    QTemporaryDir m_dir;
};

void TestCliSchedule::table() {
    const Outcome result = run({"schedule", "--all", "--p", "4", "--m", "8"});
    QCOMPARE(result.code, 0);
    const auto row = [&](const char* name) {
        for (const QByteArray& line : result.out.split('\n')) {
            if (line.startsWith(name)) return line.mid(22).simplified().split(' ');
        }
        return QList<QByteArray>();
    };
    // step, bubble, within a device's span, peak
    QCOMPARE(row("GPipe ").mid(0, 4), (QList<QByteArray>{"33", "9", "9", "8"}));
    QCOMPARE(row("1F1B ").mid(0, 4), (QList<QByteArray>{"33", "9", "9", "4"}));
    QCOMPARE(row("interleaved").mid(0, 4), (QList<QByteArray>{"28.5", "4.5", "4.5", "5.5"}));
    QCOMPARE(row("ZB-H1 ").mid(0, 4), (QList<QByteArray>{"27", "3", "3", "4"}));
    QCOMPARE(row("ZB-H2 ").mid(0, 4), (QList<QByteArray>{"27", "3", "0", "7"}));
    QCOMPARE(row("DualPipe ").mid(4), (QList<QByteArray>{"2x", "synchronous"}));
    QCOMPARE(row("PipeDream-2BW ").last(), QByteArray("stale"));
}

/// Schedules that do not take these sizes say so and leave the others alone.
void TestCliSchedule::tableAsJson() {
    const Outcome result = run({"schedule", "--all", "--p", "3", "--m", "6", "--json"});
    QCOMPARE(result.code, 0);
    int refused = 0;
    for (const Json& row : Json::parse(result.out.toStdString())) {
        refused += row.contains("refused");
        if (row.at("schedule") == "gpipe") QCOMPARE(row.at("makespan").get<double>(), 8 * 3.0);
    }
    QCOMPARE(refused, 2); // DualPipe and Chimera want an even number of devices
}

void TestCliSchedule::oneByOne() {
    const Outcome result =
        run({"schedule", "--name", "dualpipe", "--p", "8", "--m", "20", "--json"});
    QCOMPARE(result.code, 0);
    const Json json = Json::parse(result.out.toStdString());
    QCOMPARE(json.at("result").at("makespan").get<double>(), 66.0);
    QCOMPARE(json.at("result").at("peakMemory").get<double>(), 9.0);
    const Outcome unequal = run({"schedule", "--name", "zb-h1", "--p", "8", "--m", "16", "--b",
                                 "1.5", "--w", "0.5", "--json"});
    QCOMPARE(Json::parse(unequal.out.toStdString()).at("result").at("bubble").get<double>(), 14.0);
    const Outcome text = run({"schedule", "--p", "4", "--m", "8", "--comm", "0.1"});
    QVERIFY(text.out.contains("exposed communication"));
}

void TestCliSchedule::filesInAndOut() {
    const QString csv = path("s.csv"), trace = path("s.json");
    const QStringList sizes = {"--p", "4", "--m", "8"};
    const Outcome made =
        run(QStringList{"schedule", "--name", "zb-h2", "--csv", csv, "--trace", trace, "--json"} +
            sizes);
    QCOMPARE(made.code, 0);
    QFile file(trace);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QVERIFY(Json::parse(file.readAll().toStdString()).at("traceEvents").size() > 4 * 8 * 3);
    const QString svg = path("s.svg"), png = path("s.png");
    QCOMPARE(run(QStringList{"schedule", "--svg", svg, "--png", png} + sizes).code, 0);
    QXmlStreamReader drawn(contents(svg));
    int texts = 0;
    while (!drawn.atEnd()) {
        if (drawn.readNext() == QXmlStreamReader::StartElement && drawn.name() == u"text") ++texts;
    }
    QVERIFY2(!drawn.hasError(), qPrintable(drawn.errorString()));
    QVERIFY(texts > 2 * 4 * 8); // each pass of each stage has its label
    QVERIFY(contents(png).startsWith("\x89PNG"));
    const Outcome read = run({"schedule", "--import", csv, "--json"});
    QCOMPARE(read.code, 0);
    const Json before = Json::parse(made.out.toStdString()),
               after = Json::parse(read.out.toStdString());
    for (const char* figure : {"makespan", "peakMemory"}) {
        QVERIFY(after.at("result").at(figure) == before.at("result").at(figure));
    }
}

void TestCliSchedule::errors_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<int>("code");
    QTest::addColumn<QByteArray>("part");
    const auto row = [](const char* name, QStringList arguments, int code, const char* part) {
        QTest::newRow(name) << (QStringList{"schedule"} + arguments) << code << QByteArray(part);
    };
    row("unknown", {"--name", "zb"}, 1, "choose one of gpipe, 1f1b");
    row("sizes", {"--name", "interleaved", "--p", "4", "--m", "6"}, 1, "no multiple");
    row("memory", {"--capacity", "3"}, 1, "device 0: memory reaches 4 at 3 with 0F3");
    row("no file", {"--import", "/nowhere.csv"}, 1, "cannot be opened");
    row("no schedule", {"--import", SHARDLENS_SOURCE "/README.md"}, 1, "is no action");
    row("unwritable picture", {"--svg", "/nowhere/s.svg"}, 1, "/nowhere/s.svg");
    row("unwritable", {"--csv", "/nowhere/s.csv"}, 1, "could not be written");
    row("cannot say", {"--name", "terapipe", "--csv", "s.csv"}, 1,
        "cannot be written to a schedule CSV");
    row("no number", {"--p", "x"}, 2, "--p");
    row("both", {"--all", "--name", "1f1b"}, 2, "--all");
    row("transfers", {"--transfers", "fast"}, 2, "--transfers");
}

void TestCliSchedule::errors() {
    QFETCH(QStringList, arguments);
    QFETCH(int, code);
    QFETCH(QByteArray, part);
    const Outcome result = run(arguments);
    QVERIFY(!result.crashed);
    QCOMPARE(result.code, code);
    QVERIFY2(isOneSentence(result.error), result.error.constData());
    QVERIFY2(result.error.contains(part), result.error.constData());
}

SHARDLENS_TEST(TestCliSchedule)

} // namespace tst_cli_schedule

#include "tst_cli_schedule.moc"
