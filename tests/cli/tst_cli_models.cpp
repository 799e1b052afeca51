// SPDX-License-Identifier: Apache-2.0
// Real model files through the program: each loads, or is refused in one sentence; none ends the
// process. The facts stand in the README beside the files.
#include "tests/cli/program.h"
#include "tests/real_models.h"
#include "tests/test_program.h"

#include <nlohmann/json.hpp>

#include <QFileInfo>
#include <QTest>

namespace tst_cli_models {

using namespace shardlens::test;
using Json = nlohmann::json;

class TestCliModels : public QObject {
    Q_OBJECT

private slots:
    void initTestCase();
    void everyFileLoadsOrIsRefused_data();
    void everyFileLoadsOrIsRefused();
    void everyModelIsPlannedOrRefused_data();
    void everyModelIsPlannedOrRefused();
    void facts_data();
    void facts();
};

void TestCliModels::initTestCase() {
    if (!realModels().exists()) QSKIP("the folder of real models is not here");
}

void TestCliModels::everyFileLoadsOrIsRefused_data() {
    addRealModels(realModels().entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name));
}

void TestCliModels::everyFileLoadsOrIsRefused() {
    QFETCH(QString, file);
    const auto outcome = run({"info", file, "--json"}, withoutDisplay());
    QVERIFY2(!outcome.crashed, outcome.error.constData());
    if (outcome.code == 0) {
        QCOMPARE(outcome.error, QByteArray());
        QVERIFY(Json::parse(outcome.out.constData(), nullptr, false).is_object());
    } else {
        QCOMPARE(outcome.code, 1);
        QCOMPARE(outcome.out, QByteArray());
        QVERIFY2(isOneSentence(outcome.error), outcome.error.constData());
        QVERIFY2(outcome.error.contains(QFileInfo(file).fileName().toUtf8()),
                 outcome.error.constData());
    }
}

void TestCliModels::everyModelIsPlannedOrRefused_data() {
    addRealModels({"hf", "onnx"});
}

void TestCliModels::everyModelIsPlannedOrRefused() {
    QFETCH(QString, file);
    const auto outcome = run({"plan", file, "--json", "--cluster", "dgx-h100", "--nodes", "8",
                              "--mesh", "dp=8,tp=8", "--batch", "64"},
                             withoutDisplay());
    QVERIFY2(!outcome.crashed, outcome.error.constData());
    if (outcome.code == 0) {
        const Json plan = Json::parse(outcome.out.constData(), nullptr, false);
        QVERIFY(plan.is_object());
        QVERIFY(plan.at("bound_s").get<double>() <= plan.at("time_s").get<double>() * (1 + 1e-12));
    } else {
        QCOMPARE(outcome.code, 1);
        QVERIFY2(isOneSentence(outcome.error), outcome.error.constData());
    }
}

void TestCliModels::facts_data() {
    QTest::addColumn<QString>("file");
    QTest::addColumn<double>("parameters"); // in thousandths of a G, rounded as published
    QTest::addColumn<int>("layers");
    QTest::newRow("llama") << "hf/llama3.1-405b_config.json" << 405'853.0 << 126;
    QTest::newRow("mixtral") << "hf/mixtral-8x7b_config.json" << 46'703.0 << 32;
    QTest::newRow("qwen3") << "hf/qwen3-4b_config.json" << 4'022.0 << 36;
    QTest::newRow("gpt2") << "onnx/GPT2Model.onnx" << -1.0 << 12;
    QTest::newRow("bert") << "onnx/BertForQuestionAnswering_1.onnx" << -1.0 << 12;
}

void TestCliModels::facts() {
    QFETCH(QString, file);
    QFETCH(double, parameters);
    QFETCH(int, layers);
    const auto outcome = run({"info", realModels().filePath(file), "--json"}, withoutDisplay());
    QVERIFY2(outcome.code == 0, outcome.error.constData());
    const Json info = Json::parse(outcome.out.constData(), nullptr, false);
    if (parameters > 0) {
        QCOMPARE(std::round(info.at("parameters").get<double>() / 1e6), parameters);
    }
    const auto& runs = info.at("runs");
    QVERIFY2(std::ranges::any_of(
                 runs, [&](const Json& run) { return run.at("count").get<int>() == layers; }),
             runs.dump().c_str());
}

SHARDLENS_TEST(TestCliModels)

} // namespace tst_cli_models

#include "tst_cli_models.moc"
