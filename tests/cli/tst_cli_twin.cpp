// SPDX-License-Identifier: Apache-2.0
// `shardlens info LOCAL --twin WHOLE`: the plan of a partitioned program, as text and as JSON.
#include "tests/cli/program.h"
#include "tests/test_program.h"

#include <nlohmann/json.hpp>

#include <QFile>
#include <QFloat16> // a conversion from JSON wants the type whole
#include <QTemporaryDir>
#include <QTest>

namespace tst_cli_twin {

using namespace shardlens::test;
using Json = nlohmann::json;

namespace {

QByteArray column(const char* width, const char* gather) {
    return QByteArray("class GraphModule(torch.nn.Module):\n"
                      "    def forward(self, p_w: \"f32[16, ") +
           width +
           "]\", x: \"f32[4, 16]\"):\n"
           "        mm: \"f32[4, " +
           width + "]\" = torch.ops.aten.mm.default(x, p_w)\n" + gather + "        return (mm,)\n";
}

} // namespace

class TestCliTwin : public QObject {
    Q_OBJECT

private slots:
    void initTestCase();
    void planIsPrinted();
    void megatron();
    void errors();

private:
    QString write(const char* name, const QByteArray& content) const;

    QTemporaryDir m_dir;
    QString m_whole, m_local;
};

QString TestCliTwin::write(const char* name, const QByteArray& content) const {
    QFile file(m_dir.filePath(QString::fromLatin1(name)));
    if (!file.open(QIODevice::WriteOnly) || file.write(content) != content.size()) return {};
    return file.fileName();
}

void TestCliTwin::initTestCase() {
    QVERIFY(m_dir.isValid());
    m_whole = write("whole.py", column("32", ""));
    m_local = write("local.py", column("8", ""));
    QVERIFY(!m_whole.isEmpty() && !m_local.isEmpty());
}

void TestCliTwin::planIsPrinted() {
    const auto text = run({"info", m_local, "--twin", m_whole}, withoutDisplay());
    QCOMPARE(text.code, 0);
    QCOMPARE(text.error, QByteArray());
    QVERIFY2(text.out.contains("tensor parallel 4"), text.out.constData());
    QVERIFY2(text.out.contains("n@tp"), text.out.constData());
    const auto outcome = run({"info", m_local, "--twin", m_whole, "--json"}, withoutDisplay());
    const Json json = Json::parse(outcome.out.constData(), nullptr, false);
    QVERIFY(json.is_object());
    QCOMPARE(json.at("recognised").get<std::string>(), std::string("tensor parallel 4"));
    QCOMPARE(json.at("devices").get<int>(), 4);
    QVERIFY(json.at("mismatches").empty());
    QCOMPARE(json.at("matched"), json.at("ops"));
}

void TestCliTwin::megatron() {
    const QString folder = QStringLiteral(SHARDLENS_SHARED "/data/models/fx/");
    if (!QFile::exists(folder)) QSKIP("the folder of real models is not here");
    const auto outcome = run({"info", folder + "gpt_paral2_layer8_fw.g0.r0.py.txt", "--twin",
                              folder + "gpt_paral1_layer8_fw.g0.r0.py.txt", "--json"},
                             withoutDisplay());
    QCOMPARE(outcome.code, 0);
    const Json json = Json::parse(outcome.out.constData(), nullptr, false);
    QVERIFY(json.is_object());
    QCOMPARE(json.at("recognised").get<std::string>(),
             std::string("tensor parallel 2, sequence parallel 2, vocabulary parallel 2"));
    for (const char* empty : {"mismatches", "missing_reductions", "unexplained_collectives"})
        QVERIFY2(json.at(empty).empty(), empty);
    for (const Json& c : json.at("collectives")) QCOMPARE(c.at("local"), c.at("plan"));
}

void TestCliTwin::errors() {
    for (const QStringList& arguments :
         {QStringList{"info", m_local, "--twin", m_dir.filePath("none.py")},
          QStringList{"info", m_dir.filePath("none.py"), "--twin", m_whole}}) {
        const auto outcome = run(arguments, withoutDisplay());
        QCOMPARE(outcome.code, 1);
        QCOMPARE(outcome.out, QByteArray());
        QVERIFY2(isOneSentence(outcome.error), outcome.error.constData());
        QVERIFY(outcome.error.contains("none.py"));
    }
    QCOMPARE(run({"info", m_local, "--twin"}, withoutDisplay()).code, 2);
}

SHARDLENS_TEST(TestCliTwin)

} // namespace tst_cli_twin

#include "tst_cli_twin.moc"
