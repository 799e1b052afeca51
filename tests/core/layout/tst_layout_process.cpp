// SPDX-License-Identifier: Apache-2.0
// Graphviz in a helper process: answers, and what happens when the helper is slow, dead, lying or
// missing. No descriptor and no process may be left behind by any of it.
#include "core/error.h"
#include "core/layout/layered_layout.h"
#include "core/layout/layout_json.h"
#include "core/layout/layout_process.h"
#include "tests/core/layout/layout_graphs.h"
#include "tests/test_program.h"

#include <sys/wait.h>

#include <QProcess>
#include <QTest>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

namespace tst_layout_process {

using namespace shardlens;
using namespace shardlens::test;

namespace {

std::ptrdiff_t openDescriptors() {
    return std::ranges::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                 std::filesystem::directory_iterator());
}

bool hasChildren() {
    return waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD;
}

// Far beyond what a layout takes, so that the limit plays no part.
constexpr double patient = 600;

} // namespace

class TestLayoutProcess : public QObject {
    Q_OBJECT

private slots:
    void init() { m_descriptors = openDescriptors(); }
    void cleanup() {
        QCOMPARE(openDescriptors(), m_descriptors);
        QVERIFY(!hasChildren());
    }

    void inputSurvivesJson() {
        LayoutInput input = randomCyclic(30, 50, 1);
        input.boxes[3] = {1.0 / 3, 1e-300};
        input.rankGap = 0.1;
        input.leftToRight = true;
        QVERIFY(layoutInputFromJson(layoutInputToJson(input)) == input);
    }

    void resultSurvivesJson() {
        LayoutResult result = layeredLayout(training(transformer(8).input));
        result.note = "a \"note\"\nwith two lines";
        QVERIFY(std::ranges::any_of(result.routes, &LayoutRoute::sideChannel));
        const std::string json = layoutResultToJson(result);
        QVERIFY(json.find('\n') == std::string::npos);
        QVERIFY(layoutResultFromJson(json) == result);
    }

