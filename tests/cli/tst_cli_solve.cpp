// SPDX-License-Identifier: Apache-2.0
// `shardlens solve`: the contest's toy problem, whose optimum is published, through every option.
#include "tests/cli/program.h"
#include "tests/test_program.h"

#include <nlohmann/json.hpp>

#include <QFile>
#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

#include <cmath>

namespace tst_cli_solve {

using namespace shardlens::test;
using Json = nlohmann::json;

namespace {

constexpr const char* kExample = R"({"problem": {"name": "example", "nodes": {
"intervals": [[30, 70], [40, 70], [50, 120], [110, 140], [110, 150]],
"costs": [[15], [55, 65], [25, 45, 35], [85, 75], [95]],
"usages": [[10], [25, 25], [15, 20, 15], [10, 10], [15]]},
"edges": {"nodes": [[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]],
"costs": [[30, 40], [50, 10, 40], [90, 10, 20, 80], [60, 20, 30], [70, 60]]},
"usage_limit": 50}})";

} // namespace

class TestCliSolve : public QObject {
    Q_OBJECT

private slots:
    void initTestCase();
    void reportHasTheOptimum();
    void jsonHasTheOptimum();
    void solutionIsWrittenAndJudged();
    void infeasibleSaysWhenAndWho();
    void exportsForOtherSolvers();
    void plansAreExported();
    void usageErrors_data();
    void usageErrors();
    void errors_data();
    void errors();

private:
    QString path(const QString& name) const { return m_dir.filePath(name); }
    QString write(const QString& name, const QByteArray& content) const {
        QFile file(path(name));
        if (!file.open(QIODevice::WriteOnly) || file.write(content) != content.size()) return {};
        return file.fileName();
    }
    static QByteArray read(const QString& name) {
        QFile file(name);
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }

    QTemporaryDir m_dir;
    QString m_problem;
};

void TestCliSolve::initTestCase() {
    QVERIFY(m_dir.isValid());
    m_problem = write("example.json", kExample);
}

void TestCliSolve::reportHasTheOptimum() {
    const auto outcome = run({"solve", m_problem}, withoutDisplay());
    QCOMPARE(outcome.code, 0);
    QCOMPARE(outcome.error, QByteArray());
    for (const char* line : {"problem  example", "status   optimal", "cost     445", "bound    445",
                             "gap      0.0000 %", "peak     50 of 50"}) {
        QVERIFY2(outcome.out.contains(line), outcome.out.constData());
    }
}

void TestCliSolve::jsonHasTheOptimum() {
    const auto outcome =
        run({"solve", m_problem, "--json", "--threads", "2", "--seed", "7"}, withoutDisplay());
    QCOMPARE(outcome.code, 0);
    const Json answer = Json::parse(outcome.out.constData(), nullptr, false);
    QVERIFY(answer.is_object());
    QCOMPARE(answer.at("status").get<std::string>(), std::string("optimal"));
    QCOMPARE(answer.at("cost").get<int>(), 445);
    QCOMPARE(answer.at("bound").get<int>(), 445);
    QCOMPARE(answer.at("peak").get<int>(), 50);
    QVERIFY((answer.at("solution").get<std::vector<int>>() == std::vector<int>{0, 0, 2, 1, 0}));
    QVERIFY(!answer.at("trajectory").empty());
    QVERIFY(answer.at("firstFeasibleSeconds").get<double>() <= answer.at("seconds").get<double>());
}

void TestCliSolve::solutionIsWrittenAndJudged() {
    const QString file = path("solution");
    QCOMPARE(run({"solve", m_problem, "--write", file}, withoutDisplay()).code, 0);
    QCOMPARE(read(file), QByteArray("[0, 0, 2, 1, 0]\n"));
    const auto good = run({"solve", m_problem, "--check", file}, withoutDisplay());
    QCOMPARE(good.code, 0);
    QVERIFY2(good.out.contains("cost     445") && good.out.contains("feasible"),
             good.out.constData());
    const QString greedy = write("greedy", "[0, 0, 1, 1, 0]");
    const auto over = run({"solve", m_problem, "--check", greedy}, withoutDisplay());
    QVERIFY2(over.out.contains("peak     55 of 50") && over.out.contains("exceeds the limit"),
             over.out.constData());
    const auto warm = run({"solve", m_problem, "--start", file, "--json"}, withoutDisplay());
    QCOMPARE(warm.code, 0);
}

void TestCliSolve::infeasibleSaysWhenAndWho() {
    const QString tight = write(
        "tight.json", QByteArray(kExample).replace("\"usage_limit\": 50", "\"usage_limit\": 49"));
    const auto outcome = run({"solve", tight}, withoutDisplay());
    QCOMPARE(outcome.code, 0);
    QVERIFY2(outcome.out.contains("status   infeasible") &&
                 outcome.out.contains("from time 50 to 70") &&
                 outcome.out.contains("nodes 1, 2, 0"),
             outcome.out.constData());
    const auto nothing = run({"solve", tight, "--write", path("none")}, withoutDisplay());
    QCOMPARE(nothing.code, 1);
    QVERIFY2(isOneSentence(nothing.error), nothing.error.constData());
    QVERIFY(!QFile::exists(path("none")));
}

