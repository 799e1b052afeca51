// SPDX-License-Identifier: Apache-2.0
// `shardlens sweep`: all equal-stage plans, one and two settings, the three forms of output, and
// what is refused.
#include "tests/cli/program.h"
#include "tests/test_program.h"

#include <nlohmann/json.hpp>

#include <QTest>

#include <set>

namespace tst_cli_sweep {

using namespace shardlens::test;
using Json = nlohmann::json;

namespace {

const QStringList kJob = {"sweep",     SHARDLENS_SOURCE "/samples/gpt2.json",
                          "--cluster", "dgx-a100",
                          "--nodes",   "1",
                          "--batch",   "32",
                          "--seq",     "512"};

} // namespace

class TestCliSweep : public QObject {
    Q_OBJECT

private slots:
    void allPlans();
    void oneSetting();
    void twoSettingsAsCsv();
    void asText();
    void errors_data();
    void errors();
};

void TestCliSweep::allPlans() {
    const Outcome result = run(kJob + QStringList{"--json"});
    QCOMPARE(result.code, 0);
    const Json table = Json::parse(result.out.toStdString());
    QCOMPARE(table.at("memory_limit_bytes").get<double>(), 80.0 * (1LL << 30));
    std::set<std::tuple<int, std::string, int>> kinds;
    for (const Json& point : table.at("points")) {
        QCOMPARE(point.at("tp").get<int>() * point.at("cp").get<int>() * point.at("pp").get<int>() *
                     point.at("dp").get<int>(),
                 8);
        QVERIFY(point.at("time_s").get<double>() > 0);
        kinds.emplace(point.at("tp").get<int>(), point.at("sp").get<std::string>(),
                      point.at("cp").get<int>());
    }
    QVERIFY(kinds.contains({2, "on", 1}) && kinds.contains({2, "off", 2}) &&
            kinds.contains({4, "on", 2}));
    QVERIFY(!kinds.contains({1, "on", 1}) && !kinds.contains({8, "off", 1})); // 12 heads
}

void TestCliSweep::oneSetting() {
    const Outcome result = run(kJob + QStringList{"--over", "stages=1,2,5", "--json"});
    QCOMPARE(result.code, 0);
    QVERIFY(result.error.isEmpty());
    const Json points = Json::parse(result.out.toStdString()).at("points");
    QCOMPARE(points.size(), std::size_t{3});
    QCOMPARE(points[1].at("stages").get<int>(), 2);
    QVERIFY(points[1].contains("time_s"));
    QVERIFY(points[2].contains("error")); // 12 layers
}

void TestCliSweep::twoSettingsAsCsv() {
    const Outcome result =
        run(kJob + QStringList{"--over", "tp=1,2", "--over", "schedule=gpipe,1f1b", "--csv"});
    QCOMPARE(result.code, 0);
    const QList<QByteArray> lines = result.out.trimmed().split('\n');
    QCOMPARE(lines.size(), 5);
    QVERIFY(lines[0].startsWith("tp,schedule,time_s,memory_bytes,bubble"));
    QVERIFY(lines[2].startsWith("1,1f1b,"));
    QVERIFY(lines[3].startsWith("2,gpipe,"));
}

void TestCliSweep::asText() {
    const Outcome result = run(kJob);
    QCOMPARE(result.code, 0);
    QVERIFY(result.out.contains(" points, "));
    QVERIFY(result.out.contains("  sp  cp  pp"));
    QVERIFY(result.out.contains("  front\n"));
}

void TestCliSweep::errors_data() {
    QTest::addColumn<QStringList>("options");
    QTest::addColumn<QString>("words");
    QTest::newRow("unknown") << QStringList{"--over", "colour=1"} << "cannot be swept";
    QTest::newRow("value") << QStringList{"--over", "nodes=two"} << "'two'";
    QTest::newRow("twice") << QStringList{"--over", "tp=1", "--over", "tp=2"} << "swept twice";
    QTest::newRow("three") << QStringList{"--over", "tp=1", "--over", "dp=2", "--over", "zero=1"}
                           << "one or two";
}

void TestCliSweep::errors() {
    QFETCH(QStringList, options);
    QFETCH(QString, words);
    const Outcome result = run(kJob + options);
    QCOMPARE(result.code, 1);
    QVERIFY(result.out.isEmpty());
    QVERIFY2(QString::fromUtf8(result.error).contains(words), result.error.constData());
    QCOMPARE(result.error.trimmed().count('\n'), 0);
}

SHARDLENS_TEST(TestCliSweep)

} // namespace tst_cli_sweep

#include "tst_cli_sweep.moc"
