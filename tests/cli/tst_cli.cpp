// SPDX-License-Identifier: Apache-2.0
// The command line: help, exit codes, errors in one sentence, reports and JSON.
#include "core/model/graph_json.h"
#include "core/plan/model_bundle.h"
#include "core/store/session.h"
#include "tests/cli/program.h"
#include "tests/test_program.h"

#include <nlohmann/json.hpp>

#include <QDir>
#include <QFile>
#include <QImage>
#include <QMimeDatabase>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

namespace tst_cli {

using namespace shardlens::test;
using Json = nlohmann::json;

namespace {

/// A small model of our own: hyper-parameters as Hugging Face writes them, made up for this test.
constexpr const char* kTinyLlama = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
"num_key_value_heads": 4, "vocab_size": 1024, "max_position_embeddings": 512,
"rms_norm_eps": 1e-5, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";

/// Its parameters by hand: embedding and head, and per layer q and o, k and v, the three matrices
/// of the MLP, two norms; one norm at the end.
constexpr double kTinyParameters =
    2.0 * 1024 * 256 + 256 + 4.0 * (2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 512 + 2 * 256);

const QStringList kSmallPlan = {"--cluster", "dgx-a100", "--nodes", "1",     "--mesh",
                                "dp=2,tp=4", "--batch",  "8",       "--seq", "128"};

} // namespace

class TestCli : public QObject {
    Q_OBJECT

private slots:
    void initTestCase();
    void help_data();
    void help();
    void version();
    void usageErrors_data();
    void usageErrors();
    void errors_data();
    void errors();
    void clustersAreListed();
    void infoCountsTheModel();
    void planJsonHasItsKeys();
    void plansAreVerified();
    void planIsTheSameEveryTime();
    void planReportNamesWhatWasAsked();
    void pinsHold();
    void withoutDisplayTheReportIsPrinted();
    void unreachableDisplayIsNoDisplay();
    void screenshotIsDrawn();
    void sessionIsPlannedAsItStands();
    void sessionIsKnownToTheDesktop();
    void fullDiskIsAnError();

private:
    QString path(const QString& name) const { return m_dir.filePath(name); }
    QString write(const QString& name, const QByteArray& content) const;
    static QByteArray read(const QString& file);
    Json planJson(const QStringList& more = {}) const;