void TestCliSolve::exportsForOtherSolvers() {
    const QString lp = path("example.lp"), wcsp = path("example.wcsp");
    const auto outcome =
        run({"solve", m_problem, "--export-lp", lp, "--export-wcsp", wcsp}, withoutDisplay());
    QCOMPARE(outcome.code, 0);
    QCOMPARE(outcome.out, QByteArray());
    QVERIFY(read(wcsp).startsWith("shardlens 5 3 10 "));
    QVERIFY(read(lp).contains(" limit_70: 0 one"));
    if (QStandardPaths::findExecutable("cbc").isEmpty()) QSKIP("cbc is not installed");
    QProcess cbc;
    cbc.start("cbc", {lp, "ratioGap", "0", "solve", "quit"});
    QVERIFY(cbc.waitForFinished());
    QVERIFY(cbc.readAllStandardOutput().contains("Objective value:                445"));
}

/// The planner and the solver of unfolded problems share no search: they must agree on the optimum.
void TestCliSolve::plansAreExported() {
    const QString model = write("tiny.json", R"({"model_type": "llama",
"architectures": ["LlamaForCausalLM"], "hidden_size": 256, "intermediate_size": 512,
"num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 1024,
"max_position_embeddings": 512, "rms_norm_eps": 1e-5, "tie_word_embeddings": false,
"torch_dtype": "bfloat16"})");
    std::vector<double> quantum; // seconds of the plan for each unit of the problem
    for (const char* mesh : {"dp=2,tp=4", "dp=4,tp=2"}) {
        const QString file = path("plan.problem");
        const QStringList ask = {"plan",   model, "--cluster", "dgx-a100", "--nodes", "1",
                                 "--mesh", mesh,  "--batch",   "8",        "--seq",   "128"};
        const auto exported = run(ask + QStringList{"--export-problem", file}, withoutDisplay());
        QVERIFY2(exported.code == 0, exported.error.constData());
        QCOMPARE(exported.out, QByteArray());
        const auto planned = run(ask + QStringList{"--json"}, withoutDisplay());
        const Json plan = Json::parse(planned.out.constData(), nullptr, false);
        QVERIFY(plan.at("optimal").get<bool>());
        const auto solved = run({"solve", file, "--json", "--time-limit", "50"}, withoutDisplay());
        QVERIFY2(solved.code == 0, solved.error.constData());
        const Json answer = Json::parse(solved.out.constData(), nullptr, false);
        QCOMPARE(answer.at("status").get<std::string>(), std::string("optimal"));
        QVERIFY(answer.at("given").at("nodes").get<int>() > 3 * 10);
        quantum.push_back(plan.at("time_s").get<double>() / answer.at("cost").get<double>());
    }
    QVERIFY2(std::abs(quantum[0] / quantum[1] - 1) < 1e-9,
             qPrintable(QString::number(quantum[0] / quantum[1], 'g', 17)));
}

void TestCliSolve::usageErrors_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QByteArray>("mentions");
    QTest::newRow("no problem") << QStringList{"solve"} << QByteArray("PROBLEM");
    QTest::newRow("no time") << QStringList{"solve", "p", "--time-limit", "0"}
                             << QByteArray("--time-limit");
    QTest::newRow("no threads") << QStringList{"solve", "p", "--threads", "0"}
                                << QByteArray("--threads");
    QTest::newRow("seed of no number")
        << QStringList{"solve", "p", "--seed", "x"} << QByteArray("--seed");
    QTest::newRow("negative gap") << QStringList{"solve", "p", "--gap", "-1"}
                                  << QByteArray("--gap");
}

void TestCliSolve::usageErrors() {
    QFETCH(QStringList, arguments);
    QFETCH(QByteArray, mentions);
    const auto outcome = run(arguments, withoutDisplay());
    QCOMPARE(outcome.code, 2);
    QVERIFY2(isOneSentence(outcome.error) && outcome.error.contains(mentions),
             outcome.error.constData());
}

void TestCliSolve::errors_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QByteArray>("mentions");
    const QByteArray example = kExample;
    QTest::newRow("no such file") << QStringList{"solve", path("none.json")}
                                  << QByteArray("none.json");
    QTest::newRow("cut off") << QStringList{"solve", write("cut.json", example.left(300))}
                             << QByteArray("cut.json");
    QTest::newRow("wrong count") << QStringList{"solve",
                                                write("count.json", QByteArray(example).replace(
                                                                        "[85, 75]", "[85]"))}
                                 << QByteArray("problem.nodes.usages[3]");
    QTest::newRow("solution of another problem")
        << QStringList{"solve", m_problem, "--check", write("short", "[0, 0]")}
        << QByteArray("2 choices for 5 nodes");
    QTest::newRow("no such choice")
        << QStringList{"solve", m_problem, "--check", write("beyond", "[0, 0, 3, 0, 0]")}
        << QByteArray("node 2");
    QTest::newRow("no solution") << QStringList{"solve", m_problem, "--check", m_problem}
                                 << QByteArray("not a solution");
    QTest::newRow("to nowhere") << QStringList{"solve", m_problem, "--export-lp",
                                               path("no/such.lp")}
                                << QByteArray("no/such.lp");
}

void TestCliSolve::errors() {
    QFETCH(QStringList, arguments);
    QFETCH(QByteArray, mentions);
    const auto outcome = run(arguments, withoutDisplay());
    QCOMPARE(outcome.code, 1);
    QCOMPARE(outcome.out, QByteArray());
    QVERIFY2(isOneSentence(outcome.error) && outcome.error.contains(mentions),
             outcome.error.constData());
}

SHARDLENS_TEST(TestCliSolve)

} // namespace tst_cli_solve

#include "tst_cli_solve.moc"