    void refusesBadJson_data() {
        QTest::addColumn<QString>("text");
        for (const char* text :
             {"", "null", "[]", "{", R"({"boxes": 3})", R"({"boxes": [[1]], "edges": []})",
              R"({"boxes": [["a", 1]], "edges": [], "rank_gap": 1, "node_gap": 1,
                  "left_to_right": false})",
              R"({"boxes": [[1, 1]], "edges": [[0, -1]], "rank_gap": 1, "node_gap": 1,
                  "left_to_right": false})",
              R"({"centres": [], "routes": [], "side_channels": [5], "width": 0, "height": 0,
                  "engine": "", "note": ""})",
              R"({"centres": [], "routes": [[1, 2, 3]], "side_channels": [], "width": 0,
                  "height": 0, "engine": "", "note": ""})",
              R"({"error": "so it is"})"})
            QTest::addRow("%.40s", text) << QString(text);
    }
    void refusesBadJson() {
        QFETCH(QString, text);
        QVERIFY_THROWS_EXCEPTION(InputError, layoutInputFromJson(text.toStdString()));
        QVERIFY_THROWS_EXCEPTION(InputError, layoutResultFromJson(text.toStdString()));
    }

    void answers() {
        const LayoutInput input = transformer(3).input;
        const LayoutResult result = HelperLayouter(LAYOUT_HELPER, {}, patient).layout(input);
        QCOMPARE(result.note, std::string());
        QCOMPARE(result.engine, std::string("graphviz"));
        QCOMPARE(defect(input, result), std::string());
    }

    // Larger than a socket's buffer in both directions.
    void answersLargeQuestions() {
        const LayoutInput input = binaryForest(4000);
        const LayoutResult result = HelperLayouter(LAYOUT_HELPER, {}, patient).layout(input);
        QCOMPARE(result.note, std::string());
        QCOMPARE(defect(input, result), std::string());
    }

    void answersManyThreads() {
        const LayoutInput input = transformer(2).input;
        const HelperLayouter helper(LAYOUT_HELPER, {}, patient);
        const LayoutResult expected = helper.layout(input);
        std::vector<LayoutResult> results(4);
        {
            std::vector<std::jthread> threads;
            for (LayoutResult& result : results)
                threads.emplace_back([&] { result = helper.layout(input); });
        }
        for (const LayoutResult& result : results) QVERIFY(result == expected);
    }

    // One process, one layout after another: what Graphviz keeps between layouts does no harm.
    void laysOutSixtyTimesInARow() {
        QProcess helper;
        helper.start(LAYOUT_HELPER, {"--layout-helper"});
        QVERIFY(helper.waitForStarted());
        std::map<QByteArray, int> answers;
        for (int i = 0; i < 60; ++i) {
            const auto seed = static_cast<unsigned>(i % 3);
            helper.write(
                QByteArray::fromStdString(layoutInputToJson(randomLocal(40, 60, 10, seed)) + '\n'));
            while (!helper.canReadLine()) QVERIFY(helper.waitForReadyRead());
            const QByteArray line = helper.readLine();
            ++answers[line];
            QCOMPARE(layoutResultFromJson(line.toStdString()).engine, std::string("graphviz"));
        }
        QCOMPARE(answers.size(), std::size_t{3});
        for (const auto& [line, count] : answers) QCOMPARE(count, 20);
        helper.closeWriteChannel();
        QVERIFY(helper.waitForFinished());
        QCOMPARE(helper.exitCode(), 0);
        QCOMPARE(helper.readAllStandardError(), QByteArray());
    }

    void survivesBadHelpers_data() {
        QTest::addColumn<QString>("executable");
        QTest::addColumn<QString>("mode");
        QTest::addColumn<double>("limit");
        QTest::addColumn<QString>("reason");
        QTest::addRow("slow") << LAYOUT_HELPER << "--sleep" << 0.2 << "too long";
        QTest::addRow("dead") << LAYOUT_HELPER << "--exit" << patient << "layout helper";
        QTest::addRow("garbage") << LAYOUT_HELPER << "--garbage" << patient << "not a valid";
        QTest::addRow("half") << LAYOUT_HELPER << "--half" << patient << "without an answer";
        QTest::addRow("other graph") << LAYOUT_HELPER << "--other" << patient << "instead of";
        QTest::addRow("endless") << LAYOUT_HELPER << "--endless" << patient << "does not end";
        QTest::addRow("missing") << "/nowhere/helper" << "" << patient << "/nowhere/helper";
        QTest::addRow("no program") << "/proc/self/status" << "" << patient << "/proc/self/status";
    }
    void survivesBadHelpers() {
        QFETCH(QString, executable);
        QFETCH(QString, mode);
        QFETCH(double, limit);
        QFETCH(QString, reason);
        const LayoutInput input = transformer(3).input;
        const HelperLayouter helper(executable.toStdString(), {mode.toStdString()}, limit);
        LayoutResult result = helper.layout(input);
        QVERIFY2(result.note.find(reason.toStdString()) != std::string::npos, result.note.c_str());
        result.note.clear();
        QVERIFY(result == layeredLayout(input));
    }

    void isCancelled() {
        std::stop_source stop;
        const std::jthread other([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            stop.request_stop();
        });
        const HelperLayouter helper(LAYOUT_HELPER, {"--sleep"}, patient);
        QVERIFY_THROWS_EXCEPTION(Cancelled, helper.layout(transformer(1).input, stop.get_token()));
    }

    void worksInABackgroundThread() {
        const LayoutInput input = transformer(1).input;
        LayoutResult result;
        std::jthread([&] {
            result = HelperLayouter(LAYOUT_HELPER, {}, patient).layout(input);
        }).join();
        QCOMPARE(result.engine, std::string("graphviz"));
    }

    void refusesBadInput() {
        LayoutInput input;
        input.edges = {{0, 1}};
        QVERIFY_THROWS_EXCEPTION(InputError,
                                 HelperLayouter(LAYOUT_HELPER, {}, patient).layout(input));
    }

private:
    static LayoutInput binaryForest(std::uint32_t boxes) {
        LayoutInput input;
        input.boxes.assign(boxes, {100.0 / 3, 70.0 / 3});
        for (std::uint32_t i = 1; i < boxes; ++i)
            if (i % 4 != 0) input.edges.push_back({i - 1, i});
        return input;
    }

    std::ptrdiff_t m_descriptors = 0;
};

SHARDLENS_TEST(TestLayoutProcess)

} // namespace tst_layout_process

#include "tst_layout_process.moc"