    QTemporaryDir m_dir;
    QString m_model;
};

QString TestCli::write(const QString& name, const QByteArray& content) const {
    QFile file(path(name));
    if (!file.open(QIODevice::WriteOnly) || file.write(content) != content.size()) return {};
    return file.fileName();
}

QByteArray TestCli::read(const QString& name) {
    QFile file(name);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

Json TestCli::planJson(const QStringList& more) const {
    const auto outcome = run(QStringList{"plan", m_model, "--json"} + kSmallPlan + more);
    if (outcome.code != 0) qWarning() << outcome.error;
    return Json::parse(outcome.out.constData(), nullptr, false);
}

void TestCli::initTestCase() {
    QVERIFY(m_dir.isValid());
    m_model = write("tiny.json", kTinyLlama);
    QVERIFY(!m_model.isEmpty());
}

void TestCli::help_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QByteArray>("mentions");
    QTest::newRow("program") << QStringList{"--help"} << QByteArray("plan");
    QTest::newRow("short") << QStringList{"-h"} << QByteArray("info");
    QTest::newRow("info") << QStringList{"info", "--help"} << QByteArray("--bind");
    QTest::newRow("plan") << QStringList{"plan", "--help"} << QByteArray("--memory-limit");
    QTest::newRow("screenshot") << QStringList{"screenshot", "--help"} << QByteArray("--size");
    QTest::newRow("clusters") << QStringList{"clusters", "--help"} << QByteArray("--help");
}

void TestCli::help() {
    QFETCH(QStringList, arguments);
    QFETCH(QByteArray, mentions);
    const auto outcome = run(arguments, withoutDisplay());
    QVERIFY(!outcome.crashed);
    QCOMPARE(outcome.code, 0);
    QVERIFY2(outcome.out.contains(mentions), outcome.out.constData());
    QVERIFY(!outcome.out.contains("layout-helper")); // ours, not the user's
    QCOMPARE(outcome.error, QByteArray());
}

void TestCli::version() {
    const auto outcome = run({"--version"}, withoutDisplay());
    QCOMPARE(outcome.code, 0);
    QCOMPARE(outcome.out, QByteArray("shardlens " SHARDLENS_VERSION "\n"));
}

void TestCli::usageErrors_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QByteArray>("mentions");
    const auto row = [](const char* name, const QStringList& arguments, const char* mentions) {
        QTest::newRow(name) << arguments << QByteArray(mentions);
    };
    row("unknown option", {"--frobnicate"}, "--frobnicate");
    row("two files", {"a.onnx", "b.onnx"}, "b.onnx");
    row("file and subcommand", {"a.onnx", "clusters"}, "a.onnx");
    row("no model", {"plan"}, "MODEL");
    row("two models", {"plan", "a", "b"}, "b");
    row("mesh without size", {"plan", "m", "--mesh", "dp"}, "--mesh");
    row("mesh of size 0", {"plan", "m", "--mesh", "dp=0"}, "--mesh");
    row("no number", {"plan", "m", "--batch", "many"}, "--batch");
    row("negative", {"plan", "m", "--seq", "-4"}, "--seq");
    row("no nodes", {"plan", "m", "--nodes", "0"}, "--nodes");
    row("mode", {"plan", "m", "--mode", "dream"}, "--mode");
    row("memory limit", {"plan", "m", "--memory-limit", "-1"}, "--memory-limit");
    row("cost model", {"plan", "m", "--cost-model", "guess"}, "--cost-model");
    row("pin without choice", {"plan", "m", "--pin", "q_proj"}, "--pin");
    row("binding without value", {"info", "m", "--bind", "batch"}, "--bind");
    row("binding of no number", {"info", "m", "--bind", "batch=x"}, "--bind");
    row("no picture", {"screenshot", "m"}, "OUT");
    row("size of no picture", {"screenshot", "m", "o.png", "--size", "huge"}, "--size");
    row("size too small", {"screenshot", "m", "o.png", "--size", "20x20"}, "--size");
    row("planning option of info", {"info", "m", "--cluster", "dgx-a100"}, "--cluster");
}

void TestCli::usageErrors() {
    QFETCH(QStringList, arguments);
    QFETCH(QByteArray, mentions);
    const auto outcome = run(arguments, withoutDisplay());
    QVERIFY(!outcome.crashed);
    QCOMPARE(outcome.code, 2);
    QCOMPARE(outcome.out, QByteArray());
    QVERIFY2(isOneSentence(outcome.error), outcome.error.constData());
    QVERIFY2(outcome.error.contains(mentions), outcome.error.constData());
}

void TestCli::errors_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QByteArray>("mentions");
    const auto row = [](const char* name, const QStringList& arguments, const char* mentions) {
        QTest::newRow(name) << arguments << QByteArray(mentions);
    };
    const auto plan = [this](const QStringList& more) {
        return QStringList{"plan", m_model, "--cluster", "dgx-a100"} + more;
    };
    row("no such file", {"info", path("none.onnx")}, "none.onnx");
    row("a folder", {"info", m_dir.path()}, qPrintable(m_dir.path()));
    row("empty file", {"info", write("empty", "")}, "empty");
    row("not a model", {"plan", write("noise", "certainly not a model\n")}, "noise");
    row("truncated JSON", {"plan", write("cut.json", QByteArray(kTinyLlama).left(200))},
        "cut.json");
    row("unknown architecture", {"info", write("new.json", R"({"model_type": "newest"})")},
        "newest");
    row("unknown cluster", {"plan", m_model, "--cluster", "abacus"}, "abacus");
    row("mesh too large", plan({"--mesh", "dp=64,tp=64"}), "4096");
    row("no such op", plan({"--pin", "no.such.op=replicated"}), "no.such.op");
    row("no such factor", plan({"--pin", "*q_proj*=zz@tp", "--mesh", "dp=2,tp=4"}), "zz");
    row("no such axis", plan({"--pin", "*q_proj*=n@ep", "--mesh", "dp=2,tp=4"}), "ep");
    row("no room", plan({"--memory-limit", "0.001"}), "memory");
    row("picture of nothing", {"screenshot", path("none.onnx"), path("o.png")}, "none.onnx");
    row("picture to nowhere", {"screenshot", m_model, path("no/such/o.png")}, "no/such/o.png");
    row("window without display", {}, "display");
}

void TestCli::errors() {
    QFETCH(QStringList, arguments);
    QFETCH(QByteArray, mentions);
    const auto outcome = run(arguments, withoutDisplay());
    QVERIFY(!outcome.crashed);
    QVERIFY2(isOneSentence(outcome.error), outcome.error.constData());
    QCOMPARE(outcome.code, 1);
    QCOMPARE(outcome.out, QByteArray());
    QVERIFY2(outcome.error.contains(mentions), outcome.error.constData());
}

void TestCli::clustersAreListed() {
    const auto outcome = run({"clusters"}, withoutDisplay());
    QCOMPARE(outcome.code, 0);
    for (const char* name : {"dgx-a100", "dgx-h100", "gb200-nvl72", "p3.16xlarge", "tpu-v5p"}) {
        QVERIFY2(outcome.out.contains(QByteArray(name) + " "), name);
    }
}

void TestCli::infoCountsTheModel() {
    const auto outcome = run({"info", m_model, "--json"}, withoutDisplay());
    QCOMPARE(outcome.code, 0);
    const Json info = Json::parse(outcome.out.constData(), nullptr, false);
    QVERIFY(info.is_object());
    QCOMPARE(info.value("parameters", 0.0), kTinyParameters);
    QVERIFY(info.at("opaque").empty());
    QCOMPARE(info.at("runs").size(), std::size_t{1});
    QCOMPARE(info.at("runs")[0].at("count").get<int>(), 4);
    // Classes partition the ops, and the kinds count the same ops.
    std::size_t members = 0, kinds = 0;
    for (const auto& entry : info.at("classes")) members += entry.at("count").get<std::size_t>();
    for (const auto& [kind, count] : info.at("kinds").items()) kinds += count.get<std::size_t>();
    QCOMPARE(members, info.at("ops").get<std::size_t>());
    QCOMPARE(kinds, members);

    const auto text = run({"info", m_model}, withoutDisplay());
    QCOMPARE(text.code, 0);
    QVERIFY2(text.out.contains("4 × "), text.out.constData());
}

/// The optimum, random plans and a plan from a file equal the whole model when they are run.
void TestCli::plansAreVerified() {
    const QString large = QStringLiteral(SHARDLENS_SOURCE "/samples/llama3-8b.json");
    const QStringList place = {"--mesh", "dp=2,tp=2", "--batch", "8", "--seq", "512"};
    const auto verified = [&](const QString& model, const QStringList& more) {
        const auto outcome =
            run(QStringList{"verify", model, "--json"} + place + more, withoutDisplay());
        return std::pair(outcome.code, Json::parse(outcome.out.constData(), nullptr, false));
    };
    const auto [code, optimum] = verified(large, {});
    QCOMPARE(code, 0);
    QCOMPARE(optimum.at("plans").size(), std::size_t{1});
    QVERIFY(optimum.at("plans")[0].at("agrees").get<bool>());
    QVERIFY(optimum.at("plans")[0].at("difference").get<double>() < 1e-9);
    QVERIFY(!optimum.at("plans")[0].at("collectives").empty());

    const auto [randomCode, random] = verified(m_model, {"--random", "5"});
    QCOMPARE(randomCode, 0);
    QCOMPARE(random.at("plans").size(), std::size_t{5});

    // What the planner found for the real sizes, on a cluster of as many devices.
    const auto plan = run(QStringList{"plan", large, "--json", "--devices-per-node", "4"} + place,
                          withoutDisplay());
    QCOMPARE(plan.code, 0);
    const auto [fileCode, fromFile] = verified(large, {"--plan", write("plan.json", plan.out)});
    QCOMPARE(fileCode, 0);
    QVERIFY(fromFile.at("plans")[0].at("agrees").get<bool>());

    const auto text = run(QStringList{"verify", m_model} + place, withoutDisplay());
    QCOMPARE(text.code, 0);
    QVERIFY2(text.out.contains("equals the whole model"), text.out.constData());
    QVERIFY2(text.out.contains("as predicted"), text.out.constData());
    const auto wrong =
        run(QStringList{"verify", m_model, "--plan", m_model} + place, withoutDisplay());
    QCOMPARE(wrong.code, 1);
    QVERIFY2(wrong.error.contains("no plan"), wrong.error.constData());
}

void TestCli::planJsonHasItsKeys() {
    const Json plan = planJson();
    QVERIFY(plan.is_object());
    for (const char* key : {"time_s", "bound_s", "gap", "optimal", "memory_bytes", "solve_ms",
                            "classes", "ops", "collectives"}) {
        QVERIFY2(plan.contains(key), key);
    }
    QVERIFY(plan.at("time_s").get<double>() > 0);
    QVERIFY(plan.at("bound_s").get<double>() <= plan.at("time_s").get<double>() * (1 + 1e-12));
    QCOMPARE(plan.at("optimal").get<bool>(), plan.at("gap").get<double>() == 0);
    for (const auto& op : plan.at("ops")) {
        for (const char* key : {"name", "kind", "class", "choice"}) QVERIFY2(op.contains(key), key);
    }
}

void TestCli::planIsTheSameEveryTime() {
    const auto withoutClock = [](Json plan) {
        plan.erase("solve_ms");
        plan.erase("build_ms");
        return plan;
    };
    const Json plan = planJson();
    QVERIFY(plan.is_object());
    QVERIFY(withoutClock(plan) == withoutClock(planJson()));
}

void TestCli::planReportNamesWhatWasAsked() {
    const auto outcome = run(QStringList{"plan", m_model} + kSmallPlan, withoutDisplay());
    QCOMPARE(outcome.code, 0);
    QVERIFY2(outcome.out.contains("dgx-a100"), outcome.out.constData());
    QVERIFY2(outcome.out.contains("dp=2,tp=4"), outcome.out.constData());
    QCOMPARE(outcome.error, QByteArray());
}

void TestCli::pinsHold() {
    const Json plan = planJson({"--pin", "*=replicated"});
    QVERIFY(plan.is_object());
    for (const auto& op : plan.at("ops")) {
        QCOMPARE(op.at("choice").get<std::string>(), std::string("replicated"));
    }
    QVERIFY(plan.at("time_s").get<double>() >= planJson().at("time_s").get<double>());
}

void TestCli::withoutDisplayTheReportIsPrinted() {
    const auto outcome = run({m_model}, withoutDisplay());
    QVERIFY(!outcome.crashed);
    QCOMPARE(outcome.code, 0);
    QVERIFY2(isOneSentence(outcome.error), outcome.error.constData());
    QVERIFY(outcome.error.contains("no display"));
    QVERIFY(outcome.out.size() > 100);
}

void TestCli::unreachableDisplayIsNoDisplay() {
    auto environment = withoutDisplay();
    environment.insert("DISPLAY", ":4711"); // nobody serves it
    const auto outcome = run({m_model}, environment);
    QVERIFY2(!outcome.crashed, outcome.error.constData());
    QCOMPARE(outcome.code, 0);
    QVERIFY2(isOneSentence(outcome.error), outcome.error.constData());
    QCOMPARE(outcome.out.isEmpty(), false);
}

void TestCli::screenshotIsDrawn() {
    const QString light = path("light.png"), dark = path("dark.png");
    QCOMPARE(run({"screenshot", m_model, light, "--size", "1200x800"}, withoutDisplay()).code, 0);
    QCOMPARE(run({"screenshot", m_model, dark, "--size", "1200x800", "--dark"}).code, 0);
    const QImage lightImage(light), darkImage(dark);
    QCOMPARE(lightImage.size(), QSize(1200, 800));
    QCOMPARE(darkImage.size(), QSize(1200, 800));
    const auto brightness = [](const QImage& image) {
        return qGray(
            image.scaled(1, 1, Qt::IgnoreAspectRatio, Qt::SmoothTransformation).pixel(0, 0));
    };
    QVERIFY(brightness(lightImage) > 160);
    QVERIFY(brightness(darkImage) < 96);
}

void TestCli::sessionIsPlannedAsItStands() {
    shardlens::NewSession content;
    content.request.cluster = "dgx-a100";
    content.request.mesh = {{"dp", 2}, {"tp", 4}};
    content.request.sequence = 128;
    content.request.pins = {{"*down_proj", "replicated"}};
    const auto bundle =
        shardlens::loadModel(m_model.toStdString(), shardlens::importOptions(content.request));
    content.model = shardlens::describeModelFile(m_model.toStdString(), bundle.source->format);
    content.graph = shardlens::graphToJson(*bundle.source);
    const QString file = path("mine.shardlens");
    { const auto session = shardlens::Session::create(file.toStdString(), content); }
    const QByteArray before = read(file);

    const auto plan = [&](const QStringList& more) {
        return Json::parse(run(QStringList{"plan", file, "--json"} + more).out.constData(), nullptr,
                           false);
    };
    const Json own = plan({});
    QVERIFY(own.is_object());
    QCOMPARE(own.at("cluster").get<std::string>(), std::string("dgx-a100"));
    const Json direct = planJson({"--pin", "*down_proj=replicated"});
    QCOMPARE(own.at("time_s").get<double>(), direct.at("time_s").get<double>());
    // Options change the request; another batch reads the model's file anew.
    const Json larger = plan({"--batch", "16"});
    QVERIFY(larger.at("time_s").get<double>() > own.at("time_s").get<double>());
    QCOMPARE(read(file), before);
}

void TestCli::sessionIsKnownToTheDesktop() {
    // Installed, our types stand in one folder with all the others; so they do here.
    const QString system = "/usr/share/mime/packages/freedesktop.org.xml";
    if (!QFile::exists(system)) QSKIP("the desktop's own types (shared-mime-info) are not here");
    const QString packages = path("share/mime/packages");
    QVERIFY(QDir().mkpath(packages));
    QVERIFY(QFile::copy(system, packages + "/freedesktop.org.xml"));
    QVERIFY(QFile::copy(SHARDLENS_SOURCE "/packaging/linux/org.shardlens.Shardlens.mime.xml",
                        packages + "/org.shardlens.Shardlens.xml"));
    qputenv("XDG_DATA_HOME", path("share").toUtf8());
    qputenv("XDG_DATA_DIRS", path("share").toUtf8());
    shardlens::NewSession content;
    const auto bundle = shardlens::loadModel(m_model.toStdString());
    content.model = shardlens::describeModelFile(m_model.toStdString(), bundle.source->format);
    content.graph = shardlens::graphToJson(*bundle.source);
    const QString file = path("without-suffix"); // by content, not by name
    { const auto session = shardlens::Session::create(file.toStdString(), content); }
    QCOMPARE(QMimeDatabase().mimeTypeForData(read(file)).name(),
             QString("application/vnd.shardlens.session+sqlite3"));
}

void TestCli::fullDiskIsAnError() {
    if (!QFile::exists("/dev/full")) QSKIP("there is no /dev/full here");
    QProcess process;
    process.setStandardOutputFile("/dev/full");
    process.start(QStringLiteral(SHARDLENS_PROGRAM), {"clusters"});
    QVERIFY(process.waitForFinished());
    QCOMPARE(process.exitCode(), 1);
    QVERIFY(isOneSentence(process.readAllStandardError()));
}

SHARDLENS_TEST(TestCli)

} // namespace tst_cli

#include "tst_cli.moc"
